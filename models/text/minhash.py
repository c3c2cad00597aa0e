"""Near-duplicates: documents that share most of their features, found among those that came before.

    minhash_k(A) = min over f ∈ A of h_k(f)        P(minhash_k(A) = minhash_k(B)) = |A ∩ B| / |A ∪ B|

Broder, "On the resemblance and containment of documents", 1997. Features are hashes already, so h_k is one
multiplication and one shift; HASHES of them estimate the resemblance with a standard error of at most .09. Two
documents are near if at least NEAR of them agree.

A judged document that is near an earlier one says nothing new about how the filter does: it is counted once. Every
signature is compared with all earlier ones, which takes less time than to keep an index of them: 20 µs among 5,000.
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
NEAR = 23  # resemblance of about .7
_ODD = np.random.default_rng(1997).integers(1 << 62, size=HASHES, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
NONE = -1


class Groups:
    """Documents in the order in which they came, each in the group of the first that it is near."""

    def __init__(self) -> None:
        self.size = 0
        self._signatures = np.zeros((16, HASHES), np.uint32)
        self._group = np.zeros(16, np.int64)

    def add(self, features: Features) -> None:
        if self.size == len(self._signatures):
            self._signatures = np.concatenate((self._signatures, np.zeros_like(self._signatures)))
        self._group = grown(self._group, self.size + 1)
        own = signature(features)
        near = _first_near(self._signatures[: self.size], own)
        self._signatures[self.size] = own
        self._group[self.size] = self.size if near == NONE else self._group[near]
        self.size += 1

    @property
    def signatures(self) -> NDArray[np.uint32]:
        return self._signatures[: self.size].copy()

    @property
    def group(self) -> NDArray[np.int64]:
        """For each document the number of the first of its group."""
        return self._group[: self.size]

    @property
    def nbytes(self) -> int:
        return self._signatures.nbytes + self._group.nbytes


def without_group(held_out: Reals, scores: Reals, group: NDArray[np.int64]) -> Reals:
    """Scores without what any document of the group has taught, from those without a document's own part.

    What a near-duplicate adds to a document's score is much what it adds to its own.
    """
    own = np.bincount(group, weights=scores - held_out)
    return scores - own[group]


class SeenDocuments:
    """Documents that somebody has been told of; what is near one of them is no news."""

    def __init__(self, signatures: NDArray[np.uint32]) -> None:
        self._size = len(signatures)
        self._signatures = np.concatenate((signatures, np.zeros((16, HASHES), np.uint32)))

    def add_if_new(self, features: Features) -> bool:
        """Whether the document is news; it is none from now on."""
        own = signature(features)
        if _first_near(self._signatures[: self._size], own) != NONE:
            return False
        if self._size == len(self._signatures):
            self._signatures = np.concatenate((self._signatures, np.zeros_like(self._signatures)))
        self._signatures[self._size] = own
        self._size += 1
        return True


def signature(features: Features) -> Signature:
    # A copy, because arrays read from a log are read-only, and numba would compile everything twice for them.
    own: Signature = _signatures(np.array([0, len(features)]), np.array(features, np.uint64), _ODD)[0]
    return own


def signatures(read: Bags) -> Signatures:
    return _signatures(read.indptr, read.features, _ODD)


@kernel
def _signatures(indptr: Offsets, features: Features, odd: Features) -> Signatures:
    least = np.full((len(indptr) - 1, len(odd)), 0xFFFFFFFF, np.uint32)
    for i in range(len(least)):
        for f in features[indptr[i] : indptr[i + 1]]:
            for k in range(len(odd)):
                # The upper half of the product depends on all bits of the feature.
                least[i, k] = min(least[i, k], np.uint32((f * odd[k]) >> np.uint64(32)))
    return least


@kernel
def _first_near(signatures: NDArray[np.uint32], own: Signature) -> int:
    for i in range(len(signatures)):
        agree = 0
        for k in range(len(own)):
            agree += signatures[i, k] == own[k]
        if agree >= NEAR:
            return i
    return NONE
