"""Documents by slot, stored one after the other, so that a vector scores all of them in one pass.

    indptr[i] .. indptr[i+1]   where document i stands in `slots` and in the values of each view
    score_i = bias + rest·Σ x_f + Σ w_f x_f

A topic stores its judged documents so: the window in which vectors compete and thresholds are chosen. The service has
a sample of unjudged documents, the background, which all topics share and which has a numbering of its own. That one is
inverted, from a feature to its documents: a served model has few features, most of them rare, so a sixth of the sample
is touched (of Reuters, by 500 weights). Scores are added up in the order of the model's features. Values have single
precision: documents here are only ranked, never learned from.
"""

from collections.abc import Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import grown
from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.names import View
from models.core.vectors import Bag, Linear, Reals, Singles
from models.core.views import view
from models.learners.vocabulary import Slots, Vocabulary
from models.text.projection import Projection, joined

Starts = NDArray[np.int64]


class Collection:
    """Documents in the order in which they were added, each seen through the same views."""

    def __init__(self, views: Sequence[View]) -> None:
        self.size = 0
        self._indptr = np.zeros(16, np.int64)
        self._slots = np.zeros(256, np.int32)
        self._values = {name: np.zeros(256, np.float32) for name in views}

    def add(self, slots: Slots, values: Sequence[Reals]) -> None:
        """Append one document: its slots, and its values in each of the views, in their order. A view may have values
        for the first slots only: the others are nothing in it."""
        start = int(self._indptr[self.size])
        end = start + len(slots)
        self._indptr = grown(self._indptr, self.size + 2)
        self._slots = grown(self._slots, end)
        self._slots[start:end] = slots
        for name, x in zip(self._values, values, strict=True):
            self._values[name] = grown(self._values[name], end)
            self._values[name][start : start + len(x)] = x
        self.size += 1
        self._indptr[self.size] = end

    def newest(self, n: int, name: View) -> "DocumentWindow":
        """The last n documents (all, if there are fewer) through one view."""
        first = max(0, self.size - n)
        return DocumentWindow(self._indptr[first : self.size + 1], self._slots, self._values[name])

    @property
    def views(self) -> tuple[View, ...]:
        return tuple(self._values)

    @property
    def nbytes(self) -> int:
        return self._indptr.nbytes + self._slots.nbytes + sum(v.nbytes for v in self._values.values())


@dataclass(frozen=True, slots=True, eq=False)
class DocumentWindow:
    """Consecutive documents of a collection, through one view."""

    indptr: Starts
    slots: Slots
    values: Singles

    @property
    def size(self) -> int:
        return len(self.indptr) - 1

    def scores(self, w: Reals, bias: float, rest: float) -> Reals:
        """The score of every document under a vector by slot; slots beyond its end weigh nothing of their own."""
        return _scores(self.indptr, self.slots, self.values, w, bias, rest)

    def kept(self, kept: Bools, w: Reals, bias: float, rest: float) -> tuple[Reals, Reals]:
        """The score of every document under a vector with only the kept weights, and the sum of x_f² over these
        features: how much the document's own score would grow if the document were added to the vector."""
        return _kept(self.indptr, self.slots, self.values, kept, w, bias, rest)

    def without(self, slots: Slots) -> "DocumentWindow":
        """The same documents with nothing in these slots."""
        return DocumentWindow(self.indptr, self.slots, np.where(np.isin(self.slots, slots), np.float32(0), self.values))


