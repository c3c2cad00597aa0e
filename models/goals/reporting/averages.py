"""One figure for many topics.

    macro   Σ m / T                    every topic counts the same, so small topics dominate
    micro   Σ n m / Σ n                every document counts the same, so large topics dominate; n is what the measure
                                       is a share of, so this is the measure of all decisions in one table

    of what     precision A, recall R, F₁ A + R, error A + N, abstain A + B + N: A accepted, B abstained from, N
                rejected, R relevant

An example (a lecture's): of two topics, one accepts 10 relevant documents and 10 others, the other 90 and 10. Precision
is .5 and .9: macro .7, micro 100/120 = .83.

Topics without an estimate are left out. A bound is the average of the topics' bounds, which is wider than it has to be:
topics do not all err to the same side.
"""

from collections.abc import Sequence
from typing import NamedTuple

from models.goals.reporting.prequential import Confusion, Quality
from models.goals.reporting.samples import Bounded


class Average(NamedTuple):
    figure: Bounded
    topics: int  # with an estimate


def average(figures: Sequence[Bounded | None], weights: Sequence[float]) -> Average | None:
    """The weighted mean of the figures that have an estimate; None if none has, or all weigh nothing."""
    pairs = [(f, w) for f, w in zip(figures, weights, strict=True) if f and f.estimate is not None and w > 0]
    total = sum(w for _, w in pairs)
    if not total:
        return None
    estimate = sum(w * (f.estimate or 0.0) for f, w in pairs) / total
    low, high = (
        sum(w * bound for bound, (_, w) in zip(bounds, pairs, strict=True)) / total for bounds in _bounds(pairs)
    )
    return Average(Bounded(estimate, low, high), len(pairs))


def macro(qualities: Sequence[Quality], name: str) -> Average | None:
    return average([getattr(quality, name) for quality in qualities], [1.0] * len(qualities))


def micro(qualities: Sequence[Quality], tables: Sequence[Confusion], name: str) -> Average | None:
    return average([getattr(quality, name) for quality in qualities], [_size(table, name) for table in tables])


def _bounds(pairs: Sequence[tuple[Bounded, float]]) -> tuple[list[float], list[float]]:
    return [f.low for f, _ in pairs], [f.high for f, _ in pairs]


def _size(table: Confusion, name: str) -> float:
    """The documents that the measure is a share of."""
    accepted, abstained, rejected = (part.documents for part in table)
    relevant = sum(part.relevant.estimate or 0.0 for part in table)
    sizes = {
        "precision": accepted,
        "recall": relevant,
        "f1": accepted + relevant,
        "error": accepted + rejected,
        "abstain": accepted + abstained + rejected,
    }
    return sizes[name]
