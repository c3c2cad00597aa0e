"""The linear ranking SVM: weights under which documents that belong before others score higher, by a margin.

    f(ψ) = w·ψ                                                    i before k  iff  f(ψ_i) > f(ψ_k)
    min_w  ½ ‖w − w₀‖² + C · n · Σ_p a_p max(0, 1 − w·(ψ_i − ψ_k))² / Σ_p a_p          p = (i, k): i belongs before k

The ranking SVM of Herbrich et al. 1999 and Joachims 2002 with the squared hinge, as in the batch method `svm`; a_p is
the weight of a pair. It differs in two places. The loss is a weighted mean over the pairs, times the n documents: pairs
grow with n², evidence does not. And the weights are drawn to w₀, not to 0: what a topic has without feedback is the
ranking by its score, and few judgements shall change that little. (With w₀ = 0 it is the usual form.)

The minimum is found by Newton's method in the primal (Chapelle & Keerthi, "Efficient algorithms for ranking with
SVMs", 2010): there are few features, so a step is a small linear system. The objective is convex and piecewise
quadratic; steps are halved until it falls, and it ends where the gradient does.
"""

import numpy as np

from models.core.vectors import Reals
from models.ranking.pairs import Pairs

MAX_STEPS, TOLERANCE, MIN_STEP = 100, 1e-10, 1e-12


def fit(psi: Reals, pairs: Pairs, C: float, start: Reals) -> Reals:
    """The weights for these documents, one a row; w₀ itself if no pair is known."""
    w = start.astype(float)
    if not len(pairs.better):
        return w
    apart = psi[pairs.better] - psi[pairs.worse]
    a = C * len(psi) * pairs.weights / pairs.weights.sum()

    def objective(w: Reals) -> float:
        return float(0.5 * ((w - start) ** 2).sum() + a @ np.maximum(0, 1 - apart @ w) ** 2)

    value = objective(w)
    for _ in range(MAX_STEPS):
        short = np.maximum(0, 1 - apart @ w)
        gradient = w - start - 2 * (a * short) @ apart
        if np.abs(gradient).max() <= TOLERANCE * (1 + a.sum()):
            break
        wrong = apart[short > 0]
        hessian = np.eye(len(w)) + 2 * (wrong.T * a[short > 0]) @ wrong
        step, size = np.linalg.solve(hessian, -gradient), 1.0
        while (after := objective(w + size * step)) >= value and size > MIN_STEP:
            size /= 2
        if after >= value:
            break  # as close as rounding allows
        w, value = w + size * step, after
    return w
