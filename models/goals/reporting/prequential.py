"""How well a topic has done, from its judgements: each document was decided before it was learned from.

    precision p   relevant among the accepted                              Clopper & Pearson's bounds
    recall        not rejected among the relevant: K / (K + M)             K and M bounded, then Clopper & Pearson
    error         ((1 − p) A + M) / (A + N), accepted A and rejected N     each at its worst
    F₁            2 p r / (p + r), r: accepted among the relevant          p and r at their worst
    T11SU         of  r (3 − 1/p) / 2  (see core/measures.py)              the same; accepting nothing gives ⅓
    abstain       abstained among all that passed                          Clopper & Pearson
    SAP, R-precision, break-even, NDCG: of the ranking of what was shown   see goals/reporting/rankings.py

K and M, the relevant documents that were kept and missed, are estimated from samples (goals/reporting/samples.py). An
interval that combines several bounds takes each at a higher confidence, so that all hold at once with CONFIDENCE: wide,
but true. An estimate is None where part of it rests on nothing (without audits nothing is known about misses), and a
figure is None where its bounds say nothing either. Rejected: the bootstrap. On so few finds its intervals covered .10
to .58.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import NamedTuple

import numpy as np

from models.core import intervals
from models.core.measures import MIN_NU, Bools
from models.goals.reporting import rankings
from models.goals.reporting.samples import Bounded, RejectedSample, ShownSample, Trial, share
from models.goals.reporting.volume import StreamCounts

CONFIDENCE = 0.9
TAIL = (1 - CONFIDENCE) / 2  # probability that one of the two bounds fails
MAX_POINTS = 50  # of a series
MIN_WINDOW = 20  # judgements a point


@dataclass(frozen=True, slots=True)
class Quality:
    precision: Bounded | None = None
    recall: Bounded | None = None
    f1: Bounded | None = None
    error: Bounded | None = None
    abstain: Bounded | None = None
    sap: Bounded | None = None
    r_precision: Bounded | None = None
    break_even: Bounded | None = None
    ndcg: Bounded | None = None
    t11su: Bounded | None = None


def quality(trials: Sequence[Trial], counts: StreamCounts | None = None) -> Quality:
    """The figures of these trials. `counts` is how all documents were decided, judged or not, if they were counted."""
    if not any(t.origin != "given" for t in trials) and not (counts and counts.documents):
        return Quality()
    n = counts or StreamCounts()
    accepted, abstained = ShownSample.of(trials, "accept", n.accepted), ShownSample.of(trials, "abstain", n.abstained)
    rejected = RejectedSample.of(trials, None if counts is None else counts.rejected)
    documents = None if counts is None else max(counts.documents, accepted.total + abstained.total)
    return Quality(
        precision=_unless_vacuous(accepted.precision(TAIL)),
        recall=_recall((accepted, abstained), (), rejected, TAIL / 4),
        f1=_f1(accepted, abstained, rejected),
        error=_error(accepted, rejected),
        abstain=_abstain(accepted, abstained, rejected, documents),
        t11su=_t11su(accepted, abstained, rejected),
        **rankings.figures([t for t in trials if t.origin == "shown"], TAIL)._asdict(),
    )


class Part(NamedTuple):
    """Documents that were decided alike: how many of them are relevant, and how many are not."""

    documents: int
    relevant: Bounded
    irrelevant: Bounded

    @classmethod
    def of(cls, documents: int, relevant: Bounded) -> "Part":
        estimate = None if relevant.estimate is None else documents - relevant.estimate
        rest = Bounded(estimate, documents - relevant.high, documents - relevant.low)
        return cls(documents, relevant, rest)


class Confusion(NamedTuple):
    """Decisions against the truth. What was shown is a sample of its part, and so are audits (see samples.py)."""

    accepted: Part
    abstained: Part
    rejected: Part


def confusion(trials: Sequence[Trial], counts: StreamCounts) -> Confusion:
    accepted = ShownSample.of(trials, "accept", counts.accepted)
    abstained = ShownSample.of(trials, "abstain", counts.abstained)
    rejected = RejectedSample.of(trials, counts.rejected)
    return Confusion(
        Part.of(accepted.total, accepted.relevant(TAIL)),
        Part.of(abstained.total, abstained.relevant(TAIL)),
        Part.of(rejected.total or 0, rejected.relevant(TAIL)),
    )


def errors(trials: Sequence[Trial]) -> tuple[list[int], Bools]:
    """Indices of the trials that are evidence of a decision, and whether each decision was wrong."""
    decided = [
        i
        for i, t in enumerate(trials)
        if (t.origin == "shown" and t.decision == "accept") or (t.origin == "audit" and t.decision == "reject")
    ]
    return decided, np.array([trials[i].relevant != (trials[i].decision == "accept") for i in decided], np.bool_)


def windows(n: int) -> list[slice]:
    """Splits n judgements into at most MAX_POINTS windows of equal size, the newest last; the oldest may be smaller."""
    size = max(MIN_WINDOW, ceil(n / MAX_POINTS))
    return [slice(max(0, end - size), end) for end in range(n, 0, -size)][::-1]


def _unless_vacuous(figure: Bounded) -> Bounded | None:
    """The figure, or None if neither its estimate nor its bounds say anything."""
    return None if figure.estimate is None and figure.low <= 0 and figure.high >= 1 else figure


def _recall(
    kept: Sequence[ShownSample], lost: Sequence[ShownSample], rejected: RejectedSample, tail: float
) -> Bounded | None:
    """The share of the relevant documents that is in the `kept` parts, not in the `lost` ones or the rejected."""
    k = [part.relevant(tail) for part in kept]
    m = [*(part.relevant(tail) for part in lost), rejected.relevant(tail)]
    estimates = [part.estimate for part in (*k, *m)]
    estimate = None
    if None not in estimates and (total := sum(e for e in estimates if e is not None)):
        estimate = sum(part.estimate or 0.0 for part in k) / total
    k_low, k_high = sum(part.low for part in k), sum(part.high for part in k)
    m_low, m_high = sum(part.low for part in m), sum(part.high for part in m)
    low = intervals.low(k_low, k_low + m_high, 1 - tail) if m_high < inf else 0.0
    high = intervals.high(k_high, k_high + m_low, 1 - tail)
    return _unless_vacuous(Bounded(estimate, low, high))


def _f1(accepted: ShownSample, abstained: ShownSample, rejected: RejectedSample) -> Bounded | None:
    p = accepted.precision(TAIL / 5)
    r = _recall((accepted,), (abstained,), rejected, TAIL / 5) or Bounded(None, 0.0, 1.0)
    estimate = None
    if r.estimate is not None and (accepted.n or not accepted.total):
        estimate = _harmonic(p.estimate or 0.0, r.estimate)
    return _unless_vacuous(Bounded(estimate, _harmonic(p.low, r.low), _harmonic(p.high, r.high)))


def _harmonic(p: float, r: float) -> float:
    return 2 * p * r / (p + r) if p + r else 0.0


def _t11su(accepted: ShownSample, abstained: ShownSample, rejected: RejectedSample) -> Bounded | None:
    p = accepted.precision(TAIL / 5)
    r = _recall((accepted,), (abstained,), rejected, TAIL / 5) or Bounded(None, 0.0, 1.0)

    def stretched(p: float, r: float) -> float:
        nu = r * (3 - 1 / p) / 2 if p > 0 else MIN_NU
        return (max(nu, MIN_NU) - MIN_NU) / (1 - MIN_NU)

    estimate = None
    if not accepted.total:
        estimate = stretched(1.0, 0.0)
    elif accepted.k and p.estimate is not None and r.estimate is not None:
        estimate = stretched(p.estimate, r.estimate)
    # If what is accepted costs more than it gains, a higher recall is worse.
    low = min(stretched(p.low, r.low), stretched(p.low, r.high))
    high = max(stretched(p.high, r.low), stretched(p.high, r.high))
    return _unless_vacuous(Bounded(estimate, low, high))


def _error(accepted: ShownSample, rejected: RejectedSample) -> Bounded | None:
    tail = TAIL / 3
    p, missed, n = accepted.precision(tail), rejected.relevant(tail), rejected.documents(tail)
    a = accepted.total
    if n is None or not a + n.high:
        return None
    estimate = None
    if missed.estimate is not None and n.estimate is not None and (accepted.n or not a):
        wrong = 1 - p.estimate if p.estimate is not None else 0.0
        estimate = (wrong * a + missed.estimate) / (a + n.estimate)
    low = ((1 - p.high) * a + missed.low) / (a + n.high)
    high = ((1 - p.low) * a + missed.high) / (a + n.low) if a + n.low else 1.0
    return _unless_vacuous(Bounded(estimate, low, min(1.0, high)))


def _abstain(
    accepted: ShownSample, abstained: ShownSample, rejected: RejectedSample, documents: int | None
) -> Bounded | None:
    if documents is not None:
        return _unless_vacuous(share(abstained.total, documents, TAIL))
    n = rejected.documents(TAIL / 2)
    if n is None or n.estimate is None:
        return None
    m, shown = abstained.n, accepted.n + abstained.n
    low = intervals.low(m, shown + n.high, 1 - TAIL / 2)
    return _unless_vacuous(Bounded(m / (shown + n.estimate), low, intervals.high(m, shown + n.low, 1 - TAIL / 2)))
