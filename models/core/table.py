"""From a feature to its row: a table that is built once and then only read.

    features    the distinct features, ascending: row r belongs to features[r]
    directory   features whose leading bits are b have the rows directory[b] : directory[b + 1]

A feature is a hash, so its leading bits are spread evenly and a range holds two to four rows: a lookup touches one
place of each array. The table costs 9 to 10 bytes a row, and two tables are united by merging ascending arrays.

Rejected: open addressing (twice the bytes at the load where it is fast, and rows in no order); a 32-bit fingerprint in
place of the feature (half the bytes, but two features could then be mistaken for each other).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.core.vectors import Features

Rows = NDArray[np.int32]

ABSENT = -1

_0, _1, _COMPARED = np.uint64(0), np.uint64(1), np.uint64(8)


class Table(NamedTuple):
    shift: int
    directory: NDArray[np.uint32]
    features: Features

    @property
    def nbytes(self) -> int:
        return self.directory.nbytes + self.features.nbytes


def table(features: Features) -> Table:
    """The table of these features, which are distinct and ascending."""
    bits = max(1, len(features).bit_length() - 2)
    ranges = np.arange((1 << bits) + 1, dtype=np.uint64)
    shift = 64 - bits
    directory = np.searchsorted(features >> np.uint64(shift), ranges).astype(np.uint32)
    return Table(shift, directory, features)


@kernel
def rows_of(t: Table, features: Features) -> Rows:
    """The row of each feature, `ABSENT` where it has none."""
    rows = np.empty(len(features), np.int32)
    shift, directory, known, size = np.uint64(t.shift), t.directory, t.features, np.uint64(len(t.features))
    if size == _0:
        rows[:] = ABSENT
        return rows
    for k in range(np.uint64(len(features))):  # unsigned: numba tests signed indexes for being negative
        feature = features[k]
        leading = feature >> shift
        low, high = np.uint64(directory[leading]), np.uint64(directory[leading + _1])
        if (high - low <= _COMPARED) & (low + _COMPARED <= size):  # nearly always
            # No branch to mispredict: all eight are compared, since those behind the range are larger anyway.
            smaller = _0
            for i in range(_COMPARED):
                smaller += np.uint64(known[low + i] < feature)
            low += smaller
        else:
            while low < high:  # bisection keeps it short if words were chosen to collide
                middle = (low + high) >> _1
                if known[middle] < feature:
                    low = middle + _1
                else:
                    high = middle
        low = min(low, size - _1)
        rows[k] = np.int64(low) | -np.int64(known[low] != feature)  # ABSENT, all bits set, without a branch
    return rows
