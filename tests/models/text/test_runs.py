"""Runs of letters and digits, found 64 bytes at a time, are those found one byte at a time."""

import re

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.text.runs import Marks, lowest_bit, mark, runs_in, through_last_separator, window

STEADY = settings(deadline=None, derandomize=True, max_examples=300)  # the first call may compile a kernel

# Any bits, and bits as in texts: runs of all lengths, separated.
lengths = st.lists(st.tuples(st.integers(1, 20), st.integers(1, 3)), max_size=20)
windows = st.one_of(
    st.integers(0, 2**63 - 1), lengths.map(lambda pairs: word_of("".join("1" * n + "0" * m for n, m in pairs)))
)


def word_of(bits: str) -> int:
    return int(bits[:63][::-1] or "0", 2)


def places(bits: int) -> list[int]:
    return [i for i in range(64) if bits >> i & 1]


@given(inside=windows, chosen=st.integers(0, 2**64 - 1))
@STEADY
def test_short_runs_and_others_are_told_apart(inside: int, chosen: int) -> None:
    foreign = inside & chosen & chosen >> 7 & chosen >> 13  # some, in some of the runs
    spans = [m.span() for m in re.finditer("1+", f"{inside:064b}"[::-1])]
    short = [(a, b) for a, b in spans if b - a <= 8 and not any(foreign >> i & 1 for i in range(a, b))]
    others = [span for span in spans if span not in short]
    runs = [int(bits) for bits in runs_in(np.uint64(inside), np.uint64(foreign))]
    assert list(zip(places(runs[0]), places(runs[1]), strict=True)) == short
    assert list(zip(places(runs[2]), places(runs[3]), strict=True)) == others
    assert int(lowest_bit(np.uint64(runs[0]))) == (short[0][0] if short else 64)


@given(inside=st.integers(0, 2**64 - 1))
@STEADY
def test_a_window_is_cut_behind_its_last_separator(inside: int) -> None:
    separators = [i for i in range(64) if not inside >> i & 1]
    assert places(int(through_last_separator(np.uint64(inside)))) == list(
        range(separators[-1] + 1 if separators else 0)
    )


def marks_of(text: bytes) -> tuple[Marks, Marks]:
    return mark(np.frombuffer(text + bytes(64 + -len(text) % 64), np.uint64))


def test_every_byte_is_marked_for_what_it_is() -> None:
    inside, foreign = marks_of(bytes(range(256)))
    for byte in range(256):
        at = np.uint64(byte)
        assert bool(window(inside, at, np.uint64(1))) == (byte >= 128 or chr(byte).isalnum())
        assert bool(window(foreign, at, np.uint64(1))) == (byte >= 128)


@given(text=st.binary(min_size=1, max_size=200), at=st.integers(0, 199), size=st.integers(1, 64))
@STEADY
def test_a_window_begins_anywhere(text: bytes, at: int, size: int) -> None:
    at %= len(text)
    inside, _ = marks_of(text)
    expected = [i for i, byte in enumerate(text[at : at + size]) if byte >= 128 or chr(byte).isalnum()]
    assert places(int(window(inside, np.uint64(at), np.uint64(size)))) == expected
