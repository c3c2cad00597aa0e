"""The Perceptron, mistake-driven and additive, with a threshold range, and discarding.

    w ← w + α x    if y = 1 and w·x ≤ θ⁺                 w ← w − α x    if y = 0 and w·x ≥ θ⁻
    θ⁺ = θ + margin,   θ⁻ = θ − margin                   every score from θ⁻ to θ⁺ counts as a mistake
    With margin 0 a negative example is a mistake only if w·x > θ: at θ the prediction is 0.

Dagan, Karov & Roth, "Mistake-driven learning in text categorization", EMNLP 1997 (after Rosenblatt 1958).

Parameters. Paper: θ = 1, margin .1, strength √tf (`view: sqrt`), all weights θ/d at the start, d being the average
number of features of a document (`d: 60`), and the last vector. Ours, better on a stream with few judgements: tf-idf
cosine, weights that start at zero (`d: null`), and the average.

Differences from the paper: a weight moves by α times the feature's strength, as in Rosenblatt's rule; the paper says
"by α", which is the same where the strength is 1. The query is a relevant example that is repeated until it is learned.
Discarding is Winnow's, adapted to steps that add: once `discard` examples have been seen, a feature counts only while
its weight is more than α, one step of strength 1, from where it started; a feature that was never seen does not count.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check
from models.core.names import WordView
from models.core.vectors import Reals
from models.learners import averaged
from models.learners.base import DocumentVector, Vector, additive_held_out
from models.learners.documents import DocumentWindow

MAX_QUERY_UPDATES = 20


@dataclass(frozen=True, slots=True)
class Params:
    alpha: float = 0.5
    theta: float = 0.5
    margin: float = 0.3
    d: float | None = None
    discard: int = 0
    average: bool = True
    view: WordView = "tfidf"

    def __post_init__(self) -> None:
        check(0 < self.alpha <= 100, "alpha must be a number above 0 and up to 100")
        check(0 < self.theta <= 100, "theta must be a number above 0 and up to 100")
        check(0 <= self.margin <= 100, "margin must be a number from 0 to 100")
        check(
            self.d is None or 1 <= self.d <= 1e9,
            "d must be null, for weights that start at 0, or a number from 1 to 1e9",
        )
        check(0 <= self.discard <= 10**9, "discard must be a whole number from 0, for never, to 1e9")


@dataclass(slots=True)
class State(averaged.State):
    rest: float = 0.0  # the weight that all features started with; w and its average are over it
    query_updates: int = 0  # how many of the t updates were of the query


def start(p: Params, query: DocumentVector | None) -> State:
    s = State(rest=0.0 if p.d is None else p.theta / p.d)
    if query is not None:
        for _ in range(MAX_QUERY_UPDATES):
            s.query_updates += 1
            if not update(p, s, query, True):
                break
    return s


def resume(p: Params, v: Vector) -> State:
    return State(v.w.copy(), np.zeros(len(v.w)), rest=v.rest)


def update(p: Params, s: State, x: DocumentVector, y: bool) -> float:
    """Learn in place; the step is the document's coefficient in w."""
    s.meet(x)
    score = _score(p, s, x)
    if y and score <= p.theta + p.margin:
        return s.add(p.alpha, x)
    if not y and (score >= p.theta - p.margin if p.margin else score > p.theta):
        return s.add(-p.alpha, x)
    return 0.0


def vectors(p: Params, s: State) -> tuple[Vector, ...]:
    w, mean, rest = s.w.copy(), s.average, s.rest
    if _discards(p, s):
        counts = np.abs(s.w) > p.alpha
        w, mean, rest = (w + rest) * counts, (mean + rest) * counts, 0.0
    last = Vector(w, rest=rest, at=s.t)
    average = Vector(mean, rest=rest, at=s.t, averaged=True)
    return (average, last) if p.average else (last, average)


def held_out(p: Params, v: Vector, window: DocumentWindow, steps: Reals, t: NDArray[np.int64]) -> Reals:
    return additive_held_out(v, window, steps * v.share(t))


def _score(p: Params, s: State, x: DocumentVector) -> float:
    if not _discards(p, s):
        return s.score(x) + s.rest * x.sum
    w = s.w[x.slots]
    return float(((w + s.rest) * x.values)[np.abs(w) > p.alpha].sum())


def _discards(p: Params, s: State) -> bool:
    return 0 < p.discard <= s.t - s.query_updates
