"""Where words stand in a text, found for sixty-four bytes at a time.

ASCII separators end every term, so a text falls into *runs* of other bytes. A processor is slowed down by branches that
it cannot foresee, and where a word ends it cannot. So each byte gets a bit, eight bytes being judged as one number, and
what is to be known of the runs in a window of sixty-four bytes takes a few shifts of one word: where they begin, where
they end, and which are *short*: up to eight ASCII letters and digits, so one number each. Nine runs in ten are.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import popcount
from models.core.kernel import kernel
from models.core.vectors import Features

Marks = NDArray[np.uint64]  # a bit for each byte of a text, the first one lowest

WINDOW = 64  # bytes of a window; so many zeros must stand behind a text

ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
LOWER = np.uint64(0x2020202020202020)  # makes capitals small, and leaves digits as they are
HIGH = np.uint64(0x8080808080808080)  # set where a byte is not ASCII
_LOW = ~HIGH
_ONE_EACH = np.uint64(0x0101010101010101)
_GATHER = np.uint64(0x0102040810204080)  # brings the lowest bits of eight bytes together in the highest byte
_0, _1, _2, _4, _6, _7, _8, _9, _16, _32, _56, _63, _64 = (
    np.uint64(n) for n in (0, 1, 2, 4, 6, 7, 8, 9, 16, 32, 56, 63, 64)
)


class Runs(NamedTuple):
    """The runs of a window, as bits: where short ones begin, where each of them ends, and the same for the others."""

    first: np.uint64
    last: np.uint64
    other_first: np.uint64
    other_last: np.uint64


@kernel
def mark(words: Features) -> tuple[Marks, Marks]:
    """Which bytes of these eights are no ASCII separators, and which are not ASCII."""
    inside, foreign = np.empty(len(words), np.uint8), np.empty(len(words), np.uint8)
    for i in range(len(words)):
        word = words[i]
        low = word & _LOW
        named = among(low | LOWER, 97, 122) | among(low, 48, 57) | word
        inside[i] = np.uint8((((named >> _7) & _ONE_EACH) * _GATHER) >> _56)
        foreign[i] = np.uint8((((word >> _7) & _ONE_EACH) * _GATHER) >> _56)
    return inside.view(np.uint64), foreign.view(np.uint64)


@kernel
def among(low: np.uint64, least: int, most: int) -> np.uint64:
    """The highest bit of each byte, all of which are below 128, says whether it is one of least … most."""
    return (low + _ONE_EACH * np.uint64(128 - least)) & ~(low + _ONE_EACH * np.uint64(127 - most))


@kernel
def window(marks: Marks, at: np.uint64, size: np.uint64) -> np.uint64:
    """The bits of so many bytes from `at` on, 1 to 64."""
    i, shift = at >> _6, at & _63
    bits: np.uint64 = (marks[i] >> shift) | ((marks[i + _1] << _1) << (_63 - shift))
    return bits & (ALL >> (_64 - size))


@kernel
def through_last_separator(inside: np.uint64) -> np.uint64:
    """The bits of a window up to its last separator: what follows may go on behind it."""
    mask = ~inside
    mask |= mask >> _1
    mask |= mask >> _2
    mask |= mask >> _4
    mask |= mask >> _8
    mask |= mask >> _16
    return mask | (mask >> _32)


@kernel
def runs_in(inside: np.uint64, foreign: np.uint64) -> Runs:
    """The runs of a window, of which the last bit is not set."""
    first, last = inside & ~(inside << _1), ~inside & (inside << _1)
    two = inside & (inside >> _1)  # so many bits are set here, and behind it
    four = two & (two >> _2)
    nine = four & (four >> _4) & (inside >> _8)
    other_first, other_last = first & nine, last & (nine << _9)
    if foreign & inside != _0:  # carried over up to seven neighbours to where the run begins, and to where it ends
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
def place(bits: np.uint64) -> np.uint64:
    """Of the lowest bit that is set; 64 if none is."""
    return popcount(~bits & (bits - _1))
