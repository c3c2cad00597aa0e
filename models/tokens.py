"""From UTF-8 bytes to counted features. What a term is, the head of `text.py` says; here is how it is fast.

A feature is the hash of a term: of the UTF-8 of its folded code points, eight bytes at a time, read as numbers b₁ … bₙ
with the first byte lowest, the last one filled up with zeros. It is the same on every machine and in every version:

    h₀ = 0x243F6A8885A308D3 (the digits of π);   hᵢ = m ⊕ (m » 32),  m = (hᵢ₋₁ ⊕ bᵢ)·0x9E3779B97F4A7C15 mod 2⁶⁴
    feature = finish(hₙ), the finaliser of SplitMix64; zero, which marks an empty slot in `tally`, is taken to be one

Every step is a bijection of h, so terms of up to eight bytes never collide, and the finaliser spreads them over all
bits. It is not keyed: who wants two words to collide can find such words.

Reading: ASCII separators end every term, so a text falls into runs of other bytes, and most runs are ASCII letters and
digits, eight of which are folded by setting a bit. A processor is slowed down by branches that it cannot foresee, and
where a word ends it cannot: so the ends of all runs are found first, without a branch, and a word of up to eight
letters costs one load, a mask and some multiplications. Any other run is read code point by code point. How terms are
counted, `tally` says.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.kernel import kernel
from models.tally import EMPTY, Tally, count, harvest, slot_bits, tally_for
from models.unicode_classes import MARK, PICTURE, SEPARATOR, SEVERAL, UNSPACED, WORD, Alphabet, Points
from models.vectors import Features, Singles

LONGEST = 64  # code points of a term after folding; what follows, up to the next separator, is ignored
UNIT = LONGEST // 2  # the same for one character and its marks in a script without spaces, of which a term has two

Text = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_START = np.uint64(0x243F6A8885A308D3)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FINISH_1 = np.uint64(0xBF58476D1CE4E5B9)
_FINISH_2 = np.uint64(0x94D049BB133111EB)
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_1, _2 = np.uint64(1), np.uint64(2)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_HIGH = np.uint64(0x8080808080808080)  # set where a byte is not ASCII
_LOWER = np.uint64(0x2020202020202020)  # makes capitals small, and leaves digits as they are


class Buffer(NamedTuple):
    """Zones (titles and texts, by turns) as kernels read them, a newline behind each, then zeros that may be touched.

    Zone i is text[offsets[i] : offsets[i + 1] - 1], and eights[i] is text[i : i + 8] read as a number.
    """

    text: Text
    eights: Features
    offsets: Offsets


class Reading(NamedTuple):
    """Room to read a document in, used again for the next.

    `inside` and `ends` tell runs apart; `term` has the entries (see `Alphabet`) of the term being read; `terms` are the
    features of all that were read.
    """

    inside: Text
    ends: NDArray[np.int32]
    term: Points
    terms: Features


def buffer(zones: Sequence[bytes]) -> Buffer:
    """These zones one after the other."""
    offsets = np.zeros(len(zones) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, zones), np.int64, len(zones)) + 1, out=offsets[1:])
    # Sixteen, so that without any zone there are still several numbers: numba takes a single one to be contiguous, and
    # would compile everything again for it.
    text = b"\n".join([*zones, bytes(16 + -int(offsets[-1]) % 8)])
    # Numbers that overlap, one beginning at each byte: a processor loads them as fast as those that stand side by side.
    eights: Features = np.ndarray(len(text) - 7, np.uint64, text, strides=(1,))
    return Buffer(np.frombuffer(text, dtype=np.uint8), eights, offsets)


@kernel
def tokenise_all(buffer: Buffer, title_weight: float, alphabet: Alphabet) -> tuple[Offsets, Features, Singles]:
    """The features of documents, ascending, and how often each occurs, as `Bags`.

    Document i has zones 2i, its title, and 2i + 1. A term in a title counts `title_weight`, else 1. Any bytes will do:
    those that are no UTF-8 separate words.
    """
    offsets = buffer.offsets
    documents = len(offsets) // 2
    longest = 0
    for i in range(documents):
        longest = max(longest, offsets[2 * i + 2] - offsets[2 * i])
    reading, tally = reading_for(longest), tally_for(11)
    indptr = np.zeros(documents + 1, dtype=np.int64)
    features = np.empty(128 * documents, dtype=np.uint64)
    counts = np.empty(128 * documents, dtype=np.float32)
    done = 0
    while True:
        done, read = tokenise_some(buffer, title_weight, alphabet, reading, tally, done, indptr, features, counts)
        if done == documents:
            return indptr, features[: indptr[documents]], counts[: indptr[documents]]
        if 1 << slot_bits(read) > len(tally.slots):
            tally = tally_for(slot_bits(read))
        old = indptr[done]
        if old + read > len(features):
            features = np.concatenate((features[:old], np.empty(old + read, dtype=np.uint64)))
            counts = np.concatenate((counts[:old], np.empty(old + read, dtype=np.float32)))


@kernel
def reading_for(longest: int) -> Reading:
    """Room for documents of up to `longest` bytes. No code point gives two terms a byte, so all of them fit."""
    return Reading(
        np.empty(longest, dtype=np.uint8),
        np.empty(longest + 1, dtype=np.int32),
        np.empty(LONGEST, dtype=np.int32),
        np.empty(2 * longest, dtype=np.uint64),
    )


@kernel
def tokenise_some(
    buffer: Buffer,
    title_weight: float,
    alphabet: Alphabet,
    reading: Reading,
    tally: Tally,
    done: int,
    indptr: Offsets,
    features: Features,
    counts: Singles,
) -> tuple[int, int]:
    """From document `done` on, as many as there is room for: how many are done then, and the terms of the next one."""
    # Arrays are taken out of their tuples once: numba counts a reference for every look into a tuple, and for every
    # array that a loop replaces or cuts.
    text, eights, offsets = buffer.text, buffer.eights, buffer.offsets
    inside, ends, terms = reading.inside, reading.ends, reading.terms
    slots, weights, taken, places = tally.slots, tally.weights, tally.taken, tally.places
    entries, expansions, term = alphabet.entries, alphabet.expansions, reading.term
    for i in range(done, len(offsets) // 2):
        start, middle = offsets[2 * i], offsets[2 * i + 1]
        found = find_runs(text, start, offsets[2 * i + 2], inside, ends)
        of_title = 0
        while of_title < found and start + ends[of_title] < middle:
            of_title += 2
        titled = read_runs(text, eights, start, ends, 0, of_title, entries, expansions, term, terms, 0)
        read = read_runs(text, eights, start, ends, of_title, found, entries, expansions, term, terms, titled)
        bits = slot_bits(read)
        if 1 << bits > len(slots) or indptr[i] + read > len(features):
            return i, read
        count(terms, 0, titled, title_weight, slots, weights, taken, bits)
        count(terms, titled, read, 1.0, slots, weights, taken, bits)
        indptr[i + 1] = harvest(slots, weights, taken, places, bits, features, counts, indptr[i])
    return len(offsets) // 2, 0


@kernel
def hash_lines(text: Text, lines: int) -> Features:
    """The feature of each of `lines` folded terms that stand in `text` with newlines between them."""
    features = np.empty(lines, dtype=np.uint64)
    at = 0
    for i in range(lines):
        h, block, filled = _START, EMPTY, 0
        while at < len(text) and text[at] != 10:
            block |= np.uint64(text[at]) << np.uint64(filled)
            filled += 8
            at += 1
            if filled == 64:
                h, block, filled = stir(h, block), EMPTY, 0
        at += 1
        features[i] = finish(h if filled == 0 else stir(h, block))
    return features


@kernel
def find_runs(text: Text, start: int, stop: int, inside: Text, ends: NDArray[np.int32]) -> int:
    """Where in text[start:stop], of which the last byte is a separator, runs of bytes other than ASCII separators begin
    and end, by turns; how many such places there are."""
    begin, size = np.uint64(start), np.uint64(stop - start)  # for a signed index numba asks whether it is negative
    for i in range(size):
        byte = text[begin + i]
        letter = np.uint8((byte | 0x20) - 97) < 26
        inside[i] = letter | (np.uint8(byte - 48) < 10) | (byte >= 0x80)
    n, was = EMPTY, np.uint8(0)
    for i in range(size):  # written anyway and kept if it is one: no branch to guess wrong
        ends[n] = i
        n += np.uint64(inside[i] ^ was)
        was = inside[i]
    return int(np.int64(n))


@kernel
def read_runs(
    text: Text,
    eights: Features,
    start: int,
    ends: NDArray[np.int32],
    first: int,
    last: int,
    entries: Points,
    expansions: Points,
    term: Points,
    terms: Features,
    found: int,
) -> int:
    """Put the terms of the runs ends[first:last] into `terms`, behind those found so far; how many there are then."""
    begin, n = np.uint64(start), np.uint64(found)
    for e in range(np.uint64(first), np.uint64(last), _2):
        size = ends[e + _1] - ends[e]
        mask = _ONES >> np.uint64(64 - (min(size, 8) << 3))
        block = eights[begin + np.uint64(ends[e])] & mask
        terms[n] = finish(stir(_START, block | (_LOWER & mask)))
        if (size <= 8) & (block & _HIGH == EMPTY):  # nine times in ten
            n += _1
            continue
        at = start + ends[e]
        feature = hash_ascii(eights, at, at + size) if size <= LONGEST else EMPTY
        if feature != EMPTY:
            terms[n] = feature
            n += _1
        else:
            n = np.uint64(read_run(text, at, at + size, entries, expansions, term, terms, int(np.int64(n))))
    return int(np.int64(n))


@kernel
def hash_ascii(eights: Features, at: int, stop: int) -> np.uint64:
    """The feature of a run of ASCII letters and digits; zero, which is no feature, for any other run."""
    h, every = _START, EMPTY
    while at + 8 < stop:
        block = eights[at]
        every |= block
        h = stir(h, block | _LOWER)
        at += 8
    mask = _ONES >> np.uint64(64 - 8 * (stop - at))
    block = eights[at] & mask
    return finish(stir(h, block | (_LOWER & mask))) if (every | block) & _HIGH == EMPTY else EMPTY


@kernel
def read_run(
    text: Text, start: int, end: int, entries: Points, expansions: Points, term: Points, terms: Features, found: int
) -> int:
    """Put the terms of text[start:end] into `terms`, behind those found so far; how many there are then."""
    n = 0  # entries in `term`
    first = 0  # of these, how many belong to the character before the last one, in a run without spaces
    reading = SEPARATOR  # WORD or UNSPACED: what `term` holds
    at = start
    while at < end:
        point, at = decode(text, at, end)
        entry = int(entries[point])
        if entry & 7 == WORD and reading == WORD:  # nearly always
            if n < LONGEST:
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
                if n < LONGEST:
                    term[n] = entry
                    n += 1
            elif kind == MARK:
                if reading != SEPARATOR and n < (LONGEST if reading == WORD else first + UNIT):
                    attach(term, n, entry)
                    n += 1
            elif kind == UNSPACED and reading == UNSPACED:
                if first > 0:
                    terms[found] = hash_points(term, n)
                    found += 1
                    for k in range(first, n):
                        term[k - first] = term[k]
                first = n - first
                term[first] = entry
                n = first + 1
            else:
                if reading != SEPARATOR:
                    terms[found] = hash_points(term, n)
                    found += 1
                n, first, reading = 0, 0, SEPARATOR
                if kind != SEPARATOR:
                    term[0] = entry
                    if kind == PICTURE:
                        terms[found] = hash_points(term, 1)
                        found += 1
                    else:
                        n, reading = 1, kind
    if reading != SEPARATOR:
        terms[found] = hash_points(term, n)
        found += 1
    return found


@kernel
def decode(text: Text, at: int, end: int) -> tuple[int, int]:
    """The code point at `at` and where the next one begins; 0 for a byte that begins none."""
    lead = int(text[at] & 0xFF)  # the mask makes it signed, so that no expression below turns into a float
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
    """Put a mark into term[:n + 1] where the canonical order wants it: after those of the same or a lower class."""
    combining = (mark >> 3) & 255
    if combining > 0:
        while (term[n - 1] >> 3) & 255 > combining:  # ends at the letter, whose class is zero
            term[n] = term[n - 1]
            n -= 1
    term[n] = mark


@kernel
def hash_points(term: Points, n: int) -> np.uint64:
    """The feature of the code points of term[:n]."""
    h, block, filled = _START, EMPTY, 0  # bits of the block that are filled
    for i in range(n):
        octets, bits = encode(int(term[i]) >> 11)
        block |= np.uint64(octets) << np.uint64(filled)
        filled += bits
        if filled >= 64:  # what did not fit begins the next block
            h = stir(h, block)
            filled -= 64
            block = np.uint64(octets >> (bits - filled))
    return finish(h if filled == 0 else stir(h, block))


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
def stir(h: np.uint64, block: np.uint64) -> np.uint64:
    h = (h ^ block) * _STEP
    return h ^ (h >> _32)


@kernel
def finish(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> _30)) * _FINISH_1
    h = (h ^ (h >> _27)) * _FINISH_2
    h = h ^ (h >> _31)
    return max(h, np.uint64(1))
