"""A topic's features: numbered by slot, pinned or banned, and cut down to the strongest before they are served.

Documents come in by feature and are learned by slot, without banned terms. Vectors are learned by slot and served by
feature.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from models.core.latent import FIRST_LATENT
from models.core.measures import Bools
from models.core.names import View
from models.core.vectors import Bag, Features, Linear
from models.core.views import view
from models.learners.base import DocumentVector, Vector
from models.learners.vocabulary import Slots, Vocabulary
from models.online import pins
from models.online.pins import PinnedTerms
from models.online.truncation import nonzero, strongest
from models.text.projection import Projection


class TopicFeatures:
    def __init__(self, terms: PinnedTerms, max_weights: int, projection: Projection | None = None) -> None:
        self._terms = terms
        self._projection = projection
        self._banned = terms.banned
        self._max_weights = max_weights
        self._vocabulary = Vocabulary()
        self.pins = self._vocabulary.intern(terms.pinned)
        self._latent = self._vocabulary.intern(projection.latent_features) if projection else np.empty(0, np.int32)

    def document(self, bag: Bag, views: Sequence[View]) -> tuple[Slots, dict[View, DocumentVector]]:
        """The document by slot, through each of the views. Banned terms are left out, but still count in its length.
        Latent features are last, and in the semantic view only."""
        kept = self._not_banned(bag.features)
        slots = self._vocabulary.intern(bag.features[kept])
        seen: dict[View, DocumentVector] = {
            name: DocumentVector(slots, view(name, bag).values[kept]) for name in views if name != "semantic"
        }
        if "semantic" not in views:
            return slots, seen
        every = np.concatenate([slots, self._latent])
        z = self._projection.latent(bag) if self._projection else np.empty(0)
        semantic = DocumentVector(every, np.concatenate([view("tfidf", bag).values[kept], z]))
        return every, {name: semantic if name == "semantic" else seen[name] for name in views}

    def score(self, linear: Linear, bag: Bag) -> float:
        """The score that a model gives a document, whether or not it is semantic."""
        extended = self._projection.extend(bag) if self._projection and linear.view == "semantic" else bag
        return linear.score(view(linear.view, extended))

    def adopted(self, linear: Linear) -> Linear:
        """A model that was made elsewhere, without the latent weights of another projection."""
        own = self._projection.latent_features if self._projection else np.empty(0, np.uint64)
        kept = (linear.features < FIRST_LATENT) | np.isin(linear.features, own)
        features, weights = linear.features[kept], linear.weights[kept]
        return Linear("semantic" if self._projection else "tfidf", features, weights, linear.bias, linear.rest)

    def vector(self, linear: Linear) -> Vector:
        """A linear form by slot, without banned terms. One of words has whole weights of 0 for latent features."""
        kept = self._not_banned(linear.features)
        slots = self._vocabulary.intern(linear.features[kept])
        w = np.zeros(self._vocabulary.size)
        if linear.view != "semantic":
            w[self._latent] = -linear.rest
        w[slots] = linear.weights[kept]
        return Vector(w, linear.bias, linear.rest)

    def truncated(self, v: Vector) -> Vector:
        """The vector with only its strongest weights, rounded as they are served."""
        w = v.w[: self._vocabulary.size].astype(np.float32)
        size = np.abs(w)
        if len(self.pins):
            size[self.pins[self.pins < len(w)]] = np.inf
        size[self._latent[self._latent < len(w)]] = np.inf
        room = max(self._max_weights - (len(self._banned) if v.rest else 0), len(self.pins), 1) + len(self._latent)
        kept = strongest(size, room, self._vocabulary.ascending)
        minus = None if v.minus is None else v.minus[: len(w)] * kept
        rest = pins.rounded(v.rest) if len(self._banned) else v.rest
        # Multiplying is ten times as fast as w[~kept] = 0, whose branches no processor can predict.
        return dataclasses.replace(v, w=(w * kept).astype(np.float64), rest=rest, minus=minus, kept=kept)

    def linear(self, v: Vector, name: View) -> Linear:
        """A truncated vector by feature, as it is served."""
        vocabulary = self._vocabulary
        linear = Linear(name, *nonzero(v.w, vocabulary.features, vocabulary.ascending), v.bias, v.rest)
        return pins.silenced(linear, self._terms)

    @property
    def nbytes(self) -> int:
        return self._vocabulary.nbytes

    def _not_banned(self, features: Features) -> Bools | slice:
        return ~np.isin(features, self._banned) if len(self._banned) else slice(None)
