"""How many relevant documents a stream had of which people saw a part: estimates, each with bounds that hold.

A stream has three parts. What is accepted and what is abstained from is *shown*, and some of it is judged: a sample of
each part. A *rejected* document is judged if it was drawn for audit, with a known chance c, or if somebody came across
it; the latter is a known miss, and a sample of nothing.

    shown      k relevant of n judged, of `total`: at least k, at most k + (total − n)·high(k, n)
    rejected   counted, N of them: the share p = Σ 1/c over the finds / Σ 1/c over the audits. It does not matter if
               audits were drawn for a part of the time, or not all were judged. If all had the same chance, p lies
               between low(k, n) and high(k, n); if not, a find counts N/c / Σ 1/c, and the bounds are those of a
               weighted `total`

               not counted: Σ 1/c over the finds. The most that may have been missed is bounded by
               P(Bin(M, c) ≤ k) ≥ α, the least by P(Bin(M, c) ≥ k) ≥ α. N follows from the number of audits in the
               same way. If chances differ, the smallest bounds the most and the largest the least

A miss that somebody comes across counts as an audit if it was drawn. If everything drawn gets judged, this is no bias:
the document would have been judged anyway, and drawing is independent of the finder. If only a share j of it is judged,
people find a share f of the misses, and nobody finds what is irrelevant, so p is too high by a factor of
1 + f (1 − j) / j, whatever c is: misses are overestimated, never underestimated. (Leaving such judgements out would
take a record of what review has offered, and so a write at every look at it; counting only the irrelevant ones as
audits would be wrong in the other direction.)

No estimate is below what is known. Horvitz & Thompson, "A generalization of sampling without replacement from a finite
universe", 1952. `low` and `high` are Clopper & Pearson's, `total` is Fay & Feuer's (core/intervals.py); a bound fails
with probability `tail` at most. Rejected: Korn & Graubard's bounds (1998: low and high at p n and n, with
n = (Σ 1/c)² / Σ 1/c²). If all misses lie where few documents are audited, those at 95 % covered .85.
"""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from scipy.special import bdtrin

from models.core import intervals
from models.core.measures import gain
from models.core.names import Origin


class Trial(NamedTuple):
    """A judged document of the stream: how it was decided before it was judged, and whether it is relevant."""

    decision: str
    score: float
    relevant: bool
    origin: Origin
    chance: float = 0.0  # with which it was drawn for audit
    probability: float | None = None
    grade: int | None = None  # how relevant it is, 1 to 3, if a grade was given

    @property
    def gain(self) -> int:
        """Its worth in a ranking."""
        return gain(self.relevant, self.grade)


class Bounded(NamedTuple):
    """An estimate, None if it would rest on nothing, and its bounds."""

    estimate: float | None
    low: float
    high: float


class ShownSample(NamedTuple):
    """A part of the stream that people see: of `total` documents n were judged, and k of these are relevant."""

    total: int
    n: int
    k: int

    @classmethod
    def of(cls, trials: Sequence[Trial], decision: str, total: int) -> "ShownSample":
        judged = [t.relevant for t in trials if t.origin == "shown" and t.decision == decision]
        return cls(max(total, len(judged)), len(judged), sum(judged))

    def precision(self, tail: float) -> Bounded:
        return share(self.k, self.n, tail)

    def relevant(self, tail: float) -> Bounded:
        """How many of all `total` documents are relevant."""
        high = self.k + (self.total - self.n) * intervals.high(self.k, self.n, 1 - tail)
        estimate = self.k * self.total / self.n if self.n else None if self.total else 0.0
        return Bounded(estimate, self.k, high)


class RejectedSample(NamedTuple):
    """The part of the stream that people see only through audits."""

    total: int | None  # None if they were not counted
    judged: int
    audits: int
    finds: int
    known: int  # misses, of audits and of others
    weight: float  # Σ 1/c over the audits
    find_chances: tuple[float, ...]  # c of each find
    min_chance: float  # of an audit
    max_chance: float

    @classmethod
    def of(cls, trials: Sequence[Trial], total: int | None) -> "RejectedSample":
        rejected = [t for t in trials if t.decision == "reject" and t.origin in ("audit", "found")]
        audits = [t for t in rejected if t.origin == "audit"]
        finds = [t for t in audits if t.relevant]
        chances = [t.chance for t in audits]
        weights = sum(1 / c for c in chances), tuple(t.chance for t in finds)
        known = sum(t.relevant for t in rejected)
        total = None if total is None else max(total, len(rejected))
        counts = len(rejected), len(audits), len(finds), known
        return cls(total, *counts, *weights, min(chances, default=1.0), max(chances, default=1.0))

    def relevant(self, tail: float) -> Bounded:
        """How many of the rejected documents are relevant."""
        if self.total == 0:
            return Bounded(0.0, 0.0, 0.0)
        limit = inf if self.total is None else float(self.total)
        if not self.audits:
            return Bounded(None, float(self.known), limit)
        estimate, (low, high) = sum(1 / c for c in self.find_chances), self._drawn(self.finds, tail)
        if self.total is not None and self.min_chance == self.max_chance:
            estimate = self.total * self.finds / self.audits
            low, high = (
                self.total * bound(self.finds, self.audits, 1 - tail) for bound in (intervals.low, intervals.high)
            )
        elif self.total is not None:
            each = self.total / self.weight
            counts = [*((1, each / c) for c in self.find_chances), (0, each / self.min_chance)]
            estimate, low, high = intervals.total(counts, 1 - tail)
        return Bounded(*(min(max(n, float(self.known)), limit) for n in (estimate, low, high)))

    def documents(self, tail: float) -> Bounded | None:
        """How many were rejected; None if that was neither counted nor audited."""
        if self.total is not None:
            return Bounded(float(self.total), float(self.total), float(self.total))
        if not self.audits:
            return None
        return Bounded(*(max(n, float(self.judged)) for n in (self.weight, *self._drawn(self.audits, tail))))

    def _drawn(self, k: int, tail: float) -> tuple[float, float]:
        """Bounds on the number of documents from which k were drawn."""
        low = float(bdtrin(k - 1, 1 - tail, self.max_chance)) if k and self.max_chance < 1 else float(k)
        high = float(bdtrin(k, tail, self.min_chance)) if self.min_chance < 1 else float(k)
        return max(low, float(k)), max(high, float(k))


def share(k: float, n: float, tail: float) -> Bounded:
    """The share of k hits in n tries."""
    estimate = k / n if n else None
    return Bounded(estimate, intervals.low(k, n, 1 - tail), intervals.high(k, n, 1 - tail))
