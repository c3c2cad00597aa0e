"""Which documents are drawn for audit: a random sample that any process can compute, so that none has to store it.

    drawn(t, d)  ⇔  h(t, d) / 2^64 < p          h: a hash of topic and document, uniform in 0 … 2^64 − 1

A pure function of topic and document: every process gives the same answer at any time, a document that is sent twice
is drawn once, topics draw independently of each other, and a larger p draws the same documents and more. Whether a
document is drawn does not depend on what it says, so the drawn documents are a sample of all of them, with chance p.

Near-duplicates count once, so they share a hash, that of the first. With a hash each, a story that comes k times would
be drawn with a chance of 1 − (1 − p)ᵏ, and weigh k times as much.
"""

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from models.core.measures import Bools
from models.core.vectors import Features


def hashes(topic: str, documents: Sequence[str]) -> Features:
    """h of each document."""
    digests = b"".join(blake2b(document.encode(), digest_size=8).digest() for document in documents)
    return _mixed(np.frombuffer(digests, "<u8").astype(np.uint64) ^ _mixed(_number(topic)))


def drawn(topic: str, documents: Sequence[str], p: float) -> Bools:
    """Which of the documents are drawn, each with chance p."""
    if not 0 < p < 1:
        return np.full(len(documents), p >= 1)
    below: Bools = hashes(topic, documents) < np.uint64(int(p * 2**64))
    return below


def _number(text: str) -> Features:
    return np.frombuffer(blake2b(text.encode(), digest_size=8).digest(), "<u8").astype(np.uint64)


def _mixed(h: Features) -> Features:
    """The finaliser of SplitMix64: every bit of the result depends on every bit of h. Products wrap around."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))
