"""Widrow-Hoff (LMS): gradient descent on the squared error, one example at a time.

    w_{t+1} = w_t − 2η (w_t·x_t − y_t) x_t            y ∈ {0, 1}
    w̄ = (w_1 + … + w_{n+1}) / (n+1)                    the average, which is what we serve

Lewis, Schapire, Callan & Papka, "Training algorithms for linear text classifiers", SIGIR 1996.

Parameters. Paper: η = 1/(4X²), X being the longest document (here: so far; `eta: null`), and no bias. Ours, better on a
stream with few judgements: η = .35 and a constant feature of value .2 in every document (AP higher by .003 to .012 on
three corpora than with .5 and .3). The average ranks better where topics stand still, the last vector where they move:
the pocket compares the two. Batch fits of the same judgements, background documents as examples, steps of other sizes
and many more did not do better: docs/experiments.md.

Differences from the formula:
* The average is lazy. Step t adds Δ_t to w, and Δ_t is in n+1−t of the n+1 vectors, so w̄ = w_{n+1} − Σ t·Δ_t / (n+1).
  We keep w and a = Σ t·Δ_t, and an update costs the features of its document, whatever the topic's size.
* η never exceeds 1/‖x‖², the rate of the paper's routing experiments: beyond it a step overshoots further than it was
  off, and in a view that is not normalised the weights would grow without bound.
* The query is the first example, and relevant.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check, grown
from models.core.vectors import Reals, View
from models.learners.base import DocumentVector, Vector, additive_held_out
from models.learners.documents import DocumentWindow
from models.learners.vocabulary import axpy, dot


@dataclass(frozen=True, slots=True)
class Params:
    eta: float | None = 0.35
    bias: float = 0.2
    average: bool = True
    view: View = "tfidf"

    def __post_init__(self) -> None:
        check(
            self.eta is None or 0 < self.eta <= 100, "eta must be null, for 1/(4X²), or a number above 0 and up to 100"
        )
        check(0 <= self.bias <= 100, "bias must be a number from 0 to 100")


@dataclass(slots=True)
class State:
    w: Reals
    a: Reals
    w0: float = 0.0  # the same two for the constant feature
    a0: float = 0.0
    X2: float = 0.0  # the largest ‖x‖² so far
    t: int = 0


def start(p: Params, query: DocumentVector | None) -> State:
    s = State(np.zeros(0), np.zeros(0))
    if query is not None:
        update(p, s, query, True)
    return s


def resume(p: Params, v: Vector) -> State:
    """Learning goes on from a vector that was learned elsewhere."""
    return State(v.w.copy(), np.zeros(len(v.w)), w0=v.bias / p.bias if p.bias else 0.0)


def learn(p: Params, s: State, x: DocumentVector, y: bool) -> State:
    after = replace(s, w=s.w.copy(), a=s.a.copy())
    update(p, after, x, y)
    return after


def update(p: Params, s: State, x: DocumentVector, y: bool) -> float:
    """Learn in place; the answer is the step: the document's coefficient in w."""
    s.w, s.a = grown(s.w, x.span), grown(s.a, x.span)
    s.t += 1
    x2 = x.square + p.bias**2
    s.X2 = max(s.X2, x2)
    if x2 == 0:
        return 0.0
    eta = min(p.eta if p.eta is not None else 1 / (4 * s.X2), 1 / x2)
    g = -2 * eta * (dot(s.w, x.slots, x.values) + s.w0 * p.bias - y)
    axpy(s.w, g, x.slots, x.values)
    axpy(s.a, s.t * g, x.slots, x.values)
    s.w0 += g * p.bias
    s.a0 += s.t * g * p.bias
    return g


def vectors(p: Params, s: State) -> tuple[Vector, ...]:
    """What may be served, the preferred one first."""
    last = Vector(s.w.copy(), s.w0 * p.bias, at=s.t)
    average = Vector(s.w - s.a / (s.t + 1), (s.w0 - s.a0 / (s.t + 1)) * p.bias, at=s.t, averaged=True)
    return (average, last) if p.average else (last, average)


def held_out(p: Params, v: Vector, window: DocumentWindow, steps: Reals, t: NDArray[np.int64]) -> Reals:
    return additive_held_out(v, window, steps * v.share(t), p.bias)
