"""What a user says of single terms: a pinned one speaks for the topic, a banned one has no say, whatever is judged.

    ban    x_f = 0 in the topic's view of every document, of the query and of a base, before any learner. So nothing is
           learned through f, and it has no part in the scores by which vectors, thresholds and promises are chosen.
           Served is the same score: rest + w_f = 0. The other values stay what they are in the whole document, which
           has the same length for every topic. (A base that was fitted before f was banned is served without it; what
           f told it of its own documents is in their held-out scores until it is fitted again.)
    pin    rest + w_f is never below a floor: what f would weigh as the only word of a query (in that of the learner's
           vectors where it weighs most, which is not the average). Where learning goes on from a base, whose scale is
           its own, the floor is rest + √(Σ w_g² / n), over the n weights of the base that are not 0: what its words
           weigh. Above the floor f is learned as every other term.

The floor is put under a vector when it is asked for (`raised`), not under a learner's state: that goes on as if there
were none. So it holds for every learner, member and base, and lazy averages and steps stay what they are. But a weight
that was imposed rests on no judgement: in a held-out score no document's own step is taken back from it. There the
learner is asked about the document without the term, and the term's part is added (run.py), which is exact as long as
the weight would lie below the floor without the document, too.

Worth, on the last quarter of the training documents of Reuters (46 topics, a query and three relevant documents at the
start), if the two strongest terms of a fully trained model are pinned: AP with five judgements is .732 instead of .686,
with ten .738 instead of .696 (± .015, the standard error over topics), with a hundred .800 instead of .793, at the end
.823 instead of .824. Without a query it is .687 instead of .475 with ten, and .811 instead of .800 at the end. Of other
learners, on the largest 30 topics, with ten and at the end: EG .710 and .772 instead of .602 and .733, Winnow .746 and
.817 instead of .667 and .812, the Perceptron .765 and .828 instead of .700 and .830.

It does what it is told: if the pins are those of another topic, AP falls by .16 with ten judgements and by .04 at the
end. A preview shows that.

Tried there: pins that stand in the query, too, have .723 with ten judgements, since they dilute what it says (without a
query .713). So tried, with ten judgements and on the largest 40 topics, a floor of what the query's words weigh has
.708, as much as none; half of ours .709, ours .730, twice ours .755, but with a hundred .789, where no floor has .793.

Rejected: a fixed part beside the learner, score = w·x + p·x, that it knows of. It would correct what p·x says too much
by the weights of the words that come with f, and so unlearn a pin by other features. And a weight that is fixed: the
best words of a topic come to weigh more than a query's, and a pin would hold them down.
"""

from dataclasses import dataclass, replace

import numpy as np

from models.core.vectors import Features, Linear, Reals, Singles
from models.learners.base import Vector
from models.learners.vocabulary import Slots


@dataclass(frozen=True, slots=True)
class PinnedTerms:
    """By feature."""

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
    """The vector in which no pinned term has a whole weight below the floor; it says where one was imposed."""
    span = max(len(v.w), int(pins.max(initial=-1)) + 1)
    w, minus = _longer(v.w, span), None if v.minus is None else _longer(v.minus, span)
    below = pins[w[pins] + v.rest < lowest]
    w[below] = lowest - v.rest
    return replace(v, w=w, minus=minus, imposed=below if len(below) else None)


def applied(linear: Linear, terms: PinnedTerms) -> Linear:
    """A model from elsewhere as it is served under these terms."""
    kept = ~np.isin(linear.features, terms.banned)
    features, weights = linear.features[kept], linear.weights[kept]
    lowest = np.float32(floor(weights, linear.rest) - linear.rest)
    features = np.union1d(features, terms.pinned)
    held = np.zeros(len(features), np.float32)
    held[np.searchsorted(features, linear.features[kept])] = weights
    pinned = np.searchsorted(features, terms.pinned)
    held[pinned] = np.maximum(held[pinned], lowest)
    return silenced(replace(linear, features=features, weights=held), terms)


def silenced(linear: Linear, terms: PinnedTerms) -> Linear:
    """The same model, which weighs no banned term, with weights that leave nothing of `rest` to them."""
    if not terms.ban or not linear.rest:
        return linear
    rest = rounded(linear.rest)
    features = np.concatenate([linear.features, terms.banned])
    weights = np.concatenate([linear.weights, np.full(len(terms.ban), -rest, np.float32)])
    order = np.argsort(features)
    return replace(linear, features=features[order], weights=weights[order], rest=rest)


def rounded(rest: float) -> float:
    """As exact as a weight is served, so that the two can cancel."""
    return float(np.float32(rest))


def _longer(array: Reals, size: int) -> Reals:
    longer = np.zeros(size)
    longer[: len(array)] = array
    return longer
