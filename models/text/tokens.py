"""From UTF-8 bytes to counted features, fast. What a term is stands at the head of analysis.py.

A feature is the hash of a term: of the UTF-8 of its folded code points, eight bytes at a time, read as numbers b₁ … bₙ
with the first byte lowest, the last one padded with zeros. It is the same on every machine and in every version:

    h₀ = 0x243F6A8885A308D3 (the digits of π);   hᵢ = m ⊕ (m » 32),  m = (hᵢ₋₁ ⊕ bᵢ)·0x9E3779B97F4A7C15 mod 2⁶⁴
    feature = finalise(hₙ), the finaliser of SplitMix64; zero, which marks an empty slot when counting, becomes one

Every step is a bijection of h, so terms of up to eight bytes never collide, and the finaliser spreads them over all
bits. The hash is not keyed: words that collide can be found on purpose.

runs.py finds where words begin and end. A word of up to eight ASCII letters and digits is one number, folded by setting
a bit in each byte, and all such words of a few documents are hashed in one loop. Other runs are read one by one, those
that are not ASCII code point by code point. counting.py counts the terms.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import popcount
from models.core.kernel import kernel
from models.core.vectors import Features, Singles
from models.text.counting import EMPTY, CountTable, count, count_table_for, drain, find_taken, slot_bits
from models.text.runs import ALL, HIGH, LOWER, WINDOW, Marks, lowest_bit, mark, runs_in, through_last_separator, window
from models.text.unicode import MARK, PICTURE, SEPARATOR, SEVERAL, UNSPACED, WORD, Alphabet, Points

MAX_POINTS = 64  # code points of a term after folding; what follows, up to the next separator, is ignored
MAX_UNIT_POINTS = MAX_POINTS // 2  # of a character and its marks in a script without spaces; a term has two of them

READ_BYTES = 1 << 13  # of documents, read before their terms are counted: what was read stays in the cache

Text = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_START = np.uint64(0x243F6A8885A308D3)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FINISH_1 = np.uint64(0xBF58476D1CE4E5B9)
_FINISH_2 = np.uint64(0x94D049BB133111EB)
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_1, _3, _64 = (np.uint64(n) for n in (1, 3, 64))


class Buffer(NamedTuple):
    """Zones (titles and texts, alternating) as kernels read them: a newline after each, then zeros for padding.

    Zone i is text[offsets[i] : offsets[i + 1] - 1]. `words` are the bytes of the text, eight at a time, as numbers, and
    eights[i] is text[i : i + 8] as a number.
    """

    text: Text
    words: Features
    eights: Features
    offsets: Offsets


class Reading(NamedTuple):
    """Scratch space for reading a few documents, reused for the next.

    Zone k of these has the features short[ends[k, 0] : ends[k + 1, 0]] of short words, and those of all other terms,
    others[ends[k, 1] : ends[k + 1, 1]]; `term` holds the entries (see `Alphabet`) of the term being read.
    """

    term: Points
    short: Features
    others: Features
    ends: Offsets


def buffer(zones: Sequence[bytes]) -> Buffer:
    """These zones, UTF-8, as a buffer."""
    offsets = _offsets(zones)
    return _view_as_buffer(b"\n".join([*zones, bytes(_padding(offsets))]), offsets)


def buffer_of(zones: Sequence[str]) -> Buffer:
    """These zones as a buffer; a lone surrogate, which UTF-8 cannot encode, becomes a question mark: a separator."""
    offsets = _offsets(zones)
    whole = "\n".join([*zones, "\0" * _padding(offsets)])
    if whole.isascii():  # then a character is a byte, and all are encoded together
        return _view_as_buffer(whole.encode(), offsets)
    return buffer([zone.encode("utf-8", "replace") for zone in zones])


def _offsets(zones: Sequence[bytes] | Sequence[str]) -> Offsets:
    offsets = np.zeros(len(zones) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, zones), np.int64, len(zones)) + 1, out=offsets[1:])
    return offsets


def _padding(offsets: Offsets) -> int:
    """How many zeros follow the zones: a window, and as many as make the length a multiple of it."""
    return WINDOW + -int(offsets[-1]) % WINDOW


def _view_as_buffer(text: bytes, offsets: Offsets) -> Buffer:
    # Overlapping numbers, one beginning at each byte: a processor loads them as fast as aligned ones.
    eights: Features = np.ndarray(len(text) - 7, np.uint64, text, strides=(1,))
    return Buffer(np.frombuffer(text, np.uint8), np.frombuffer(text, np.uint64), eights, offsets)


@kernel
def tokenise_all(buffer: Buffer, title_weight: float, alphabet: Alphabet) -> tuple[Offsets, Features, Singles]:
    """The features of documents, ascending, and their counts: the fields of `Bags`.

    Document i has zones 2i, its title, and 2i + 1. A term in a title counts `title_weight`, else 1. Bytes that are not
    valid UTF-8 separate words.
    """
    offsets = buffer.offsets
    documents = len(offsets) // 2
    longest = min(READ_BYTES, offsets[2 * documents])
    for i in range(documents):
        longest = max(longest, offsets[2 * i + 2] - offsets[2 * i])
    reading, table = reading_for(longest, min(READ_BYTES // 2, documents)), count_table_for(11)
    inside, foreign = mark(buffer.words)
    indptr = np.zeros(documents + 1, dtype=np.int64)
    features = np.empty(128 * documents, dtype=np.uint64)
    counts = np.empty(128 * documents, dtype=np.float32)
    done = 0
    while done < documents:
        stop = done + 1
        while stop < min(documents, done + READ_BYTES // 2) and offsets[2 * stop + 2] - offsets[2 * done] <= READ_BYTES:
            stop += 1
        longest, read = read_zones(buffer, inside, foreign, alphabet, 2 * done, 2 * stop, reading)
        if 1 << slot_bits(longest) > len(table.slots):
            table = count_table_for(slot_bits(longest))
        old = indptr[done]
        if old + read > len(features):
            features = np.concatenate((features[:old], np.empty(old + read, dtype=np.uint64)))
            counts = np.concatenate((counts[:old], np.empty(old + read, dtype=np.float32)))
        count_zones(reading, title_weight, table, done, stop, indptr, features, counts)
        done = stop
    return indptr, features[: indptr[documents]], counts[: indptr[documents]]


@kernel
def reading_for(longest: int, documents: int) -> Reading:
    """Scratch space for documents of this total length: no code point gives two terms a byte, so all terms fit."""
    return Reading(
        np.empty(MAX_POINTS, dtype=np.int32),
        np.empty(longest // 2 + 1, dtype=np.uint64),
        np.empty(2 * longest, dtype=np.uint64),
        np.zeros((2 * documents + 1, 2), dtype=np.int64),
    )


# Arrays are taken out of their tuples once for many documents: numba counts a reference at every access to a tuple, for
# every array that a loop replaces or slices, and for those that are passed to a function with many branches.


@kernel
def read_zones(
    buffer: Buffer, inside: Marks, foreign: Marks, alphabet: Alphabet, start: int, stop: int, reading: Reading
) -> tuple[int, int]:
    """Read zones start … stop − 1. Returns the number of terms of the longest document, and of all together."""
    text, eights, offsets = buffer.text, buffer.eights, buffer.offsets
    entries, expansions = alphabet.entries, alphabet.expansions
    term, short, others, ends = reading.term, reading.short, reading.others, reading.ends
    n, m = EMPTY, 0
    for zone in range(start, stop):
        at, end = np.uint64(offsets[zone]), np.uint64(offsets[zone + 1])
        while at < end:
            size = min(_64, end - at)
            here = window(inside, at, size)
            through = through_last_separator(here)
            if through == EMPTY:  # a run that fills the window, and may be long
                begin = at
                while window(inside, at, _1) == _1:
                    at += _1
                m = read_run(text, int(np.int64(begin)), int(np.int64(at)), entries, expansions, term, others, m)
                continue
            runs = runs_in(here & through, window(foreign, at, size))
            first, last = runs.first, runs.last
            while first != EMPTY:
                begin = lowest_bit(first)
                rest = _64 - ((lowest_bit(last) - begin) << _3)
                short[n] = ((eights[at + begin] | LOWER) << rest) >> rest
                first &= first - _1
                last &= last - _1
                n += _1
            first, last = runs.other_first, runs.other_last
            while first != EMPTY:
                begin, beyond = at + lowest_bit(first), at + lowest_bit(last)
                feature = hash_ascii(eights, int(np.int64(begin)), int(np.int64(beyond)))
                if feature != EMPTY:
                    others[m] = feature
                    m += 1
                else:
                    m = read_run(
                        text, int(np.int64(begin)), int(np.int64(beyond)), entries, expansions, term, others, m
                    )
                first &= first - _1
                last &= last - _1
            at += min(size, popcount(through))
        ends[zone - start + 1, 0], ends[zone - start + 1, 1] = np.int64(n), m
    for i in range(n):
        short[i] = finalise(mix(_START, short[i]))
    longest = np.int64(0)
    for zone in range(0, stop - start, 2):
        longest = max(longest, ends[zone + 2, 0] - ends[zone, 0] + ends[zone + 2, 1] - ends[zone, 1])
    return int(longest), int(np.int64(n)) + m


@kernel
def count_zones(
    reading: Reading,
    title_weight: float,
    table: CountTable,
    start: int,
    stop: int,
    indptr: Offsets,
    features: Features,
    counts: Singles,
) -> None:
    """Count the terms that were read of documents start … stop − 1."""
    short, others, ends = reading.short, reading.others, reading.ends
    slots, weights, taken, places = table.slots, table.weights, table.taken, table.places
    for i in range(start, stop):
        zone = 2 * (i - start)
        a, b, c = ends[zone, 0], ends[zone + 1, 0], ends[zone + 2, 0]
        d, e, f = ends[zone, 1], ends[zone + 1, 1], ends[zone + 2, 1]
        bits = slot_bits(c - a + f - d)
        count(short, a, b, title_weight, slots, weights, taken, bits)
        count(others, d, e, title_weight, slots, weights, taken, bits)
        count(short, b, c, 1.0, slots, weights, taken, bits)
        count(others, e, f, 1.0, slots, weights, taken, bits)
        distinct = find_taken(taken, bits, places)
        indptr[i + 1] = drain(slots, weights, places, distinct, features, counts, indptr[i])


@kernel
def hash_lines(text: Text, lines: int) -> Features:
    """The feature of each of the folded terms in `text`, which are separated by newlines."""
    features = np.empty(lines, dtype=np.uint64)
    at = 0
    for i in range(lines):
        h, block, filled = _START, EMPTY, 0
        while at < len(text) and text[at] != 10:
            block |= np.uint64(text[at]) << np.uint64(filled)
            filled += 8
            at += 1
            if filled == 64:
                h, block, filled = mix(h, block), EMPTY, 0
        at += 1
        features[i] = finalise(h if filled == 0 else mix(h, block))
    return features


@kernel
def hash_ascii(eights: Features, at: int, stop: int) -> np.uint64:
    """The feature of a run of ASCII letters and digits; zero, which is no feature, if it has other characters."""
    h, every = _START, EMPTY
    while at + 8 < stop:
        block = eights[at]
        every |= block
        h = mix(h, block | LOWER)
        at += 8
    mask = ALL >> np.uint64(64 - 8 * (stop - at))
    block = eights[at] & mask
    return finalise(mix(h, block | (LOWER & mask))) if (every | block) & HIGH == EMPTY else EMPTY


@kernel
def read_run(
    text: Text, start: int, end: int, entries: Points, expansions: Points, term: Points, terms: Features, size: int
) -> int:
    """Append the terms of text[start:end] to `terms`, which has `size` so far. Returns how many it has then."""
    n = 0  # entries in `term`
    first = 0  # of these, how many belong to the character before the last one, in a run without spaces
    reading = SEPARATOR  # WORD or UNSPACED: what `term` holds
    at = start
    while at < end:
        point, at = decode(text, at, end)
        entry = int(entries[point])
        if entry & 7 == WORD and reading == WORD:  # nearly always
            if n < MAX_POINTS:
                term[n] = entry
                n += 1
            continue
        several = entry & 7 == SEVERAL
        parts, index = ((entry >> 3) & 255, entry >> 11) if several else (1, 0)
        for i in range(parts):
            if several:
                entry = int(expansions[index + i])
            kind = entry & 7
            if kind == WORD and reading == WORD:
                if n < MAX_POINTS:
                    term[n] = entry
                    n += 1
            elif kind == MARK:
                if reading != SEPARATOR and n < (MAX_POINTS if reading == WORD else first + MAX_UNIT_POINTS):
                    attach(term, n, entry)
                    n += 1
            elif kind == UNSPACED and reading == UNSPACED:
                if first > 0:
                    terms[size] = hash_points(term, n)
                    size += 1
                    for k in range(first, n):
                        term[k - first] = term[k]
                first = n - first
                term[first] = entry
                n = first + 1
            else:
                if reading != SEPARATOR:
                    terms[size] = hash_points(term, n)
                    size += 1
                n, first, reading = 0, 0, SEPARATOR
                if kind != SEPARATOR:
                    term[0] = entry
                    if kind == PICTURE:
                        terms[size] = hash_points(term, 1)
                        size += 1
                    else:
                        n, reading = 1, kind
    if reading != SEPARATOR:
        terms[size] = hash_points(term, n)
        size += 1
    return size


@kernel
def decode(text: Text, at: int, end: int) -> tuple[int, int]:
    """The code point at `at`, 0 if the bytes are no UTF-8, and where the next one begins."""
    lead = int(text[at] & 0xFF)  # the mask makes it signed, so that no expression below becomes a float
    if lead < 0x80:
        return lead, at + 1
    if 0xC0 <= lead < 0xE0 and at + 1 < end:
        return (lead & 0x1F) << 6 | tail(text, at + 1), at + 2
    if 0xE0 <= lead < 0xF0 and at + 2 < end:
        return (lead & 0x0F) << 12 | tail(text, at + 1) << 6 | tail(text, at + 2), at + 3
    if 0xF0 <= lead < 0xF5 and at + 3 < end:
        point = (lead & 0x07) << 18 | tail(text, at + 1) << 12 | tail(text, at + 2) << 6 | tail(text, at + 3)
        return (point if point < 0x110000 else 0), at + 4
    return 0, at + 1


@kernel
def tail(text: Text, at: int) -> int:
    return int(text[at] & 0x3F)


@kernel
def attach(term: Points, n: int, mark: int) -> None:
    """Insert a mark into term[:n + 1] in canonical order: after those of the same or a lower combining class."""
    combining = (mark >> 3) & 255
    if combining > 0:
        while (term[n - 1] >> 3) & 255 > combining:  # ends at the letter, whose class is zero
            term[n] = term[n - 1]
            n -= 1
    term[n] = mark


@kernel
def hash_points(term: Points, n: int) -> np.uint64:
    """The feature of the code points of term[:n]."""
    h, block, filled = _START, EMPTY, 0  # `filled` counts bits of the block
    for i in range(n):
        octets, bits = encode(int(term[i]) >> 11)
        block |= np.uint64(octets) << np.uint64(filled)
        filled += bits
        if filled >= 64:  # what did not fit begins the next block
            h = mix(h, block)
            filled -= 64
            block = np.uint64(octets >> (bits - filled))
    return finalise(h if filled == 0 else mix(h, block))


@kernel
def encode(point: int) -> tuple[int, int]:
    """The UTF-8 of a code point as a number, first byte lowest, and its length in bits."""
    last = 0x80 | (point & 0x3F)
    if point < 0x80:
        return point, 8
    if point < 0x800:
        return 0xC0 | (point >> 6) | last << 8, 16
    middle = 0x80 | (point >> 6 & 0x3F)
    if point < 0x10000:
        return 0xE0 | (point >> 12) | middle << 8 | last << 16, 24
    return 0xF0 | (point >> 18) | (0x80 | (point >> 12 & 0x3F)) << 8 | middle << 16 | last << 24, 32


@kernel
def mix(h: np.uint64, block: np.uint64) -> np.uint64:
    h = (h ^ block) * _STEP
    return h ^ (h >> _32)


@kernel
def finalise(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> _30)) * _FINISH_1
    h = (h ^ (h >> _27)) * _FINISH_2
    h = h ^ (h >> _31)
    return max(h, np.uint64(1))
