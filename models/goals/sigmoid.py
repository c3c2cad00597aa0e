"""A sigmoid through scores and labels.

    P(relevant | f) = 1 / (1 + exp(A f + B))            A ≤ 0, so it never falls as the score f rises

    A, B minimise  − Σ w_i ( t_i ln p_i + (1 − t_i) ln(1 − p_i) )
    t_i = (N₊ + 1) / (N₊ + 2)  for a relevant document,   1 / (N₋ + 2)  for an irrelevant one

Platt, "Probabilistic outputs for support vector machines", 1999; found by Newton's method with backtracking in the form
of Lin, Lin & Weng, "A note on Platt's probabilistic outputs for support vector machines", 2007, whose ln(1 + eᵘ) never
overflows. Scores are first standardised to mean 0 and deviation 1: those of Winnow are a thousand times those of
Widrow-Hoff. N₊ and N₋ are sums of weights.
"""

from math import exp, log, log1p
from typing import NamedTuple

import numpy as np

from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.vectors import Reals

MAX_STEPS, RIDGE, MIN_STEP, DESCENT = 100, 1e-12, 1e-10, 1e-4  # as in the note of 2007
TOLERANCE = 1e-6  # of the gradient, as a share of the total weight; a fixed one takes more steps the more is judged


class Calibration(NamedTuple):
    A: float
    B: float

    def probability(self, f: float) -> float:
        u = self.A * f + self.B
        e = exp(-abs(u))  # never overflows
        return e / (1 + e) if u > 0 else 1 / (1 + e)

    def probabilities(self, f: Reals) -> Reals:
        u = self.A * f + self.B
        e = np.exp(-np.abs(u))
        probabilities: Reals = np.where(u > 0, e, 1.0) / (1 + e)
        return probabilities


def fit(f: Reals, relevant: Bools, weights: Reals) -> Calibration:
    """The sigmoid of least loss among those that do not fall. There must be relevant and irrelevant documents."""
    positive, negative = float(weights[relevant].sum()), float(weights[~relevant].sum())
    t = np.where(relevant, (positive + 1) / (positive + 2), 1 / (negative + 2))
    centre, spread = float(f.mean()), float(f.std())
    if spread > 0:
        A, B = _newton((f - centre) / spread, t, weights, log((negative + 1) / (positive + 1)))
        if A < 0:
            return Calibration(A / spread, B - A * centre / spread)
    # Higher scores are no likelier to be relevant: the best constant.
    mean = float((weights * t).sum() / weights.sum())
    return Calibration(0.0, log(1 / mean - 1))


@kernel
def _newton(z: Reals, t: Reals, w: Reals, B: float) -> tuple[float, float]:
    A, close = 0.0, TOLERANCE * w.sum()
    loss = _loss(A, B, z, t, w)
    for _ in range(MAX_STEPS):
        g1, g2, h11, h21, h22 = 0.0, 0.0, RIDGE, 0.0, RIDGE
        for i in range(len(z)):
            p = _sigmoid(A * z[i] + B)
            residual, curvature = w[i] * (t[i] - p), w[i] * p * (1 - p)
            g1 += residual * z[i]
            g2 += residual
            h11 += curvature * z[i] * z[i]
            h21 += curvature * z[i]
            h22 += curvature
        if max(abs(g1), abs(g2)) < close:
            break
        determinant = h11 * h22 - h21 * h21
        dA, dB = -(h22 * g1 - h21 * g2) / determinant, -(h11 * g2 - h21 * g1) / determinant
        slope, step = g1 * dA + g2 * dB, 1.0
        new = _loss(A + dA, B + dB, z, t, w)
        while new >= loss + DESCENT * step * slope:
            step /= 2
            if step < MIN_STEP:
                return A, B  # as close as rounding allows
            new = _loss(A + step * dA, B + step * dB, z, t, w)
        A, B, loss = A + step * dA, B + step * dB, new
    return A, B


@kernel
def _loss(A: float, B: float, z: Reals, t: Reals, w: Reals) -> float:
    loss = 0.0
    for i in range(len(z)):
        u = A * z[i] + B
        # t ln(1 + eᵘ) + (1 − t)(ln(1 + eᵘ) − u), written so that no exponent is positive
        loss += w[i] * (log1p(exp(-abs(u))) + (t[i] * u if u > 0 else (t[i] - 1) * u))
    return loss


@kernel
def _sigmoid(u: float) -> float:
    """1 / (1 + eᵘ)"""
    e = exp(-abs(u))
    return e / (1 + e) if u > 0 else 1 / (1 + e)
