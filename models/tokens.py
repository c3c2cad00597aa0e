"""From UTF-8 bytes to counted features. What a term is, the head of `text.py` says; here is how it is fast.

A feature is the hash of a term: of the UTF-8 of its folded code points, eight bytes at a time, read as numbers b₁ … bₙ
with the first byte lowest, the last one filled up with zeros. It is the same on every machine and in every version:

    h₀ = 0x243F6A8885A308D3 (the digits of π);   hᵢ = m ⊕ (m » 32),  m = (hᵢ₋₁ ⊕ bᵢ)·0x9E3779B97F4A7C15 mod 2⁶⁴
    feature = finish(hₙ), the finaliser of SplitMix64; zero, which marks an empty slot below, is taken to be one

Every step is a bijection of h, so terms of up to eight bytes never collide, and the finaliser spreads them over all
bits. It is not keyed: who wants two words to collide can find such words.

Reading: ASCII separators end every term, so a text falls into runs of other bytes, and most runs are ASCII letters and
digits, eight of which are folded by setting a bit. A processor is slowed down by branches that it cannot foresee, and
where a word ends it cannot: so the ends of all runs are found first, without a branch, and a word of up to eight
letters costs two loads, a mask and some multiplications. Any other run is read code point by code point.

Counting: an open-addressing table of at least twice as many slots as the document has terms, where a feature's home is
given by its leading bits. Read from end to end, the table is then the document's features nearly in ascending order,
and a pass of insertion sort ends the work: sorting is free, and the table is emptied while it is read.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.kernel import kernel
from models.unicode_classes import MARK, PICTURE, SEPARATOR, SEVERAL, UNSPACED, WORD, Alphabet, Points
from models.vectors import Features, Reals, Singles

LONGEST = 64  # code points of a term after folding; what follows, up to the next separator, is ignored
UNIT = LONGEST // 2  # the same for one character and its marks in a script without spaces, of which a term has two

Text = NDArray[np.uint8]
Offsets = NDArray[np.int64]

_START = np.uint64(0x243F6A8885A308D3)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_FINISH_1 = np.uint64(0xBF58476D1CE4E5B9)
_FINISH_2 = np.uint64(0x94D049BB133111EB)
_27, _30, _31, _32 = np.uint64(27), np.uint64(30), np.uint64(31), np.uint64(32)
_1, _3, _7, _63 = np.uint64(1), np.uint64(3), np.uint64(7), np.uint64(63)
_EMPTY = np.uint64(0)
_ONES = np.uint64(0xFFFFFFFFFFFFFFFF)
_HIGH = np.uint64(0x8080808080808080)  # set where a byte is not ASCII
_LOWER = np.uint64(0x2020202020202020)  # makes capitals small, and leaves digits as they are


class Scratch(NamedTuple):
    """Room for one document of a given length in bytes, used again for the next; one for each thread.

    After `tokenise` has answered n, features[:n] and counts[:n] hold the document. The rest is its own: `inside` and
    `ends` tell runs apart; `term` has the entries (see `Alphabet`) of the term being read; `terms` all that were read;
    `slots` and `weights` are the table, all zero between documents; `places` those of its slots that are taken.
    """

    features: Features
    counts: Reals
    inside: Text
    ends: NDArray[np.int32]
    term: Points
    terms: Features
    slots: Features
    weights: Reals
    places: NDArray[np.int32]


@kernel
def scratch_for(longest: int) -> Scratch:
    """Scratch for documents of up to `longest` bytes. No code point gives two terms a byte, so all of them fit."""
    size = 1 << slot_bits(longest)
    return Scratch(
        np.empty(size, dtype=np.uint64),
        np.empty(size, dtype=np.float64),
        np.empty(longest + 2, dtype=np.uint8),
        np.empty(longest + 2, dtype=np.int32),
        np.empty(LONGEST, dtype=np.int32),
        np.empty(2 * longest, dtype=np.uint64),
        np.zeros(size, dtype=np.uint64),
        np.zeros(size, dtype=np.float64),
        np.empty(size, dtype=np.int32),
    )


def padded(text: Sequence[bytes]) -> Text:
    """These bytes one after the other, then zeros up to a multiple of eight and eight more, which may be touched."""
    length = sum(map(len, text))
    return np.frombuffer(b"".join([*text, bytes(8 + -length % 8)]), dtype=np.uint8)


@kernel
def tokenise(
    text: Text, title: int, body: int, end: int, title_weight: float, alphabet: Alphabet, scratch: Scratch
) -> int:
    """The number n of distinct features of the document whose title is text[title:body] and whose text is
    text[body:end]; features ascend in scratch.features[:n], with their counts in scratch.counts[:n], until the next
    call. A term in the title counts `title_weight`, else 1. `scratch` must be made for end − title bytes or more, and
    `text` be `padded`.

    For any bytes: those that are no UTF-8 separate words. Callable from other kernels.
    """
    terms, slots, weights = scratch.terms, scratch.slots, scratch.weights
    of_title = read_zone(text, title, body, alphabet, scratch, 0)
    read = read_zone(text, body, end, alphabet, scratch, of_title)
    bits = min(slot_bits(read), slot_bits(end - title))
    for i in range(of_title):
        add(terms[i], title_weight, slots, weights, bits)
    for i in range(of_title, read):
        add(terms[i], 1.0, slots, weights, bits)
    return harvest(scratch, bits)


@kernel
def tokenise_all(
    text: Text, offsets: Offsets, title_weight: float, alphabet: Alphabet
) -> tuple[Offsets, Features, Singles]:
    """`tokenise` for documents that stand one after the other: title i is text[offsets[2i]:offsets[2i + 1]], and its
    text follows. Answers as `Bags`.
    """
    documents = len(offsets) // 2
    longest = 0
    for i in range(documents):
        longest = max(longest, offsets[2 * i + 2] - offsets[2 * i])
    scratch = scratch_for(longest)
    indptr = np.zeros(documents + 1, dtype=np.int64)
    features = np.empty(128 * documents, dtype=np.uint64)
    counts = np.empty(128 * documents, dtype=np.float32)
    for i in range(documents):
        n = tokenise(text, offsets[2 * i], offsets[2 * i + 1], offsets[2 * i + 2], title_weight, alphabet, scratch)
        old, new = indptr[i], indptr[i] + n
        if new > len(features):
            features = np.concatenate((features[:old], np.empty(new, dtype=np.uint64)))
            counts = np.concatenate((counts[:old], np.empty(new, dtype=np.float32)))
        features[old:new] = scratch.features[:n]
        for k in range(n):
            counts[old + k] = np.float32(scratch.counts[k])
        indptr[i + 1] = new
    return indptr, features[: indptr[documents]].copy(), counts[: indptr[documents]].copy()


@kernel
def hash_lines(text: Text, lines: int) -> Features:
    """The feature of each of `lines` folded terms that stand in `text` with newlines between them."""
    features = np.empty(lines, dtype=np.uint64)
    at = 0
    for i in range(lines):
        h, block, filled = _START, _EMPTY, 0
        while at < len(text) and text[at] != 10:
            block |= np.uint64(text[at]) << np.uint64(filled)
            filled += 8
            at += 1
            if filled == 64:
                h, block, filled = stir(h, block), _EMPTY, 0
        at += 1
        features[i] = finish(h if filled == 0 else stir(h, block))
    return features


@kernel
def read_zone(text: Text, start: int, end: int, alphabet: Alphabet, scratch: Scratch, n: int) -> int:
    """Put the terms of text[start:end] into scratch.terms, behind the n that are there; how many there are then."""
    # Arrays are taken out of their tuples once: numba counts a reference for every look into a tuple.
    entries, expansions = alphabet.entries, alphabet.expansions
    words, term, terms, ends = text.view(np.uint64), scratch.term, scratch.terms, scratch.ends
    for e in range(0, find_runs(text[start:end], scratch.inside, ends), 2):
        at, stop = start + ends[e], start + ends[e + 1]
        h, every = _START, _EMPTY
        if stop - at <= LONGEST:
            begin = at
            while at + 8 < stop:
                block = load(words, at)
                every |= block
                h = stir(h, block | _LOWER)
                at += 8
            mask = _ONES >> np.uint64(64 - 8 * (stop - at))
            block = load(words, at) & mask
            if (every | block) & _HIGH == 0:
                terms[n] = finish(stir(h, block | (_LOWER & mask)))
                n += 1
                continue
            at = begin
        n = read_run(text, at, stop, entries, expansions, term, terms, n)
    return n


@kernel
def find_runs(zone: Text, inside: Text, ends: NDArray[np.int32]) -> int:
    """Where runs of bytes other than ASCII separators begin and end, by turns; how many such places there are."""
    size = len(zone)
    inside[0], inside[size + 1] = 0, 0
    for i in range(size):
        byte = zone[i]
        letter = np.uint8((byte | 0x20) - 97) < 26
        inside[i + 1] = letter | (np.uint8(byte - 48) < 10) | (byte >= 0x80)
    n = 0
    for i in range(size + 1):  # written anyway and kept if it is one: no branch to guess wrong
        ends[n] = i
        n += inside[i] != inside[i + 1]
    return n


@kernel
def load(words: Features, at: int) -> np.uint64:
    """Bytes at .. at + 8, as a number."""
    shift = (np.uint64(at) & _7) << _3
    return np.uint64((words[at >> 3] >> shift) | (words[(at >> 3) + 1] << _1 << (_63 - shift)))


@kernel
def read_run(
    text: Text, start: int, end: int, entries: Points, expansions: Points, term: Points, terms: Features, found: int
) -> int:
    """As `read_zone`, code point by code point."""
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
    h, block, filled = _START, _EMPTY, 0  # bits of the block that are filled
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


@kernel
def slot_bits(terms: int) -> int:
    """log₂ of the slots for a document of so many terms (or, when that is not known, bytes)."""
    bits = 6
    while 1 << bits < 2 * terms:
        bits += 1
    return bits


@kernel
def add(feature: np.uint64, weight: float, slots: Features, weights: Reals, bits: int) -> None:
    mask = (1 << bits) - 1
    place = np.int64(feature >> np.uint64(64 - bits))
    while slots[place] != _EMPTY and slots[place] != feature:
        place = (place + 1) & mask
    slots[place] = feature
    weights[place] += weight


@kernel
def harvest(scratch: Scratch, bits: int) -> int:
    """Empty the table into features and counts, in ascending order."""
    features, counts, places = scratch.features, scratch.counts, scratch.places
    slots, weights = scratch.slots, scratch.weights
    n = 0
    for place in range(1 << bits):  # without a branch, which could not be foreseen
        places[n] = place
        n += slots[place] != _EMPTY
    for i in range(n):
        place = places[i]
        feature, count = slots[place], weights[place]
        slots[place], weights[place] = _EMPTY, 0.0
        k = i
        while k > 0 and features[k - 1] > feature:
            features[k], counts[k] = features[k - 1], counts[k - 1]
            k -= 1
        features[k], counts[k] = feature, count
    return n
