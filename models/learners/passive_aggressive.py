"""PA-I, the passive-aggressive algorithm: the smallest step that puts an example right by a margin of 1, up to C.

    ℓ = max(0, 1 − y w·x)                    y ∈ {−1, 1}
    w ← w + τ y x,    τ = min(C, ℓ / ‖x‖²)

Crammer, Dekel, Keshet, Shalev-Shwartz & Singer, "Online passive-aggressive algorithms", JMLR 2006.

Parameters. The paper leaves C open. Ours: C = 1, tf-idf cosine, a constant feature of value .3, and the average of all
vectors (see widrow_hoff.py). The query is the first example, and relevant.
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
    C: float = 1.0
    bias: float = 0.3
    average: bool = True
    view: View = "tfidf"

    def __post_init__(self) -> None:
        check(0 < self.C <= 1e6, "C must be a number above 0 and up to 1e6")
        check(0 <= self.bias <= 100, "bias must be a number from 0 to 100")


@dataclass(slots=True)
class State:
    w: Reals
    a: Reals  # Σ t·Δ_t, for the average (see widrow_hoff.py)
    w0: float = 0.0  # the same two for the constant feature
    a0: float = 0.0
    t: int = 0


def start(p: Params, query: DocumentVector | None) -> State:
    s = State(np.zeros(0), np.zeros(0))
    if query is not None:
        update(p, s, query, True)
    return s


def resume(p: Params, v: Vector) -> State:
    return State(v.w.copy(), np.zeros(len(v.w)), w0=v.bias / p.bias if p.bias else 0.0)


def learn(p: Params, s: State, x: DocumentVector, y: bool) -> State:
    after = replace(s, w=s.w.copy(), a=s.a.copy())
    update(p, after, x, y)
    return after


def update(p: Params, s: State, x: DocumentVector, y: bool) -> float:
    """Learn in place; the answer is the step: the document's coefficient in w."""
    s.w, s.a = grown(s.w, x.span), grown(s.a, x.span)
    s.t += 1
    sign = 1 if y else -1
    loss = 1 - sign * (dot(s.w, x.slots, x.values) + s.w0 * p.bias)
    x2 = x.square + p.bias**2
    if loss <= 0 or x2 == 0:
        return 0.0
    g = sign * min(p.C, loss / x2)
    axpy(s.w, g, x.slots, x.values)
    axpy(s.a, s.t * g, x.slots, x.values)
    s.w0 += g * p.bias
    s.a0 += s.t * g * p.bias
    return g


def vectors(p: Params, s: State) -> tuple[Vector, ...]:
    last = Vector(s.w.copy(), s.w0 * p.bias, at=s.t)
    average = Vector(s.w - s.a / (s.t + 1), (s.w0 - s.a0 / (s.t + 1)) * p.bias, at=s.t, averaged=True)
    return (average, last) if p.average else (last, average)


def held_out(p: Params, v: Vector, window: DocumentWindow, steps: Reals, t: NDArray[np.int64]) -> Reals:
    return additive_held_out(v, window, steps * v.share(t), p.bias)
