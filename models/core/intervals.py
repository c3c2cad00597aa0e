"""How far a share can be trusted that was seen in n independent tries: exact binomial bounds.

    low(k, n)   the p with  P(Bin(n, p) ≥ k) = 1 − c        0 if there was no hit
    high(k, n)  the p with  P(Bin(n, p) ≤ k) = 1 − c        1 if there was nothing but hits

Clopper & Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial", 1934. Each bound
alone holds at least with confidence c, whatever the share. They never promise too much, and a little less than they
could: the count is discrete.

What counts of rare events add up to, where they weigh unequally:

    total       y = Σ w_i x_i,  v = Σ w_i² x_i,  w the largest weight.  With G_a the quantile of the gamma distribution
                of shape a:    low = v/y · G_{y²/v}(1 − c),    high = (v + w²)/(y + w) · G_{(y+w)²/(v+w²)}(c)

Fay & Feuer, "Confidence intervals for directly standardized rates: a method based on the gamma distribution", 1997.
With equal weights these are the exact bounds of a Poisson count; the largest weight stands in `high` because the next
event might be one of those that count most.

To ask of thousands of cuts whether `low` reaches a goal, no bound need be computed: with n tries so many misses are
`allowed`, a table that is made once for a goal.
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
    """A share: the plain estimate, and two bounds, each of which holds with the confidence that was asked for."""

    estimate: float
    low: float
    high: float


def low(k: float, n: float, confidence: float) -> float:
    return float(betaincinv(k, n - k + 1, 1 - confidence)) if k > 0 else 0.0


def high(k: float, n: float, confidence: float) -> float:
    return float(betaincinv(k + 1, n - k, confidence)) if k < n else 1.0


def interval(k: float, n: float, confidence: float) -> Interval | None:
    """None where nothing was tried."""
    return Interval(k / n, low(k, n, confidence), high(k, n, confidence)) if n else None


def total(counts: Sequence[tuple[int, float]], confidence: float) -> Interval:
    """Of counts x and their weights w, of which there is at least one."""
    y, v = (sum(x * w**power for x, w in counts) for power in (1, 2))
    least, most = totals(np.array([y]), np.array([v]), np.array([max(w for _, w in counts)]), confidence)
    return Interval(y, float(least[0]), float(most[0]))


def totals(y: Reals, v: Reals, largest: Reals, confidence: float) -> tuple[Reals, Reals]:
    """The bounds of many such sums, from y, v and w."""
    y1, v1 = y + largest, v + largest**2
    with np.errstate(divide="ignore", invalid="ignore"):  # where there is no event, or not even a weight
        low = np.where(y > 0, v / y * gammaincinv(y**2 / v, 1 - confidence), 0.0)
        high = np.where(y1 > 0, v1 / y1 * gammaincinv(y1**2 / v1, confidence), np.inf)
    return low, high


@lru_cache(maxsize=256)
def allowed_misses(goal: float, confidence: float, most: int) -> Counts:
    """For n = 0 … most: so many misses in n tries still leave `low` at the goal or above; −1 where none may be."""
    n = np.arange(most + 1)
    # low(n − m, n) ≥ goal  ⇔  P(Bin(n, 1 − goal) ≤ m) ≤ 1 − c: m at which they are equal lies between two numbers.
    # (By scipy.special: to import scipy.stats takes half a second of every process.)
    m = np.ceil(np.nan_to_num(bdtrik(1 - confidence, n, 1 - goal), nan=0)).astype(np.int64)
    return np.where(bdtr(m, n, 1 - goal) <= 1 - confidence, m, m - 1)
