"""The fold: from a topic's query and its judgements, in order, to the model that is served.

    model = fold(spec, examples, background)

A `Trainer` is the fold stopped in the middle: learning one more example and asking for the model gives, bit for bit,
what folding all of them from the start would give. It is mutable and belongs to one caller at a time.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from models import thresholds
from models.collection import Background, Collection, view
from models.dense import Document, Vector
from models.learners import LEARNERS, parse_params
from models.measures import Bools
from models.vectors import Bag, Linear, Reals, View
from models.vocabulary import Vocabulary, grown

# Between an unrelated document (0) and the query itself (1): where a topic without judgements accepts and rejects.
ACCEPT, REJECT = 0.15, 0.08
ABSTAIN = 0.03  # the share of the stream that is offered for a judgement


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
    f1: float | None = None


@dataclass(frozen=True, slots=True)
class Model:
    linear: Linear
    reject_below: float
    accept_above: float
    figures: Figures = Figures()


class Trainer:
    def __init__(self, spec: Spec, *, base: Model | None = None, weights: int = 500) -> None:
        self._params = parse_params(spec.kind, spec.params)
        self._learner = LEARNERS[spec.kind]
        self._base = base
        self._weights = weights
        self._view: View = self._params.view
        self._vocabulary = Vocabulary()
        self._query = self._document(spec.query) if spec.query is not None else None
        self._window = Collection([self._view])
        self._documents: list[str] = []
        self._relevant = np.zeros(16, np.bool_)
        self._steps = np.zeros(16)
        if base is not None and base.linear.view == self._view:
            slots = self._vocabulary.intern(base.linear.features)
            w = np.zeros(self._vocabulary.size)
            w[slots] = base.linear.weights
            self._state = self._learner.resume(self._params, Vector(w, base.linear.bias, base.linear.rest))
        else:
            self._state = self._learner.start(self._params, self._query)
        self._before = self._learner.vectors(self._params, self._state)[0].at  # updates that no judgement caused

    def learn(self, example: Example) -> None:
        x = self._document(example.bag)
        n = self._window.size
        self._relevant, self._steps = grown(self._relevant, n + 1), grown(self._steps, n + 1)
        self._relevant[n] = example.relevant
        self._steps[n] = self._learner.update(self._params, self._state, x, example.relevant)
        self._window.add(x.slots, [x.values])
        self._documents.append(example.document)

    def model(self, background: Background) -> Model:
        n = self._window.size
        if self._base is not None and not n:
            return self._base
        served = self._truncated(self._learner.vectors(self._params, self._state)[0])
        linear = self._compiled(served)
        relevant = self._relevant[:n]
        everything = background.scores(linear)
        unjudged = everything[self._unjudged(background)]
        counts = Figures(int(relevant.sum()), int(n - relevant.sum()))
        if not relevant.any():
            return Model(linear, *self._prior(served), counts)
        scores = np.concatenate([self._out_of_sample(served), unjudged])
        labels = np.concatenate([relevant, np.zeros(len(unjudged), np.bool_)])
        cut = thresholds.f_beta(scores, labels)
        if cut.threshold == thresholds.NEVER:
            return Model(linear, self._prior(served)[0], cut.threshold, counts)
        low = thresholds.abstaining(cut.threshold, everything, ABSTAIN)
        return Model(linear, low, cut.threshold, Figures(counts.relevant, counts.irrelevant, cut.value))

    @property
    def nbytes(self) -> int:
        state = sum(v.nbytes for v in vars_of(self._state) if isinstance(v, np.ndarray))
        return self._vocabulary.nbytes + self._window.nbytes + self._relevant.nbytes + self._steps.nbytes + state + 4096

    def _document(self, bag: Bag) -> Document:
        return Document(self._vocabulary.intern(bag.features), view(self._view, bag).values)

    def _prior(self, v: Vector) -> tuple[float, float]:
        """Thresholds before there is anything to learn them from: how much of the query a document must have."""
        if self._query is None:
            return v.bias, thresholds.NEVER
        q = self._query
        whole = float(sum(v.w[s] * x for s, x in zip(q.slots, q.values, strict=True)))
        return v.bias + REJECT * whole, v.bias + ACCEPT * whole

    def _out_of_sample(self, v: Vector) -> Reals:
        """Scores of the judged documents as if each had not been learned from: its own step is subtracted."""
        scores = self._window.scores(self._view, v.w, v.bias, v.rest)
        t = self._before + 1 + np.arange(self._window.size)
        share = np.where(t <= v.at, 1 - t / (v.at + 1) if v.averaged else 1.0, 0.0)
        own = self._window.squares(self._view, v.w) + self._params.bias**2
        return scores - self._steps[: self._window.size] * share * own

    def _unjudged(self, background: Background) -> Bools:
        keep = np.ones(background.size, np.bool_)
        for document in self._documents:
            at = background.find(document)
            if at is not None:
                keep[at] = False
        return keep

    def _truncated(self, v: Vector) -> Vector:
        """The vector with only its strongest weights, rounded as they are served."""
        w = v.w[: self._vocabulary.size].astype(np.float32)
        size = np.abs(w)
        if np.count_nonzero(size) > self._weights:
            least = np.partition(size, len(size) - self._weights)[len(size) - self._weights]
            tied = np.flatnonzero(size == least)
            tied = tied[np.argsort(self._vocabulary.features[tied])]
            keep = size > least
            keep[tied[: self._weights - int(keep.sum())]] = True
            w[~keep] = 0
        return Vector(w.astype(np.float64), v.bias, v.rest, v.at, v.averaged)

    def _compiled(self, v: Vector) -> Linear:
        slots = np.flatnonzero(v.w)
        features = self._vocabulary.features[slots]
        order = np.argsort(features)
        return Linear(self._view, features[order], v.w[slots][order].astype(np.float32), v.bias, v.rest)


def vars_of(state: object) -> list[object]:
    return [getattr(state, name) for name in getattr(state, "__slots__", ())]


def fold(
    spec: Spec, examples: Iterable[Example], background: Background, *, base: Model | None = None, weights: int = 500
) -> Model:
    """The model that these judgements make, in their order."""
    trainer = Trainer(spec, base=base, weights=weights)
    for example in examples:
        trainer.learn(example)
    return trainer.model(background)
