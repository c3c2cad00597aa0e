"""What Widrow-Hoff, PA-I and the Perceptron share: a step adds a multiple of its document, and vectors are averaged.

    w_{t+1} = w_t + g_t x_t                  the step g_t is the learner's formula
    w̄ = (w_1 + … + w_{n+1}) / (n+1)          the average

The average is lazy. Step t is in n+1−t of the n+1 vectors, so w̄ = w_{n+1} − Σ t·g_t x_t / (n+1). We keep w and
a = Σ t·g_t x_t, and an update costs the features of its document, whatever the size of the topic.

A document may have a constant feature of value `bias`, which is in no slot: its weight is w0.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import grown
from models.core.vectors import Reals
from models.learners.base import DocumentVector, Vector, additive_held_out
from models.learners.documents import DocumentWindow
from models.learners.vocabulary import axpy, dot


class Params(Protocol):
    @property
    def bias(self) -> float: ...
    @property
    def average(self) -> bool: ...  # whether to prefer the average to the last vector


@dataclass(slots=True)
class State:
    w: Reals = field(default_factory=lambda: np.zeros(0))
    a: Reals = field(default_factory=lambda: np.zeros(0))
    w0: float = 0.0  # the same two for the constant feature
    a0: float = 0.0
    t: int = 0

    def meet(self, x: DocumentVector) -> None:
        """Count one more example, and make room for its features."""
        self.w, self.a = grown(self.w, x.span), grown(self.a, x.span)
        self.t += 1

    def score(self, x: DocumentVector, bias: float = 0.0) -> float:
        return dot(self.w, x.slots, x.values) + self.w0 * bias

    def add(self, g: float, x: DocumentVector, bias: float = 0.0) -> float:
        """w ← w + g x, in place; returns the step g."""
        axpy(self.w, g, x.slots, x.values)
        axpy(self.a, self.t * g, x.slots, x.values)
        self.w0 += g * bias
        self.a0 += self.t * g * bias
        return g

    @property
    def average(self) -> Reals:
        return self.w - self.a / (self.t + 1)


def resume(p: Params, v: Vector) -> State:
    return State(v.w.copy(), np.zeros(len(v.w)), v.bias / p.bias if p.bias else 0.0)


def vectors(p: Params, s: State) -> tuple[Vector, ...]:
    last = Vector(s.w.copy(), s.w0 * p.bias, at=s.t)
    average = Vector(s.average, (s.w0 - s.a0 / (s.t + 1)) * p.bias, at=s.t, averaged=True)
    return (average, last) if p.average else (last, average)


def held_out(p: Params, v: Vector, window: DocumentWindow, steps: Reals, t: NDArray[np.int64]) -> Reals:
    return additive_held_out(v, window, steps * v.share(t), p.bias)
