"""Small helpers for arrays that several rooms share: growing one, counting bits, refusing bad values."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel

Item = TypeVar("Item", bound=np.generic)

_1, _2, _4, _56 = (np.uint64(n) for n in (1, 2, 4, 56))
_PAIRS, _FOURS, _EIGHTS = (np.uint64(n) for n in (0x5555555555555555, 0x3333333333333333, 0x0F0F0F0F0F0F0F0F))
_BYTES = np.uint64(0x0101010101010101)


def check(condition: bool, message: str) -> None:
    """Raise a ValueError unless the condition holds. Conditions are written so that NaN fails them."""
    if not condition:
        raise ValueError(message)


def grown(array: NDArray[Item], size: int) -> NDArray[Item]:
    """The same array with room for at least `size` items, zero beyond its old end.

    Lengths are powers of two, so growth is amortised, and a hash table of that length can mask instead of divide.
    """
    if size <= len(array):
        return array
    longer = np.zeros(1 << (size - 1).bit_length(), array.dtype)
    longer[: len(array)] = array
    return longer


@kernel
def popcount(word: np.uint64) -> np.uint64:
    """How many bits are set: in pairs, then in fours, in eights, and in all. It compiles to one instruction."""
    word -= (word >> _1) & _PAIRS
    word = (word & _FOURS) + ((word >> _2) & _FOURS)
    return (((word + (word >> _4)) & _EIGHTS) * _BYTES) >> _56
