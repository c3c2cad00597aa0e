"""Every method that learns from all judged documents at once, by name.

A batch method is a module with `Params` (frozen, validated, with the `view` it works in) and

    fit(p, x, labels, seed, progress) → Planes        of all topics at once; one topic alone is one column of labels

The learners of online/registry.py are batch methods, too, if they are shown the documents in several passes, or by many
draws with a pocket (batch/passes.py). They have their own parameters, and `passes` or `draws`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from models.batch import bayes, boosting, centroid, svm
from models.batch.matrix import Examples, Labels, Planes, Progress, no_progress
from models.batch.passes import in_passes, random_draws, train
from models.core.arrays import check
from models.core.names import METHOD_KINDS, View
from models.learners.base import DocumentVector
from models.learners.documents import DocumentWindow
from models.online.registry import parse_params, read_params
from models.online.registry import takes_signed_values as of_learner


class Method(Protocol):
    Params: type[Any]

    def fit(self, p: Any, x: Examples, labels: Labels, seed: int = 0, progress: Progress = no_progress) -> Planes: ...


METHODS: Mapping[str, Method] = {"boosting": boosting, "bayes": bayes, "centroid": centroid, "svm": svm}


@dataclass(frozen=True, slots=True)
class OnlineMethod:
    """A learner, and how documents are shown to it. Draws are balanced for EG, as in the paper (batch/passes.py)."""

    kind: str
    params: Mapping[str, object] = field(default_factory=dict)
    passes: int = 1
    draws: int = 0

    def __post_init__(self) -> None:
        check(1 <= self.passes <= 100, "passes must be a whole number from 1 to 100")
        check(0 <= self.draws <= 1_000_000, "draws must be a whole number from 0 to 1000000")

    @property
    def view(self) -> View:
        return parse_params(self.kind, self.params).view


def parse(kind: str, params: Mapping[str, object]) -> Any:
    """Parses the parameters of a method, or raises a ValueError whose message says what is wrong."""
    check(kind in METHOD_KINDS, f"the method must be one of {', '.join(METHOD_KINDS)}")
    if kind in METHODS:
        return read_params(kind, METHODS[kind].Params, params)
    order = {name: params[name] for name in ("passes", "draws") if name in params}
    learner_params = {name: value for name, value in params.items() if name not in order}
    parse_params(kind, learner_params)
    return read_params(kind, OnlineMethod, {"kind": kind, **order}, {"params": learner_params})


def takes_signed_values(p: Any) -> bool:
    """Whether a method with these parameters works on tf-idf and can learn from values below 0, so that documents may
    have latent features, too."""
    if isinstance(p, OnlineMethod):
        params = parse_params(p.kind, p.params)
        return params.view == "tfidf" and of_learner(params)
    return isinstance(p, svm.Params | centroid.Params) and p.view == "tfidf"


def fit(p: Any, x: Examples, labels: Labels, seed: int = 0, progress: Progress = no_progress) -> Planes:
    """Fits all topics to examples in p's view, or in the semantic one if p takes signed values."""
    if isinstance(p, OnlineMethod):
        return _fit_online(p, x, labels, seed, progress)
    method = next(method for method in METHODS.values() if isinstance(p, method.Params))
    return method.fit(p, x, labels, seed, progress)


def _fit_online(p: OnlineMethod, x: Examples, labels: Labels, seed: int, progress: Progress) -> Planes:
    ends, m, r = x.indptr.tolist(), labels.shape[1], len(x.features)
    documents = [DocumentVector(x.columns[a:b], x.values[a:b]) for a, b in pairwise(ends)]
    window = DocumentWindow(x.indptr, x.columns, x.values.astype(np.float32))
    w, bias, rest = np.zeros((m, r)), np.zeros(m), np.zeros(m)
    for i in range(m):
        relevant = np.ascontiguousarray(labels[:, i])
        if p.draws:
            order = random_draws(relevant, p.draws, seed, balanced=p.kind == "eg")
        else:
            order = in_passes(x.size, p.passes, seed)
        v = train(p.kind, p.params, documents, window, relevant, order, pocket=p.draws > 0).vector
        n = min(r, len(v.w))
        w[i, :n], bias[i], rest[i] = v.w[:n], v.bias, v.rest
        progress((i + 1) / m)
    return Planes(x.view, x.features, w, bias, rest)
