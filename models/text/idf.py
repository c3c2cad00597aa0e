"""How common each word is: document frequencies of the stream so far, in a table of fixed size, with a prior.

    idf_f = log( (N + P) / (df_b + p_b) )            b = the leading 20 bits of the feature f

    N     documents counted                         P     pseudo-documents, 500
    df_b  of these, how many have a feature in b    p_b   the same for the pseudo-documents

The pseudo-documents contain function words of four languages as often as texts do (text/function_words.py), and hardly
any other word, p = ½. Before the first document, "the" weighs log(1/.7) = .4 and a content word log(2·500) = 7; after a
few thousand, only the stream counts. A stream in another language learns its own function words within a few hundred
documents.

Words that share a bucket are counted together: with 200,000 words in 2²⁰ buckets one word in a thousand shares it with
one of the thousand common ones, and loses weight. A document counts once for a bucket, so df ≤ N and idf is never
negative.
"""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.core.vectors import Features, Singles
from models.text.analysis import Bags, canonical_words, features_of
from models.text.function_words import SHARES

BUCKETS = 1 << 20
PSEUDO_DOCUMENTS = 500
RARE_DF = 0.5  # p of a word that is no function word
_SHIFT = np.uint64(44)

Buckets = NDArray[np.uint32]
Counts = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Frequencies:
    """Document frequencies at one moment; immutable."""

    documents: int
    df: Counts  # one for each bucket

    @classmethod
    def prior(cls) -> "Frequencies":
        """Frequencies before the first document."""
        return cls(0, np.zeros(BUCKETS, dtype=np.uint32))

    @classmethod
    def of(cls, documents: int, buckets: Buckets, df: Counts) -> "Frequencies":
        """The inverse of `nonzero`."""
        table = np.zeros(BUCKETS, dtype=np.uint32)
        table[buckets] = df
        return cls(documents, table)

    def nonzero(self) -> tuple[Buckets, Counts]:
        """The buckets that are not empty, and their frequencies: a tenth of the table, for storing and sending."""
        return _nonzero(self.df)

    def plus(self, counted: "Counter", age: int | None = None) -> "Frequencies":
        """These frequencies and what was counted since. Beyond `age` documents all counts are halved, so that old ones
        fade."""
        documents, df = self.documents + counted.documents, self.df.copy()
        buckets, more = counted.nonzero()
        df[buckets] += more
        while age is not None and documents > age:
            documents, df = documents // 2, df // 2
        return Frequencies(documents, df)

    @cached_property
    def table(self) -> Singles:
        """idf of each bucket: 4 MB, computed in some milliseconds when first needed. For kernels, with `bucket`."""
        idf: Singles = np.log(np.float32(self.documents + PSEUDO_DOCUMENTS) / (self.df.astype(np.float32) + _prior()))
        return idf

    def idf(self, features: Features) -> Singles:
        return _lookup(self.table, features)


class Counter:
    """Counts documents as they arrive, to be added to the frequencies."""

    def __init__(self) -> None:
        self.documents = 0
        self._df = np.zeros(BUCKETS, dtype=np.uint32)

    def add(self, features: Features) -> None:
        """Counts one more document."""
        self._df[features >> _SHIFT] += 1  # adds one to a bucket, however often it occurs among the indexes
        self.documents += 1

    def add_all(self, bags: Bags) -> None:
        """Many more documents."""
        _count(bags.indptr, bags.features, self._df)
        self.documents += len(bags)

    def nonzero(self) -> tuple[Buckets, Counts]:
        """Like `Frequencies.nonzero`."""
        return _nonzero(self._df)


@kernel
def bucket(feature: np.uint64) -> int:
    return int(feature >> _SHIFT)


@kernel
def _lookup(table: Singles, features: Features) -> Singles:
    idf = np.empty(len(features), np.float32)
    for k in range(len(features)):
        idf[k] = table[features[k] >> _SHIFT]
    return idf


@kernel
def _count(indptr: NDArray[np.int64], features: Features, df: Counts) -> None:
    for i in range(len(indptr) - 1):
        last = -1
        for k in range(indptr[i], indptr[i + 1]):
            b = bucket(features[k])
            if b != last:  # features ascend, so those of a bucket are neighbours
                df[b] += np.uint32(1)
            last = b


def _nonzero(df: Counts) -> tuple[Buckets, Counts]:
    buckets = np.flatnonzero(df).astype(np.uint32)
    return buckets, df[buckets]


@cache
def _prior() -> Singles:
    """p of each bucket."""
    p = np.full(BUCKETS, RARE_DF, dtype=np.float32)
    for share in sorted(set(SHARES.values())):  # ascending: where two words share a bucket, the more common one wins
        words = canonical_words(frozenset(word for word in SHARES if SHARES[word] == share))
        p[features_of(list(words)) >> _SHIFT] = PSEUDO_DOCUMENTS * share
    return p
