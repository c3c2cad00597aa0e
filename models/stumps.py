"""The weak hypotheses of boosting (models/boosting.py has the letters), and the sums W that they are chosen by.

    W_b[k, i] = Σ_j D(d_j, c_i) [t_k in d_j] [y = b]          of the documents without t_k: totals_b[i] − W_b[k, i]

How W is kept. A round scales D of every document without a pivot by exp(∓mean c_0i), which is the same for all of a
column i, and so it scales their part of W. Only documents that have a pivot, a fifth at first, are corrected, in the
rows of the words they have:  W_b[k] += D_{s+1} − scale_b·D_s. Nearly all pairs have y = −1, so D and W of these are
dense rows of m, which the processor adds several at a time; D of the others is a list along the labels. What D sums to
after a round, Z_s, is its `mass`, and is divided out with the scale of the next. Memory is O((g + r)m).

Rejected: W anew in every round, as a sparse product, which takes three times as long.
"""

import numpy as np
from numpy.typing import NDArray

from models.examples import Columns, Starts
from models.kernel import kernel
from models.vectors import Reals

R, RA, D = range(3)
TIE = 1e-12


@kernel
def losses(W_plus: Reals, W_minus: Reals, totals: Reals, mass: float, code: int) -> Reals:
    """Z of the best hypothesis of each term."""
    r, m = W_plus.shape
    Z, parts = np.empty(r), np.empty(m)
    total_plus, total_minus = totals[0], totals[1]
    whole = totals.sum()
    for k in range(r):
        plus, minus = W_plus[k], W_minus[k]
        # The parts first and then their sum: the first loop has no order, and is done several topics at a time.
        if code == R:
            for i in range(m):
                a, b = max(plus[i], 0.0), max(minus[i], 0.0)
                c, d = max(total_plus[i] - a, 0.0), max(total_minus[i] - b, 0.0)
                parts[i] = 2 * (np.sqrt(a * b) + np.sqrt(c * d))
        elif code == RA:
            for i in range(m):
                a, b = max(plus[i], 0.0), max(minus[i], 0.0)
                parts[i] = 2 * np.sqrt(a * b) - a - b
        else:
            for i in range(m):
                a, b = plus[i], minus[i]
                parts[i] = abs(a - b) + abs(total_plus[i] - a - (total_minus[i] - b))
        z = 0.0
        for i in range(m):
            z += parts[i]
        if code == RA:
            z += whole
        z /= mass
        Z[k] = np.sqrt(max(1 - z * z, 0.0)) if code == D else z
    return Z


@kernel
def least(Z: Reals, K: int) -> NDArray[np.int64]:
    """The K smallest, one after the other; of those that are equal but for rounding, the first."""
    left, chosen = Z.copy(), np.empty(K, np.int64)
    for q in range(K):
        least = left.min()
        k = 0
        while left[k] > least + TIE:
            k += 1
        chosen[q] = k
        left[k] = np.inf
    return chosen


@kernel
def constants(
    W_plus: Reals, W_minus: Reals, totals: Reals, mass: float, epsilon: float, code: int, pivots: NDArray[np.int64]
) -> Reals:
    """α c_0 and α c_1 of each pivot and topic."""
    K, m = len(pivots), W_plus.shape[1]
    c = np.zeros((2, K, m))
    for q in range(K):
        r = 0.0
        for i in range(m):
            for x in range(2):
                plus, minus = max(W_plus[pivots[q], i], 0.0), max(W_minus[pivots[q], i], 0.0)
                if x == 0:
                    plus, minus = max(totals[0, i] - plus, 0.0), max(totals[1, i] - minus, 0.0)
                plus, minus = plus / mass, minus / mass
                if code == D:
                    c[x, q, i] = 1.0 if plus > minus + TIE else -1.0
                    r += abs(plus - minus)
                elif code == R or x == 1:
                    c[x, q, i] = 0.5 * np.log((plus + epsilon) / (minus + epsilon))
        if code == D:
            r = min(r, 1.0)
            c[:, q] *= 0.5 * np.log((1 + r + epsilon) / (1 - r + epsilon))
    return c


@kernel
def correct(
    indptr: Starts,
    terms: Columns,
    ends: Starts,
    topics: Columns,
    plus: Reals,
    minus: Reals,
    W_plus: Reals,
    W_minus: Reals,
    starts: Starts,
    documents: Columns,
    factors: Reals,
    before: Reals,
    place: NDArray[np.int64],
) -> None:
    """D of the documents with a pivot, and the rows of W of all their terms. The q-th pivot is in the documents from
    starts[q] on. `place` is −1 throughout, before and after; `before` is room for D of each of them as it was."""
    m = minus.shape[1]
    touched = np.empty(len(indptr), np.int64)
    n = 0
    for q in range(len(factors)):
        for at in range(starts[q], starts[q + 1]):
            j = documents[at]
            if place[j] < 0:
                place[j], touched[n] = n, j
                for i in range(m):
                    before[n, i] = minus[j, i]
                for k in range(ends[j], ends[j + 1]):
                    before[n, topics[k]] = plus[k]
                n += 1
            for i in range(m):
                minus[j, i] *= factors[q, i]
            for k in range(ends[j], ends[j + 1]):
                plus[k] /= factors[q, topics[k]]
    change = np.empty(m)
    for t in range(n):
        j = touched[t]
        place[j] = -1
        for i in range(m):
            change[i] = minus[j, i] - before[t, i]
        for k in range(ends[j], ends[j + 1]):
            change[topics[k]] = 0.0
        for at in range(indptr[j], indptr[j + 1]):
            row = W_minus[terms[at]]
            for i in range(m):
                row[i] += change[i]
            for k in range(ends[j], ends[j + 1]):
                W_plus[terms[at], topics[k]] += plus[k] - before[t, topics[k]]


@kernel
def sum_all(
    indptr: Starts,
    terms: Columns,
    ends: Starts,
    topics: Columns,
    plus: Reals,
    minus: Reals,
    W_plus: Reals,
    W_minus: Reals,
) -> None:
    for j in range(len(indptr) - 1):
        for at in range(indptr[j], indptr[j + 1]):
            row = W_minus[terms[at]]
            for i in range(minus.shape[1]):
                row[i] += minus[j, i]
            for k in range(ends[j], ends[j + 1]):
                W_plus[terms[at], topics[k]] += plus[k]
