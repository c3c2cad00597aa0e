"""EG and EG±: exponentiated gradient on the squared error, one example at a time.

    w_{t+1,f} = w_{t,f} exp(−2η (w_t·x_t − y_t) x_{t,f}) / Z_t             w ≥ 0, Σ w = 1;  w_{1,f} = 1/d
    w̄ = (w_1 + … + w_{n+1}) / (n+1)                                         the average
    EG±: the same on the 2d features (x, −x), so that w⁺ − w⁻ may be negative
    η = 2/(3R²),  R ≥ max_f x_f − min_f x_f of every document                (`eta: null`)

Lewis, Schapire, Callan & Papka, "Training algorithms for linear text classifiers", SIGIR 1996, after Kivinen & Warmuth.

Parameters. Paper: η = 2/(3R²), targets 1 and 0 (.47 and .40 on INQUERY's beliefs), presence, the average or the
pocketed vector. Ours, better on a stream with few judgements: tf-idf cosine, η = 30, and the target .15, which a vector
that sums to 1 can reach on documents whose values are about .1.

Representation. We never store d weights: d is the size of a virtual vocabulary, of which the topic has met a few
features. With u = w·Z unnormalised, a feature that was never met has u_0, every other its own u_f, and

    Z = d·u_0 + Σ (u_f − u_0)           updated with each step, and summed again before rounding errors matter

so an unmet feature weighs u_0/Z, which is `Linear.rest`. The average is lazy: while u_f does not change, its share of
Σ_i u_f/Z_i is u_f·(C − C_f), C = Σ 1/Z_i so far and C_f the value of C when u_f last changed.

R is taken over the documents so far, since a stream has no last one. Values are not negative, and no document has every
word, so R is the largest value; of EG±, whose features reach from −x to x, twice the largest.

Differences from the paper: an exponent is at most CLIP; no weight falls below FLOOR, so that it can grow again; and the
words of a query start with so much of the mass that the query itself scores the target.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check, grown
from models.core.kernel import kernel
from models.core.names import WordView
from models.core.vectors import Reals, Singles
from models.learners.base import DocumentVector, Vector
from models.learners.documents import DocumentWindow, Starts
from models.learners.vocabulary import Slots, dot

CLIP = 20.0
FLOOR = 1e-30
MAX_ETA = 1e150  # where R is so small that 1/R² cannot be computed with
SUM_EVERY = 256  # updates after which Z is summed again


@dataclass(frozen=True, slots=True)
class Params:
    eta: float | None = 30.0
    target: float = 0.15
    low: float = 0.0
    d: float = 1e4
    signed: bool = False
    average: bool = False
    view: WordView = "tfidf"

    def __post_init__(self) -> None:
        check(
            self.eta is None or 0 < self.eta <= 1000,
            "eta must be null, for 2/(3R²), or a number above 0 and up to 1000",
        )
        check(-100 <= self.low <= 100, "low must be a number from -100 to 100")
        check(self.low < self.target <= 100, "target must be a number above low and up to 100")
        check(2 <= self.d <= 1e9, "d must be a number from 2 to 1e9")


@dataclass(slots=True)
class State:
    u: Reals
    mean: Reals  # Σ_i u_f/Z_i up to C_f
    C_f: Reals
    d: float
    Z: float
    met: int = 0  # slots from here on are unmet features
    u_0: float = 1.0
    mean_0: float = 0.0
    C: float = 0.0
    R: float = 0.0
    t: int = 0


def start(p: Params, query: DocumentVector | None) -> State:
    d = 2 * p.d if p.signed else p.d
    s = State(np.zeros(0), np.zeros(0), np.zeros(0), d=d, Z=d, C=1 / d)
    if query is not None and query.sum > 0:
        # The query's features share so much of the whole mass, 1, by their values, that the query scores the target.
        mass = min(p.target * query.sum / query.square, 0.9)
        _grow(s, 2 * query.span if p.signed else query.span)
        slots = 2 * query.slots if p.signed else query.slots
        s.u[slots] += s.Z * mass / (1 - mass) * query.values / query.sum
        _sum(s)
        s.C = 1 / s.Z
    return s


def resume(p: Params, v: Vector) -> State:
    """Turn a vector, which may be truncated or learned elsewhere, into one that EG can have: not negative, with sum 1.
    EG± has w⁺ − w⁻ = w exactly, if Σ |w| leaves a part of the mass for all features to share."""
    whole = v.w + v.rest
    s = start(p, None)
    if p.signed:
        s.u_0 = max((1 - np.abs(whole).sum()) / max(s.d, 2 * len(whole)), FLOOR)
        u = np.stack([np.maximum(whole, 0), np.maximum(-whole, 0)], axis=1).ravel() + s.u_0
    else:
        s.u_0, u = max(v.rest, FLOOR), np.maximum(whole, 0)
    s.u, s.mean, s.C_f, s.met = np.maximum(u, FLOOR), np.zeros(len(u)), np.zeros(len(u)), len(u)
    s.d = max(s.d, s.met)
    _sum(s)
    s.C = 1 / s.Z
    return s


def update(p: Params, s: State, x: DocumentVector, y: bool) -> float:
    """Learn in place; the step c multiplied each u_f by e^{c·x_f}."""
    slots, values = _doubled(x) if p.signed else (x.slots, x.values)
    _grow(s, 2 * x.span if p.signed else x.span)
    s.R = max(s.R, _range(values))
    c = -2 * _eta(p, s) * (dot(s.u, slots, values) / s.Z - (p.target if y else p.low))
    Z = s.Z + _multiply(s.u, s.mean, s.C_f, slots, values, c, s.C, FLOOR * s.Z)
    s.t += 1
    if Z < 0.01 * s.Z or s.t % SUM_EVERY == 0:
        _sum(s)
    else:
        s.Z = Z
    if not 1e-60 < s.Z < 1e60:
        _rescale(s)
    s.C += 1 / s.Z
    return float(c)


def vectors(p: Params, s: State) -> tuple[Vector, ...]:
    last = _vector(p, s.u / s.Z, s.u_0 / s.Z, s.t, False)
    mean = (s.mean + s.u * (s.C - s.C_f)) / (s.t + 1)
    average = _vector(p, mean, (s.mean_0 + s.u_0 * s.C) / (s.t + 1), s.t, True)
    return (average, last) if p.average else (last, average)


def held_out(p: Params, v: Vector, window: DocumentWindow, steps: Reals, t: NDArray[np.int64]) -> Reals:
    """Divide each document's own factors out, and normalise the weights that this leaves."""
    minus = v.minus if v.minus is not None else np.zeros(0)
    c = steps * v.share(t)
    return v.bias + _held_out(window.indptr, window.slots, window.values, v.w, minus, v.rest, v.rest_minus, c)


