"""A crew for models/methods/farm.py: processes of this machine, the calling process included.

    with Processes(2) as crew:
        planes = farm.fit(Params(), x, labels, crew)

Each of the others has a pipe, over which it receives its share, once, and then the choice of each round. All work at
the same time, the calling process, too. A crew can do several fits, one after the other; it takes a second to start.

Workers are spawned, not forked, whatever threads their parent has, and end with it, because their pipe closes. When one
dies, or a fit is interrupted, which leaves a reply in a pipe that nobody will read, the whole crew ends.

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

from models.methods.boosting import Ask, Candidates, Chosen
from models.methods.farm import MAX_WORKERS, WorkerDied, WorkerShare
from models.methods.matrix import Labels


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
                theirs.close()  # so that the death of a worker closes its pipe, and is noticed here
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
            for pipe, share in zip(pipes, shares[1:], strict=True):
                _send(pipe, (share, labels))
            rounds = shares[0].rounds(labels)

            def ask(chosen: Chosen | None, K: int) -> list[Candidates]:
                for pipe in pipes:
                    _send(pipe, (chosen, K))
                return [rounds.next(chosen, K), *map(_receive, pipes)]

            yield ask
            for pipe in pipes:
                _send(pipe, None)
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


def _send(pipe: Connection, message: object) -> None:
    try:
        pipe.send(message)
    except OSError as e:
        raise WorkerDied("a worker of the farm has died") from e


def _receive(pipe: Connection) -> Candidates:
    try:
        candidates: Candidates = pipe.recv()
    except (EOFError, OSError) as e:
        raise WorkerDied("a worker of the farm has died") from e
    return candidates


def _work(pipe: Connection) -> None:
    """Serves fits until the pipe closes. Of each: a share and labels; choices, each with a reply; None at its end."""
    try:
        while True:
            share, labels = pipe.recv()
            rounds = share.rounds(labels)
            del share
            while (message := pipe.recv()) is not None:
                pipe.send(rounds.next(*message))
            del rounds
    except EOFError:
        return
