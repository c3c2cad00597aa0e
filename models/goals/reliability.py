"""Whether probabilities can be taken at their word: of what was called .7, seven in ten should be relevant.

    bins    documents of about the same probability, and the share of them that is relevant, with Clopper & Pearson's
            bounds: what is well calibrated has its mean probability between them
    Brier   mean of (probability − relevant)², with Hoeffding's bounds; 0 is perfect, saying ½ of everything gives ¼

Each probability was given before its document was judged, and to documents that were shown: of the rejected next to
nothing is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from models.goals.samples import Bounded, Trial, share

BINS = 10


class Bin(NamedTuple):
    """Documents of about the same probability, and how many of them are relevant."""

    low: float
    high: float
    documents: int
    mean: float  # of the probabilities
    observed: Bounded


@dataclass(frozen=True, slots=True)
class ReliabilityTable:
    bins: tuple[Bin, ...] = ()
    brier: Bounded | None = None


def reliability(trials: Sequence[Trial], side: float) -> ReliabilityTable:
    """Whether the probabilities that were given to what was shown can be taken at their word."""
    said = [(t.probability, t.relevant) for t in trials if t.origin == "shown" and t.probability is not None]
    if not said:
        return ReliabilityTable()
    p, relevant = np.array([one[0] for one in said]), np.array([one[1] for one in said], np.bool_)
    place = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    bins = []
    for b in range(BINS):
        here = place == b
        n, k = int(np.count_nonzero(here)), int(np.count_nonzero(relevant & here))
        if n:
            bins.append(Bin(b / BINS, (b + 1) / BINS, n, float(p[here].mean()), share(k, n, side)))
    brier, slack = float(np.mean((p - relevant) ** 2)), sqrt(log(1 / side) / (2 * len(p)))
    return ReliabilityTable(tuple(bins), Bounded(brier, max(0.0, brier - slack), min(1.0, brier + slack)))
