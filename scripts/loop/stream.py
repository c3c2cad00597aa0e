"""What the service does with the documents of a stream whatever its topics are, computed once for all of them.

    features      of every document, by the analysis of the deployment
    epochs        documents come in batches; each batch has the idf of the epoch in force, and is then counted
    projections   made when it is time, of the documents that were sampled since the last one
    repeats       near-duplicates of earlier documents, which are neither counted nor decided on their own

Documents that do not pass (those for testing) are analysed, and neither counted nor remembered.
"""

from bisect import bisect_left, bisect_right

import numpy as np
from numpy.typing import NDArray

from models.core.vectors import Singles
from models.text.analysis import Bags, bags
from models.text.duplicates import Repeats
from models.text.idf import Frequencies
from models.text.minhash import signatures
from scripts.common.corpus import Corpus
from service.config import Config
from service.topics.background import KEPT_EPOCHS, Epoch, NewDocuments, next_epoch, projected_epoch
from service.topics.features import analysis_of, log_features
from service.topics.projecting import next_projection, sampled_since

CLOCK_MS = 10**12  # when the first batch comes


class Stream:
    def __init__(
        self, corpus: Corpus, batch: int = 1, *, whole: bool = False, prefix: str = "", config: Config | None = None
    ) -> None:
        """Training documents pass, in batches of this size, or, if it is `whole`, test documents after them, too. Ids
        are the prefix and the document's number."""
        self.corpus, self.batch, self.config = corpus, batch, config or Config()
        self.train, self.size = corpus.train, len(corpus.documents)
        self.analysis = analysis_of(self.config)
        self.documents = [(title, text or title or "-") for title, text in corpus.documents]
        self.ids = [f"{prefix}{i}" for i in range(self.size)]
        self.place = {document: i for i, document in enumerate(self.ids)}
        self.bags = bags(self.documents, self.analysis)
        self.passing = self.size if whole else self.train
        first, rest = range(0, self.train, batch), range(self.train, self.passing, batch)
        self._ends = [min(i + batch, self.train) for i in first] + [min(i + batch, self.passing) for i in rest]
        self.epochs = [Epoch(0, Frequencies.prior(), ())]
        self._starts = [0]  # how many documents had come when each epoch began
        self.first = np.arange(self.size)  # the document that each repeats, or itself
        self._idf = np.empty(int(self.bags.indptr[self.passing]), np.float32)
        self._read()
        self._counted = np.concatenate(([0], np.cumsum(self.first == np.arange(self.size))))
        self._features: dict[tuple[int, int], bytes] = {}

    def epoch(self, position: int) -> int:
        """The place of the epoch that is current when so many documents have come."""
        return bisect_right(self._starts, position) - 1

    def begins(self, epoch: int) -> int:
        """How many documents have come when the epoch at this place begins; all, if it never does."""
        return self._starts[epoch] if epoch < len(self._starts) else self.passing

    def next_projection(self, epoch: int) -> int:
        """The place of the first epoch after this one that has another projection; that after the last, if none has."""
        named = self.epochs[epoch].named
        others = (place for place in range(epoch + 1, len(self.epochs)) if self.epochs[place].named != named)
        return next(others, len(self.epochs))

    def batch_end(self, position: int) -> int:
        """The end of the batch in which that many documents have come."""
        return self._ends[bisect_left(self._ends, position)] if position else 0

    def came_ms(self, document: int) -> int:
        return CLOCK_MS + 2 * bisect_right(self._ends, document)

    def now_ms(self, position: int) -> int:
        """The time between the batch that ends there and the next one."""
        return CLOCK_MS + 2 * bisect_right(self._ends, position) - 1

    def counted(self, position: int) -> int:
        """How many of the first documents repeat none before them."""
        return int(self._counted[position])

    def part(self, start: int, end: int) -> tuple[Bags, Singles]:
        """Documents from `start` to before `end`, with the idf of the moment when they came."""
        a, b = int(self.bags.indptr[start]), int(self.bags.indptr[end])
        return self._slice(start, end), self._idf[a:b]

    def originals(self, copies: NDArray[np.int64]) -> tuple[Bags, Singles]:
        """The documents that these repeat, each with the idf of the moment when the copy came."""
        taken = self.bags.take(self.first[copies].tolist())
        epochs = np.repeat([self.epoch(i) for i in copies.tolist()], np.diff(taken.indptr))
        idf = np.empty(len(taken.features), np.float32)
        for place in np.unique(epochs).tolist():
            idf[epochs == place] = self.epochs[place].frequencies.idf(taken.features[epochs == place])
        return taken, idf

    def as_of(self, position: int, documents: NDArray[np.int64] | None = None) -> tuple[Bags, Singles]:
        """Documents with the idf of the moment when so many have come; by default, those that are for testing."""
        some = self._slice(self.train, self.size) if documents is None else self.bags.take(documents.tolist())
        return some, self.epochs[self.epoch(position)].frequencies.idf(some.features)

    def features(self, document: int, epoch: int) -> bytes:
        """A document's features as the log keeps them."""
        key = document, epoch
        if key not in self._features:
            self._features[key] = log_features(*self.documents[document], self.analysis, self.epochs[epoch])
        return self._features[key]

    def _append(self, epoch: Epoch, position: int) -> None:
        self.epochs.append(epoch)
        self._starts.append(position)

    def _project(self, position: int) -> None:
        """Appends an epoch with another projection, if it is time, as the housekeeper does."""
        epoch = self.epochs[-1]
        if self.config.semantic and epoch.wants_projection:
            earlier = {place: self.epochs[place].sample for place in range(len(self.epochs))[-KEPT_EPOCHS:]}
            if projection := next_projection(epoch, sampled_since(epoch, earlier)):
                self._append(projected_epoch(epoch, epoch, projection)[0], position)

    def _slice(self, start: int, end: int) -> Bags:
        indptr = self.bags.indptr[start : end + 1]
        row = slice(indptr[0], indptr[-1])
        return Bags(indptr - indptr[0], self.bags.features[row], self.bags.counts[row])

    def _read(self) -> None:
        repeats, new = Repeats(self.config.documents_kept), NewDocuments()
        signed, start = signatures(self.bags), 0
        for end in self._ends:
            ids, current = self.ids[start:end], self.epochs[-1]
            repeats.add(ids, signed[start:end], end)
            copies = repeats.among(ids)
            for document, original in copies.items():
                self.first[self.place[document]] = self.place[original]
            part = self._slice(start, end)
            row = slice(int(self.bags.indptr[start]), int(self.bags.indptr[end]))
            self._idf[row] = current.frequencies.idf(part.features)
            new.add(ids, part, set(ids) - copies.keys())
            if new.suffice(current):
                self._append(next_epoch(current, *new.take())[0], end)
                self._project(end)
            start = end
