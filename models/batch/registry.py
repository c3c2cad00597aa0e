"""Every method that learns from all judged documents at once, by name.

Those of models/methods, and the learners of online/registry.py, which are batch methods, too, if they are shown the
documents in several passes, or by many draws with a pocket (batch/passes.py). They have their own parameters, `passes`
or `draws`, and, since they have a starting vector, `start` and `expand` (batch/starting.py): the standing query is
where they start.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.batch.passes import in_passes, random_draws, train
from models.batch.starting import Start, document, expanded, first_vector
from models.core.arrays import check
from models.core.measures import Bools
from models.core.names import METHOD_KINDS, View
from models.learners.base import DocumentVector, Vector
from models.learners.documents import DocumentWindow
from models.methods import registry as methods
from models.methods.matrix import Examples, Labels, Planes, Progress, no_progress
from models.methods.registry import METHODS
from models.online.registry import parse_params, read_params
from models.online.registry import takes_signed_values as of_learner


@dataclass(frozen=True, slots=True)
class OnlineMethod:
    """A learner, where it starts, and how documents are shown to it. Draws are balanced for EG, as in the paper
    (batch/passes.py)."""

    kind: str
    params: Mapping[str, object] = field(default_factory=dict)
    passes: int = 1
    draws: int = 0
    start: Start = "query"
    expand: int | None = None  # n of Q + n; None for all terms

    def __post_init__(self) -> None:
        check(1 <= self.passes <= 100, "passes must be a whole number from 1 to 100")
        check(0 <= self.draws <= 1_000_000, "draws must be a whole number from 0 to 1000000")
        check(
            self.expand is None or 1 <= self.expand <= 1_000_000,
            "expand must be null, for all terms, or a whole number from 1 to 1000000",
        )
        check(
            (self.kind, self.start) != ("rocchio", "rocchio"),
            "start must be query or none: rocchio itself cannot start with its own output",
        )

    @property
    def view(self) -> View:
        return parse_params(self.kind, self.params).view


def parse(kind: str, params: Mapping[str, object]) -> Any:
    """Parses the parameters of a method, or raises a ValueError whose message says what is wrong."""
    check(kind in METHOD_KINDS, f"the method must be one of {', '.join(METHOD_KINDS)}")
    if kind in METHODS:
        return read_params(kind, METHODS[kind].Params, params)
    order = {name: params[name] for name in ("passes", "draws", "start", "expand") if name in params}
    learner_params = {name: value for name, value in params.items() if name not in order}
    parse_params(kind, learner_params)
    return read_params(kind, OnlineMethod, {"kind": kind, **order}, {"params": learner_params})


def takes_signed_values(p: Any) -> bool:
    """Whether a method with these parameters works on tf-idf and can learn from values below 0, so that documents may
    have latent features, too."""
    if isinstance(p, OnlineMethod):
        params = parse_params(p.kind, p.params)
        return params.view == "tfidf" and of_learner(params)
    return methods.takes_signed_values(p)


def has_start(p: Any) -> bool:
    """Whether a method with these parameters has a starting vector, so that a topic's query matters."""
    return isinstance(p, OnlineMethod)


def fit(
    p: Any,
    x: Examples,
    labels: Labels,
    seed: int = 0,
    progress: Progress = no_progress,
    queries: Sequence[DocumentVector | None] | None = None,
) -> Planes:
    """Fits all topics to examples in p's view, or in the semantic one if p takes signed values. The topics' queries,
    by column of x, are for methods that have a starting vector."""
    if isinstance(p, OnlineMethod):
        return _fit_online(p, x, labels, seed, progress, queries or [None] * labels.shape[1])
    return methods.fit(p, x, labels, seed, progress)


def _fit_online(
    p: OnlineMethod,
    x: Examples,
    labels: Labels,
    seed: int,
    progress: Progress,
    queries: Sequence[DocumentVector | None],
) -> Planes:
    m, r = labels.shape[1], len(x.features)
    w, bias, rest = np.zeros((m, r)), np.zeros(m), np.zeros(m)
    for i, query in zip(range(m), queries, strict=True):
        relevant = np.ascontiguousarray(labels[:, i])
        shown = np.ones(r, np.bool_) if p.expand is None else expanded(x, relevant, query, p.expand)
        v = _trained(p, x.only(shown), relevant, seed, query and _only(query, shown))
        own = np.zeros(np.count_nonzero(shown))
        own[: len(v.w)] = v.w[: len(own)]
        if p.expand is None:
            w[i], rest[i] = own, v.rest
        else:  # a term that is not shown weighs nothing, not what an unseen one does
            w[i, shown] = own + v.rest
        bias[i] = v.bias
        progress((i + 1) / m)
    return Planes(x.view, x.features, w, bias, rest)


def _trained(p: OnlineMethod, x: Examples, relevant: Bools, seed: int, query: DocumentVector | None) -> Vector:
    documents = [document(x, j) for j in range(x.size)]
    window = DocumentWindow(x.indptr, x.columns, x.values.astype(np.float32))
    if p.draws:
        order = random_draws(relevant, p.draws, seed, balanced=p.kind == "eg")
    else:
        order = in_passes(x.size, p.passes, seed)
    first = first_vector(p.start, p.kind, p.params, x, relevant, query)
    return train(p.kind, p.params, documents, window, relevant, order, p.draws > 0, first).vector


def _only(x: DocumentVector, shown: Bools) -> DocumentVector:
    kept = shown[x.slots]
    slots = (np.cumsum(shown) - 1)[x.slots[kept]]
    return DocumentVector(slots.astype(np.int32), x.values[kept])
