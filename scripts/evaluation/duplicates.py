"""Near-duplicates, planted and looked for: how many are found, what else is, and whether they are decided alike.

Some documents come again within WITHIN others, with a share of their words left out. What the stream then repeats is
asked of models/text/duplicates.py, as the service asks it. A document of the corpus itself may repeat another, too:
newswires send stories twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.text.analysis import Analysis, Document, bags
from models.text.duplicates import Recent
from models.text.minhash import signatures
from scripts.common.corpus import Corpus
from scripts.evaluation.online import OnlineSettings, run
from scripts.evaluation.stream import Stream
from service.topics.published import decide

SHARE = 0.2  # of the documents come again
WITHIN = 300
LEFT_OUT = (0.02, 0.05, 0.1, 0.2, 0.3)
WINDOW = 50_000
COMPARED_LEFT_OUT = 0.05  # of the words, where decisions are compared


@dataclass(frozen=True, slots=True)
class Detection:
    left_out: float
    planted: int
    found: float  # share of the planted that are known for what they repeat
    others: float  # share of all other documents that are said to repeat one


@dataclass(frozen=True, slots=True)
class DecidedPairs:
    """Pairs of a document and its copy, for each topic, of which at least one was not rejected."""

    pairs: int = 0
    apart: int = 0  # decided otherwise, each by itself
    opposite: int = 0  # one accepted and the other rejected, which stays so
    unknown: int = 0  # decided otherwise because the copy was not found


def find(documents: Sequence[Document], left_out: float, seed: int = 0) -> Detection:
    random = np.random.default_rng(seed)
    again = np.flatnonzero(random.random(len(documents)) < SHARE).tolist()
    copies = [(i + float(random.uniform(1, WITHIN)), i, retold(documents[i], left_out, random)) for i in again]
    own_place = [(float(i), i, document) for i, document in enumerate(documents)]
    placed = sorted([*own_place, *copies], key=lambda one: one[0])
    first = firsts([document for _, _, document in placed])
    is_copy = np.array([at != i for at, i, _ in placed])
    own = {i: j for j, (at, i, _) in enumerate(placed) if at == i}
    known = np.array([first[j] == first[own[i]] for j, (_, i, _) in enumerate(placed)])
    others = np.mean(first[~is_copy] != np.flatnonzero(~is_copy))
    return Detection(left_out, int(is_copy.sum()), float(known[is_copy].mean()), float(others))


def compare(stream: Stream, topic: str, first: NDArray[np.int64]) -> DecidedPairs:
    """By the model that a topic has in the end. The stream is that of `doubled`, and `first` says what repeats what in
    that which follows it."""
    model = run(stream, topic, topic, OnlineSettings()).model
    scores = stream.scores(model.linear, stream.train, stream.size).tolist()
    decisions = [decide(score, model.reject_below, model.accept_above) for score in scores]
    n = len(decisions) // 2
    pairs = apart = opposite = unknown = 0
    for i, (one, other) in enumerate(zip(decisions[:n], decisions[n:], strict=True)):
        pairs += {one, other} != {"reject"}
        apart += one != other
        opposite += {one, other} == {"accept", "reject"}
        unknown += one != other and {one, other} != {"accept", "reject"} and first[n + i] != first[i]
    return DecidedPairs(pairs, apart, opposite, unknown)


def doubled(corpus: Corpus, seed: int = 0) -> Corpus:
    """What follows the stream comes once more after it, retold."""
    random = np.random.default_rng(seed)
    follow = corpus.documents[corpus.train :]
    again = [retold(document, COMPARED_LEFT_OUT, random) for document in follow]
    return Corpus(
        corpus.name, [*corpus.documents, *again], [*corpus.topics, *corpus.topics[corpus.train :]], corpus.train
    )


def firsts(documents: Sequence[Document]) -> NDArray[np.int64]:
    """For each document the number of the one that it repeats, or its own."""
    found = Recent(WINDOW).add(
        [str(i) for i in range(len(documents))], signatures(bags(documents, Analysis())), len(documents)
    )
    return np.array([int(name) for name in found])


def retold(document: Document, left_out: float, random: np.random.Generator) -> Document:
    title, text = document
    words = text.split(" ")
    return title, " ".join(
        word for word, x in zip(words, random.random(len(words)).tolist(), strict=True) if x >= left_out
    )
