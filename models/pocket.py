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

What it gains, and what hindsight would: AP at the end against the newest vector, from the judgements that the newest
vector asked for, on two quarters each of the training documents (standard errors .002 to .013). In hindsight the best
vector of the last three quarters of a topic's judgements is taken, by its AP on the documents that measure:

                             Reuters         20 Newsgroups   arXiv, a quarter
    Widrow-Hoff             −.006 −.005      .046  .040      .018  .021
    EG                       .017  .005      .009  .009      .027  .004
      in hindsight           .052  .026      .024  .032      .046  .027
    Winnow                   .003 −.004     −.003  .004      .010  .004
      in hindsight           .035  .021      .010  .018      .026  .016

On streams of their own, where each run is shown other documents, EG has .735 → .747, .779 → .787, .558 → .546, .522 →
.520, .338 → .350 and .336 → .336 (in this order), Winnow .788 → .796, .838 → .832, .735 → .751, .722 → .717, .465 →
.465 and .442 → .438: one such difference is known to ± .004 to .017 only.

Tried, from the same judgements, AP in the mean over these six against the pocket as it is, for EG and Winnow:

    the background too, as irrelevant                    .001            −.001
    a check every 5 judgements, every 20                 .002 −.002      −.001 −.001
    the last 50, 100 or 200 judgements only             −.009 to .001    −.004 to −.002
    newer judgements weighed more                       −.005 to .000    −.002 to −.001
    a margin of .005 to .05 for newer vectors           −.009 to −.002   −.001 to .000
    none older than 50 or 100 judgements                −.004 −.002       .000 .000
    no old ones, but the last or the average            −.011             .000
    the mean of the best two (Widrow-Hoff: .005)         .003             .002

The last gains nothing on streams of its own: there EG changes by −.004 to .009, Winnow by −.022 to .000, and
Widrow-Hoff, in a band of .014 and with 1 to 8 % more judgements, by −.003 to .012.

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
