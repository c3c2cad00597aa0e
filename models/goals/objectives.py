"""What a single cut may maximise. Of the documents, tp are relevant and accepted, `accepted` are accepted, R relevant.

    F_β         (1+β²)·tp / (accepted + β²·R)           which is (1+β²)·tp / ((1+β²)·tp + fp + β²·fn)
    utility     hit·tp − false_alarm·(accepted − tp) − miss·(R − tp)
    break-even  tp / accepted where accepted = R, or as near as ties allow: there precision equals recall

F_β: van Rijsbergen 1979; β > 1 wants recall, β < 1 precision. Utility: the TREC filtering track, whose T11U is
2·tp − fp (T11SU is a stretched form with the same best cut). Break-even: Dagan, Karov & Roth 1997.

Accepting nothing gives a utility of −miss·R; a cut has to give more. An F_β or a break-even point below the guard says
that the ranking is too bad to trust: its cut might accept thousands, so nothing is accepted. Among equals the strictest
cut wins.

A document that is relevant with probability p is worth accepting

    F_β         if p > F/(1+β²), with F the best value (Lewis, SIGIR 1995): if p > 1/(1+β²), however good the ranking
    utility     if p > false_alarm / (hit + false_alarm + miss)
"""

from typing import NamedTuple

import numpy as np

from models.core.vectors import Reals

MIN_F = 0.1


class FBeta(NamedTuple):
    beta: float = 1.0
    guard: float = MIN_F

    def values(self, tp: Reals, accepted: Reals, total: float) -> Reals:
        b2 = self.beta * self.beta
        values: Reals = (1 + b2) * tp / (accepted + b2 * total)
        return values

    def best(self, tp: Reals, accepted: Reals, total: float) -> int:
        """The place of the best cut; −1 if nothing should be accepted."""
        return _highest(self.values(tp, accepted, total), self.guard)

    @property
    def least_probability(self) -> float:
        """With which a document is worth accepting if the ranking is perfect."""
        return 1 / (1 + self.beta * self.beta)

    def __str__(self) -> str:
        return f"F_{self.beta:g}"


class Utility(NamedTuple):
    """What a relevant document gains that is accepted, and what an irrelevant one costs that is, and a relevant one
    that is not."""

    hit: float = 2.0
    false_alarm: float = 1.0
    miss: float = 0.0

    def values(self, tp: Reals, accepted: Reals, total: float) -> Reals:
        values: Reals = self.hit * tp - self.false_alarm * (accepted - tp) - self.miss * (total - tp)
        return values

    def best(self, tp: Reals, accepted: Reals, total: float) -> int:
        """The place of the best cut; −1 if nothing should be accepted."""
        return _highest(self.values(tp, accepted, total) + self.miss * total, np.finfo(float).tiny)

    @property
    def least_probability(self) -> float:
        """With which a document is worth accepting."""
        return self.false_alarm / (self.hit + self.false_alarm + self.miss)

    def __str__(self) -> str:
        return "utility"


class BreakEven(NamedTuple):
    guard: float = MIN_F

    def values(self, tp: Reals, accepted: Reals, total: float) -> Reals:
        values: Reals = tp / accepted
        return values

    def best(self, tp: Reals, accepted: Reals, total: float) -> int:
        """The place of the cut nearest to the break-even point; −1 if nothing should be accepted."""
        if not len(tp):
            return -1
        nearest = int(np.argmin(np.abs(accepted - total)))
        return nearest if tp[nearest] >= self.guard * accepted[nearest] else -1

    @property
    def least_probability(self) -> float:
        """As for F_1, whose best cut is near."""
        return 0.5

    def __str__(self) -> str:
        return "break-even point"


Objective = FBeta | Utility | BreakEven
F1 = FBeta()


def _highest(values: Reals, minimum: float) -> int:
    best = int(np.argmax(values)) if len(values) else -1
    return best if best >= 0 and values[best] >= minimum else -1
