"""What a linear SVM would make of the same stream at the same moment: as many labels, the same ones, or all.

    random    fitted to as many labels as the topic has judgements, of documents drawn from the stream so far
    same      fitted to the topic's own judgements
    all       fitted to the labels of all documents of the stream so far

Each has the topic's features, with the idf of that moment, and is measured on the test documents as the topic is. It
accepts where its score is above 0, its natural cut. The SVM is that of models/methods/svm.py, which solves its
problem exactly. Of random labels, the mean over DRAWS draws is taken: one draw of 50 may have no relevant document.
"""

from collections.abc import Sequence

import numpy as np

from models.bank.seen import view_batch
from models.core.measures import Bools, contingency, f_beta, sap
from models.methods import svm
from models.methods.matrix import Examples
from scripts.evaluation.effectiveness import ApF1, Compared, measure
from scripts.loop.loop import Loop
from scripts.loop.stream import Stream

POINTS = (50, 100, 250, 500)
DRAWS = 3


class Peers:
    """SVMs for the topics of a stream."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._features, columns = np.unique(stream.bags.features, return_inverse=True)
        self._columns = columns.astype(np.int32)
        self._is_test = np.arange(stream.size) >= stream.train

    def compare(self, loop: Loop, topic: str) -> Compared:
        """The topic as it is at this moment, beside its peers."""
        relevant, judged = self._stream.corpus.relevant(topic), loop.reading.judged
        x, ours = self._examples(loop.position), measure(loop, relevant)
        random = np.random.default_rng([len(judged), *topic.encode()])
        n = min(len(judged), loop.position)
        draws = [random.choice(loop.position, n, replace=False) for _ in range(DRAWS)] if n else []
        drawn = [self._measure(x, relevant, places.tolist()) for places in draws] or [ApF1(0.0, 0.0)]
        return Compared(
            ApF1(ours.ap, ours.f1),
            ApF1(*np.mean(drawn, axis=0).tolist()),
            self._measure(x, relevant, judged),
            self._measure(x, relevant, range(loop.position)),
        )

    def _examples(self, position: int) -> Examples:
        """All documents, with the idf of the moment when so many had come."""
        stream = self._stream
        idf = stream.epochs[stream.epoch(position)].frequencies.idf(stream.bags.features)
        values = view_batch("tfidf", stream.bags, idf).values.astype(np.float64)
        return Examples("tfidf", self._features, stream.bags.indptr, self._columns, values)

    def _measure(self, x: Examples, relevant: Bools, labelled: Sequence[int]) -> ApF1:
        """An SVM on these labels, measured on the test documents."""
        known = np.isin(np.arange(x.size), np.array(labelled, np.int64))
        planes = svm.fit(svm.Params(), x.rows(known), relevant[known][:, None])
        scores, truth = planes.scores(x.rows(self._is_test))[:, 0], relevant[self._is_test]
        return ApF1(sap(scores, truth), f_beta(contingency(scores > 0, truth)))
