"""Pairs of groups, one against the other, as small matrices: the material of the experiments on abstention.

As in Siersdorfer, Sizov & Weikum 2004, groups have more than 900 documents, pairs of them are drawn at random, half of
the training documents come from either group, and all other documents of the two groups are tested. Documents are drawn
from the whole corpus, whatever its own split. The idf of words is that of the training documents of the pair.

The text is `full`, with the subject line and everything in the message, or `plain`: without the subject, the signature
and quotes (lines that begin with > | or :, and those that name the author of a quote). Documents without words are left
out.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from models.core.measures import Bools
from models.core.vectors import Bag, Features
from models.core.views import view
from models.learners.base import DocumentVector
from models.methods.matrix import Examples
from models.text.analysis import Analysis, Bags, bags
from models.text.idf import Counter, Frequencies
from scripts.common.corpus import Corpus

MIN_GROUP = 901  # documents
Rows = NDArray[np.int64]
QUOTE = re.compile(r"^\s*(?:[>|:]|\w{1,4}>|.*\b(?:writes|wrote|said)(?::|\.\.\.)|In article\b)")


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    names: tuple[str, str]
    features: Features  # of the training documents: the columns
    documents: Sequence[DocumentVector]  # to train with, in random order
    X: Any  # the same as rows of a scipy matrix, whose stubs have too many types
    y: Bools  # which of them are of the first group
    X_test: Any
    y_test: Bools

    def examples(self, rows: Rows) -> Examples:
        """Training documents for a method that learns from all at once; a row may come several times."""
        X = self.X[rows]
        return Examples("tfidf", self.features, X.indptr.astype(np.int64), X.indices, X.data.astype(np.float64))


class GroupedCorpus:
    """A corpus in which every document has one topic: its group."""

    def __init__(self, corpus: Corpus, plain: bool = False) -> None:
        documents = [("", stripped(text)) if plain else (title, text) for title, text in corpus.documents]
        self._bags: Bags = bags(documents, Analysis())
        group = np.array([min(topics, default="") for topics in corpus.topics])
        filled = np.diff(self._bags.indptr) > 0
        self._members = {str(name): np.flatnonzero((group == name) & filled) for name in np.unique(group)}
        sizes = {name: int(np.count_nonzero(group == name)) for name in self._members}  # the same with plain text
        self.names = [name for name, size in sizes.items() if size >= MIN_GROUP]

    def pairs(self, count: int, seed: int) -> list[tuple[str, str]]:
        """At most `count` different pairs of groups."""
        pairs = list(combinations(self.names, 2))
        drawn = np.random.default_rng(seed).permutation(len(pairs))[:count]
        return [pairs[i] for i in drawn.tolist()]

    def pair(self, names: tuple[str, str], train: int, seed: int, holdout: bool = False) -> Pair:
        """A pair with `train` training documents, tested on all others; with `holdout`, tested on a quarter of the
        training documents instead."""
        rng = np.random.default_rng([seed, *(self.names.index(name) for name in names)])
        drawn = [rng.permutation(self._members[name]) for name in names]
        half, held = train // 2, train // 8 if holdout else 0
        known = rng.permutation(np.concatenate([rows[held:half] for rows in drawn]))
        tested = np.concatenate([rows[:held] if holdout else rows[half:] for rows in drawn])
        return self._pair(names, known, tested)

    def _pair(self, names: tuple[str, str], known: Rows, tested: Rows) -> Pair:
        counter = Counter()
        for i in known.tolist():
            counter.add(self._bags[i][0])
        frequencies = Frequencies.prior().plus(counter)
        seen = [self._seen(i, frequencies) for i in np.concatenate([known, tested]).tolist()]
        features = np.unique(np.concatenate([bag for bag, _ in seen[: len(known)]]))
        X = _matrix(seen, features)
        y = np.isin(np.concatenate([known, tested]), self._members[names[0]])
        n = len(known)
        ends = X.indptr[1:n]
        slots, values = np.split(X.indices[: X.indptr[n]], ends), np.split(X.data[: X.indptr[n]], ends)
        documents = [DocumentVector(s, v) for s, v in zip(slots, values, strict=True)]
        return Pair(names, features, documents, X[:n], y[:n], X[n:], y[n:])

    def _seen(self, i: int, frequencies: Frequencies) -> tuple[Any, Any]:
        features, counts = self._bags[i]
        return features, view("tfidf", Bag(features, counts, frequencies.idf(features))).values


def stripped(text: str) -> str:
    """The text without quotes and signature."""
    body = re.split(r"^-- ?$", text, maxsplit=1, flags=re.MULTILINE)[0]
    return "\n".join(line for line in body.split("\n") if not QUOTE.match(line))


def _matrix(seen: Sequence[tuple[Any, Any]], features: Any) -> Any:
    """Documents by feature; features that no training document has weigh nothing and are left out."""
    every, values = (np.concatenate([document[k] for document in seen]) for k in (0, 1))
    rows = np.repeat(np.arange(len(seen)), [len(document[0]) for document in seen])
    at = np.minimum(np.searchsorted(features, every), len(features) - 1)
    there = features[at] == every
    indptr = np.cumsum(np.append(0, np.bincount(rows[there], minlength=len(seen))))
    return csr_array((values[there], at[there].astype(np.int32), indptr.astype(np.int32)), (len(seen), len(features)))
