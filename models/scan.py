"""Scoring documents against an index: one pass over the rows of a document's features.

    out[d, c] = bias_c + rest_c·Σ_f x_f + Σ_f w_fc x_f          the last sum in ascending order of the feature

All sums are float32, and each column is summed in ascending order of features, whether a weight stands in postings or
in a dense row (adding 0·x changes nothing). So a score depends, bit for bit, on the document and the linear form alone,
not on what else is in the index, how it is laid out, or which documents are scored with it.
Rejected: all dense rows first, several in one pass, and then the postings (a tenth faster, but the order of additions,
and with it the last bit, would change with the layout); a list of touched columns, so that only these are compared with
their thresholds (a document touches nearly all of a thousand topics, and comparing is vectorised).
"""

import numpy as np
from numpy.typing import NDArray

from models.batch import Seen
from models.index import Index, Postings
from models.kernel import kernel
from models.table import Rows, rows_of
from models.vectors import Singles

Matrix = NDArray[np.float32]
Places = NDArray[np.int64]

BLOCK = 256  # columns that are compared with their thresholds before anyone looks which of them passed


def score_into(index: Index, seen: Seen, first: int, out: Matrix) -> None:
    """Write the scores of documents in all columns of the index to `out`, from its column `first` on."""
    _begin(index.bias, index.rest, seen.sums, first, out)
    _accumulate(index.postings, rows_of(index.table, seen.features), seen, first, out)


def probe_into(index: Index, seen: Seen, columns: Places, places: Places, out: Matrix) -> None:
    """Write the scores of documents in a few columns of the index to `places` of `out`; bit for bit those above."""
    rows = rows_of(index.table, seen.features)
    for column, place in zip(columns.tolist(), places.tolist(), strict=True):
        scores = index.bias[column] + index.rest[column] * seen.sums
        _probe(index.postings, rows, seen, column, scores)
        out[:, place] = scores


@kernel
def _begin(bias: Singles, rest: Singles, sums: Singles, first: int, out: Matrix) -> None:
    for d in range(len(sums)):
        for c in range(len(bias)):
            out[d, first + c] = bias[c] + rest[c] * sums[d]


@kernel
def _accumulate(p: Postings, rows: Rows, seen: Seen, first: int, out: Matrix) -> None:
    for d in range(len(seen.sums)):
        for k in range(seen.indptr[d], seen.indptr[d + 1]):
            r = rows[k]
            if r < 0:
                continue
            x = seen.values[k]
            at = p.dense_at[r]
            if at >= 0:
                for c in range(p.dense.shape[1]):
                    out[d, first + c] += x * p.dense[at, c]
            else:
                for i in range(p.starts[r], p.starts[r + 1]):
                    out[d, first + np.int64(p.columns[i])] += x * p.weights[i]


@kernel
def _probe(p: Postings, rows: Rows, seen: Seen, column: int, scores: Singles) -> None:
    for d in range(len(seen.sums)):
        for k in range(seen.indptr[d], seen.indptr[d + 1]):
            r = rows[k]
            if r < 0:
                continue
            at = p.dense_at[r]
            if at >= 0:
                scores[d] += seen.values[k] * p.dense[at, column]
                continue
            low, high = np.int64(p.starts[r]), np.int64(p.starts[r + 1])
            end = high
            while low < high:
                middle = (low + high) >> 1
                if p.columns[middle] < column:
                    low = middle + 1
                else:
                    high = middle
            if low < end and p.columns[low] == column:
                scores[d] += seen.values[k] * p.weights[low]


@kernel
def passing(scores: Matrix, cut: Singles) -> tuple[Places, Places]:
    """The documents and the columns where a score is not below the column's cut, documents ascending, then columns."""
    size, width = scores.shape
    blocks = (width + BLOCK - 1) // BLOCK
    counts = np.empty((size, blocks), np.int32)
    total = 0
    for d in range(size):
        for b in range(blocks):
            n = 0
            for c in range(b * BLOCK, min(width, (b + 1) * BLOCK)):
                n += scores[d, c] >= cut[c]
            counts[d, b] = n
            total += n
    documents, columns = np.empty(total, np.int64), np.empty(total, np.int64)
    found = 0
    for d in range(size):
        for b in range(blocks):
            if counts[d, b] == 0:
                continue
            for c in range(b * BLOCK, min(width, (b + 1) * BLOCK)):
                if scores[d, c] >= cut[c]:
                    documents[found] = d
                    columns[found] = c
                    found += 1
    return documents, columns
