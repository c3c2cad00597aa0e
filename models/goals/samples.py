"""What is known of a stream of which people see a part: numbers of relevant documents, each with bounds that hold.

A stream falls into three parts. What is accepted and what is abstained from is *shown*, and some of it judged: samples
of these parts. Of the *rejected* a document is judged if it was drawn for audit, with a known chance c, or if somebody
came across it; the latter is a miss that is known, and a sample of nothing.

    shown      k relevant of n judged, of `total`: at least k, at most k + (total − n)·high(k, n)
    rejected   of N that were counted, the share p = Σ 1/c over the finds / Σ 1/c over the audits. It does not matter if
               audits were drawn for a part of the time, or not all were judged. Where all had the same chance, between
               low(k, n) and high(k, n); else a find counts N/c / Σ 1/c, and the bounds are those of a weighted `total`

               not counted: Σ 1/c over the finds; bounded by  P(Bin(M, c) ≤ k) ≥ α  for the most that may have been
               missed and  P(Bin(M, c) ≥ k) ≥ α  for the least. N is told from the number of audits in the same way.
               Where chances differ, the smallest bounds the most and the largest the least

A miss that somebody comes across counts as an audit if it was drawn. Where all that is drawn gets judged this is no
bias: it would have been judged anyway, and the lot knows nothing of the finder. Where only a share j of it is, people
find a share f of the misses and nobody finds what is irrelevant, so p is too high by a factor of 1 + f (1 − j) / j,
whatever c is: what was missed is overstated, never understated. (To leave such
judgements out one would have to know what review had offered, and so to write at every look at it; to count only
irrelevant ones as audits would be wrong the other way.)

Never fewer than are known. Horvitz & Thompson, "A generalization of sampling without replacement from a finite
universe", 1952. `low` and `high` are Clopper & Pearson's, `total` is Fay & Feuer's (core/intervals.py); a bound may
fail with chance `side`. Korn & Graubard's bounds (1998: low and high at p n and n, n = (Σ 1/c)² / Σ 1/c²) were left: if
all that is missed lies where few are audited, those at 95 % covered .85.
"""

from collections.abc import Sequence
from math import inf
from typing import NamedTuple

from scipy.special import bdtrin

from models.core import intervals
from models.core.names import Origin


class Trial(NamedTuple):
    """A document that passed by: what was decided before it was judged, and what it is."""

    decision: str
    score: float
    relevant: bool
    origin: Origin
    chance: float = 0.0  # with which it was drawn for audit
    probability: float | None = None


class Bounded(NamedTuple):
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

    def precision(self, side: float) -> Bounded:
        return share(self.k, self.n, side)

    def relevant(self, side: float) -> Bounded:
        """How many of all are."""
        most = self.k + (self.total - self.n) * intervals.high(self.k, self.n, 1 - side)
        estimate = self.k * self.total / self.n if self.n else None if self.total else 0.0
        return Bounded(estimate, self.k, most)


class RejectedSample(NamedTuple):
    """The part that nobody sees but by audit."""

    total: int | None  # None if they were not counted
    judged: int
    audits: int
    finds: int
    known: int  # misses
    weight: float  # Σ 1/c over the audits
    found: tuple[float, ...]  # c of each find
    least: float  # chance of an audit
    most: float

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

    def relevant(self, side: float) -> Bounded:
        """How many were missed."""
        if self.total == 0:
            return Bounded(0.0, 0.0, 0.0)
        limit = inf if self.total is None else float(self.total)
        if not self.audits:
            return Bounded(None, float(self.known), limit)
        estimate, (low, high) = sum(1 / c for c in self.found), self._drawn(self.finds, side)
        if self.total is not None and self.least == self.most:
            estimate = self.total * self.finds / self.audits
            low, high = (
                self.total * bound(self.finds, self.audits, 1 - side) for bound in (intervals.low, intervals.high)
            )
        elif self.total is not None:
            each = self.total / self.weight
            counts = [*((1, each / c) for c in self.found), (0, each / self.least)]
            estimate, low, high = intervals.total(counts, 1 - side)
        return Bounded(*(min(max(n, float(self.known)), limit) for n in (estimate, low, high)))

    def documents(self, side: float) -> Bounded | None:
        """How many were rejected; None while nothing is known of that."""
        if self.total is not None:
            return Bounded(float(self.total), float(self.total), float(self.total))
        if not self.audits:
            return None
        return Bounded(*(max(n, float(self.judged)) for n in (self.weight, *self._drawn(self.audits, side))))

    def _drawn(self, k: int, side: float) -> tuple[float, float]:
        """From how many documents, at least and at most, k were drawn."""
        low = float(bdtrin(k - 1, 1 - side, self.most)) if k and self.most < 1 else float(k)
        high = float(bdtrin(k, side, self.least)) if self.least < 1 else float(k)
        return max(low, float(k)), max(high, float(k))


def share(k: float, n: float, side: float) -> Bounded:
    """k hits in n tries."""
    estimate = k / n if n else None
    return Bounded(estimate, intervals.low(k, n, 1 - side), intervals.high(k, n, 1 - side))
