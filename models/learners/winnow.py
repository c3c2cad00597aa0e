"""Winnow, mistake-driven and multiplicative: PositiveWinnow, BalancedWinnow and BalancedWinnow⁺.

    score = Σ (w⁺_f − w⁻_f) x_f                                    PositiveWinnow has no w⁻
    y = 1 and score ≤ θ⁺ :  w⁺_f ← α w⁺_f,  w⁻_f ← β w⁻_f            for the features of the document (promotion)
    y = 0 and score ≥ θ⁻ :  w⁺_f ← β w⁺_f,  w⁻_f ← α w⁻_f            (demotion; with margin 0 only if score > θ)
    θ⁺ = θ + margin,  θ⁻ = θ − margin                              every score from θ⁻ to θ⁺ counts as a mistake
    at the start  w⁺ = ratio·θ/d,  w⁻ = θ/d                        d: the average number of features of a document

Dagan, Karov & Roth, "Mistake-driven learning in text categorization", EMNLP 1997 (after Littlestone 1988).

Parameters. Paper: ratio 2, θ = 1, margin .1, strength √tf, discarding (`variant: balanced+`); strengths that sum to 1
in a document and all weights θ for PositiveWinnow (`variant: positive`). Ours, far better on a stream with few
judgements: `balanced`, on tf-idf cosine and with ratio 1, so that a feature weighs nothing until it was in a mistake.

Discarding. The paper drops, after the first rounds, features whose weights are within one promotion or demotion of
where they started. In a stream there are no rounds: once `discard` examples have been seen, a feature counts only while
one of its weights is outside that range. It may come back; a feature that was never seen does not count.

Differences from the paper. Weights stay within a factor of e^±MAX_LOG of where they started: many passes over one
document would overflow. The query is a relevant example that is repeated until it is learned.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check, grown
from models.core.kernel import kernel
from models.core.names import WordView
from models.core.vectors import Reals
from models.learners.base import DocumentVector, Vector
from models.learners.documents import DocumentWindow
from models.learners.vocabulary import Slots

MAX_QUERY_UPDATES = 20
MAX_LOG = 20.0

VARIANTS = {
    "positive": {"view": "strength", "d": 1.0, "ratio": 1.0, "margin": 0.1, "alpha": 1.1},
    "balanced": {},
    "balanced+": {"view": "sqrt", "d": 60.0, "ratio": 2.0, "margin": 0.1, "alpha": 1.1, "discard": 200},
}


@dataclass(frozen=True, slots=True)
class Params:
    variant: Literal["positive", "balanced", "balanced+"] = "balanced"
    alpha: float = 1.3
    beta: float | None = None
    theta: float = 1.0
    margin: float = 0.5
    d: float = 10.0
    ratio: float = 1.0
    discard: int = 0
    average: bool = False
    view: WordView = "tfidf"

    def __post_init__(self) -> None:
        check(1 < self.alpha <= 100, "alpha must be a number above 1 and up to 100")
        check(
            self.beta is None or 0.01 <= self.beta < 1,
            "beta must be null, for 1/alpha, or a number from 0.01 to below 1",
        )
        check(0 < self.theta <= 100, "theta must be a number above 0 and up to 100")
        check(0 <= self.margin <= 100, "margin must be a number from 0 to 100")
        check(1 <= self.d <= 1e9, "d must be a number from 1 to 1e9")
        check(1 <= self.ratio <= 100, "ratio must be a number from 1 to 100")
        check(0 <= self.discard <= 10**9, "discard must be a whole number from 0, for never, to 1e9")

    @property
    def demotion(self) -> float:
        return 1 / self.alpha if self.beta is None else self.beta

    @property
    def first(self) -> tuple[float, float]:
        """w⁺ and w⁻ at the start."""
        each = self.theta / self.d
        return self.ratio * each, 0.0 if self.variant == "positive" else each


@dataclass(slots=True)
class State:
    """Logarithms of the weights, relative to where they started: 0 for a feature that was in no mistake."""

    plus: Reals
    minus: Reals
    a: Reals  # Σ t·Δ_t of w⁺ − w⁻, for the average (see averaged.py)
    t: int = 0


def start(p: Params, query: DocumentVector | None) -> State:
    s = State(np.zeros(0), np.zeros(0), np.zeros(0))
    if query is not None:
        for _ in range(MAX_QUERY_UPDATES):
            if not update(p, s, query, True):
                break
    return s


def resume(p: Params, v: Vector) -> State:
    """Of all pairs of weights with this difference, take the one of which one weight is where it started."""
    plus, minus = p.first
    w = v.w + v.rest
    up = np.log(np.maximum(w + minus, plus) / plus)
    down = np.log(np.maximum(plus - w, minus) / minus) if minus else np.zeros(len(w))
    return State(np.minimum(up, MAX_LOG), np.minimum(down, MAX_LOG), np.zeros(len(w)))


def update(p: Params, s: State, x: DocumentVector, y: bool) -> float:
    """Learn in place; the step is 1 for a promotion, −1 for a demotion."""
    s.plus, s.minus, s.a = grown(s.plus, x.span), grown(s.minus, x.span), grown(s.a, x.span)
    s.t += 1
    score = _score(s.plus, s.minus, x.slots, x.values, *p.first, *_discarded_range(p, s))
    if y and score <= p.theta + p.margin:
        step, up, down = 1.0, p.alpha, p.demotion
    elif not y and (score >= p.theta - p.margin if p.margin else score > p.theta):  # at θ the prediction is 0
        step, up, down = -1.0, p.demotion, p.alpha
    else:
        return 0.0
    active = x.values > 0
    slots = x.slots[active]
    before = _weights(p, s.plus[slots], s.minus[slots])
    plus, minus = _limited(s.plus[slots] + np.log(up)), _limited(s.minus[slots] + np.log(down))
    s.plus[slots], s.minus[slots] = plus, minus
    s.a[slots] += s.t * (_weights(p, plus, minus) - before)
    return step


def vectors(p: Params, s: State) -> tuple[Vector, ...]:
    plus, minus = p.first
    below = minus * np.exp(s.minus)
    w = plus * np.exp(s.plus) - below
    mean = w - s.a / (s.t + 1)
    rest, rest_minus = plus - minus, minus
    if 0 < p.discard <= s.t:
        counts = _counts(p, s, s.plus, s.minus)
        w, mean, below, rest, rest_minus = w * counts, mean * counts, below * counts, 0.0, 0.0
    last = Vector(w - rest, 0.0, rest, s.t, False, below - rest_minus, rest_minus)
    average = Vector(mean - rest, 0.0, rest, s.t, True, below - rest_minus, rest_minus)
    return (average, last) if p.average else (last, average)


def held_out(p: Params, v: Vector, window: DocumentWindow, steps: Reals, t: NDArray[np.int64]) -> Reals:
    """Divide each document's own promotion or demotion out of both weights."""
    below = v.minus if v.minus is not None else np.zeros(0)
    minus = window.scores(below, 0.0, v.rest_minus)
    plus = window.scores(v.w, 0.0, v.rest) + minus
    c = steps * v.share(t)
    up, down = np.log(p.alpha) * np.abs(c), np.log(p.demotion) * np.abs(c)
    scores: Reals = plus * np.exp(-np.where(c > 0, up, down)) - minus * np.exp(-np.where(c > 0, down, up))
    return v.bias + scores


