"""Planted near-duplicates: how many are found, what else is, and whether they are decided alike.

Some documents come again, at most MAX_DISTANCE documents later and with a share of their words left out.
models/text/duplicates.py is asked what repeats what, as in the service. Documents of the corpus itself may repeat each
other, too: newswires send stories twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.text.analysis import Analysis, Document, bags
from models.text.duplicates import RecentDocuments
from models.text.minhash import signatures
from scripts.common.corpus import Corpus
from scripts.evaluation.online import OnlineSettings, run
from scripts.loop.stream import Stream

PLANTED = 0.2  # share of the documents that come again
MAX_DISTANCE = 300  # documents between a document and its copy
LEFT_OUT = (0.02, 0.05, 0.1, 0.2, 0.3)  # shares of the words
WINDOW = 50_000  # documents among which the one repeated is found
COMPARED_LEFT_OUT = 0.05  # share of the words left out where decisions are compared


@dataclass(frozen=True, slots=True)
class Detection:
    """How well copies are found with this share of their words left out."""

    left_out: float
    planted: int
    found: float  # share of the planted copies that are found to repeat their original
    others: float  # share of all other documents that are found to repeat one


@dataclass(frozen=True, slots=True)
class DecidedPairs:
    """Pairs of a document and its copy of which a topic does not reject both."""

    pairs: int = 0
    different: int = 0  # decided differently, each by itself
    opposite: int = 0  # one accepted and the other rejected; the service lets that stand
    missed: int = 0  # decided differently because the copy was not found


def find(documents: Sequence[Document], left_out: float, seed: int = 0) -> Detection:
    random = np.random.default_rng(seed)
    again = np.flatnonzero(random.random(len(documents)) < PLANTED).tolist()
    copies = [(i + float(random.uniform(1, MAX_DISTANCE)), i, retold(documents[i], left_out, random)) for i in again]
    originals = [(float(i), i, document) for i, document in enumerate(documents)]
    placed = sorted([*originals, *copies], key=lambda entry: entry[0])
    first = firsts([document for _, _, document in placed])
    is_copy = np.array([at != i for at, i, _ in placed])
    place = {i: j for j, (at, i, _) in enumerate(placed) if at == i}
    known = np.array([first[j] == first[place[i]] for j, (_, i, _) in enumerate(placed)])
    others = np.mean(first[~is_copy] != np.flatnonzero(~is_copy))
    return Detection(left_out, int(is_copy.sum()), float(known[is_copy].mean()), float(others))


def compare(stream: Stream, topic: str, first: NDArray[np.int64]) -> DecidedPairs:
    """Pairs as a topic's last model decides them. The stream is that of `doubled`; `first` says which of the documents
    that follow it repeats which."""
    decisions = run(stream, topic, topic, OnlineSettings()).decisions
    n = len(decisions) // 2
    pairs = different = opposite = missed = 0
    for i, (original, copy) in enumerate(zip(decisions[:n], decisions[n:], strict=True)):
        decided = {original, copy}
        pairs += decided != {"reject"}
        different += original != copy
        opposite += decided == {"accept", "reject"}
        missed += original != copy and decided != {"accept", "reject"} and first[n + i] != first[i]
    return DecidedPairs(pairs, different, opposite, missed)


def doubled(corpus: Corpus, seed: int = 0) -> Corpus:
    """The corpus in which the documents that follow the stream come twice, the second time retold."""
    random = np.random.default_rng(seed)
    copies = [retold(document, COMPARED_LEFT_OUT, random) for document in corpus.documents[corpus.train :]]
    topics = [*corpus.topics, *corpus.topics[corpus.train :]]
    return replace(corpus, documents=[*corpus.documents, *copies], topics=topics)


def firsts(documents: Sequence[Document]) -> NDArray[np.int64]:
    """For each document the number of the one that it repeats, or its own."""
    names = RecentDocuments(WINDOW).add(
        [str(i) for i in range(len(documents))], signatures(bags(documents, Analysis())), len(documents)
    )
    return np.array([int(name) for name in names])


def retold(document: Document, left_out: float, random: np.random.Generator) -> Document:
    """A copy with this share of its words left out."""
    title, text = document
    words = text.split(" ")
    return title, " ".join(
        word for word, x in zip(words, random.random(len(words)).tolist(), strict=True) if x >= left_out
    )
