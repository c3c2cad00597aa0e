"""The pocket: of all vectors that could be served, the one that ranks the judged documents best.

Gallant's pocket algorithm as Lewis, Schapire, Callan & Papka (1996) use it: keep the best vector seen so far by SAP.
Three things differ, because the data arrive one by one and the topic changes while they do:

* all candidates, the pocketed one too, are ranked on the same *current* window of judged documents: a SAP measured long
  ago on other documents says nothing;
* about every ten judgements, more rarely as they grow many, so that a replay of n judgements costs n log n, not n²;
* the window holds judged documents only: which vector wins depends on the log alone, not on the stream around it.

Documents are ranked with all that a vector has learned from them. Taking each one's own step back first, as thresholds
must, was tried and costs .04 of average precision: an old vector meets the newest documents as a stranger and pays
nothing, the current one pays for every document it knows, so the pocket goes stale.

More candidates do not help. With an average that favours later vectors (k = 4 in the words of wh.py) beside the last
vector and the plain average, from the same judgements and on the last quarter of the training documents of Reuters, AP
is .767 instead of .763 for EG (without a pocket .713) and .784 instead of .787 for Winnow (.783); on the quarter before
that .804 instead of .802, and .838 instead of .840. A margin of .01 in favour of newer vectors costs EG up to .005.

What it gains depends on the stream, since each run is shown other documents: with the defaults of today, at the end,
AP .813 → .819 for Widrow-Hoff, .739 → .726 for EG and .781 → .775 for Winnow on held-out documents of Reuters, and .789
→ .866, .559 → .553 and .720 → .718 on those of 20 Newsgroups. (With 500 weights and a wider band EG gained .010 there.)

On a tie the newer vector wins. If the winner is the vector of a learner as it stands, that learner is *live*: what it
learns until the next check is served at once. Otherwise the pocketed copy is served as it was.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from models.dense import Vector
from models.measures import Bools, sap
from models.vectors import Reals

EVERY = 10
WINDOW = 5000  # judged documents


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """The vector at place `which` among those of a learner, the learner being at place `lane` in its topic."""

    lane: int
    which: int
    vector: Vector


def rhythm(n: int) -> int:
    """How many judgements from the n-th to the next check."""
    return max(EVERY, n // 50)


def best(scores: Sequence[Reals], relevant: Bools) -> tuple[int, float]:
    """Which ranking has the highest SAP, the earliest of equals, and that SAP."""
    saps = [sap(one, relevant) for one in scores]
    winner = max(range(len(saps)), key=saps.__getitem__)
    return winner, saps[winner]
