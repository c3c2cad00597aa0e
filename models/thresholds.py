"""Where to cut a ranking: from scores that the model did not learn from, to `reject_below` and `accept_above`.

A cut accepts every score above it. Between two neighbouring scores any cut accepts the same documents; we take the
middle. Equal scores are never separated.

    F_β = (1+β²)·tp / ((1+β²)·tp + fp + β²·fn)            the paper's F_1 has β = 1
"""

from dataclasses import dataclass

import numpy as np

from models.measures import Bools
from models.vectors import Reals

GUARD = 0.1
NEVER = float(np.finfo(np.float32).max)  # accepts nothing; finite, so that JSON can say it


@dataclass(frozen=True, slots=True)
class Cut:
    threshold: float
    value: float  # of the measure that was optimised, at this cut


@dataclass(frozen=True, slots=True)
class Band:
    reject_below: float
    accept_above: float


def f_beta(scores: Reals, relevant: Bools, beta: float = 1.0, guard: float = GUARD) -> Cut:
    """The cut with the best F_β; below the guard the ranking is too bad to trust and the cut accepts nothing."""
    cuts, tp, accepted = _cuts(scores, relevant)
    if not len(cuts):
        return Cut(NEVER, 0.0)
    b2 = beta * beta
    f = (1 + b2) * tp / (accepted + b2 * np.count_nonzero(relevant))
    best = int(np.argmax(f))
    return Cut(float(cuts[best]), float(f[best])) if f[best] >= guard else Cut(NEVER, 0.0)


def _cuts(scores: Reals, relevant: Bools) -> tuple[Reals, Reals, Reals]:
    """Every cut, from the strictest, with the relevant and all documents that it accepts; none without a relevant."""
    if not relevant.any():
        return np.empty(0), np.empty(0), np.empty(0)
    order = np.argsort(-scores, kind="stable")
    ranked = scores[order]
    last = np.append(np.flatnonzero(ranked[1:] < ranked[:-1]), len(ranked) - 1)  # of each run of equal scores
    below = np.append(ranked[last[:-1] + 1], 2 * ranked[-1] - ranked[0] - 1)
    return (ranked[last] + below) / 2, np.cumsum(relevant[order])[last].astype(float), (last + 1).astype(float)


def abstaining(accept_above: float, background: Reals, share: float) -> float:
    """`reject_below` such that this share of the background lies between it and `accept_above`."""
    under = np.sort(background[background <= accept_above])
    wanted = min(len(under), round(share * len(background)))
    return float(under[-wanted]) if wanted else accept_above