def _weights(p: Params, plus: Reals, minus: Reals) -> Reals:
    first, second = p.first
    w: Reals = first * np.exp(plus) - second * np.exp(minus)
    return w


def _counts(p: Params, s: State, plus: Reals, minus: Reals) -> NDArray[np.bool_]:
    """Whether each feature counts: all do before discarding begins, then those more than one step from the start."""
    low, high = _discarded_range(p, s)
    outside: NDArray[np.bool_] = (plus > high) | (plus < low) | (minus > high) | (minus < low)
    return outside


def _discarded_range(p: Params, s: State) -> tuple[float, float]:
    """A feature counts while the logarithm of one of its two weights is below the first bound or above the second."""
    if not 0 < p.discard <= s.t:
        return np.inf, -np.inf  # so that every feature counts
    return float(np.log(p.demotion)) - 1e-9, float(np.log(p.alpha)) + 1e-9


@kernel
def _score(
    plus: Reals, minus: Reals, slots: Slots, values: Reals, first: float, second: float, low: float, high: float
) -> float:
    """The score of a document. Most examples are no mistake, and then this is all that is computed."""
    score = 0.0
    for i in range(len(slots)):
        up, down = plus[slots[i]], minus[slots[i]]
        if up > high or up < low or down > high or down < low:
            score += (first * np.exp(up) - second * np.exp(down)) * values[i]
    return score


def _limited(logarithms: Reals) -> Reals:
    return np.clip(logarithms, -MAX_LOG, MAX_LOG)
