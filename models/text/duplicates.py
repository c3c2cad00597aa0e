"""Near-duplicates in a stream: which of the last documents, if any, a new one repeats.

A signature (see minhash.py) is cut into BANDS bands of ROWS hashes, and only documents that have a band in common are
compared. Two are the same if at least ALIKE hashes agree, a resemblance of about .8; the others fill at most six bands,
so of two that are the same none is overlooked. Common words alone give two documents a band in common now and then (of
resemblance .15: one pair in 250), so of those that share a band the newest MOST are compared and no more: however alike
all documents of a stream are, a document costs some microseconds.

ALIKE is stricter than where judgements are counted (minhash.py): to count one too few does no harm, but forms that are
filled in, such as "Qtly div 65 cts, pay May 7" on a newswire, are not the same news. Of Reuters' documents 4 % repeat
another so, and 5.6 % at .7.

What a document is compared with are the *firsts* of a block: documents that repeated none of the same block. So every
repetition is near the one that it is said to repeat, and a chain of small changes does not join documents that have
nothing in common. Blocks are BLOCKS to a window, and what they hold depends on nothing that came before them: whoever
reads the last two blocks of a stream knows as much as whoever read all of it. A document is compared with the block
before its own, then with its own.

A first that comes again with another text is none any more under the old one: copies of that repeat nobody, until one
of them is a first itself.

A window of n documents takes 250 bytes each, and its name.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.text.minhash import HASHES, NONE, Signature, Signatures

ALIKE = 26
BANDS = 8
ROWS = HASHES // BANDS
MOST = 64
BLOCKS = 2
NOTHING = 0xFFFFFFFF  # every hash of a document without words, which repeats nobody


class Recent:
    """The last documents of a stream, at most `window`. Each has a number, and numbers follow one another."""

    def __init__(self, window: int) -> None:
        self._size = max(1, window // BLOCKS)
        self._block = 0
        self._before, self._current = _Block(0), _Block(self._size)

    def oldest(self, last: int) -> int:
        """The number of the first document that must be known, to say of that one what it repeats."""
        return max(0, ((last - 1) // self._size - 1) * self._size) + 1 if last else 0

    def add(self, names: Sequence[str], signatures: Signatures, last: int) -> list[str]:
        """Takes documents, the last of which has that number; says of each which one it repeats, or its own name."""
        first = last - len(names) + 1
        found: list[str] = []
        while len(found) < len(names):
            number = first + len(found)
            self._turn((number - 1) // self._size)
            part = slice(len(found), len(found) + self._size - (number - 1) % self._size)
            found += self._added(names[part], signatures[part])
        return found

    def find(self, signatures: Signatures) -> list[str | None]:
        """Of documents that were not taken yet: which one each would repeat, if they came now and one at a time."""
        pairs = zip(self._before.find(signatures), self._current.find(signatures), strict=True)
        return [before or current for before, current in pairs]

    def _turn(self, block: int) -> None:
        if block != self._block:
            self._before = self._current if block == self._block + 1 else _Block(0)
            self._current = _Block(self._size)
            self._block = block

    def _added(self, names: Sequence[str], signatures: Signatures) -> list[str]:
        # All at once, unless a name comes again: then what it has been must be forgotten first.
        again = len(set(names)) < len(names) or any(self._before.has(name) or self._current.has(name) for name in names)
        step, found = 1 if again else len(names), []
        for start in range(0, len(names), step):
            some, signed = names[start : start + step], signatures[start : start + step]
            if again:
                self._before.forget(some[0], signed[0])
                self._current.forget(some[0], signed[0])
            pairs = zip(some, self._before.find(signed), self._current.add(some, signed), strict=True)
            found += [before or current or name for name, before, current in pairs]
        return found


class _Block:
    """The firsts of a block, by their bands: for each a chain from the newest with these hashes to the one before."""

    def __init__(self, size: int) -> None:
        self._names: list[str] = []
        self._places: dict[str, int] = {}
        self._signatures = np.zeros((size, HASHES), np.uint32)
        self._newest = np.full((BANDS, 1 << max(0, size - 1).bit_length()), NONE, np.int32)
        self._before = np.zeros((size, BANDS), np.int32)

    def has(self, name: str) -> bool:
        return name in self._places

    def forget(self, name: str, signature: Signature) -> None:
        """If it is a first, and was not like this, nobody repeats it any more."""
        place = self._places.get(name, NONE)
        if place != NONE and not are_duplicates(self._signatures[place], signature):
            self._signatures[place] = NOTHING
            del self._places[name]

    def find(self, signatures: Signatures) -> list[str | None]:
        """Of each the first that it repeats."""
        places = _find(self._signatures, self._newest, self._before, signatures)
        return [None if place == NONE else self._names[place] for place in places.tolist()]

    def add(self, names: Sequence[str], signatures: Signatures) -> list[str | None]:
        """The same; those that repeat none are firsts from now on."""
        state = self._signatures, self._newest, self._before
        places, new = _add(*state, len(self._names), signatures)
        found: list[str | None] = []
        for name, place, is_new in zip(names, places.tolist(), new.tolist(), strict=True):
            if is_new:
                self._places[name] = len(self._names)
                self._names.append(name)
            found.append(None if is_new or place == NONE else self._names[place])
        return found


@kernel
def _add(
    kept: Signatures, newest: NDArray[np.int32], before: NDArray[np.int32], firsts: int, signatures: Signatures
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    places, new = np.full(len(signatures), NONE, np.int64), np.zeros(len(signatures), np.bool_)
    for i in range(len(signatures)):
        own = signatures[i]
        if own[0] == NOTHING:
            continue
        places[i] = _near(kept, newest, before, own)
        if places[i] == NONE:
            new[i] = True
            kept[firsts] = own
            for band in range(BANDS):
                bucket = _bucket(own, band, newest.shape[1])
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
        if signatures[i, 0] != NOTHING:
            places[i] = _near(kept, newest, before, signatures[i])
    return places


@kernel
def _near(kept: Signatures, newest: NDArray[np.int32], before: NDArray[np.int32], own: Signature) -> int:
    for band in range(BANDS):
        place = newest[band, _bucket(own, band, newest.shape[1])]
        for _ in range(MOST):
            if place == NONE:
                break
            if are_duplicates(kept[place], own):
                return int(place)
            place = before[place, band]
    return NONE


@kernel
def are_duplicates(one: Signature, other: Signature) -> bool:
    agree = 0
    for k in range(len(one)):
        agree += one[k] == other[k]
    return agree >= ALIKE


@kernel
def _bucket(signature: Signature, band: int, buckets: int) -> int:
    mixed = np.uint64(band)
    for row in range(band * ROWS, (band + 1) * ROWS):
        mixed = (mixed ^ np.uint64(signature[row])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return int(mixed & np.uint64(buckets - 1))
