"""What learners take and give: a document by slot, and a vector by slot.

A learner is a module, not a class: `Params` (frozen, validated), `State` (arrays by slot), and

    start(p, query) → State            from nothing or from the query's document
    resume(p, v) → State               from a vector that was learned before, in the same view
    update(p, s, x, y) → step          learn in place, in time proportional to the document; `learn` does it on a copy
    predict(p, s, x) → score           by the vector that `vectors` would give first, without building it
    vectors(p, s) → (Vector, ...)      what may be served, the preferred one first
"""

from dataclasses import dataclass, field

import numpy as np

from models.vectors import Reals
from models.vocabulary import Slots


@dataclass(frozen=True, slots=True, eq=False)
class Document:
    """A document by slot, seen through the learner's view."""

    slots: Slots
    values: Reals
    span: int = field(init=False)  # how long an array by slot must be to hold it
    square: float = field(init=False)  # ‖x‖²

    def __post_init__(self) -> None:
        object.__setattr__(self, "span", int(self.slots.max()) + 1 if len(self.slots) else 0)
        object.__setattr__(self, "square", float(np.square(self.values).sum()))


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """bias + rest·Σ x_f + Σ w_f x_f, with w by slot, as it stood after `at` updates."""

    w: Reals
    bias: float = 0.0
    rest: float = 0.0
    at: int = 0
    averaged: bool = False


def check(condition: bool, sentence: str) -> None:
    """Refuse a parameter. Conditions are written so that NaN fails them."""
    if not condition:
        raise ValueError(sentence)
