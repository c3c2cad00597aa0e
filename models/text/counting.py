"""Counting the terms of a document: a hash table that is drained into features, ascending, and their counts.

    slots     open addressing, at least four times as many as terms: a feature's home is given by its leading bits
    weights   how often the feature of each slot occurred
    taken     a bit for each slot in use

Read from end to end the table has the document's features nearly in ascending order, and a pass of insertion sort does
the rest: sorting is free. `taken` is scanned in place of the slots, which are many and mostly empty. With so many slots
two features rarely collide, so the branch that asks is predicted well. Twice or half as many slots, and eight places
at a time in `find_taken`, are no faster.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import popcount
from models.core.kernel import kernel
from models.core.vectors import Features, Reals, Singles

EMPTY = np.uint64(0)  # no feature is zero

_1, _4, _6, _63 = (np.uint64(n) for n in (1, 4, 6, 63))


class CountTable(NamedTuple):
    """The table, all zero between documents. `places` is scratch space for the slots in use, and four more."""

    slots: Features
    weights: Reals
    taken: NDArray[np.uint64]
    places: NDArray[np.uint32]


@kernel
def count_table_for(bits: int) -> CountTable:
    """An empty table of 2^bits slots, 64 or more."""
    size = 1 << bits
    return CountTable(
        np.zeros(size, np.uint64),
        np.zeros(size, np.float64),
        np.zeros(size >> 6, np.uint64),
        np.empty(size + 4, np.uint32),
    )


@kernel
def slot_bits(terms: int) -> int:
    """log₂ of the number of slots for a document of this many terms."""
    bits = 6
    while 1 << bits < 4 * terms:
        bits += 1
    return bits


# The kernels below take the arrays of a table, not the table: numba counts a reference at every access to a tuple,
# which would be a tenth of the time for a document of a hundred terms. Indexes are unsigned, since numba tests signed
# ones for being negative.


@kernel
def count(
    terms: Features,
    start: int,
    stop: int,
    weight: float,
    slots: Features,
    weights: Reals,
    taken: NDArray[np.uint64],
    bits: int,
) -> None:
    """Add the weight to each of terms[start:stop], in 2^bits slots."""
    mask, shift = (_1 << np.uint64(bits)) - _1, np.uint64(64 - bits)
    for i in range(np.uint64(start), np.uint64(stop)):
        term = terms[i]
        place = term >> shift
        there = slots[place]
        while (there != EMPTY) & (there != term):
            place = (place + _1) & mask
            there = slots[place]
        slots[place] = term
        weights[place] += weight
        taken[place >> _6] |= _1 << (place & _63)


@kernel
def drain(
    slots: Features,
    weights: Reals,
    places: NDArray[np.uint32],
    n: np.uint64,
    features: Features,
    counts: Singles,
    start: int,
) -> int:
    """Move the slots at places[:n], which ascend, to features[start:], ascending, and counts[start:].

    Returns where they end there.
    """
    first = np.uint64(start)
    for i in range(n):
        place = places[i]
        feature, weight = slots[place], np.float32(weights[place])
        slots[place], weights[place] = EMPTY, 0.0
        k = first + i
        while k > first and features[k - _1] > feature:
            features[k], counts[k] = features[k - _1], counts[k - _1]
            k -= _1
        features[k], counts[k] = feature, weight
    return start + int(np.int64(n))


@kernel
def find_taken(taken: NDArray[np.uint64], bits: int, places: NDArray[np.uint32]) -> np.uint64:
    """Write the places whose bit is set, ascending, and clear the bits. Returns how many there are."""
    n = EMPTY
    for k in range(_1 << np.uint64(bits - 6)):
        word = taken[k]
        taken[k] = EMPTY
        at, n = n, n + popcount(word)
        while at < n:  # four at a time, the last ones perhaps in vain: fewer branches to mispredict
            for j in range(_4):
                places[at + j] = (k << _6) + popcount(~word & (word - _1))  # as many ones as there are zeros at its end
                word &= word - _1
            at += _4
    return n
