"""Whether a filter has become worse: the test of ADWIN on its errors, each made before the judgement was learned from.

    cut W = W₀·W₁ where   μ₁ − μ₀ ≥ ε_cut,    ε_cut = √( ln(1/δ′) / 2m ),   1/m = 1/n₀ + 1/n₁,   δ′ = δ / n

Bifet & Gavaldà, "Learning from time-changing data with adaptive windowing", SDM 2007 (Theorem 3.1). While the share of
errors stays the same, or falls, the probability that some cut passes is at most δ: Hoeffding's bound for the difference
of two means (1963), over at most n cuts.

Where this differs from the paper:
* Only more errors are drift. Fewer are what learning is for, and a young topic errs more than it will later. So the
  bound is one-sided, which saves a ln 4.
* The window is the newest WINDOW_SIZE errors, and every cut of it is tested. The paper's window has been shrunk by
  earlier cuts, and keeps sums in buckets to be fast on endless streams. Without that memory the result is a function of
  the series alone, the same in every process; and once the filter has learned what changed, the alarm ends by itself.
* The change is taken to be at the most significant cut, where the paper drops the oldest errors until no cut passes.
* Accepted documents that are irrelevant are one series, audited ones that are relevant another, each tested at δ/2. How
  many there are of each is up to readers and to the audit rate; if that changes, the filter has not.
* A topic that leaves undecided what it used to accept makes no error; ledger.py has a third series for it.
* Errors are in the order in which their documents arrived, not of the judgements, and documents that arrived together
  are never cut apart: someone who judges all relevant documents of a day first, and then the others, has not changed
  their mind.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.measures import Bools
from models.core.vectors import Reals

WINDOW_SIZE = 1000
DELTA = 0.05

Times = NDArray[np.int64]


class DriftPoint(NamedTuple):
    """Where a filter became worse."""

    place: int  # of the first document of the new regime, among all documents
    before: Bools  # errors of the same kind, before and after the change
    after: Bools


def latest_change(errors: Bools, accepted: Bools, arrived: Times) -> DriftPoint | None:
    """The latest change of either kind, over documents that were accepted or drawn for audit, in order of arrival."""
    changes: list[DriftPoint] = []
    for kind in (accepted, ~accepted):
        places = np.flatnonzero(kind)
        if start := regime_start(errors[places], arrived[places], DELTA / 2):
            changes.append(DriftPoint(int(places[start]), errors[places[:start]], errors[places[start:]]))
    return max(changes, key=lambda change: change.place, default=None)


def regime_start(errors: Bools, arrived: Times | None = None, delta: float = DELTA) -> int:
    """Index from which on all errors are of one regime; 0 if they have not become more frequent. `arrived` is when each
    document did, in ascending order; without it no two arrived together."""
    when = np.arange(len(errors)) if arrived is None else arrived
    start = first = max(0, len(errors) - WINDOW_SIZE)
    while cut := _worst_cut(errors[start:], when[start:], delta):
        start += cut
    return start if start > first else 0


def _worst_cut(errors: Bools, arrived: Times, delta: float) -> int:
    """How many errors come before the most significant rise; 0 if no rise is significant."""
    n = len(errors)
    if n < 2:
        return 0
    before: Reals = np.cumsum(errors, dtype=np.float64)
    n0: NDArray[np.int64] = np.arange(1, n)
    n1 = n - n0
    rise = (before[-1] - before[:-1]) / n1 - before[:-1] / n0
    m = n0 * n1 / n
    strength = np.where(arrived[1:] > arrived[:-1], rise * np.sqrt(2 * m), 0.0)
    worst = int(np.argmax(strength))
    return worst + 1 if strength[worst] >= np.sqrt(np.log(n / delta)) else 0
