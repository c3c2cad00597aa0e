"""A crew for models/methods/farm.py: the workers of a Dask cluster, for data that is too much for one machine.

    with Client("tcp://scheduler:8786") as client:
        planes = farm.fit(Params(), x, labels, Cluster(client))

Every worker process holds one actor with its share, which is sent once, and with D and W, which never leave it. In each
round the actor receives the choice and returns its candidates. Dask runs all actors of a process in one thread, so a
machine with eight cores needs eight processes (`dask worker --nworkers 8 --nthreads 1`), with Sluice installed.

A lost actor is not replaced, since its state is lost. Dask may wait for it forever (for a worker to come back, or for a
result that failed in a way it did not expect), so `_result` checks every second whether all are still there.

Scheduler, client and security are the user's: Sluice has no cluster of its own. Needs the extra `dask`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from distributed import CancelledError, Client, KilledWorker

from models.methods.boosting import Ask, Candidates, Chosen
from models.methods.farm import WorkerDied, WorkerShare
from models.methods.matrix import Labels

POLL_S = 1.0
DIED = "a worker of the Dask cluster, or its scheduler, has died"


class Cluster:
    """The workers that the client's scheduler has now."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._workers = sorted(client.nthreads())
        if not self._workers:
            raise ValueError("the Dask cluster has no workers yet: see Client.wait_for_workers")

    @property
    def size(self) -> int:
        return len(self._workers)

    @contextmanager
    def assign(self, shares: Sequence[WorkerShare], labels: Labels) -> Iterator[Ask]:
        workers = self._workers[: len(shares)]
        with _translated_errors():
            futures = [self._start(share, worker, labels) for share, worker in zip(shares, workers, strict=True)]
        try:
            actors = [self._result(future, workers) for future in futures]

            def ask(chosen: Chosen | None, K: int) -> list[Candidates]:
                try:
                    replies = [actor.next(chosen, K) for actor in actors]
                except RuntimeError as e:  # "Worker holding Actor was lost"
                    raise WorkerDied(DIED) from e
                return [self._result(reply, workers, futures) for reply in replies]

            yield ask
        finally:
            for future in futures:
                future.release()

    def _start(self, share: WorkerShare, worker: str, labels: Labels) -> Any:
        arguments = self._client.scatter([share, labels], workers=[worker], hash=False)
        return self._client.submit(FarmActor, *arguments, workers=[worker], actor=True, pure=False)

    def _result(self, future: Any, workers: Sequence[str], actors: Sequence[Any] = ()) -> Any:
        """Waits for an actor, or for its reply, as long as all workers are there, and all actors that exist already."""
        with _translated_errors():
            while True:
                try:
                    return future.result(timeout=POLL_S)
                except TimeoutError:
                    alive = self._client.nthreads().keys() >= set(workers)
                    if not alive or any(actor.status != "finished" for actor in actors):
                        raise WorkerDied(DIED) from None


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Raises WorkerDied for the errors with which Dask reports a lost worker or scheduler."""
    try:
        yield
    except (OSError, CancelledError, KilledWorker) as e:
        raise WorkerDied(DIED) from e


class FarmActor:
    """A worker's state, which lives in a process of the cluster."""

    def __init__(self, share: WorkerShare, labels: Labels) -> None:
        self._rounds = share.rounds(labels)

    def next(self, chosen: Chosen | None, K: int) -> Candidates:
        return self._rounds.next(chosen, K)
