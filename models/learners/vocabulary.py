"""A topic's own numbering of the features it has met, so that learners can work on dense arrays.

A feature is a 64-bit hash; its *slot* is its place in the order in which the topic met its features. Slots are never
reused or moved, so an array by slot only grows at its end, and a document stored as (slots, values) stays valid.

The table has open addressing with linear probing in two flat arrays, at most half full. A dict of Python integers would
take ten times the memory and five times the time.
"""

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import grown
from models.core.kernel import kernel
from models.core.vectors import Features, Reals

Slots = NDArray[np.int32]

UNKNOWN = -1
_FIRST_SIZE = 256


class Vocabulary:
    """Feature → slot, append-only."""

    def __init__(self) -> None:
        self.size = 0
        self._features = np.zeros(_FIRST_SIZE, np.uint64)
        self._table = np.full(2 * _FIRST_SIZE, UNKNOWN, np.int32)
        self._ascending = np.empty(0, np.int32)

    @property
    def features(self) -> Features:
        """The feature at each slot."""
        return self._features[: self.size]

    @property
    def ascending(self) -> Slots:
        """The slots in the order of their features. Slots assigned since the last call are merged in."""
        old = len(self._ascending)
        if old < self.size:
            new = old + np.argsort(self._features[old : self.size])
            self._ascending = _merged(self._features, self._ascending, new.astype(np.int32))
        return self._ascending

    @property
    def nbytes(self) -> int:
        return self._features.nbytes + self._table.nbytes + self._ascending.nbytes

    def intern(self, features: Features) -> Slots:
        """The slots of these features. Features not met before get the next slots, in the order of the argument."""
        max_size = self.size + len(features)
        if max_size > len(self._features):
            self._features = grown(self._features, max_size)
            self._table = np.full(2 * len(self._features), UNKNOWN, np.int32)
            _fill(self._table, self._features, self.size)
        # A copy, because arrays read from a log are read-only, and numba would compile everything twice for them.
        slots, self.size = _intern(self._table, self._features, self.size, np.array(features, np.uint64))
        return slots

    def find(self, features: Features) -> Slots:
        """The slots of these features; UNKNOWN for a feature that was never met."""
        return _find(self._table, self._features, np.array(features, np.uint64))


@kernel
def dot(w: Reals, slots: Slots, x: Reals) -> float:
    """w·x, summed from left to right: how a BLAS product rounds may depend on the number of threads."""
    total = 0.0
    for i in range(len(slots)):
        if slots[i] < len(w):
            total += w[slots[i]] * x[i]
    return total


@kernel
def axpy(w: Reals, a: float, slots: Slots, x: Reals) -> None:
    """w ← w + a·x, in place."""
    for i in range(len(slots)):
        w[slots[i]] += a * x[i]


@kernel
def _place(table: Slots, features: Features, feature: np.uint64) -> np.int64:
    """The place in the table of the feature's slot, or the one that it would have."""
    mask = len(table) - 1
    # The golden ratio spreads features that are not hashes (tests number them 1, 2, 3).
    at = np.int64((feature * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
    while table[at] != UNKNOWN and features[table[at]] != feature:
        at = (at + 1) & mask
    return at


@kernel
def _fill(table: Slots, features: Features, size: int) -> None:
    for slot in range(size):
        table[_place(table, features, features[slot])] = slot


@kernel
def _intern(table: Slots, features: Features, size: int, wanted: Features) -> tuple[Slots, int]:
    slots = np.empty(len(wanted), np.int32)
    for i in range(len(wanted)):
        at = _place(table, features, wanted[i])
        if table[at] == UNKNOWN:
            table[at] = size
            features[size] = wanted[i]
            size += 1
        slots[i] = table[at]
    return slots, size


@kernel
def _merged(features: Features, left: Slots, right: Slots) -> Slots:
    """Two lists of slots, each in the order of their features, merged into one."""
    merged = np.empty(len(left) + len(right), np.int32)
    i, j = 0, 0
    for k in range(len(merged)):
        if j == len(right) or (i < len(left) and features[left[i]] < features[right[j]]):
            merged[k] = left[i]
            i += 1
        else:
            merged[k] = right[j]
            j += 1
    return merged


@kernel
def _find(table: Slots, features: Features, wanted: Features) -> Slots:
    slots = np.empty(len(wanted), np.int32)
    for i in range(len(wanted)):
        slots[i] = table[_place(table, features, wanted[i])]
    return slots
