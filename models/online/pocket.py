"""The pocket: of all vectors that could be served, the one that ranks the judged documents best.

Gallant's pocket algorithm as Lewis, Schapire, Callan & Papka (1996) use it: keep the best vector so far by SAP. Three
things differ, because examples arrive one by one and the topic changes meanwhile:

* all candidates, the pocketed one too, are ranked on the same *current* window of judged documents: a SAP measured long
  ago on other documents means nothing;
* a check comes about every ten judgements, and more rarely when there are many, so that a replay of n judgements costs
  n log n, not n²;
* the window has judged documents only: which vector wins depends on the log alone, not on the stream around it.

Documents are ranked with all that a vector has learned from them. Taking each one's own step back first, as thresholds
must, was tried and costs .04 of average precision: an old vector has not learned the newest documents and loses
nothing, the current one loses its step on each, so the pocket goes stale.

Against the newest vector, from the same judgements, the pocket gains .004 to .027 of AP for EG, −.004 to .010 for
Winnow and −.006 to .046 for Widrow-Hoff on three corpora. More candidates, other windows, margins and means do not
help: docs/experiments.md#the-pocket.

On a tie the newer vector wins. If the winner is the current vector of a learner, that learner is *live*: what it learns
until the next check is served at once. If it is the pocketed copy, that is served as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from models.core.measures import Bools, sap
from models.core.vectors import Reals
from models.learners.base import Vector

CHECK_EVERY = 10  # judgements
WINDOW_SIZE = 5000  # judged documents


@dataclass(frozen=True, slots=True, eq=False)
class PocketCandidate:
    """The vector at place `which` among those of a run, the run being at place `run` in its topic."""

    run: int
    which: int
    vector: Vector


def check_interval(n: int) -> int:
    """The number of judgements from the n-th to the next check."""
    return max(CHECK_EVERY, n // 50)


def best(rankings: Sequence[Reals], relevant: Bools) -> tuple[int, float]:
    """The place of the ranking with the highest SAP, the earliest of equals, and that SAP."""
    saps = [sap(ranking, relevant) for ranking in rankings]
    winner = max(range(len(saps)), key=saps.__getitem__)
    return winner, saps[winner]
