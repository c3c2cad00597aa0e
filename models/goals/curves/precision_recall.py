"""The precision and the recall that a topic would have if it accepted above another cut.

    precision   relevant among what scores above the cut
    recall      of what is relevant, the share that scores above the cut
    break-even  the value where both are equal, interpolated between the two cuts around it; van Rijsbergen 1979, and
                Dagan, Karov & Roth 1997

Documents are counted by what they stand for (weighted.py): R and W, the relevant and the irrelevant above a cut, and M,
the relevant below it. Precision is at least low(R) / (low(R) + high(W)) and at most high(R) / (high(R) + low(W));
recall likewise with M, to which parts of the stream that nobody judged may add all they have. Each bound is taken at
twice the confidence, so that both hold at once.
"""

from typing import NamedTuple

import numpy as np

from models.goals.curves.tradeoff import all_cuts
from models.goals.curves.weighted import StreamSample
from models.goals.reporting.samples import Bounded

CONFIDENCE = 0.9
TAIL = (1 - CONFIDENCE) / 4  # probability that one bound of one part fails
MAX_POINTS = 50


class CutFigures(NamedTuple):
    accept_above: float
    precision: Bounded
    recall: Bounded


def curve(sample: StreamSample) -> list[CutFigures]:
    """Points from the strictest cut to the one that accepts all, at most MAX_POINTS, evenly among the relevant
    documents. Empty while nothing relevant was judged."""
    if not sample.relevant.any():
        return []
    cuts, below = all_cuts(sample)
    hits = np.concatenate(([0], np.cumsum(sample.relevant)))[below]
    # Below each relevant document, and no other: in between precision falls and recall stays. The last accepts all.
    ends = np.flatnonzero(np.diff(hits) > 0)
    chosen = ends[np.unique(np.linspace(0, len(ends) - 1, min(MAX_POINTS - 1, len(ends))).round().astype(np.int64))]
    return [at(sample, float(cuts[n])) for n in np.unique(np.append(chosen, 0))[::-1]]


def at(sample: StreamSample, accept_above: float) -> CutFigures:
    """The figures of accepting what scores above this."""
    above = sample.scores > accept_above
    right, wrong, missed = (
        sample.weight(which, TAIL)
        for which in (above & sample.relevant, above & ~sample.relevant, ~above & sample.relevant)
    )
    missed = missed._replace(high=missed.high + sample.unseen)
    return CutFigures(accept_above, _share(right, wrong), _share(right, missed))


def break_even(sample: StreamSample) -> float | None:
    """Where precision equals recall: as many documents are accepted as are relevant. None while none is."""
    wanted = float(sample.weights[sample.relevant].sum())
    if not wanted:
        return None
    _, below = all_cuts(sample)
    below = below[::-1]
    mass = np.concatenate(([0.0], np.cumsum(sample.weights)))
    hits = np.concatenate(([0.0], np.cumsum(np.where(sample.relevant, sample.weights, 0.0))))
    return float(np.interp(wanted, mass[-1] - mass[below], hits[-1] - hits[below])) / wanted


def _share(part: Bounded, rest: Bounded) -> Bounded:
    """part / (part + rest), with bounds."""
    y, n = part.estimate or 0.0, rest.estimate or 0.0
    low = part.low / (part.low + rest.high) if part.low else 0.0
    high = part.high / (part.high + rest.low) if part.high else 1.0
    return Bounded(y / (y + n) if y + n else None, low, high)
