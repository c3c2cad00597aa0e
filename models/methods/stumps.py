"""The weak hypotheses of boosting (methods/boosting.py has the letters), and the sums W that they are chosen by.

    W_b[k, i] = Σ_j D(d_j, c_i) [t_k in d_j] [y = b]          of the documents without t_k: totals_b[i] − W_b[k, i]

How W is kept. A round scales D of every document without a pivot by exp(∓mean c_0i), which is the same for all of a
column i, so it scales their part of W and of the totals, too. That factor is kept apart, as scales_b[i], and nothing
else is done to these documents. Only documents with a pivot, a fifth at first, are updated, in the rows of the words
they have:  W_b[k] += D_{s+1} − D_s, all relative to the scale. Nearly all pairs have y = −1, so D and W of these are
dense rows of m, which the processor adds several at a time; D of the others is a list along the labels. The sum of D
after a round, Z_s, is its `mass`, and is divided out with the scale of the next round. Memory is O((g + r)m).

Rejected: computing W again in every round, as a sparse product, which takes three times as long; and scaling D and W
themselves, which every worker of a farm would have to do to the whole of D.
"""

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.core.vectors import Reals
from models.methods.matrix import Columns, Starts

R, RA, D = range(3)
TIE = 1e-12


@kernel
def losses(W: Reals, totals: Reals, scales: Reals, mass: float, code: int) -> Reals:
    """Z of the best hypothesis of each term."""
    r, _, m = W.shape
    Z, parts = np.empty(r), np.empty(m)
    scale_plus, scale_minus = scales[0] / mass, scales[1] / mass
    total_plus, total_minus = totals[0] * scale_plus, totals[1] * scale_minus
    for k in range(r):
        plus, minus = W[k, 0], W[k, 1]
        # The parts first, then their sum: the first loop has no order, so several topics are computed at a time.
        if code == R:
            for i in range(m):
                a, b = max(plus[i] * scale_plus[i], 0.0), max(minus[i] * scale_minus[i], 0.0)
                c, d = max(total_plus[i] - a, 0.0), max(total_minus[i] - b, 0.0)
                parts[i] = 2 * (np.sqrt(a * b) + np.sqrt(c * d))
        elif code == RA:
            for i in range(m):
                a, b = max(plus[i] * scale_plus[i], 0.0), max(minus[i] * scale_minus[i], 0.0)
                parts[i] = 2 * np.sqrt(a * b) - a - b
        else:
            for i in range(m):
                a, b = plus[i] * scale_plus[i], minus[i] * scale_minus[i]
                parts[i] = abs(a - b) + abs(total_plus[i] - a - (total_minus[i] - b))
        z = 1.0 if code == RA else 0.0
        for i in range(m):
            z += parts[i]
        Z[k] = np.sqrt(max(1 - z * z, 0.0)) if code == D else z
    return Z


@kernel
def smallest(Z: Reals, K: int) -> NDArray[np.int64]:
    """The K smallest, in order; of those that are equal but for rounding, the first."""
    left, chosen = Z.copy(), np.empty(K, np.int64)
    for q in range(K):
        lowest = left.min()
        k = 0
        while left[k] > lowest + TIE:
            k += 1
        chosen[q] = k
        left[k] = np.inf
    return chosen


@kernel
def constants(
    W: Reals,
    totals: Reals,
    scales: Reals,
    mass: float,
    epsilon: float,
    code: int,
    pivots: NDArray[np.int64],
) -> Reals:
    """α c_0 and α c_1 of each pivot and topic."""
    K, m = len(pivots), W.shape[2]
    c = np.zeros((2, K, m))
    for q in range(K):
        r = 0.0
        for i in range(m):
            for x in range(2):
                plus, minus = max(W[pivots[q], 0, i], 0.0), max(W[pivots[q], 1, i], 0.0)
                if x == 0:
                    plus, minus = max(totals[0, i] - plus, 0.0), max(totals[1, i] - minus, 0.0)
                plus, minus = plus * scales[0, i] / mass, minus * scales[1, i] / mass
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
    W: Reals,
    totals: Reals,
    starts: Starts,
    documents: Columns,
    factors: Reals,
) -> None:
    """Updates D of the documents with a pivot, its sums, and the rows of W of all their terms. The documents of the
    q-th pivot begin at starts[q]; D is multiplied by the pivot's factor where y = −1, and divided where y = 1."""
    g, m = minus.shape
    begins, pivots = _by_document(starts, documents, g)
    change = np.empty(m)
    for j in range(g):
        if begins[j] == begins[j + 1]:
            continue
        row = minus[j]
        change[:] = row
        for at in range(begins[j], begins[j + 1]):
            factor = factors[pivots[at]]
            for i in range(m):
                row[i] *= factor[i]
        for i in range(m):
            change[i] = row[i] - change[i]
            totals[1, i] += change[i]
        for at in range(indptr[j], indptr[j + 1]):
            sums = W[terms[at], 1]
            for i in range(m):
                sums[i] += change[i]
        for k in range(ends[j], ends[j + 1]):
            i, before = topics[k], plus[k]
            for at in range(begins[j], begins[j + 1]):
                plus[k] /= factors[pivots[at], i]
            totals[0, i] += plus[k] - before
            for at in range(indptr[j], indptr[j + 1]):
                W[terms[at], 0, i] += plus[k] - before


@kernel
def _by_document(starts: Starts, documents: Columns, g: int) -> tuple[Starts, Starts]:
    """Turns the documents of each pivot into the pivots of each document."""
    begins, pivots = np.zeros(g + 1, np.int64), np.empty(len(documents), np.int64)
    for j in documents:
        begins[j + 1] += 1
    begins = np.cumsum(begins)
    free = begins.copy()
    for q in range(len(starts) - 1):
        for at in range(starts[q], starts[q + 1]):
            pivots[free[documents[at]]] = q
            free[documents[at]] += 1
    return begins, pivots


@kernel
def sum_all(
    indptr: Starts,
    terms: Columns,
    ends: Starts,
    topics: Columns,
    plus: Reals,
    minus: Reals,
    W: Reals,
) -> None:
    """Adds up W from D."""
    for j in range(len(indptr) - 1):
        for at in range(indptr[j], indptr[j + 1]):
            row = W[terms[at], 1]
            for i in range(minus.shape[1]):
                row[i] += minus[j, i]
            for k in range(ends[j], ends[j + 1]):
                W[terms[at], 0, topics[k]] += plus[k]
