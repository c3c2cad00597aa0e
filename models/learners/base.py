"""What learners take and give: a document by slot, and a vector by slot.

A learner is a module, not a class: `Params` (frozen, validated), `State` (arrays by slot), and

    start(p, query) → State            from nothing, or from the query's document
    resume(p, v) → State               from a vector that was learned before, in the same view
    update(p, s, x, y) → step          learn in place, in time proportional to the document
    vectors(p, s) → (Vector, ...)      what may be served, the preferred one first
    held_out(p, v, window, steps, t)   the scores of a window of documents, each without its own step

The step of an update is one number from which, with the document, the update can be reconstructed. `held_out` uses it
to take each document's own influence out of the score that a vector gives it; t is the update with which each document
was learned.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.vectors import Reals
from models.learners.documents import DocumentWindow
from models.learners.vocabulary import Slots


@dataclass(frozen=True, slots=True, eq=False)
class DocumentVector:
    """A document by slot, seen through the learner's view."""

    slots: Slots
    values: Reals
    span: int = field(init=False)  # how long an array by slot must be to hold it
    sum: float = field(init=False)
    square: float = field(init=False)  # ‖x‖²

    def __post_init__(self) -> None:
        for name, value in zip(("span", "sum", "square"), _sums(self.slots, self.values), strict=True):
            object.__setattr__(self, name, value)


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """bias + rest·Σ x_f + Σ w_f x_f, with w by slot, as it stood after `at` updates.

    A learner that keeps two weights for a feature and serves their difference has in `minus`, over `rest_minus`, what
    was subtracted: from the difference alone the change of one step cannot be reconstructed.
    """

    w: Reals
    bias: float = 0.0
    rest: float = 0.0
    at: int = 0
    averaged: bool = False
    minus: Reals | None = None
    rest_minus: float = 0.0
    kept: Bools | None = None  # which weights a truncated vector still has; None for all
    imposed: Slots | None = None  # where a weight was not learned but imposed (see online/pins.py); None for nowhere

    def share(self, t: NDArray[np.int64]) -> Reals:
        """The share of step t that is in this vector: in an average of w_1 … w_{n+1}, n+1−t of them have it."""
        return np.where(t <= self.at, 1 - t / (self.at + 1) if self.averaged else 1.0, 0.0)


@kernel
def _sums(slots: Slots, values: Reals) -> tuple[int, float, float]:
    span, total, square = 0, 0.0, 0.0
    for i in range(len(slots)):
        span = max(span, slots[i] + 1)
        total += values[i]
        square += values[i] * values[i]
    return span, total, square


def additive_held_out(v: Vector, window: DocumentWindow, c: Reals, bias: float = 0.0) -> Reals:
    """Scores without c_i·x_i, which each document added to w (and c_i·bias to the weight of the constant feature):

        score_i − c_i (‖x_i‖² + bias²)

    That later steps would have been different without the document is ignored: to first order it does not matter. In a
    truncated vector only the features that were kept count.
    """
    kept = np.ones(len(v.w), np.bool_) if v.kept is None else v.kept
    scores, squares = window.kept(kept, v.w, v.bias, v.rest)
    return scores - c * (squares + bias * bias)
