"""Scoring documents against an index: one pass over the rows of a document's features.

    out[d, c] = bias_c + rest_c·Σ_f x_f + Σ_f w_fc x_f          the last sum in ascending order of the feature,
                                                                latent features, which are last, included

All sums are float32, and each column is summed in ascending order of features, whether a weight stands in postings or
in a dense row (adding 0·x changes nothing). So a score depends, bit for bit, on the document and the linear form alone,
not on what else is in the index, how it is laid out, or which documents are scored with it.

Latent features are added in a pass of their own, a block of columns after the other, so that the weights of a block
stay in the cache for all documents; four in one step, in their order.

Rejected: all dense rows before all postings (the order of additions, and with it the last bit, would change with the
layout). Tried and dropped, because they were no faster: up to four neighbouring dense rows in one pass, products before
sums, and common words, most of which are dense, before the others; twice as many dense rows; rows aligned to cache
lines; four postings in one step. Looking rows up in the same pass is slower by a fifteenth, perhaps because fewer
lookups are in flight. Not tried: a list of touched columns to compare with their thresholds, since a news document has
about ten weights in every topic, and comparing all columns takes a tenth of the time.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.bank.index import BLOCK_BITS, POSTINGS_STEP, Index, dense_row
from models.bank.seen import Matrix, ViewedBatch
from models.core.arrays import check
from models.core.kernel import kernel
from models.core.table import Rows, rows_of
from models.core.vectors import Singles

Places = NDArray[np.int64]

_0, _1, _BLOCK_BITS, _STEP = np.uint64(0), np.uint64(1), np.uint64(BLOCK_BITS), np.uint64(POSTINGS_STEP)
_LATENT_BLOCK = np.uint64(256)  # columns, a multiple of those of a dense row's step
_NOTHING = np.float32(0)
_POSITIVE_ZERO = np.float32(0)  # added first, else the sign of a zero score would depend on how rows are stored


class Members(NamedTuple):
    """Which columns make up which topic: topic t has columns[first[t] : first[t + 1]]."""

    first: Places
    columns: Places
    owner: Places  # the topic of each column


class Hits(NamedTuple):
    """Topics that do not reject a document: topics[h] for documents[h], documents ascending.

    The scores, one for each column of the topic, are scores[starts[h] : starts[h + 1]].
    """

    documents: Places
    topics: Places
    starts: Places
    scores: Singles


def score_into(index: Index, batch: ViewedBatch, first: int, out: Matrix) -> None:
    """Score documents in all columns of the index, and write to `out`, from its column `first` on."""
    _score(index, rows_of(index.table, batch.features), batch, first, out)
    if len(index.latent):
        check(len(index.latent) <= batch.latent.shape[1], "latent values must be those of the projection")
        _add_latent(index.latent, batch.latent, first, index.width, out)


def probe_into(index: Index, batch: ViewedBatch, columns: Places, places: Places, out: Matrix) -> None:
    """Score documents in a few columns of the index, bit for bit as above, and write to `places` of `out`."""
    rows = rows_of(index.table, batch.features)
    check(len(index.latent) <= batch.latent.shape[1], "latent values must be those of the projection")
    for column, place in zip(columns.tolist(), places.tolist(), strict=True):
        out[:, place] = _probe(index, rows, batch, column)


@kernel
def _score(index: Index, rows: Rows, batch: ViewedBatch, first: int, out: Matrix) -> None:
    # Arrays are taken out of their tuples once, and none is sliced: numba counts references for both, at every turn of
    # the loop. Indexes are unsigned, since numba tests signed ones for being negative.
    p, bias, rest = index.postings, index.bias, index.rest
    starts, columns, weights = p.starts, p.columns, p.weights
    dense, bits, before = p.dense, p.dense_bits, p.dense_before
    indptr, values, sums = batch.indptr, batch.values, batch.sums
    left, width, blocks = np.uint64(first), np.uint64(len(bias)), np.uint64(dense.shape[1]) >> _BLOCK_BITS
    known, x, begins, ends = _room(indptr)
    scores = np.zeros(dense.shape[1], np.float32)  # of one document, which stay in the cache
    for d in range(np.uint64(len(sums))):
        total = sums[d]
        for c in range(width):
            scores[c] = bias[c] + rest[c] * total + _POSITIVE_ZERO
        n = _0
        for k in range(np.uint64(indptr[d]), np.uint64(indptr[d + _1])):  # kept if it has a row, without a branch
            known[n], x[n] = rows[k], values[k]
            n += np.uint64(rows[k] >= 0)
        for k in range(n):  # fetched before they are needed
            row = np.uint64(known[k])
            begins[k], ends[k] = starts[row], starts[row + _1]
        for k in range(n):
            begin, end, value = np.uint64(begins[k]), np.uint64(ends[k]), x[k]
            if begin == end:
                at = dense_row(bits, before, np.uint64(known[k]))
                for c in range(blocks << _BLOCK_BITS):  # so the compiler knows that there is no remainder
                    scores[c] += value * dense[at, c]
            elif end - begin <= _STEP:
                # As many for every such row, those behind its end times zero: no branch to mispredict.
                for i in range(begin, begin + _STEP):
                    scores[columns[i]] += (value if i < end else _NOTHING) * weights[i]
            else:
                for i in range(begin, end):
                    scores[columns[i]] += value * weights[i]
        for c in range(width):
            out[d, left + c] = scores[c]


@kernel
def _add_latent(latent: Matrix, z: Matrix, first: int, width: int, out: Matrix) -> None:
    rows, left = np.uint64(len(latent)), np.uint64(first)
    for begin in range(_0, np.uint64(width), _LATENT_BLOCK):
        size = min(_LATENT_BLOCK, np.uint64(width) - begin)
        blocks = (size + (_1 << _BLOCK_BITS) - _1) >> _BLOCK_BITS
        scores = np.zeros(_LATENT_BLOCK, np.float32)
        for d in range(np.uint64(len(z))):
            for c in range(size):
                scores[c] = out[d, left + begin + c]
            k = _0
            while k + np.uint64(4) <= rows:
                k1, k2, k3 = k + _1, k + np.uint64(2), k + np.uint64(3)
                z0, z1, z2, z3 = z[d, k], z[d, k1], z[d, k2], z[d, k3]
                for c in range(blocks << _BLOCK_BITS):  # as above
                    s = scores[c] + z0 * latent[k, begin + c]
                    s += z1 * latent[k1, begin + c]
                    s += z2 * latent[k2, begin + c]
                    scores[c] = s + z3 * latent[k3, begin + c]
                k += np.uint64(4)
            while k < rows:
                for c in range(blocks << _BLOCK_BITS):
                    scores[c] += z[d, k] * latent[k, begin + c]
                k += _1
            for c in range(size):
                out[d, left + begin + c] = scores[c]


@kernel
def _room(indptr: Places) -> tuple[Rows, Singles, NDArray[np.uint32], NDArray[np.uint32]]:
    """Scratch space for the rows of the longest document, their values, and where their postings begin and end."""
    longest = 0
    for d in range(len(indptr) - 1):
        longest = max(longest, indptr[d + 1] - indptr[d])
    size = longest + 1
    return np.empty(size, np.int32), np.empty(size, np.float32), np.empty(size, np.uint32), np.empty(size, np.uint32)


@kernel
def _probe(index: Index, rows: Rows, batch: ViewedBatch, column: int) -> Singles:
    p = index.postings
    scores = np.empty(len(batch.sums), np.float32)
    for d in range(len(batch.sums)):
        scores[d] = index.bias[column] + index.rest[column] * batch.sums[d] + _POSITIVE_ZERO
        for k in range(batch.indptr[d], batch.indptr[d + 1]):
            r = rows[k]
            if r < 0:
                continue
            low, high = np.int64(p.starts[r]), np.int64(p.starts[r + 1])
            if low == high:
                scores[d] += batch.values[k] * p.dense[dense_row(p.dense_bits, p.dense_before, np.uint64(r)), column]
                continue
            end = high
            while low < high:
                middle = (low + high) >> 1
                if p.columns[middle] < column:
                    low = middle + 1
                else:
                    high = middle
            if low < end and p.columns[low] == column:
                scores[d] += batch.values[k] * p.weights[low]
        for k in range(len(index.latent)):
            scores[d] += batch.latent[d, k] * index.latent[k, column]
    return scores


@kernel
def find(scores: Matrix, cut: Singles, m: Members) -> Hits:
    """The documents and topics that have a score not below its column's cut, documents ascending."""
    documents, columns = _passing(scores, cut)
    topics = m.owner[columns]
    n, total = 0, 0
    for i in range(len(topics)):
        d, t = documents[i], topics[i]
        if _leads(scores[d], cut, m.columns[m.first[t] : m.first[t + 1]], columns[i]):
            documents[n], topics[n] = d, t
            total += m.first[t + 1] - m.first[t]
            n += 1
    starts = np.zeros(n + 1, np.int64)
    hit_scores = np.empty(total, np.float32)
    for h in range(n):
        d, t = documents[h], topics[h]
        end = starts[h]
        for i in range(m.first[t], m.first[t + 1]):
            hit_scores[end] = scores[d, m.columns[i]]
            end += 1
        starts[h + 1] = end
    return Hits(documents[:n], topics[:n], starts, hit_scores)


@kernel
def _leads(scores: Singles, cut: Singles, columns: Places, column: int) -> bool:
    """Whether this column is the first of its topic that passes: several of a committee may."""
    for c in columns:
        if scores[c] >= cut[c]:
            return bool(c == column)
    return False


@kernel
def _passing(scores: Matrix, cut: Singles) -> tuple[Places, Places]:
    size, width = scores.shape
    eights = (width + 7) // 8
    passed = np.zeros((size, 8 * eights), np.uint8)
    total = 0
    for d in range(size):
        row, flags = scores[d], passed[d, :width]
        for c in range(width):
            flags[c] = row[c] >= cut[c]
        for c in range(width):
            total += flags[c]
    documents, columns = np.empty(total + 1, np.int64), np.empty(total + 1, np.int64)
    words = passed.view(np.uint64)  # few pass: eight that do not are one comparison
    n = 0
    for d in range(size):
        for b in range(eights):
            if words[d, b] != 0:
                for c in range(8 * b, 8 * b + 8):
                    # Written anyway and kept if it passed: no branch to mispredict, but room for one more.
                    documents[n], columns[n] = d, c
                    n += passed[d, c]
    return documents[:total], columns[:total]
