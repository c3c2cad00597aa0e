"""Any number of topics, such as a learner might produce: what documents of one kind have more of than others.

A kind is a topic of the corpus, the largest first; after these, the documents that share an uncommon word.
"""

import collections
from collections.abc import Iterator
from itertools import chain, count, islice

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from models.bank.seen import view_batch
from models.bank.segment import BankEntry
from models.core.vectors import Features, Linear, Singles
from models.text.analysis import Analysis, Bags, bags
from models.text.idf import Counter, Frequencies
from scripts.common.corpus import SEED, Corpus

PLAIN = Analysis()
MIN_DOCUMENTS = 5  # of a kind
MAX_UNCOMMON = 200  # documents with an uncommon word
TRAINING_SIZE = 20  # documents from which a topic is made
REJECT, ACCEPT = 0.15, 0.3  # thresholds, as shares of the scores of a topic's own documents

Matrix = sp.csr_array[np.float32]
Kind = NDArray[np.int64]  # numbers of documents


class TopicMaker:
    """Makes topics from documents, which it keeps as a matrix."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        counts = bags(corpus.documents, PLAIN)
        self.frequencies = counted(counts)
        self.vocabulary, at = np.unique(counts.features, return_inverse=True)
        values = view_batch("tfidf", counts, self.frequencies.idf(counts.features)).values
        self.X: Matrix = sp.csr_array((values, at, counts.indptr), shape=(len(counts), len(self.vocabulary)))

    def kinds(self, n: int) -> Iterator[Kind]:
        """n kinds of documents, the same for every caller."""
        return islice(chain(self._labelled(), self._by_word()), n)

    def topics(self, n: int, weights: int) -> Iterator[BankEntry[float]]:
        """n topics with this many weights each."""
        rows = centroids(self.X, self.kinds(n), weights)
        return (topic(f"topic-{i}", self.vocabulary[at], w) for i, (at, w) in enumerate(rows))

    def _labelled(self) -> Iterator[Kind]:
        sizes = collections.Counter(chain.from_iterable(self.corpus.topics))
        for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
            if size >= MIN_DOCUMENTS:
                yield np.array([i for i, topics in enumerate(self.corpus.topics) if name in topics])

    def _by_word(self) -> Iterator[Kind]:
        rng = np.random.default_rng(SEED)
        by_word = self.X.tocsc()
        df = np.diff(by_word.indptr)
        uncommon = np.flatnonzero((df >= MIN_DOCUMENTS) & (df <= MAX_UNCOMMON))
        for _ in count():
            word = rng.choice(uncommon)
            yield by_word.indices[by_word.indptr[word] : by_word.indptr[word + 1]].astype(np.int64)


def centroids(X: Matrix, kinds: Iterator[Kind], weights: int) -> Iterator[tuple[Kind, Singles]]:
    """For each kind the columns of X, ascending, in which a sample of its documents differs most from all documents,
    and by how much."""
    rng = np.random.default_rng(SEED)
    mean: Singles = X.mean(axis=0)
    for kind in kinds:
        sample = X[rng.choice(kind, min(TRAINING_SIZE, len(kind)), replace=False)]
        v = sample.mean(axis=0) - mean
        words = np.unique(sample.indices).astype(np.int64)
        strongest = np.sort(words[np.argsort(-np.abs(v[words]), kind="stable")[:weights]])
        yield strongest, v[strongest].astype(np.float32)


def topic(name: str, features: Features, w: Singles) -> BankEntry[float]:
    """A topic for the bank, with `accept_above` for its payload."""
    reject_below, accept_above = cuts(w)
    return BankEntry(name, (Linear("tfidf", features, w, 0.0),), reject_below, accept_above)


def cuts(w: Singles) -> tuple[float, float]:
    """Thresholds that let a few documents in a hundred pass."""
    whole = float(np.abs(w).sum() / len(w) ** 0.5)  # roughly the score of its own documents
    return REJECT * whole, ACCEPT * whole


def counted(counts: Bags) -> Frequencies:
    counter = Counter()
    counter.add_all(counts)
    return Frequencies.prior().plus(counter)
