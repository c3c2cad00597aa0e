"""The fold: from a topic's query and its judgements, in order, to the model that is served.

    model = fold(spec, examples, background)

A `Trainer` is the fold stopped in the middle: learning one more example and asking for the model gives, bit for bit,
what folding all of them from the start would give. It is mutable and belongs to one caller at a time.
"""

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from models import pocket, thresholds
from models.collection import Background, Collection, Window
from models.dense import Document, Vector
from models.lane import Lane
from models.measures import Bools
from models.pocket import Candidate
from models.vectors import Bag, Linear, View
from models.views import view
from models.vocabulary import Vocabulary, grown

# Σ x_f and ‖x‖ of a document of 60 different words, seen through each view
USUAL: Mapping[View, tuple[float, float]] = {
    "presence": (60.0, 7.7),
    "tf": (90.0, 14.0),
    "sqrt": (70.0, 9.5),
    "strength": (1.0, 0.13),
    "tfidf": (7.0, 1.0),
}


@dataclass(frozen=True, slots=True)
class Spec:
    """What makes a model, besides examples."""

    kind: str = "wh"
    params: Mapping[str, object] = field(default_factory=dict)
    query: Bag | None = None


@dataclass(frozen=True, slots=True)
class Example:
    document: str
    relevant: bool
    bag: Bag


@dataclass(frozen=True, slots=True)
class Figures:
    """What the model was chosen by; estimates are None while there is nothing to estimate from."""

    relevant: int = 0
    irrelevant: int = 0
    sap: float | None = None  # by which the vector won the last check, on documents it has learned from
    f1: float | None = None  # at the threshold, on scores without each document's own influence


@dataclass(frozen=True, slots=True)
class Model:
    linear: Linear
    reject_below: float
    accept_above: float
    figures: Figures = Figures()


