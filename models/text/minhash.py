"""Near-duplicates: documents that share most of their features with an earlier one.

    minhash_k(A) = min over f ∈ A of h_k(f)        P(minhash_k(A) = minhash_k(B)) = |A ∩ B| / |A ∪ B|

Broder, "On the resemblance and containment of documents", 1997. Features are hashes already, so h_k is one
multiplication and one shift; HASHES of them estimate the resemblance with a standard error of at most .09. Two
documents are near-duplicates if at least MIN_AGREEING of them agree.

A near-duplicate of a judged document says nothing new about the quality of the filter, so the two are counted once.
Each signature is compared with all earlier ones, which is faster than keeping an index: 20 µs among 5,000.
"""

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import grown
from models.core.kernel import kernel
from models.core.vectors import Features, Reals
from models.text.analysis import Bags
from models.text.tokens import Offsets

Signature = NDArray[np.uint32]
Signatures = NDArray[np.uint32]  # one a row

HASHES = 32
MIN_AGREEING = 23  # a resemblance of about .7
_ODD = np.random.default_rng(1997).integers(1 << 62, size=HASHES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
NONE = -1


class Groups:
    """Documents in order of arrival, each in the group of the first that it nearly duplicates."""

    def __init__(self) -> None:
        self.size = 0
        self._signatures = np.zeros((16, HASHES), np.uint32)
        self._group = np.zeros(16, np.int64)

    def add(self, features: Features) -> None:
        if self.size == len(self._signatures):
            self._signatures = np.concatenate((self._signatures, np.zeros_like(self._signatures)))
        self._group = grown(self._group, self.size + 1)
        signed = signature(features)
        first = _first_duplicate(self._signatures[: self.size], signed)
        self._signatures[self.size] = signed
        self._group[self.size] = self.size if first == NONE else self._group[first]
        self.size += 1

    @property
    def signatures(self) -> NDArray[np.uint32]:
        return self._signatures[: self.size].copy()

    @property
    def group(self) -> NDArray[np.int64]:
        """The number of the first of its group, for each document."""
        return self._group[: self.size]

    @property
    def nbytes(self) -> int:
        return self._signatures.nbytes + self._group.nbytes


def without_group(held_out: Reals, scores: Reals, group: NDArray[np.int64]) -> Reals:
    """Scores without what any document of the group has taught, from scores held out one document at a time.

    What a near-duplicate adds to a document's score is about what it adds to its own.
    """
    taught = np.bincount(group, weights=scores - held_out)
    return scores - taught[group]


class SeenDocuments:
    """Documents that have been seen, to which near-duplicates add nothing new."""

    def __init__(self, signatures: NDArray[np.uint32]) -> None:
        self._size = len(signatures)
        self._signatures = np.concatenate((signatures, np.zeros((16, HASHES), np.uint32)))

    def add_if_new(self, features: Features) -> bool:
        """Add the document; False if it nearly duplicates one that was seen."""
        signed = signature(features)
        if _first_duplicate(self._signatures[: self._size], signed) != NONE:
            return False
        if self._size == len(self._signatures):
            self._signatures = np.concatenate((self._signatures, np.zeros_like(self._signatures)))
        self._signatures[self._size] = signed
        self._size += 1
        return True


def signature(features: Features) -> Signature:
    # A copy, because arrays from a log are read-only, and numba would compile the kernel twice.
    row: Signature = _signatures(np.array([0, len(features)]), np.array(features, np.uint64), _ODD)[0]
    return row


def signatures(bags: Bags) -> Signatures:
    return _signatures(bags.indptr, bags.features, _ODD)


@kernel
def _signatures(indptr: Offsets, features: Features, odd: Features) -> Signatures:
    minima = np.full((len(indptr) - 1, len(odd)), 0xFFFFFFFF, np.uint32)
    for i in range(len(minima)):
        for f in features[indptr[i] : indptr[i + 1]]:
            for k in range(len(odd)):
                # The upper half of the product depends on all bits of the feature.
                minima[i, k] = min(minima[i, k], np.uint32((f * odd[k]) >> np.uint64(32)))
    return minima


@kernel
def _first_duplicate(signatures: NDArray[np.uint32], signature: Signature) -> int:
    for i in range(len(signatures)):
        agreeing = 0
        for k in range(len(signature)):
            agreeing += signatures[i, k] == signature[k]
        if agreeing >= MIN_AGREEING:
            return i
    return NONE
