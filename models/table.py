"""From a feature to its row, in a table that is built once and only read.

    features    the distinct features, ascending: row r belongs to features[r]
    directory   features whose leading bits are b stand in rows directory[b] .. directory[b + 1]

A feature is a hash, so its leading bits are spread evenly and a range holds one or two rows: a look-up touches one
place of each array. It costs 10 to 12 bytes a row, and two tables are united by merging ascending arrays.
Rejected: open addressing (twice the bytes at the load where it is fast, and rows in no order); a 32-bit fingerprint in
place of the feature (half the bytes, but two features could then be taken for each other).
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.kernel import kernel
from models.vectors import Features

Rows = NDArray[np.int32]

ABSENT = -1


class Table(NamedTuple):
    shift: int
    directory: NDArray[np.uint32]
    features: Features

    @property
    def nbytes(self) -> int:
        return self.directory.nbytes + self.features.nbytes


def table(features: Features) -> Table:
    """The table of these features, which are distinct and ascending."""
    bits = max(1, len(features).bit_length() - 1)
    ranges = np.arange((1 << bits) + 1, dtype=np.uint64)
    shift = 64 - bits
    directory = np.searchsorted(features >> np.uint64(shift), ranges).astype(np.uint32)
    return Table(shift, directory, features)


@kernel
def rows_of(t: Table, features: Features) -> Rows:
    """The row of each feature, `ABSENT` where it has none."""
    rows = np.empty(len(features), np.int32)
    shift, directory, known = np.uint64(t.shift), t.directory, t.features
    for k in range(len(features)):
        feature = features[k]
        leading = feature >> shift
        low, high = np.int64(directory[leading]), np.int64(directory[leading + np.uint64(1)])
        if high - low <= 3 < len(known) - low:  # nearly always
            # No branch to guess wrong: all three are compared, since those behind the range are larger anyway.
            low += (known[low] < feature) + (known[low + 1] < feature) + (known[low + 2] < feature)
        else:
            while low < high:  # halving keeps it short where someone has chosen words that crowd
                middle = (low + high) >> 1
                if known[middle] < feature:
                    low = middle + 1
                else:
                    high = middle
        found = low < len(known) and known[low] == feature
        rows[k] = low if found else ABSENT
    return rows
