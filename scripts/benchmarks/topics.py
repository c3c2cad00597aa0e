"""As many topics as wanted, such as a learner might make: what documents of one kind have more of than others.

A kind is a topic of the corpus, the largest first; when those are used up, the documents that share an uncommon word.
"""

from collections import Counter as Tally
from collections.abc import Iterator
from itertools import chain, count, islice

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from models.bank.seen import view_batch
from models.bank.segment import Entry
from models.core.vectors import Features, Linear, Singles
from models.text.analysis import Analysis, Bags, Document, bags
from models.text.idf import Counter, Frequencies
from scripts.common.corpus import SEED, Corpus

PLAIN = Analysis()
FEWEST, MOST = 5, 200  # documents that make a word uncommon; a kind of the corpus needs the fewest too
LEARNED = 20  # documents from which a topic is made
REJECT, ACCEPT = 0.15, 0.3  # thresholds, as shares of what a topic's own documents score

Matrix = sp.csr_array[np.float32]
Kind = NDArray[np.int64]  # numbers of documents


class TopicMaker:
    """The documents that topics are made from, as a matrix."""

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

    def topics(self, n: int, weights: int) -> Iterator[Entry[float]]:
        made = centroids(self.X, self.kinds(n), weights)
        return (topic(f"topic-{i}", self.vocabulary[at], w) for i, (at, w) in enumerate(made))

    def _labelled(self) -> Iterator[Kind]:
        sizes = Tally(chain.from_iterable(self.corpus.topics))
        for name, size in sorted(sizes.items(), key=lambda item: (-item[1], item[0])):
            if size >= FEWEST:
                yield np.array([i for i, topics in enumerate(self.corpus.topics) if name in topics])

    def _by_word(self) -> Iterator[Kind]:
        rng = np.random.default_rng(SEED)
        having = self.X.tocsc()
        df = np.diff(having.indptr)
        uncommon = np.flatnonzero((df >= FEWEST) & (df <= MOST))
        for _ in count():
            word = rng.choice(uncommon)
            yield having.indices[having.indptr[word] : having.indptr[word + 1]].astype(np.int64)


def centroids(X: Matrix, kinds: Iterator[Kind], weights: int) -> Iterator[tuple[Kind, Singles]]:
    """For each kind the columns of X in which some of its documents differ most from all documents, ascending, and by
    how much."""
    rng = np.random.default_rng(SEED)
    mean: Singles = X.mean(axis=0)
    for kind in kinds:
        some = X[rng.choice(kind, min(LEARNED, len(kind)), replace=False)]
        v = some.mean(axis=0) - mean
        words = np.unique(some.indices).astype(np.int64)
        strongest = np.sort(words[np.argsort(-np.abs(v[words]), kind="stable")[:weights]])
        yield strongest, v[strongest].astype(np.float32)


def topic(name: str, features: Features, w: Singles) -> Entry[float]:
    """A topic for the bank, with `accept_above` for its payload."""
    reject_below, accept_above = cuts(w)
    return Entry(name, (Linear("tfidf", features, w, 0.0),), reject_below, accept_above)


def cuts(w: Singles) -> tuple[float, float]:
    """Thresholds that let a few documents in a hundred pass."""
    whole = float(np.abs(w).sum() / len(w) ** 0.5)  # roughly what its own documents score
    return REJECT * whole, ACCEPT * whole


def counted(counts: Bags) -> Frequencies:
    counter = Counter()
    counter.add_all(counts)
    return Frequencies.prior().plus(counter)


def frequencies_of(documents: list[Document]) -> Frequencies:
    return counted(bags(documents, PLAIN))
