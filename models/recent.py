"""Near-duplicates in a stream: which of the last documents, if any, a new one repeats.

A signature (see near.py) is cut into BANDS bands of ROWS hashes. Documents of resemblance s have a band in common with
probability 1 − (1 − s^ROWS)^BANDS: .9998 for s = .9, .985 for .8, .89 for .7; only those that have are compared. Common
words alone give two documents a band in common now and then (s = .15: one pair in 250), so of those that share a band
the newest MOST are compared and no more: however alike all documents of a stream are, a document costs some
microseconds.

Two documents are the same if at least ALIKE hashes agree, a resemblance of about .8. That is stricter than where
judgements are counted (near.py): to count one too few does no harm, but forms that are filled in, such as "Qtly div 65
cts, pay May 7" on a newswire, are not the same news. Of Reuters' documents 4 % repeat another so, and 5.6 % at .7.

What a document is compared with are the *firsts*: documents that repeated nothing themselves. So every repetition is
near the first of its kind, and a chain of small changes does not join documents that have nothing in common.

A window of n documents takes 250 bytes each.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from models.kernel import kernel
from models.near import HASHES, NONE, Signature, Signatures

ALIKE = 26
BANDS = 8
ROWS = HASHES // BANDS
MOST = 64
NOTHING = 0xFFFFFFFF  # every hash of a document without words, which repeats nobody
_FRESH = np.iinfo(np.int64).max


class Recent:
    """The last `window` documents of a stream, of which each has a number; numbers grow."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._names = [""] * window
        self._signatures = np.zeros((window, HASHES), np.uint32)
        self._numbers = np.zeros(window, np.int64)
        # For each band a chain from the newest document with these hashes to the one before, and so on. Places are used
        # again, so a chain may lead to a place that is another's by now: its number is too high, and there it ends.
        self._newest = np.full((BANDS, 1 << (window - 1).bit_length()), NONE, np.int32)
        self._before = np.full((window, BANDS), NONE, np.int32)
        self._firsts = np.zeros(1, np.int64)  # so many there have been

    def add(self, names: Sequence[str], signatures: Signatures, last: int) -> list[str]:
        """Takes documents, the last of which has that number; says of each which one it repeats, or its own name."""
        state = self._signatures, self._numbers, self._newest, self._before, self._firsts
        places, new = _add(*state, signatures, last - len(names) + 1, self._window)
        found: list[str] = []
        for name, place, is_first in zip(names, places.tolist(), new.tolist(), strict=True):
            if is_first and place != NONE:
                self._names[place] = name
            found.append(name if is_first else self._names[place])
        return found


@kernel
def _add(
    kept: Signatures,
    numbers: NDArray[np.int64],
    newest: NDArray[np.int32],
    before: NDArray[np.int32],
    firsts: NDArray[np.int64],
    signatures: Signatures,
    number: int,
    window: int,
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """For each document a place: that of the one it repeats, or the one that it has been given as a first."""
    places, new = np.full(len(signatures), NONE, np.int64), np.ones(len(signatures), np.bool_)
    for i in range(len(signatures)):
        own = signatures[i]
        if own[0] == NOTHING:
            continue
        place = _near(kept, numbers, newest, before, own, number + i - window)
        if place == NONE:
            place = firsts[0] % window
            firsts[0] += 1
            kept[place] = own
            numbers[place] = number + i
            for band in range(BANDS):
                bucket = _bucket(own, band, newest.shape[1])
                before[place, band] = newest[band, bucket]
                newest[band, bucket] = place
        else:
            new[i] = False
        places[i] = place
    return places, new


@kernel
def _near(
    kept: Signatures,
    numbers: NDArray[np.int64],
    newest: NDArray[np.int32],
    before: NDArray[np.int32],
    own: Signature,
    oldest: int,
) -> int:
    for band in range(BANDS):
        place, last = newest[band, _bucket(own, band, newest.shape[1])], _FRESH
        for _ in range(MOST):
            if place == NONE or numbers[place] >= last or numbers[place] <= oldest:
                break
            last = numbers[place]
            agree = 0
            for k in range(HASHES):
                agree += kept[place, k] == own[k]
            if agree >= ALIKE:
                return int(place)
            place = before[place, band]
    return NONE


@kernel
def _bucket(signature: Signature, band: int, buckets: int) -> int:
    mixed = np.uint64(band)
    for row in range(band * ROWS, (band + 1) * ROWS):
        mixed = (mixed ^ np.uint64(signature[row])) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return int(mixed & np.uint64(buckets - 1))