class Background:
    """A sample of unjudged documents, prepared once for all topics that are measured against it."""

    def __init__(self, bags: Sequence[Bag] = (), documents: Sequence[str] = ()) -> None:
        self.size = len(bags)
        self._bags = tuple(bags)
        self._places = {document: i for i, document in enumerate(documents)}
        self._vocabulary = Vocabulary()
        self._slots = [self._vocabulary.intern(bag.features) for bag in bags]
        self._inverted: dict[View, Inverted] = {}
        self._latent: Singles | None = None  # documents × columns of the projection that it is seen under
        self._latent_features = np.empty(0, np.uint64)
        self._under: dict[int, Background] = {}  # by the projection's tag

    def under(self, projection: Projection | None) -> "Background":
        """The same documents, to be scored by models of this projection, too. What is prepared is shared, and kept."""
        if projection is None:
            return self
        if projection.tag not in self._under:
            seen = copy(self)
            seen._latent = projection.latent_batch(*joined(self._bags))
            seen._latent_features = projection.latent_features
            self._under[projection.tag] = seen
        return self._under[projection.tag]

    def scores(self, model: Linear) -> Reals:
        """The score of every document under a model. Latent weights of other projections than its own are ignored."""
        inverted = self._through("tfidf" if model.view == "semantic" else model.view)
        scores = model.bias + model.rest * inverted.sums
        # A copy, because the weights of a model that was read from the store are read-only (see Vocabulary.intern).
        _add(inverted, self._vocabulary.find(model.features), np.array(model.weights), scores)
        if model.view == "semantic" and self._latent is not None:
            u = np.full(len(self._latent_features), model.rest)
            _, own, theirs = np.intersect1d(self._latent_features, model.features, return_indices=True)
            u[own] += model.weights[theirs]
            _add_latent(self._latent, u, scores)
        return scores

    def unjudged(self, judged: Set[str]) -> Bools:
        """Which of its documents are not among the judged: those must not count as unjudged, too."""
        unjudged = np.ones(self.size, np.bool_)
        unjudged[[self._places[document] for document in self._places.keys() & judged]] = False
        return unjudged

    def common(self, numbered: Mapping[str, int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The places of those of its documents that are among the numbered ones, and their numbers."""
        pairs = [(self._places[document], numbered[document]) for document in self._places.keys() & numbered.keys()]
        places, numbers = np.array(sorted(pairs), np.int64).reshape(-1, 2).T
        return places, numbers

    def _through(self, name: View) -> "Inverted":
        # Two threads may both prepare a view for the first time: the results are equal, and either may stay.
        if name not in self._inverted:
            values = [view(name, bag).values for bag in self._bags]
            self._inverted[name] = _inverted(self._slots, values, self._vocabulary.size)
        return self._inverted[name]


class Inverted(NamedTuple):
    """Slot s is in documents[starts[s]] .. documents[starts[s + 1]], with these values; Σ x of every document."""

    starts: Starts
    documents: NDArray[np.int32]
    values: Singles
    sums: Reals


def _inverted(slots: Sequence[Slots], values: Sequence[Reals], features: int) -> Inverted:
    joined = np.concatenate([np.empty(0, np.int32), *slots])
    order = np.argsort(joined, kind="stable")
    starts = np.zeros(features + 1, np.int64)
    np.cumsum(np.bincount(joined, minlength=features), out=starts[1:])
    documents = np.repeat(np.arange(len(slots), dtype=np.int32), [len(x) for x in slots])[order]
    sorted_values = np.concatenate([np.empty(0), *values])[order].astype(np.float32)
    return Inverted(starts, documents, sorted_values, np.array([x.sum() for x in values], np.float64))


# Arrays are taken out of their tuple once, since numba counts a reference at every access, and indexes are unsigned,
# since numba checks whether signed ones are negative.


@kernel
def _add(inverted: Inverted, slots: Slots, weights: Singles, scores: Reals) -> None:
    starts, documents, values = inverted.starts, inverted.documents, inverted.values
    for i in range(len(slots)):
        if slots[i] >= 0:
            slot, weight = np.uint64(slots[i]), np.float64(weights[i])
            for k in range(np.uint64(starts[slot]), np.uint64(starts[slot + np.uint64(1)])):
                scores[np.uint64(documents[k])] += weight * values[k]


@kernel
def _add_latent(latent: Singles, u: Reals, scores: Reals) -> None:
    for i in range(len(scores)):
        for k in range(len(u)):
            scores[i] += u[k] * latent[i, k]


@kernel
def _scores(indptr: Starts, slots: Slots, values: Singles, w: Reals, bias: float, rest: float) -> Reals:
    size = np.uint64(len(w))
    weights = np.full(len(w) + 1, rest)  # the last for slots beyond the end
    for s in range(size):
        weights[s] += w[s]
    scores = np.empty(len(indptr) - 1)
    for i in range(len(scores)):
        score = bias  # in a register; a sum in memory would be written and read again for every feature
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            score += weights[min(np.uint64(slots[k]), size)] * values[k]
        scores[i] = score
    return scores


@kernel
def _kept(
    indptr: Starts, slots: Slots, values: Singles, kept: Bools, w: Reals, bias: float, rest: float
) -> tuple[Reals, Reals]:
    # Whether a feature was kept cannot be predicted, so there is no branch: those that were not have a weight of zero.
    size = np.uint64(len(w))
    weights, counts = np.zeros(len(w) + 1), np.zeros(len(w) + 1)
    for s in range(size):
        weights[s], counts[s] = (w[s], 1.0) if kept[s] else (0.0, 0.0)
    scores, squares = np.empty(len(indptr) - 1), np.empty(len(indptr) - 1)
    for i in range(len(scores)):
        total, score, square = 0.0, bias, 0.0
        for k in range(np.uint64(indptr[i]), np.uint64(indptr[i + 1])):
            x, slot = np.float64(values[k]), min(np.uint64(slots[k]), size)
            total += x
            score += weights[slot] * x
            square += counts[slot] * (x * x)
        scores[i], squares[i] = score + rest * total, square
    return scores, squares
