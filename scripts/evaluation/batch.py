"""All training documents at once, as in the papers: no query, idf of the whole training set, several random orders.

Micro-averages count decisions, macro-averages topics. Break-even is measured for each topic, which accepts as many
documents as are relevant, so that precision is recall; the mean is weighted by that number. Vectors are not truncated.

Thresholds are the middle between two cuts that are F1-optimal on training documents: one on scores without a document's
own steps, which errs upwards (other documents would have made up for it, above all in later passes), and one on scores
of vectors trained without a third of the documents, which errs downwards (they know less). On the last quarter of the
training documents of Reuters, macro-F1 of PA-I in five passes is .505 with the first, .568 with the second, .561 with
the middle; micro-F1 of Widrow-Hoff as in the paper is .833, .831, .837.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.batch.passes import Order, Trained, in_passes, random_draws, train
from models.core.measures import Bools, Contingency, break_even, contingency, f_beta, macro, micro, sap
from models.core.names import View
from models.core.vectors import Bag, Reals
from models.core.views import view
from models.goals import thresholds
from models.learners.base import DocumentVector
from models.learners.documents import Collection, DocumentWindow
from models.learners.vocabulary import Vocabulary
from models.methods.matrix import Examples
from models.online.registry import parse_params
from models.text.analysis import Analysis, bags
from models.text.idf import Counter, Frequencies
from scripts.common.corpus import Corpus

FOLDS = 3


@dataclass(frozen=True, slots=True)
class Setting:
    """A learner, its parameters, and how it is trained; `draws` instead of passes is the routing protocol."""

    kind: str
    params: Mapping[str, object] = field(default_factory=dict)
    passes: int = 1
    draws: int = 0
    crossed: bool = True  # thresholds also from vectors trained without a third of the documents: three times the work


class TopicResult(NamedTuple):
    """How well one topic is decided after one order."""

    table: Contingency
    break_even: float
    sap: float


class Figures(NamedTuple):
    """Averages over all topics after one order."""

    micro_f1: float
    macro_f1: float
    break_even: float
    sap: float


class VectorCorpus:
    """A corpus as vectors, through each view that is asked for."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus, self.train = corpus, corpus.train
        counts = bags(corpus.documents, Analysis())
        counter = Counter()
        for i in range(corpus.train):
            counter.add(counts[i][0])
        frequencies, vocabulary = Frequencies.prior().plus(counter), Vocabulary()
        self._bags = [Bag(*counts[i], frequencies.idf(counts[i][0])) for i in range(len(counts))]
        self._slots = [vocabulary.intern(bag.features) for bag in self._bags]
        self._seen: dict[View, tuple[list[DocumentVector], DocumentWindow, DocumentWindow]] = {}

    @property
    def mean_features(self) -> float:
        return float(np.mean([len(slots) for slots in self._slots[: self.train]]))

    def examples(self, name: View) -> tuple[Examples, Examples]:
        """Training and test documents, each as a matrix."""
        return Examples.of(self._bags[: self.train], name), Examples.of(self._bags[self.train :], name)

    def through(self, name: View) -> tuple[list[DocumentVector], DocumentWindow, DocumentWindow]:
        """Training documents one by one and as a window, and test documents as a window."""
        if name not in self._seen:
            collection = Collection([name])
            documents = [
                DocumentVector(s, view(name, bag).values) for s, bag in zip(self._slots, self._bags, strict=True)
            ]
            for document in documents:
                collection.add(document.slots, [document.values])
            every, n = collection.newest(len(documents), name), self.train
            parts = [
                DocumentWindow(indptr, every.slots, every.values)
                for indptr in (every.indptr[: n + 1], every.indptr[n:])
            ]
            self._seen[name] = (documents[:n], parts[0], parts[1])
        return self._seen[name]


def measure(vectors: VectorCorpus, topic: str, setting: Setting, seed: int) -> TopicResult:
    documents, window, test = vectors.through(parse_params(setting.kind, setting.params).view)
    relevant = vectors.corpus.relevant(topic)
    known, truth = relevant[: vectors.train], relevant[vectors.train :]
    if setting.draws:
        order = random_draws(known, setting.draws, seed, balanced=setting.kind == "eg")
    else:
        order = in_passes(vectors.train, setting.passes, seed)

    def trained_on(part: Order) -> Trained:
        return train(setting.kind, setting.params, documents, window, known, part, pocket=setting.draws > 0)

    whole = trained_on(order)
    unknown = [whole.held_out]
    if setting.crossed:
        folds, crossed = _folds(known, seed), np.zeros(vectors.train)
        for k in range(FOLDS):
            crossed[folds == k] = trained_on(order[folds[order] != k]).scores[folds == k]
        unknown.append(crossed)
    cut = threshold(known, unknown)
    scores = test.scores(whole.vector.w, whole.vector.bias, whole.vector.rest)
    return TopicResult(contingency(scores > cut, truth), break_even(scores, truth), sap(scores, truth))


def threshold(relevant: Bools, held_out: Sequence[Reals]) -> float:
    """The mean of the F1-optimal cuts on these scores, leaving out those that accept nothing."""
    cuts = [thresholds.f_beta_cut(scores, relevant).threshold for scores in held_out]
    useful = [cut for cut in cuts if cut < thresholds.NEVER]
    return float(np.mean(useful)) if useful else thresholds.NEVER


def figures(results: Iterable[TopicResult]) -> Figures:
    topics = list(results)
    tables = [topic.table for topic in topics]
    relevant = [table.tp + table.fn for table in tables]
    even = sum(topic.break_even * n for topic, n in zip(topics, relevant, strict=True)) / sum(relevant)
    sap = macro([topic.sap for topic in topics])
    return Figures(f_beta(micro(tables)), macro([f_beta(table) for table in tables]), even, sap)


def spread(orders: Sequence[Figures]) -> tuple[Figures, Figures]:
    """Mean and standard deviation over the orders."""
    columns = np.array(orders)
    deviations = columns.std(axis=0, ddof=1) if len(orders) > 1 else np.zeros(columns.shape[1])
    return Figures(*columns.mean(axis=0).tolist()), Figures(*deviations.tolist())


def _folds(relevant: Bools, seed: int) -> NDArray[np.int64]:
    """A random fold for each document, but the relevant ones evenly: each fold needs some of a rare topic's."""
    folds = np.random.default_rng(seed).integers(FOLDS, size=len(relevant))
    folds[relevant] = np.arange(np.count_nonzero(relevant)) % FOLDS
    return folds