def _eta(p: Params, s: State) -> float:
    if p.eta is not None:
        return p.eta
    return min(2 / (3 * s.R**2), MAX_ETA) if s.R**2 > 0 else 0.0


def _doubled(x: DocumentVector) -> tuple[Slots, Reals]:
    return np.concatenate([2 * x.slots, 2 * x.slots + 1]), np.concatenate([x.values, -x.values])


def _grow(s: State, span: int) -> None:
    old = len(s.u)
    s.u, s.mean, s.C_f = grown(s.u, span), grown(s.mean, span), grown(s.C_f, span)
    s.u[old:], s.mean[old:] = s.u_0, s.mean_0
    s.met = max(s.met, span)
    if s.met > s.d:  # more features than d allowed for
        s.Z += (s.met - s.d) * s.u_0
        s.d = s.met


def _sum(s: State) -> None:
    s.Z = (s.d - s.met) * s.u_0 + float(s.u[: s.met].sum())


def _rescale(s: State) -> None:
    """Divide u by Z. The averages are brought up to date first, since C is in units of the old u."""
    s.mean += s.u * (s.C - s.C_f)
    s.mean_0 += s.u_0 * s.C
    s.C_f[:] = s.C = 0.0
    s.u /= s.Z
    s.u_0 /= s.Z
    s.Z = 1.0


def _vector(p: Params, w: Reals, rest: float, t: int, averaged: bool) -> Vector:
    if not p.signed:
        return Vector(w - rest, 0.0, rest, t, averaged)
    return Vector(w[0::2] - w[1::2], 0.0, 0.0, t, averaged, w[1::2] - rest, rest)


@kernel
def _multiply(
    u: Reals, mean: Reals, C_f: Reals, slots: Slots, values: Reals, c: float, C: float, floor: float
) -> float:
    """Multiply u_f by e^{c·x_f}, and return the change of their sum."""
    change = 0.0
    for i in range(len(slots)):
        f = slots[i]
        before = u[f]
        mean[f] += before * (C - C_f[f])
        C_f[f] = C
        u[f] = max(before * np.exp(min(max(c * values[i], -CLIP), CLIP)), floor)
        change += u[f] - before
    return change


@kernel
def _range(values: Reals) -> float:
    """max_f x_f − min_f x_f, over the features that the document does not have, too."""
    low, high = 0.0, 0.0
    for i in range(len(values)):
        low, high = min(low, values[i]), max(high, values[i])
    return high - low


@kernel
def _held_out(
    indptr: Starts, slots: Slots, values: Singles, w: Reals, minus: Reals, rest: float, rest_minus: float, c: Reals
) -> Reals:
    scores = np.zeros(len(c))
    for i in range(len(c)):
        total, Z = 0.0, 1.0
        for k in range(indptr[i], indptr[i + 1]):
            x = np.float64(values[k])
            below = rest_minus + (minus[slots[k]] if slots[k] < len(minus) else 0.0)
            above = below + rest + (w[slots[k]] if slots[k] < len(w) else 0.0)
            e = np.exp(min(max(-c[i] * x, -CLIP), CLIP))
            total += (above * e - below / e) * x
            Z += above * (e - 1) + below * (1 / e - 1)
        scores[i] = total / max(Z, 1e-6)  # an average over a growing d may sum to more than 1
    return scores
