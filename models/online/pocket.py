"""The pocket: of all vectors that could be served, the one that ranks the judged documents best.

    L(v)    SAP of the judged documents, ranked by v with all that it has learned from them
    H(v)    the same, each document's own step taken back first

    1. Of the current vectors, of each learner the last and the average, that with the highest L + H is chosen.
    2. If L of the pocketed vector is higher than L of this one, it is served as it was: Gallant's pocket, as in Lewis,
       Schapire, Callan & Papka, "Training algorithms for linear text classifiers", SIGIR 1996, section 7.2. Otherwise
       the chosen one is pocketed and served, and what its learner learns until the next check is served at once.

By what they have learned by heart, current vectors cannot be compared: L is 1 in four checks of five, and the first
would win by ties.

Three things differ from the paper, because examples arrive one by one and the topic changes meanwhile:

* all candidates, the pocketed one too, are ranked on the same *current* window of judged documents: a SAP measured long
  ago on other documents means nothing;
* a check comes about every ten judgements, and more rarely when there are many, so that a replay of n judgements costs
  n log n, not n²;
* the window has judged documents only: which vector wins depends on the log alone, not on the stream around it.

Why not H alone? A step that is taken back whole is taken back too far: had the document not been learned, later steps
would have made up for some of it. An old vector has no steps of the newest documents to lose, so by H it wins in four
checks of five, and goes stale: between old and new L decides, as in the paper. Current vectors lose alike, but not
equally (a multiplicative learner most), and L + H serves all of them. docs/experiments.md#the-pocket has what each rule
gains, with the background as irrelevant documents and without.

On a tie the earlier vector wins: the first learner, what it prefers, and current ones before the pocketed one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from models.core.names import PocketScores
from models.learners.base import Vector

CHECK_EVERY = 10  # judgements
WINDOW_SIZE = 5000  # judged documents


@dataclass(frozen=True, slots=True, eq=False)
class PocketCandidate:
    """The vector at place `which` among those of a run, the run being at place `run` in its topic."""

    run: int
    which: int
    vector: Vector


@dataclass(frozen=True, slots=True)
class PocketParams:
    every: int | None = CHECK_EVERY  # judgements; None: no checks, the newest vector of the first learner is served
    by: PocketScores = "both"  # what current vectors are compared by: L + H, H or L


def check_interval(n: int, every: int = CHECK_EVERY) -> int:
    """The number of judgements from the n-th to the next check."""
    return max(every, n // 50)


class Choice(NamedTuple):
    """What is served: the current vector at this place, or, if that is None, the pocketed one as it was."""

    place: int | None
    sap: float


def choose(by: PocketScores, held_out: Sequence[float], learned: Sequence[float], pocketed: float | None) -> Choice:
    """H and L of the current vectors, the preferred ones first, and L of the pocketed one, if there is any."""
    values = {"held_out": held_out, "learned": learned, "both": [h + s for h, s in zip(held_out, learned, strict=True)]}
    winner = max(range(len(learned)), key=values[by].__getitem__)  # the earliest of equals
    if pocketed is not None and pocketed > learned[winner]:
        return Choice(None, pocketed)
    return Choice(winner, learned[winner] if by == "learned" else held_out[winner])
