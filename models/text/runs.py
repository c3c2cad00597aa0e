"""Where words begin and end in a text, found for 64 bytes at a time.

ASCII separators end every term, so a text falls into *runs* of other bytes. Processors are slowed down by branches that
they cannot predict, and the end of a word is one. So each byte becomes a bit, eight bytes at a time, and a few shifts
of a 64-bit word answer for a window of 64 bytes where runs begin, where they end, and which are *short*: up to eight
ASCII letters and digits, which fit into one number. Nine runs in ten are short.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import popcount
from models.core.kernel import kernel
from models.core.vectors import Features

Marks = NDArray[np.uint64]  # a bit for each byte of a text, the first one lowest

WINDOW = 64  # bytes; a text must be followed by as many zeros

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
LOWER = np.uint64(0x2020202020202020)  # makes letters lower-case, and leaves digits as they are
HIGH = np.uint64(0x8080808080808080)  # set where a byte is not ASCII
_LOW = ~HIGH
_ONE_EACH = np.uint64(0x0101010101010101)
_GATHER = np.uint64(0x0102040810204080)  # gathers the lowest bits of eight bytes in the highest byte
_0, _1, _2, _4, _6, _7, _8, _9, _16, _32, _56, _63, _64 = (
    np.uint64(n) for n in (0, 1, 2, 4, 6, 7, 8, 9, 16, 32, 56, 63, 64)
)


class Runs(NamedTuple):
    """The runs of a window, as bits: where short ones begin and where they end, and the same for the others."""

    first: np.uint64
    last: np.uint64
    other_first: np.uint64
    other_last: np.uint64


@kernel
def mark(words: Features) -> tuple[Marks, Marks]:
    """For each byte a bit that is set inside runs (no ASCII separator), and one that is set if it is not ASCII."""
    inside, foreign = np.empty(len(words), np.uint8), np.empty(len(words), np.uint8)
    for i in range(len(words)):
        word = words[i]
        low = word & _LOW
        letters = in_range(low | LOWER, 97, 122) | in_range(low, 48, 57) | word
        inside[i] = np.uint8((((letters >> _7) & _ONE_EACH) * _GATHER) >> _56)
        foreign[i] = np.uint8((((word >> _7) & _ONE_EACH) * _GATHER) >> _56)
    return inside.view(np.uint64), foreign.view(np.uint64)


@kernel
def in_range(octets: np.uint64, first: int, last: int) -> np.uint64:
    """A number whose bytes have the highest bit set where that of `octets`, all below 128, is one of first … last."""
    return (octets + _ONE_EACH * np.uint64(128 - first)) & ~(octets + _ONE_EACH * np.uint64(127 - last))


@kernel
def window(marks: Marks, at: np.uint64, size: np.uint64) -> np.uint64:
    """The bits of `size` bytes, 1 to 64, from `at` on."""
    i, shift = at >> _6, at & _63
    bits: np.uint64 = (marks[i] >> shift) | ((marks[i + _1] << _1) << (_63 - shift))
    return bits & (ALL >> (_64 - size))


@kernel
def through_last_separator(inside: np.uint64) -> np.uint64:
    """A mask of the window up to its last separator: the run that follows may continue beyond the window."""
    mask = ~inside
    mask |= mask >> _1
    mask |= mask >> _2
    mask |= mask >> _4
    mask |= mask >> _8
    mask |= mask >> _16
    return mask | (mask >> _32)


@kernel
def runs_in(inside: np.uint64, foreign: np.uint64) -> Runs:
    """The runs of a window whose last byte is a separator."""
    first, last = inside & ~(inside << _1), ~inside & (inside << _1)
    two = inside & (inside >> _1)  # as many bits are set from here on
    four = two & (two >> _2)
    nine = four & (four >> _4) & (inside >> _8)
    other_first, other_last = first & nine, last & (nine << _9)
    if foreign & inside != _0:  # spread over up to seven neighbours to where the run begins, and to where it ends
        down = foreign | (inside & (foreign >> _1))
        down |= two & (down >> _2)
        down |= four & (down >> _4)
        two = inside & (inside << _1)
        up = foreign | (inside & (foreign << _1))
        up |= two & (up << _2)
        up |= two & (two << _2) & (up << _4)
        other_first |= first & down
        other_last |= last & (up << _1)
    return Runs(first ^ other_first, last ^ other_last, other_first, other_last)


@kernel
def lowest_bit(bits: np.uint64) -> np.uint64:
    """The place of the lowest bit that is set; 64 if none is."""
    return popcount(~bits & (bits - _1))
