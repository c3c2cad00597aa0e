"""Documents kept by slot, one after the other, so that a vector scores all of them in one pass.

    indptr[i] .. indptr[i+1]   where document i stands in `slots` and in the values of each view
    score_i = bias + rest·Σ x_f + Σ w_f x_f

A topic keeps its judged documents so (the window in which vectors compete and thresholds are chosen), and the service
keeps a sample of unjudged ones, the background, which all topics share and which numbers its features by itself.
Values are single precision: they are only ranked, never learned from.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.kernel import kernel
from models.measures import Bools
from models.vectors import Bag, Linear, Reals, Singles, View
from models.views import view
from models.vocabulary import Slots, Vocabulary, grown

Starts = NDArray[np.int64]


class Collection:
    """Documents in the order in which they were added, each seen through the same views."""

    def __init__(self, views: Sequence[View]) -> None:
        self.size = 0
        self._indptr = np.zeros(16, np.int64)
        self._slots = np.zeros(256, np.int32)
        self._values = {name: np.zeros(256, np.float32) for name in views}

    def add(self, slots: Slots, values: Sequence[Reals]) -> None:
        """Keep one document: its slots, and its values in each of the views, in their order."""
        start = int(self._indptr[self.size])
        end = start + len(slots)
        self._indptr = grown(self._indptr, self.size + 2)
        self._slots = grown(self._slots, end)
        self._slots[start:end] = slots
        for name, x in zip(self._values, values, strict=True):
            self._values[name] = grown(self._values[name], end)
            self._values[name][start:end] = x
        self.size += 1
        self._indptr[self.size] = end

    def newest(self, n: int, name: View) -> "Window":
        """The last n documents (all, if there are fewer) through one view."""
        first = max(0, self.size - n)
        return Window(self._indptr[first : self.size + 1], self._slots, self._values[name])

    @property
    def views(self) -> tuple[View, ...]:
        return tuple(self._values)

    @property
    def nbytes(self) -> int:
        return self._indptr.nbytes + self._slots.nbytes + sum(v.nbytes for v in self._values.values())


@dataclass(frozen=True, slots=True, eq=False)
class Window:
    indptr: Starts
    slots: Slots
    values: Singles

    @property
    def size(self) -> int:
        return len(self.indptr) - 1

    def scores(self, w: Reals, bias: float, rest: float) -> Reals:
        """The score of every document under a vector by slot; slots beyond its end weigh nothing of their own."""
        return _scores(self.indptr, self.slots, self.values, w, bias, rest)

    def squares(self, kept: Bools) -> Reals:
        """For every document the sum of x_f² over these features: what it would add to its own score if it were added
        to a vector that has only them."""
        return _squares(self.indptr, self.slots, self.values, kept)


class Background:
    """A sample of unjudged documents, prepared once for every topic that will be measured against it."""

    def __init__(self, bags: Sequence[Bag] = (), documents: Sequence[str] = ()) -> None:
        self.size = len(bags)
        self._bags = tuple(bags)
        self._at = {document: i for i, document in enumerate(documents)}
        self._vocabulary = Vocabulary()
        self._slots = [self._vocabulary.intern(bag.features) for bag in bags]
        self._seen: dict[View, Window] = {}

    def scores(self, model: Linear) -> Reals:
        """The score of every document under a model."""
        w = np.zeros(self._vocabulary.size)
        slots = self._vocabulary.find(model.features)
        w[slots[slots >= 0]] = model.weights[slots >= 0]
        return self._through(model.view).scores(w, model.bias, model.rest)

    def find(self, document: str) -> int | None:
        """The place of a document in the sample, if it is there: a judged one must not count as unjudged too."""
        return self._at.get(document)

    def _through(self, name: View) -> Window:
        # Two threads may both prepare a view for the first time: they prepare the same one, and either may stay.
        if name not in self._seen:
            seen = Collection([name])
            for slots, bag in zip(self._slots, self._bags, strict=True):
                seen.add(slots, [view(name, bag).values])
            self._seen[name] = seen.newest(self.size, name)
        return self._seen[name]


@kernel
def _scores(indptr: Starts, slots: Slots, values: Singles, w: Reals, bias: float, rest: float) -> Reals:
    scores = np.full(len(indptr) - 1, bias)
    for i in range(len(scores)):
        for k in range(indptr[i], indptr[i + 1]):
            weight = w[slots[k]] if slots[k] < len(w) else 0.0
            scores[i] += (rest + weight) * values[k]
    return scores


@kernel
def _squares(indptr: Starts, slots: Slots, values: Singles, kept: Bools) -> Reals:
    squares = np.zeros(len(indptr) - 1)
    for i in range(len(squares)):
        for k in range(indptr[i], indptr[i + 1]):
            if slots[k] < len(kept) and kept[slots[k]]:
                squares[i] += np.float64(values[k]) * values[k]
    return squares
