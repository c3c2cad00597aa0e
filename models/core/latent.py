"""Latent features: the columns of a semantic projection, as features that stand behind all words.

    feature = all ones (32 bits) | tag of the projection (24 bits) | column (8 bits)

So features ascend: words first, then latent ones, and those of two projections never meet. One word in four billion
hashes into their range; it is left out of documents that have latent features.
"""

import numpy as np
from numpy.typing import NDArray

from models.core.names import TAG_BITS

Features = NDArray[np.uint64]

FIRST_LATENT = np.uint64(0xFFFFFFFF << 32)
MAX_LATENT = 1 << 8  # columns of a projection

_8, _TAG = np.uint64(8), np.uint64((1 << TAG_BITS) - 1)


def latent_features(tag: int, columns: int) -> Features:
    """The features of the columns of a projection."""
    return FIRST_LATENT | np.uint64(tag) << _8 | np.arange(columns, dtype=np.uint64)


def count_words(features: Features) -> int:
    """How many of these features, which ascend, are words: those before the latent ones."""
    return int(np.searchsorted(features, FIRST_LATENT))


def tag_of(features: Features) -> int | None:
    """The tag of the projection whose latent features are among these, which ascend; None if there are none."""
    return int(features[-1] >> _8 & _TAG) if count_words(features) < len(features) else None
