"""From UTF-8 bytes to counted features in one pass. What a term is, the head of `text.py` says; here is how it is fast.

A feature is the hash of a term's folded code points c₁ … cₙ, the same on every machine and in every version:

    h₀ = 0x243F6A8885A308D3 (the digits of π);   hᵢ = m ⊕ (m » 32),  m = (hᵢ₋₁ ⊕ cᵢ)·0x9E3779B97F4A7C15 mod 2⁶⁴
    feature = finish(hₙ), the finaliser of SplitMix64; zero, which marks an empty slot below, is taken to be one

Every step is a bijection of h, so terms that differ in one code point never collide, and the finaliser spreads them
over all bits. It is not keyed: who wants two words to collide can find such words.

Counting: an open-addressing table of at least twice as many slots as the document has bytes (no code point gives two
terms a byte, so it cannot fill up), where a feature's home is given by its leading bits. Read from end to end, the
table is then the document's features nearly in ascending order, and a pass of insertion sort ends the work: sorting
is free, and the table is emptied while it is read.
"""

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
_EMPTY = np.uint64(0)


class Scratch(NamedTuple):
    """Room for one document of a given length in bytes, used again for the next; one for each thread.

    After `tokenise` has answered n, features[:n] and counts[:n] hold the document. The rest is its own: `term` the
    entries (see `Alphabet`) of the term being read; `slots` and `weights` the table, all zero between documents;
    `places` those of its slots that are taken.
    """

    features: Features
    counts: Reals
    term: Points
    slots: Features
    weights: Reals
    places: NDArray[np.int32]


@kernel
def scratch_for(longest: int) -> Scratch:
    """Scratch for documents of up to `longest` bytes."""
    size = 1 << slot_bits(longest)
    return Scratch(
        np.empty(size, dtype=np.uint64),
        np.empty(size, dtype=np.float64),
        np.empty(LONGEST, dtype=np.int32),
        np.zeros(size, dtype=np.uint64),
        np.zeros(size, dtype=np.float64),
        np.empty(size, dtype=np.int32),
    )


@kernel
def tokenise(
    text: Text, title: int, body: int, end: int, title_weight: float, alphabet: Alphabet, scratch: Scratch
) -> int:
    """The number n of distinct features of the document whose title is text[title:body] and whose text is
    text[body:end]; features ascend in scratch.features[:n], with their counts in scratch.counts[:n], until the next
    call. A term in the title counts `title_weight`, else 1. `scratch` must be made for end − title bytes or more.

    For any bytes: those that are no UTF-8 separate words. Callable from other kernels.
    """
    bits = slot_bits(end - title)
    count_zone(text, title, body, title_weight, alphabet, scratch, bits)
    count_zone(text, body, end, 1.0, alphabet, scratch, bits)
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
        h = _START
        while at < len(text) and text[at] != 10:
            point, at = decode(text, at, len(text))
            h = stir(h, point)
        at += 1
        features[i] = finish(h)
    return features


@kernel
def count_zone(
    text: Text, start: int, end: int, weight: float, alphabet: Alphabet, scratch: Scratch, bits: int
) -> None:
    """Add the terms of text[start:end] to the table of 2^bits slots."""
    # Arrays are taken out of their tuples once: numba counts a reference for every look into a tuple.
    entries, expansions, term = alphabet.entries, alphabet.expansions, scratch.term
    slots, weights = scratch.slots, scratch.weights
    n = 0  # entries in `term`
    first = 0  # of these, how many belong to the character before the last one, in a run without spaces
    h = _START  # the hash, unfinished, of term[:n]
    reading = SEPARATOR  # WORD or UNSPACED: what `term` holds
    at = start
    while at < end:
        byte = text[at]
        if byte < 0x80:
            entry = int(entries[byte])
            at += 1
        else:
            point, at = decode(text, at, end)
            entry = int(entries[point])
        if entry & 7 == WORD and reading == WORD:  # nearly always
            if n < LONGEST:
                term[n] = entry
                n += 1
                h = stir(h, entry >> 11)
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
                    h = stir(h, entry >> 11)
            elif kind == MARK:
                if reading != SEPARATOR and n < (LONGEST if reading == WORD else first + UNIT):
                    attach(term, n, entry)
                    n += 1
                    h = stir_all(term, n)
            elif kind == UNSPACED and reading == UNSPACED:
                if first > 0:
                    add(finish(h), weight, slots, weights, bits)
                    for k in range(first, n):
                        term[k - first] = term[k]
                first = n - first
                term[first] = entry
                n = first + 1
                h = stir_all(term, n)
            else:
                if reading != SEPARATOR:
                    add(finish(h), weight, slots, weights, bits)
                n, first, reading = 0, 0, SEPARATOR
                if kind != SEPARATOR:
                    h = stir(_START, entry >> 11)
                    if kind == PICTURE:
                        add(finish(h), weight, slots, weights, bits)
                    else:
                        term[0] = entry
                        n, reading = 1, kind
    if reading != SEPARATOR:
        add(finish(h), weight, slots, weights, bits)


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
def stir_all(term: Points, n: int) -> np.uint64:
    h = _START
    for i in range(n):
        h = stir(h, int(term[i]) >> 11)
    return h


@kernel
def stir(h: np.uint64, point: int) -> np.uint64:
    h = (h ^ np.uint64(point)) * _STEP
    return h ^ (h >> _32)


@kernel
def finish(h: np.uint64) -> np.uint64:
    h = (h ^ (h >> _30)) * _FINISH_1
    h = (h ^ (h >> _27)) * _FINISH_2
    h = h ^ (h >> _31)
    return max(h, np.uint64(1))


@kernel
def slot_bits(length: int) -> int:
    """log₂ of the slots for a document of `length` bytes."""
    bits = 6
    while 1 << bits < 2 * length:
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
