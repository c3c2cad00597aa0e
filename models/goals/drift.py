"""Whether a filter has become worse: the test of ADWIN on its errors, each made before the judgement was learned from.

    cut W = W₀·W₁ where   μ₁ − μ₀ ≥ ε_cut,    ε_cut = √( ln(1/δ′) / 2m ),   1/m = 1/n₀ + 1/n₁,   δ′ = δ / n

Bifet & Gavaldà, "Learning from time-changing data with adaptive windowing", SDM 2007 (Theorem 3.1). While the share of
errors stays the same, or falls, some cut passes with probability at most δ: Hoeffding's bound for the difference of two
means (1963), over the at most n cuts.

Where this differs from the paper:
* Only more errors are drift. Fewer are what learning is for, and a young topic errs more than it will. So the bound is
  one-sided, which saves a ln 4.
* The window is the newest NEWEST errors, looked at as a whole, every cut of it; the paper's has been shrunk by cuts
  that it found earlier, and holds sums in buckets to be fast on endless streams. Without that memory the answer is a
  function of the series alone, the same wherever it is asked; and once the filter has learned what changed, the signal
  goes out by itself.
* The change is taken to be at the cut that stands out most, where the paper drops the oldest until no cut passes.
* Accepted documents that are irrelevant are one series, audited ones that are relevant another, each tested at δ/2: how
  many there are of either is up to readers and to the rate of audits, and a change of that is no change of the filter.
* Errors stand in the order in which their documents came, not in that of the judgements, and what came together is
  never cut: whoever judges all relevant documents of a day first, and then the others, has not changed their mind.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.measures import Bools
from models.core.vectors import Reals

WINDOW_SIZE = 1000
DELTA = 0.05

Times = NDArray[np.int64]


class Drift(NamedTuple):
    """A filter has become worse."""

    place: int  # of the first document of the new regime, among all
    before: Bools  # errors of the same kind
    after: Bools


def latest_change(errors: Bools, accepted: Bools, came: Times) -> Drift | None:
    """The latest change of either kind, of documents that were accepted or drawn for audit, by when they came."""
    found: list[Drift] = []
    for kind in (accepted, ~accepted):
        places = np.flatnonzero(kind)
        if start := regime_start(errors[places], came[places], DELTA / 2):
            found.append(Drift(int(places[start]), errors[places[:start]], errors[places[start:]]))
    return max(found, key=lambda one: one.place, default=None)


def regime_start(errors: Bools, came: Times | None = None, delta: float = DELTA) -> int:
    """From here on the errors are of one regime; 0 if they have not become more frequent. `came`: when each document
    did, never falling; without it no two came together."""
    when = np.arange(len(errors)) if came is None else came
    start = first = max(0, len(errors) - WINDOW_SIZE)
    while cut := _worst_cut(errors[start:], when[start:], delta):
        start += cut
    return start if start > first else 0


def _worst_cut(errors: Bools, came: Times, delta: float) -> int:
    """How many errors stand before the most significant rise; 0 if there is none that is significant."""
    n = len(errors)
    if n < 2:
        return 0
    before: Reals = np.cumsum(errors, dtype=np.float64)
    n0: NDArray[np.int64] = np.arange(1, n)
    n1 = n - n0
    rise = (before[-1] - before[:-1]) / n1 - before[:-1] / n0
    m = n0 * n1 / n
    strength = np.where(came[1:] > came[:-1], rise * np.sqrt(2 * m), 0.0)
    worst = int(np.argmax(strength))
    return worst + 1 if strength[worst] >= np.sqrt(np.log(n / delta)) else 0
