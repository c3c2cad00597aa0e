"""How many more judgements a promise of precision needs: a range that shrinks as they are made, or nothing.

With k relevant documents of n above the best cut, and that cut above a share s of what is shown,

    needed(p) = (N(p) − n) / s            N(p): the fewest judged documents that certify the goal if a share p of them
                                          is relevant

The true p and s are not known: each lies between the quartiles of its posterior (Jeffreys' prior) as likely as not. The
range is from needed(upper quartiles) to needed(lower quartiles). There is none if it spans more than a factor of
MAX_SPAN ("between 20 and 900" helps nobody), or if at the lower quartile no number would do.
"""

import math

import numpy as np
from scipy.special import betaincinv

from models.core import intervals

MAX_SPAN = 4.0
QUARTILES = (0.25, 0.75)


def needed_range(goal: float, k: int, n: int, shown: int, confidence: float, most: int) -> tuple[int, int] | None:
    """The fewest and the most judgements of what is shown that a promise probably still needs; None if that is too
    uncertain. k of n documents above the best cut are relevant, n of all `shown` lie above it."""
    low_p, high_p = (float(betaincinv(k + 0.5, n - k + 0.5, q)) for q in QUARTILES)
    low_s, high_s = (float(betaincinv(n + 0.5, shown - n + 0.5, q)) for q in QUARTILES)
    totals = [judged_in_all(goal, p, confidence, most) for p in (high_p, low_p)]
    if not all(totals) or max(totals) <= n:
        return None
    low, high = max(1, int((totals[0] - n) / high_s)), math.ceil((totals[1] - n) / low_s)
    return (low, high) if high <= MAX_SPAN * low else None


def judged_in_all(goal: float, share: float, confidence: float, most: int) -> int:
    """How many judged documents above a cut, this share of them relevant, would promise the goal; 0 if none would."""
    allowed = intervals.allowed_misses(goal, confidence, most)
    holds = np.floor(np.arange(len(allowed)) * (1 - share)) <= allowed
    return int(np.argmax(holds)) if holds.any() else 0
