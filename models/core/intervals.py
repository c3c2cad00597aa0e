"""Exact binomial bounds: how far to trust a share that was observed in n independent trials.

    low(k, n)   the p with  P(Bin(n, p) ≥ k) = 1 − c        0 if there was no hit
    high(k, n)  the p with  P(Bin(n, p) ≤ k) = 1 − c        1 if there was no miss

Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", 1934. Each bound
alone holds with confidence c or more, whatever the share. They are slightly conservative, because counts are discrete.

The sum of counts of rare events that have unequal weights:

    total       y = Σ w_i x_i,  v = Σ w_i² x_i,  w the largest weight.  With G_a the quantile of the gamma distribution
                of shape a:    low = v/y · G_{y²/v}(1 − c),    high = (v + w²)/(y + w) · G_{(y+w)²/(v+w²)}(c)

Fay & Feuer, "Confidence intervals for directly standardized rates: a method based on the gamma distribution", 1997.
With equal weights these are the exact bounds of a Poisson count; the largest weight is part of `high` because the next
event might have it.

To ask for thousands of thresholds whether `low` reaches a goal, no bound is computed: `allowed_misses` is a table, made
once for a goal, of the number of misses that n trials may have.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, bdtrik, betaincinv, gammaincinv

from models.core.vectors import Reals

Counts = NDArray[np.int64]


class Interval(NamedTuple):
    """An estimate, and two bounds, each of which holds with the confidence that was asked for."""

    estimate: float
    low: float
    high: float


def low(k: float, n: float, confidence: float) -> float:
    return float(betaincinv(k, n - k + 1, 1 - confidence)) if k > 0 else 0.0


def high(k: float, n: float, confidence: float) -> float:
    return float(betaincinv(k + 1, n - k, confidence)) if k < n else 1.0


def interval(k: float, n: float, confidence: float) -> Interval | None:
    """The share k/n with its bounds; None without a trial."""
    return Interval(k / n, low(k, n, confidence), high(k, n, confidence)) if n else None


def total(counts: Sequence[tuple[int, float]], confidence: float) -> Interval:
    """The weighted sum of (count x, weight w), of which there is at least one."""
    y, v = (sum(x * w**power for x, w in counts) for power in (1, 2))
    low, high = totals(np.array([y]), np.array([v]), np.array([max(w for _, w in counts)]), confidence)
    return Interval(y, float(low[0]), float(high[0]))


def totals(y: Reals, v: Reals, largest: Reals, confidence: float) -> tuple[Reals, Reals]:
    """The bounds of many such sums, from y, v and the largest w of each."""
    y1, v1 = y + largest, v + largest**2
    with np.errstate(divide="ignore", invalid="ignore"):  # where there is no event, or not even a weight
        low = np.where(y > 0, v / y * gammaincinv(y**2 / v, 1 - confidence), 0.0)
        high = np.where(y1 > 0, v1 / y1 * gammaincinv(y1**2 / v1, confidence), np.inf)
    return low, high


@lru_cache(maxsize=256)
def allowed_misses(goal: float, confidence: float, max_n: int) -> Counts:
    """For n = 0 … max_n the most misses among n trials with which `low` reaches the goal; −1 if not even 0 will do."""
    n = np.arange(max_n + 1)
    # low(n − m, n) ≥ goal  ⇔  P(Bin(n, 1 − goal) ≤ m) ≤ 1 − c: the m at which both are equal is rarely whole.
    # (scipy.special, because importing scipy.stats takes half a second of every process.)
    m = np.ceil(np.nan_to_num(bdtrik(1 - confidence, n, 1 - goal), nan=0)).astype(np.int64)
    return np.where(bdtr(m, n, 1 - goal) <= 1 - confidence, m, m - 1)
