"""A corpus as the service would receive it, analysed once and shared by all topics.

Training documents come one by one. Each has the idf of the current epoch and is then counted; epochs follow one another
as in `service.topics.background`, by the number of documents. Test documents have the idf of the last epoch of training
and are not counted. A topic's thresholds are chosen against the sample of the epoch that is current at its
last judgement.
"""

from bisect import bisect_right
from collections import deque

import numpy as np

from models.core.names import View
from models.core.vectors import Bag, Linear, Reals
from models.core.views import view
from models.learners.documents import Background, Collection, DocumentWindow
from models.learners.vocabulary import Vocabulary
from models.text.analysis import Analysis, bags
from models.text.idf import Counter, Frequencies
from scripts.common.corpus import Corpus
from service.topics.background import MIN_GROWTH, MIN_NEW_DOCUMENTS, SAMPLE_SIZE, Epoch, Sampled


class Stream:
    def __init__(self, corpus: Corpus, analysis: Analysis | None = None) -> None:
        self.corpus = corpus
        self.train, self.size = corpus.train, len(corpus.documents)
        self._analysis = analysis or Analysis()
        self._starts: list[int] = []  # the document with which each epoch begins
        self._backgrounds: list[Background] = []
        self.bags: list[Bag] = []
        self._read()
        self._vocabulary = Vocabulary()
        self._slots = [self._vocabulary.intern(bag.features) for bag in self.bags]
        self._seen: dict[View, DocumentWindow] = {}

    def query(self, text: str) -> Bag:
        """A query as a topic knows it that is created before the first document."""
        features, counts = bags([("", text)], self._analysis)[0]
        return Bag(features, counts, Frequencies.prior().idf(features))

    def epoch(self, position: int) -> int:
        """The epoch that is current when the document at this position comes."""
        return bisect_right(self._starts, position) - 1

    def begins(self, epoch: int) -> int:
        """The position from which on an epoch is current; the end of training if it never is."""
        return self._starts[epoch] if epoch < len(self._starts) else self.train

    def background(self, epoch: int) -> Background:
        return self._backgrounds[epoch]

    def scores(self, model: Linear, start: int, end: int) -> Reals:
        """The model's scores of the documents from `start` to before `end`."""
        every = self._through(model.view)
        part = DocumentWindow(every.indptr[start : end + 1], every.slots, every.values)
        slots = self._vocabulary.find(model.features)
        w = np.zeros(self._vocabulary.size)
        w[slots[slots >= 0]] = model.weights[slots >= 0]
        return part.scores(w, model.bias, model.rest)

    def _read(self) -> None:
        read = bags(self.corpus.documents, self._analysis)
        epoch, counter = Epoch(0, Frequencies.prior(), ()), Counter()
        recent: deque[Sampled] = deque(maxlen=SAMPLE_SIZE)
        self._begin(0, epoch)
        for i in range(self.size):
            features, counts = read[i]
            self.bags.append(Bag(features, counts, epoch.frequencies.idf(features)))
            if i >= self.train:
                continue
            counter.add(features)
            recent.append(Sampled(str(i), features, counts))
            if counter.documents >= max(MIN_NEW_DOCUMENTS, MIN_GROWTH * epoch.frequencies.documents):
                epoch, counter = epoch.plus(counter, recent), Counter()
                self._begin(i + 1, epoch)

    def _begin(self, position: int, epoch: Epoch) -> None:
        self._starts.append(position)
        self._backgrounds.append(epoch.background)

    def _through(self, name: View) -> DocumentWindow:
        if name not in self._seen:
            collection = Collection([name])
            for slots, bag in zip(self._slots, self.bags, strict=True):
                collection.add(slots, [view(name, bag).values])
            self._seen[name] = collection.newest(self.size, name)
        return self._seen[name]
