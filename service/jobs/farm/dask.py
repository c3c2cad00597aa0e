"""A crew for models/batch/farm.py: the workers of a Dask cluster, for what one machine is too small or too slow for.

    with Client("tcp://scheduler:8786") as client:
        planes = farm.fit(Params(), x, labels, Cluster(client))

Every worker process holds one actor: its part, which it is sent once, and D and W, which never leave it. In a round it
is told what was chosen and answers its candidates. Dask runs all actors of a process in one thread, so a machine of
eight cores wants eight processes (`dask worker --nworkers 8 --nthreads 1`). Sluice must be installed where they run.

Actors are not made again: what a lost one knew is lost. Dask may wait for it for ever (for a worker to come back, or
for an answer that failed in a way it did not expect), so that we look every second whether all are still there.

Scheduler, client and security are the user's: Sluice has no cluster of its own. Needs the extra `dask`.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from distributed import CancelledError, Client, KilledWorker

from models.batch.boosting import Ask, Candidates, Chosen
from models.batch.farm import WorkerDied, WorkerShare
from models.batch.matrix import Labels

LOOK_S = 1.0
DIED = "a worker of the Dask cluster, or its scheduler, has died"


class Cluster:
    """The workers that this client's scheduler has now."""

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
        with _noticed():
            hands = [self._hire(*each, labels) for each in zip(shares, workers, strict=True)]
        try:
            actors = [self._result(hand, workers) for hand in hands]

            def ask(chosen: Chosen | None, K: int) -> list[Candidates]:
                try:
                    answers = [actor.next(chosen, K) for actor in actors]
                except RuntimeError as e:  # "Worker holding Actor was lost"
                    raise WorkerDied(DIED) from e
                return [self._result(answer, workers, hands) for answer in answers]

            yield ask
        finally:
            for hand in hands:
                hand.release()

    def _hire(self, part: WorkerShare, worker: str, labels: Labels) -> Any:
        given = self._client.scatter([part, labels], workers=[worker], hash=False)
        return self._client.submit(Hand, *given, workers=[worker], actor=True, pure=False)

    def _result(self, future: Any, workers: Sequence[str], hands: Sequence[Any] = ()) -> Any:
        """Of an actor that is being made, or of its answer: then all actors must have been made, and be there."""
        with _noticed():
            while True:
                try:
                    return future.result(timeout=LOOK_S)
                except TimeoutError:
                    here = self._client.nthreads()
                    if not here.keys() >= set(workers) or any(hand.status != "finished" for hand in hands):
                        raise WorkerDied(DIED) from None


@contextmanager
def _noticed() -> Iterator[None]:
    """What Dask says when it has lost a worker, or its scheduler, in words of ours."""
    try:
        yield
    except (OSError, CancelledError, KilledWorker) as e:
        raise WorkerDied(DIED) from e


class Hand:
    """What lives in a worker process of the cluster."""

    def __init__(self, part: WorkerShare, labels: Labels) -> None:
        self._rounds = part.rounds(labels)

    def next(self, chosen: Chosen | None, K: int) -> Candidates:
        return self._rounds.next(chosen, K)
