"""Terms that a user pins or bans: a pinned term speaks for the topic, a banned one is ignored, whatever is judged.

    ban    x_f = 0 in the topic's view of every document, of the query and of a base, before any learner. So nothing is
           learned through f, and it has no part in the scores by which vectors, thresholds and promises are chosen.
           The served model gives the same score: rest + w_f = 0. The other values stay what they are in the whole
           document, which has the same length for every topic. (A base that was fitted before f was banned is served
           without it; the held-out scores of its own documents contain f until the base is fitted again.)
    pin    rest + w_f is never below a floor: the weight of f if it were the only word of a query (in that of the
           learner's vectors where it weighs most, which is not the average). Where learning goes on from a base, which
           has a scale of its own, the floor is rest + √(Σ w_g² / n), over the n weights of the base that are not 0: the
           usual weight of its words. Above the floor f is learned like every other term.

The floor is applied to a vector when it is asked for (`raised`), not to a learner's state, which goes on as if there
were no floor. So it holds for every learner, member and base, and lazy averages and steps stay what they are. But an
imposed weight rests on no judgement: in a held-out score no document's own step is taken back from it. There the
learner scores the document without the term, and the term's part is added (run.py). That is exact as long as the weight
would lie below the floor without the document, too.

Two good pins lift AP with ten judgements from .70 to .74 on Reuters, and from .48 to .69 without a query; at the end
they change little, and those of another topic cost .04. A floor twice as high costs once there are a hundred
judgements: docs/experiments.md#pinned-terms.

Rejected: a fixed part beside the learner, score = w·x + p·x, which the learner knows of. It would correct what p·x adds
too much by the weights of the words that occur with f, and so unlearn a pin through other features. Also rejected: a
fixed weight. The best words of a topic come to weigh more than a query's, and a pin would hold them down.
"""

from dataclasses import dataclass, replace

import numpy as np

from models.core.vectors import Features, Linear, Reals, Singles
from models.learners.base import Vector
from models.learners.vocabulary import Slots


@dataclass(frozen=True, slots=True)
class PinnedTerms:
    """Pinned and banned terms, by feature."""

    pin: tuple[int, ...] = ()
    ban: tuple[int, ...] = ()

    @property
    def pinned(self) -> Features:
        return np.array(self.pin, np.uint64)

    @property
    def banned(self) -> Features:
        return np.array(sorted(self.ban), np.uint64)


NONE = PinnedTerms()


def floor(w: Reals | Singles, rest: float) -> float:
    """The least whole weight of a pinned term where learning goes on from this vector."""
    weights = w[w != 0].astype(np.float64)
    return rest + float(np.sqrt(np.mean(np.square(weights)))) if len(weights) else rest


def raised(v: Vector, pins: Slots, lowest: float) -> Vector:
    """The vector with no pinned term's whole weight below the lowest; `imposed` has the slots that were raised."""
    span = max(len(v.w), int(pins.max(initial=-1)) + 1)
    w, minus = _padded(v.w, span), None if v.minus is None else _padded(v.minus, span)
    below = pins[w[pins] + v.rest < lowest]
    w[below] = lowest - v.rest
    return replace(v, w=w, minus=minus, imposed=below if len(below) else None)


def applied(linear: Linear, terms: PinnedTerms) -> Linear:
    """A model that was made elsewhere, as it is served with these terms."""
    kept = ~np.isin(linear.features, terms.banned)
    features, weights = linear.features[kept], linear.weights[kept]
    lowest = np.float32(floor(weights, linear.rest) - linear.rest)
    features = np.union1d(features, terms.pinned)
    raised_weights = np.zeros(len(features), np.float32)
    raised_weights[np.searchsorted(features, linear.features[kept])] = weights
    pinned = np.searchsorted(features, terms.pinned)
    raised_weights[pinned] = np.maximum(raised_weights[pinned], lowest)
    return silenced(replace(linear, features=features, weights=raised_weights), terms)


def silenced(linear: Linear, terms: PinnedTerms) -> Linear:
    """The same model, which has no weights for banned terms, with weights that cancel their `rest`."""
    if not terms.ban or not linear.rest:
        return linear
    rest = rounded(linear.rest)
    features = np.concatenate([linear.features, terms.banned])
    weights = np.concatenate([linear.weights, np.full(len(terms.ban), -rest, np.float32)])
    order = np.argsort(features)
    return replace(linear, features=features[order], weights=weights[order], rest=rest)


def rounded(rest: float) -> float:
    """`rest` in the precision of served weights, so that a weight can cancel it."""
    return float(np.float32(rest))


def _padded(array: Reals, size: int) -> Reals:
    padded = np.zeros(size)
    padded[: len(array)] = array
    return padded
