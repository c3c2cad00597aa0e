"""The weights of many linear forms that share a view, inverted: from a feature to every column that weighs it.

A column is a linear form (core/vectors.py). The row of a feature is stored either as *postings*, pairs (column, weight)
with the columns ascending, or, when at least one column in DENSE_RATIO weighs the feature, as a *dense* row with a
weight for every column: adding a contiguous row is vectorised, and six to eight columns of it cost as much as one
posting. A posting takes 6 bytes (uint16 column, float32 weight), a row 13 to 14 with its place in the table. A row
without postings is a dense one; which one follows from the number of dense rows before it, counted in a bitmap.

Latent weights (core/latent.py) of columns that share a projection stand in a matrix of their own, for every document
has all of these features.

Rejected: uint32 columns (8 bytes, for indexes that are wider than the cache likes anyway, see bank/bank.py);
half-precision weights (a score would no longer be the model's own).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check, popcount
from models.core.kernel import kernel
from models.core.latent import MAX_LATENT, count_words
from models.core.table import Rows, Table, rows_of, table
from models.core.vectors import Features, Linear, Singles

DENSE_RATIO = 6
BLOCK_BITS = 5  # log₂ of the columns that are added in one step; dense rows are padded with zeros to a multiple of it
POSTINGS_STEP = 8  # postings that are added in one step; the last row is followed by as many zeros
MAX_COLUMNS = 1 << 16  # a uint16 numbers them

Moves = NDArray[np.int32]

_1, _6, _63 = np.uint64(1), np.uint64(6), np.uint64(63)


class Postings(NamedTuple):
    starts: NDArray[np.uint32]  # row r has postings starts[r] : starts[r + 1]; if there are none, it is dense
    dense_bits: NDArray[np.uint64]  # a bit for each row: whether it is dense
    dense_before: NDArray[np.uint32]  # for every 64 rows, how many dense ones come before them
    columns: NDArray[np.uint16]
    weights: Singles
    dense: NDArray[np.float32]  # dense rows × columns, padded

    @property
    def nbytes(self) -> int:
        rows = self.starts.nbytes + self.dense_bits.nbytes + self.dense_before.nbytes
        return rows + self.columns.nbytes + self.weights.nbytes


class Index(NamedTuple):
    table: Table
    postings: Postings
    bias: Singles
    rest: Singles
    latent: NDArray[np.float32]  # latent features × columns, padded; no rows if no column has any

    @property
    def width(self) -> int:
        return len(self.bias)

    @property
    def weights(self) -> int:
        """How many weights are served."""
        words = int(self.postings.starts[-1]) + int(np.count_nonzero(self.postings.dense))
        return words + int(np.count_nonzero(self.latent))

    @property
    def nbytes(self) -> int:
        """Bytes without the dense rows."""
        return self.table.nbytes + self.postings.nbytes + self.bias.nbytes + self.rest.nbytes


def index_of(columns: Sequence[Linear]) -> Index:
    """The index of these columns, in their order. Those of the semantic view have latent weights of one projection."""
    check(all(len(c.weights) == len(c.features) for c in columns), "a model has a weight for each feature")
    lengths = [count_words(c.features) if c.view == "semantic" else len(c.features) for c in columns]
    features = np.concatenate([c.features[:n] for c, n in zip(columns, lengths, strict=True)])
    weights = np.concatenate([c.weights[:n] for c, n in zip(columns, lengths, strict=True)])
    latent = _latent([(c.features[n:], c.weights[n:]) for c, n in zip(columns, lengths, strict=True)])
    numbers = np.repeat(np.arange(len(columns), dtype=np.uint16), lengths)
    bias = np.array([c.bias for c in columns], np.float32)
    rest = np.array([c.rest for c in columns], np.float32)
    check(bool(np.all((features[1:] > features[:-1]) | (numbers[1:] > numbers[:-1]))), "features must be ascending")
    check(bool(np.all(np.isfinite(np.concatenate([weights, bias, rest, latent.ravel()])))), "weights must be finite")
    # Each weight as a row of its own: an index in all but the order of its rows, so it can be joined like one.
    size = len(features)
    unordered = Postings(
        np.arange(size + 1, dtype=np.uint32),
        *_bitmap(np.zeros(size, np.bool_)),
        numbers,
        weights,
        np.empty((0, len(columns)), np.float32),
    )
    unmoved = np.arange(len(columns), dtype=np.int32)
    return _join([(features, unordered, unmoved)], _distinct(np.sort(features)), bias, rest, latent)


def join(sources: Sequence[tuple[Index, Moves]], width: int) -> Index:
    """One index of the columns that stay: column c of a source becomes moves[c], or is dropped if that is negative.

    The columns of a source keep their order and come before those of the next source.
    """
    bias, rest = np.empty(width, np.float32), np.empty(width, np.float32)
    latent = np.zeros((max(len(source.latent) for source, _ in sources), _padded(width)), np.float32)
    for source, moves in sources:
        stays = moves >= 0
        bias[moves[stays]] = source.bias[stays]
        rest[moves[stays]] = source.rest[stays]
        latent[: len(source.latent), moves[stays]] = source.latent[:, : len(moves)][:, stays]
    # A few ascending pieces: the stable sort detects and merges them.
    features = np.sort(np.concatenate([s.table.features for s, _ in sources]), kind="stable")
    return _join(
        [(s.table.features, s.postings, moves) for s, moves in sources], _distinct(features), bias, rest, latent
    )


def _distinct(ascending: Features) -> Features:
    # np.unique uses a hash table, and is three times slower.
    first = np.ones(len(ascending), np.bool_)
    np.not_equal(ascending[1:], ascending[:-1], out=first[1:])
    return ascending[first]


def _join(
    sources: Sequence[tuple[Features, Postings, Moves]],
    features: Features,
    bias: Singles,
    rest: Singles,
    latent: NDArray[np.float32],
) -> Index:
    """An index with rows for these features, which are those of all sources."""
    union = table(features)
    rows = [rows_of(union, features) for features, _, _ in sources]
    counts = np.zeros(len(union.features), np.uint32)
    for (_, postings, moves), at in zip(sources, rows, strict=True):
        _count(postings, at, moves, counts)

    used = counts > 0
    if not used.all():
        union, counts = table(union.features[used]), counts[used]
        renumbered = np.cumsum(used, dtype=np.int32) - np.int32(1)
        rows = [renumbered[at] for at in rows]  # an unused row gets a number, too, but has nothing to place
    joined = _room(counts, len(bias))
    ends = joined.starts[:-1].copy()
    for (_, postings, moves), at in zip(sources, rows, strict=True):
        _place(postings, at, moves, joined, ends)
    return Index(union, joined, bias, rest, latent)


def _latent(columns: Sequence[tuple[Features, Singles]]) -> NDArray[np.float32]:
    """The matrix of these latent features and weights, a pair for each column."""
    tags = {int(feature) >> 8 for features, _ in columns for feature in features[[0, -1] if len(features) else []]}
    check(len(tags) <= 1, "models in one index have latent weights of one projection")
    numbers = [(features & np.uint64(MAX_LATENT - 1)).astype(np.int64) for features, _ in columns]
    latent = np.zeros((max((int(n[-1]) + 1 for n in numbers if len(n)), default=0), _padded(len(columns))), np.float32)
    for column, (n, (_, weights)) in enumerate(zip(numbers, columns, strict=True)):
        check(bool(np.all(n[1:] > n[:-1])), "features must be ascending")
        latent[n, column] = weights
    return latent


def _padded(width: int) -> int:
    return -(-width >> BLOCK_BITS) << BLOCK_BITS


def _room(counts: NDArray[np.uint32], width: int) -> Postings:
    """Postings with room for this many weights in each row, all zero."""
    is_dense = counts * np.uint64(DENSE_RATIO) >= width
    starts = np.zeros(len(counts) + 1, np.uint32)
    np.cumsum(np.where(is_dense, 0, counts), out=starts[1:])
    size, dense = int(starts[-1]), int(np.count_nonzero(is_dense))
    return Postings(
        starts,
        *_bitmap(is_dense),
        np.zeros(size + POSTINGS_STEP, np.uint16),
        np.zeros(size + POSTINGS_STEP, np.float32),
        np.zeros((dense, _padded(width)), np.float32),
    )


def _bitmap(is_dense: NDArray[np.bool_]) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """`dense_bits` and `dense_before` of Postings."""
    rows = np.zeros(len(is_dense) // 64 * 64 + 64, np.bool_)
    rows[: len(is_dense)] = is_dense
    each = np.count_nonzero(rows.reshape(-1, 64), axis=1)
    return np.packbits(rows, bitorder="little").view(np.uint64), (np.cumsum(each) - each).astype(np.uint32)


@kernel
def dense_row(dense_bits: NDArray[np.uint64], dense_before: NDArray[np.uint32], row: np.uint64) -> np.uint64:
    """The number among the dense rows of a row that is one."""
    below = dense_bits[row >> _6] & ((_1 << (row & _63)) - _1)
    return np.uint64(dense_before[row >> _6]) + popcount(below)


@kernel
def _count(p: Postings, rows: Rows, moves: Moves, counts: NDArray[np.uint32]) -> None:
    dense = 0
    for r in range(len(rows)):
        n = 0
        if p.starts[r] == p.starts[r + 1]:
            for c in range(len(moves)):
                n += p.dense[dense, c] != 0 and moves[c] >= 0
            dense += 1
        for i in range(p.starts[r], p.starts[r + 1]):
            n += moves[p.columns[i]] >= 0
        counts[rows[r]] += np.uint32(n)


@kernel
def _place(p: Postings, rows: Rows, moves: Moves, into: Postings, ends: NDArray[np.uint32]) -> None:
    dense = 0
    for r in range(len(rows)):
        if p.starts[r] == p.starts[r + 1]:
            for c in range(len(moves)):
                if p.dense[dense, c] != 0 and moves[c] >= 0:
                    _put(into, rows[r], moves[c], p.dense[dense, c], ends)
            dense += 1
        for i in range(p.starts[r], p.starts[r + 1]):
            column = moves[p.columns[i]]
            if column >= 0:
                _put(into, rows[r], column, p.weights[i], ends)


@kernel
def _put(into: Postings, row: int, column: int, weight: float, ends: NDArray[np.uint32]) -> None:
    if into.starts[row] == into.starts[row + 1]:
        into.dense[dense_row(into.dense_bits, into.dense_before, np.uint64(row)), column] = weight
    else:
        end = ends[row]
        into.columns[end] = column
        into.weights[end] = weight
        ends[row] = end + np.uint32(1)