class Trainer:
    def __init__(self, spec: Spec, *, base: Model | None = None, weights: int = 500) -> None:
        self._base = base
        self._weights = weights
        self._query = spec.query
        self._vocabulary = Vocabulary()
        self._lanes = Lane.all_of(spec.kind, spec.params)
        self._served = (0, 0)  # the lane, and which of its vectors
        self._pocket: Candidate | None = None  # the winner of the last check, as it was then
        self._frozen = False  # whether the pocketed vector itself is served, or its learner as it goes on
        if base is None:
            self._start()
        else:
            self._resume(base.linear)
        self._collection = Collection(list(dict.fromkeys(lane.view for lane in self._lanes)))
        self._relevant = np.zeros(16, np.bool_)
        self._check_at = pocket.EVERY
        self._documents: set[str] = set()
        self._sap: float | None = None

    def learn(self, example: Example) -> None:
        slots = self._vocabulary.intern(example.bag.features)
        seen = {name: Document(slots, view(name, example.bag).values) for name in self._collection.views}
        for lane in self._lanes:
            lane.learn(seen[lane.view], example.relevant)
        n = self._collection.size
        self._collection.add(slots, [x.values for x in seen.values()])
        self._relevant = grown(self._relevant, n + 1)
        self._relevant[n] = example.relevant
        self._documents.add(example.document)
        if n + 1 == self._check_at:
            self._check_at += pocket.rhythm(n + 1)
            self._check()

    def model(self, background: Background) -> Model:
        n = self._collection.size
        if self._base is not None and not n:
            return self._base
        lane = self._lanes[self._served[0]]
        v = self._pocket.vector if self._pocket and self._frozen else lane.vectors()[self._served[1]]
        v = self._truncated(v)
        linear = self._compiled(v, lane.view)
        relevant = self._judged()
        window = self._window(lane.view)
        band = thresholds.choose(
            lane.held_out(v, window),
            relevant,
            background.scores(linear),
            background.without(self._documents),
            _scale(v, lane.view),
            window.scores(v.w, v.bias, v.rest) if n <= thresholds.FEW else None,
        )
        positive = int(np.count_nonzero(self._relevant[:n]))
        figures = Figures(positive, n - positive, self._sap, band.f1)
        return Model(linear, band.reject_below, band.accept_above, figures)

    @property
    def nbytes(self) -> int:
        return self._vocabulary.nbytes + self._collection.nbytes + sum(lane.nbytes for lane in self._lanes) + 4096

    def _start(self) -> None:
        for lane in self._lanes:
            lane.start(self._document(self._query, lane.view) if self._query else None)

    def _resume(self, base: Linear) -> None:
        """Learners of the base's view go on from it, the others begin with the query; the base itself competes with
        them: as what the pocket already holds, or, if the first learner cannot go on from it, in a lane of its own."""
        slots = self._vocabulary.intern(base.features)
        w = np.zeros(self._vocabulary.size)
        w[slots] = base.weights
        v = Vector(w, base.bias, base.rest)
        self._start()
        for lane in self._lanes:
            if lane.view == base.view:
                lane.resume(v)
        if self._lanes[0].view == base.view:
            self._pocket = Candidate(0, 0, v)
        else:
            self._lanes.append(Lane.fixed(base.view))
            self._lanes[-1].resume(v)
            self._served = (len(self._lanes) - 1, 0)

    def _check(self) -> None:
        relevant = self._judged()
        if not relevant.any():
            return
        candidates = [Candidate(i, k, v) for i, lane in enumerate(self._lanes) for k, v in enumerate(lane.vectors())]
        live = len(candidates)
        if self._pocket:
            candidates.append(self._pocket)
        scores = [
            self._window(self._lanes[c.lane].view).scores(c.vector.w, c.vector.bias, c.vector.rest) for c in candidates
        ]
        winner, self._sap = pocket.best(scores, relevant)
        self._pocket = candidates[winner]
        self._served = (self._pocket.lane, self._pocket.which)
        self._frozen = winner >= live

    def _judged(self) -> Bools:
        return self._relevant[max(0, self._collection.size - pocket.WINDOW) : self._collection.size]

    def _window(self, name: View) -> Window:
        return self._collection.newest(pocket.WINDOW, name)

    def _document(self, bag: Bag, name: View) -> Document:
        return Document(self._vocabulary.intern(bag.features), view(name, bag).values)

    def _truncated(self, v: Vector) -> Vector:
        """The vector with only its strongest weights, rounded as they are served."""
        w = v.w[: self._vocabulary.size].astype(np.float32)
        size = np.abs(w)
        keep = np.ones(len(w), np.bool_)
        if np.count_nonzero(size) > self._weights:
            least = np.partition(size, len(size) - self._weights)[len(size) - self._weights]
            keep = size > least
            tied = np.flatnonzero(size == least)
            tied = tied[np.argsort(self._vocabulary.features[tied])]
            keep[tied[: self._weights - int(keep.sum())]] = True
            w[~keep] = 0
        minus = None if v.minus is None else v.minus[: len(w)] * keep
        return dataclasses.replace(v, w=w.astype(np.float64), minus=minus, kept=keep)

    def _compiled(self, v: Vector, name: View) -> Linear:
        slots = np.flatnonzero(v.w)
        features = self._vocabulary.features[slots]
        order = np.argsort(features)
        return Linear(name, features[order], v.w[slots][order].astype(np.float32), v.bias, v.rest)


def _scale(v: Vector, name: View) -> thresholds.Scale:
    """What v says of an unrelated document, and of one that points where v points, both of usual length."""
    total, length = USUAL[name]
    zero = v.bias + v.rest * total
    return thresholds.Scale(zero, zero + length * float(np.sqrt(np.square(v.w).sum())))


def fold(
    spec: Spec, examples: Iterable[Example], background: Background, *, base: Model | None = None, weights: int = 500
) -> Model:
    """The model that these judgements make, in their order."""
    trainer = Trainer(spec, base=base, weights=weights)
    for example in examples:
        trainer.learn(example)
    return trainer.model(background)
