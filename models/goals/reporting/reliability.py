"""Whether probabilities are reliable: of documents with a probability of .7, seven in ten should be relevant.

    bins    documents of about the same probability, and the share of them that is relevant, with Clopper & Pearson's
            bounds: if probabilities are well calibrated, their mean lies between these
    Brier   mean of (probability − relevant)², with Hoeffding's bounds; 0 is perfect, ½ for every document gives ¼

Each probability was computed before its document was judged. Only documents that were shown count: of the rejected
ones next to nothing is judged.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from models.goals.reporting.samples import Bounded, Trial, share

BINS = 10


class Bin(NamedTuple):
    """Documents of about the same probability, and the share of them that is relevant."""

    low: float
    high: float
    documents: int
    mean: float  # of the probabilities
    observed: Bounded


@dataclass(frozen=True, slots=True)
class ReliabilityTable:
    bins: tuple[Bin, ...] = ()
    brier: Bounded | None = None


def reliability(trials: Sequence[Trial], tail: float) -> ReliabilityTable:
    """Compares probabilities of shown documents with their judgements; a bound fails with probability `tail`."""
    pairs = [(t.probability, t.relevant) for t in trials if t.origin == "shown" and t.probability is not None]
    if not pairs:
        return ReliabilityTable()
    p, relevant = np.array([pair[0] for pair in pairs]), np.array([pair[1] for pair in pairs], np.bool_)
    bin_of = np.minimum((p * BINS).astype(np.int64), BINS - 1)
    bins = []
    for b in range(BINS):
        inside = bin_of == b
        n, k = int(np.count_nonzero(inside)), int(np.count_nonzero(relevant & inside))
        if n:
            bins.append(Bin(b / BINS, (b + 1) / BINS, n, float(p[inside].mean()), share(k, n, tail)))
    brier, slack = float(np.mean((p - relevant) ** 2)), sqrt(log(1 / tail) / (2 * len(p)))
    return ReliabilityTable(tuple(bins), Bounded(brier, max(0.0, brier - slack), min(1.0, brier + slack)))
