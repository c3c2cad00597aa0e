"""Rocchio: the query, plus the mean relevant document, minus a part of the mean irrelevant one.

    w = α w_1 + β Σ_{i∈C} x_i / n_C − γ Σ_{i∉C} x_i / (n − n_C)
    w' = max(w, 0)                                                     (`positive`)

Lewis, Schapire, Callan & Papka, "Training algorithms for linear text classifiers", SIGIR 1996 (after Rocchio 1971).

Parameters. Paper: β = 16, γ = 4 without a query, α = 1, β = 2, γ = .5 with one; weights below 0 are dropped. Only the
ratios matter, so the second set, the default, is the first with a query.

It is a batch method, but its sums can be updated one example at a time, and then an example costs its features.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check, grown
from models.core.names import WordView
from models.core.vectors import Reals
from models.learners.base import DocumentVector, Vector, additive_held_out
from models.learners.documents import DocumentWindow
from models.learners.vocabulary import axpy


@dataclass(frozen=True, slots=True)
class Params:
    alpha: float = 1.0
    beta: float = 2.0
    gamma: float = 0.5
    positive: bool = True
    view: WordView = "tfidf"

    def __post_init__(self) -> None:
        check(0 <= self.alpha <= 1000, "alpha must be a number from 0 to 1000")
        check(0 <= self.beta <= 1000, "beta must be a number from 0 to 1000")
        check(0 <= self.gamma <= 1000, "gamma must be a number from 0 to 1000")


@dataclass(slots=True)
class State:
    first: Reals  # w_1
    relevant: Reals  # Σ x over the relevant
    irrelevant: Reals
    n_relevant: int = 0
    n_irrelevant: int = 0


def start(p: Params, query: DocumentVector | None) -> State:
    s = State(np.zeros(0), np.zeros(0), np.zeros(0))
    if query is not None:
        _grow(s, query.span)
        s.first[query.slots] = query.values
    return s


def resume(p: Params, v: Vector) -> State:
    return State(v.w / p.alpha if p.alpha else v.w.copy(), np.zeros(len(v.w)), np.zeros(len(v.w)))


def update(p: Params, s: State, x: DocumentVector, y: bool) -> float:
    """Learn in place; the step is 1 or −1, since how much a document counts depends on all the others. The steps of a
    document that is learned several times add up; a document that is not learned has 0."""
    _grow(s, x.span)
    axpy(s.relevant if y else s.irrelevant, 1.0, x.slots, x.values)
    s.n_relevant += y
    s.n_irrelevant += not y
    return 1.0 if y else -1.0


def vectors(p: Params, s: State) -> tuple[Vector, ...]:
    w = p.alpha * s.first + p.beta * s.relevant / max(s.n_relevant, 1) - p.gamma * s.irrelevant / max(s.n_irrelevant, 1)
    return (Vector(np.maximum(w, 0) if p.positive else w, at=s.n_relevant + s.n_irrelevant),)


def held_out(p: Params, v: Vector, window: DocumentWindow, steps: Reals, t: NDArray[np.int64]) -> Reals:
    known = t <= v.at
    steps = steps * known
    relevant, irrelevant = steps[steps > 0].sum(), -steps[steps < 0].sum()
    c = np.where(steps > 0, p.beta / max(relevant, 1), p.gamma / max(irrelevant, 1)) * steps
    return additive_held_out(v, window, c)


def _grow(s: State, span: int) -> None:
    s.first, s.relevant, s.irrelevant = (grown(a, span) for a in (s.first, s.relevant, s.irrelevant))
