"""A crew for models/batch/farm.py: processes of this machine, of which the one that asks is the first.

    with Processes(2) as crew:
        planes = farm.fit(Params(), x, labels, crew)

Each of the others has a pipe, over which it is sent its part, once, and then what was chosen, round by round. All work
at the same time, this process too. A crew may do several fits, one after the other; starting it takes about a second.

Workers are started anew (`spawn`), whatever threads their parent has, and end with it: their pipe closes. When one
dies, or a fit is broken off, which leaves an answer in a pipe that nobody will read, the whole crew ends.

Rejected: threads, which the kernels would allow, but every other thread of the process would wait for the interpreter
between two kernels; and shared memory, which stays behind when its owner is killed, and saves one copy of the terms.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import TracebackType
from typing import Self

from models.batch.boosting import Ask, Candidates, Chosen
from models.batch.farm import MAX_WORKERS, WorkerDied, WorkerShare
from models.batch.matrix import Labels


class Processes:
    def __init__(self, size: int) -> None:
        if not 1 <= size <= MAX_WORKERS:
            raise ValueError(f"processes must be a whole number from 1 to {MAX_WORKERS}")
        self._size = size
        self._workers: list[tuple[BaseProcess, Connection]] = []

    @property
    def size(self) -> int:
        return self._size

    def __enter__(self) -> Self:
        context = multiprocessing.get_context("spawn")
        try:
            for _ in range(self._size - 1):
                ours, theirs = context.Pipe()
                process = context.Process(target=_work, args=(theirs,), daemon=True)
                self._workers.append((process, ours))
                process.start()
                theirs.close()  # so that a worker's death closes its pipe, and is noticed here
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()

    @contextmanager
    def assign(self, shares: Sequence[WorkerShare], labels: Labels) -> Iterator[Ask]:
        if len(self._workers) < self._size - 1:
            raise RuntimeError("the crew has ended")
        pipes = [pipe for _, pipe in self._workers][: len(shares) - 1]
        try:
            for pipe, part in zip(pipes, shares[1:], strict=True):
                _tell(pipe, (part, labels))
            own = shares[0].rounds(labels)

            def ask(chosen: Chosen | None, K: int) -> list[Candidates]:
                for pipe in pipes:
                    _tell(pipe, (chosen, K))
                return [own.next(chosen, K), *map(_answer, pipes)]

            yield ask
            for pipe in pipes:
                _tell(pipe, None)
        except BaseException:
            self._end()
            raise

    def _end(self) -> None:
        for process, pipe in self._workers:
            pipe.close()
            if process.pid is not None:
                process.terminate()
                process.join()
                process.close()
        self._workers.clear()


def _tell(pipe: Connection, message: object) -> None:
    try:
        pipe.send(message)
    except OSError as e:
        raise WorkerDied("a worker of the farm has died") from e


def _answer(pipe: Connection) -> Candidates:
    try:
        answer: Candidates = pipe.recv()
    except (EOFError, OSError) as e:
        raise WorkerDied("a worker of the farm has died") from e
    return answer


def _work(pipe: Connection) -> None:
    """Until nobody will ask any more: a part and labels; then choices, each answered; then that the fit has ended."""
    try:
        while True:
            part, labels = pipe.recv()
            rounds = part.rounds(labels)
            del part
            while (message := pipe.recv()) is not None:
                pipe.send(rounds.next(*message))
            del rounds
    except EOFError:
        return
