"""A vector that does not learn: a model that was made elsewhere, as one more candidate for the pocket."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.core.names import View
from models.core.vectors import Reals
from models.learners.base import DocumentVector, Vector
from models.learners.documents import DocumentWindow


@dataclass(frozen=True, slots=True)
class Params:
    view: View


@dataclass(slots=True)
class State:
    v: Vector


def start(p: Params, query: DocumentVector | None) -> State:
    return State(Vector(np.zeros(0)))


def resume(p: Params, v: Vector) -> State:
    return State(v)


def update(p: Params, s: State, x: DocumentVector, y: bool) -> float:
    return 0.0


def vectors(p: Params, s: State) -> tuple[Vector, ...]:
    return (s.v,)


def held_out(p: Params, v: Vector, window: DocumentWindow, steps: Reals, t: NDArray[np.int64]) -> Reals:
    return window.scores(v.w, v.bias, v.rest)
