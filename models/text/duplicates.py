"""Near-duplicates in a stream: which recent document, if any, a new one repeats.

A signature (see minhash.py) is cut into BANDS bands of ROWS hashes, and only documents that share a band are compared.
Two are duplicates if at least MIN_AGREEING hashes agree, a resemblance of about .8; the hashes that differ touch at
most six bands, so no duplicate is missed. Common words alone make two documents share a band now and then (at a
resemblance of .15: one pair in 250), so only the newest MAX_COMPARED that share a band are compared: however alike all
documents of a stream are, a document costs a few microseconds.

MIN_AGREEING is stricter here than where judgements are counted (minhash.py): counting one too few does no harm there,
but forms that are filled in, such as "Qtly div 65 cts, pay May 7" on a newswire, are not the same news. Of Reuters'
documents 4 % repeat another by this measure, and 5.6 % at .7.

A document is compared with the *firsts* of a block: documents that repeated none of the same block. So every repetition
is close to the document it is reported to repeat, and a chain of small changes does not join documents that have
nothing in common. A window has WINDOW_BLOCKS blocks, and a block does not depend on anything before it: a process that
reads the last two blocks of a stream gives the same answers as one that read all of it. A document is compared with the
block before its own, then with its own.

If a document is sent again with a different text, its old signature is dropped; later copies of the old text start a
group of their own.

A window of n documents takes 250 bytes for each, and its name.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.text.minhash import HASHES, NONE, Signature, Signatures

MIN_AGREEING = 26
BANDS = 8
ROWS = HASHES // BANDS
MAX_COMPARED = 64
WINDOW_BLOCKS = 2
EMPTY_HASH = 0xFFFFFFFF  # every hash of a document without words, which repeats none


class RecentDocuments:
    """The last documents of a stream, at most `window`, numbered consecutively from 1."""

    def __init__(self, window: int) -> None:
        self._size = max(1, window // WINDOW_BLOCKS)
        self._block = 0
        self._before, self._current = _Block(0), _Block(self._size)

    def oldest(self, last: int) -> int:
        """The number of the oldest document that must be known to find what document `last` repeats."""
        return max(0, ((last - 1) // self._size - 1) * self._size) + 1 if last else 0

    def add(self, names: Sequence[str], signatures: Signatures, last: int) -> list[str]:
        """Add documents, the last of which has the number `last`. Returns for each the name of the one it repeats, or
        its own."""
        first = last - len(names) + 1
        originals: list[str] = []
        while len(originals) < len(names):
            number = first + len(originals)
            self._advance((number - 1) // self._size)
            part = slice(len(originals), len(originals) + self._size - (number - 1) % self._size)
            originals += self._add_part(names[part], signatures[part])
        return originals

    def find(self, signatures: Signatures) -> list[str | None]:
        """Which document each of these would repeat, if it were added next."""
        pairs = zip(self._before.find(signatures), self._current.find(signatures), strict=True)
        return [before or current for before, current in pairs]

    def _advance(self, block: int) -> None:
        if block != self._block:
            self._before = self._current if block == self._block + 1 else _Block(0)
            self._current = _Block(self._size)
            self._block = block

    def _add_part(self, names: Sequence[str], signatures: Signatures) -> list[str]:
        # All at once, unless a name is known already: then its old text must be forgotten first.
        known = len(set(names)) < len(names) or any(self._before.has(name) or self._current.has(name) for name in names)
        step, originals = 1 if known else len(names), []
        for start in range(0, len(names), step):
            part, signed = names[start : start + step], signatures[start : start + step]
            if known:
                self._before.forget_changed(part[0], signed[0])
                self._current.forget_changed(part[0], signed[0])
            pairs = zip(part, self._before.find(signed), self._current.add(part, signed), strict=True)
            originals += [before or current or name for name, before, current in pairs]
        return originals


class Repeats:
    """The same, and which document each of the last ones repeats, to be looked up later."""

    def __init__(self, window: int) -> None:
        self.recent = RecentDocuments(window)
        self._window = window
        self._first: dict[str, str] = {}  # by document, the one that it repeats; oldest first

    def add(self, names: Sequence[str], signatures: Signatures, last: int) -> None:
        """Add documents, the last of which has the number `last`."""
        for name, first in zip(names, self.recent.add(names, signatures, last), strict=True):
            self._first.pop(name, None)
            if first != name:
                self._first[name] = first
        while len(self._first) > self._window:
            del self._first[next(iter(self._first))]

    def first(self, name: str) -> str:
        """The document that this one repeats, or itself."""
        return self._first.get(name, name)

    def among(self, names: Sequence[str]) -> dict[str, str]:
        """Those of the documents that repeat another, and which."""
        return {name: self._first[name] for name in names if name in self._first}


class _Block:
    """The firsts of a block, by bucket of each band: chains from the newest document to the one before it."""

    def __init__(self, size: int) -> None:
        self._names: list[str] = []
        self._places: dict[str, int] = {}
        self._signatures = np.zeros((size, HASHES), np.uint32)
        self._newest = np.full((BANDS, 1 << max(0, size - 1).bit_length()), NONE, np.int32)
        self._before = np.zeros((size, BANDS), np.int32)

    def has(self, name: str) -> bool:
        return name in self._places

    def forget_changed(self, name: str, signature: Signature) -> None:
        """Drop the document if its text was a different one."""
        place = self._places.get(name, NONE)
        if place != NONE and not are_duplicates(self._signatures[place], signature):
            self._signatures[place] = EMPTY_HASH
            del self._places[name]

    def find(self, signatures: Signatures) -> list[str | None]:
        """The first document that each repeats."""
        places = _find(self._signatures, self._newest, self._before, signatures)
        return [None if place == NONE else self._names[place] for place in places.tolist()]

    def add(self, names: Sequence[str], signatures: Signatures) -> list[str | None]:
        """The same; those that repeat none become firsts."""
        state = self._signatures, self._newest, self._before
        places, new = _add(*state, len(self._names), signatures)
        originals: list[str | None] = []
        for name, place, is_new in zip(names, places.tolist(), new.tolist(), strict=True):
            if is_new:
                self._places[name] = len(self._names)
                self._names.append(name)
            originals.append(None if is_new or place == NONE else self._names[place])
        return originals


@kernel
def _add(
    kept: Signatures, newest: NDArray[np.int32], before: NDArray[np.int32], firsts: int, signatures: Signatures
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    places, new = np.full(len(signatures), NONE, np.int64), np.zeros(len(signatures), np.bool_)
    for i in range(len(signatures)):
        signature = signatures[i]
        if signature[0] == EMPTY_HASH:
            continue
        places[i] = _newest_duplicate(kept, newest, before, signature)
        if places[i] == NONE:
            new[i] = True
            kept[firsts] = signature
            for band in range(BANDS):
                bucket = _bucket(signature, band, newest.shape[1])
                before[firsts, band] = newest[band, bucket]
                newest[band, bucket] = firsts
            firsts += 1
    return places, new


@kernel
def _find(
    kept: Signatures, newest: NDArray[np.int32], before: NDArray[np.int32], signatures: Signatures
) -> NDArray[np.int64]:
    places = np.full(len(signatures), NONE, np.int64)
    for i in range(len(signatures)):
        if signatures[i, 0] != EMPTY_HASH:
            places[i] = _newest_duplicate(kept, newest, before, signatures[i])
    return places


@kernel
def _newest_duplicate(
    kept: Signatures, newest: NDArray[np.int32], before: NDArray[np.int32], signature: Signature
) -> int:
    for band in range(BANDS):
        place = newest[band, _bucket(signature, band, newest.shape[1])]
        for _ in range(MAX_COMPARED):
            if place == NONE:
                break
            if are_duplicates(kept[place], signature):
                return int(place)
            place = before[place, band]
    return NONE


@kernel
def are_duplicates(a: Signature, b: Signature) -> bool:
    agreeing = 0
    for k in range(len(a)):
        agreeing += a[k] == b[k]
    return agreeing >= MIN_AGREEING


@kernel
def _bucket(signature: Signature, band: int, buckets: int) -> int:
    mixed = np.uint64(band)
    for row in range(band * ROWS, (band + 1) * ROWS):
        mixed = (mixed ^ np.uint64(signature[row])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return int(mixed & np.uint64(buckets - 1))
