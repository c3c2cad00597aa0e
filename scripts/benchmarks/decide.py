"""Raw text to decisions, against few and against very many topics; one document alone; memory.

Sluice reads raw text. Vowpal Wabbit is given one line a document in two forms: `words`, the text after tokenisation,
and `counts`, each distinct word with its count, so that it need not count either. It keeps its default of 2^18 weights,
which is its fastest: the weights fit into the cache, but topics share them, and the more topics, the more they share.
scikit-learn's HashingVectorizer reads raw text; its matrix is multiplied by a sparse one with as many weights a topic
as ours.
"""

from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.bank.bank import Bank
from models.bank.segment import BankEntry
from models.text.analysis import Document, bags
from scripts.benchmarks import peers
from scripts.benchmarks.contest import (
    Contestant,
    Turn,
    Work,
    fitting,
    peak_mb,
    quantiles,
    rates,
    repeated,
    take_turns,
    timed,
    times_faster,
)
from scripts.benchmarks.topics import PLAIN, TopicMaker
from scripts.common.corpus import load

BATCH_SIZE = 500  # documents scored by one call
CHUNK_SIZE = 5000  # topics made and loaded at a time
SINGLE_DOCUMENTS = 2000  # scored one at a time
PUTS = 500  # topics put into the bank one at a time


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    weights: int = 300
    turn_s: float = 1.0
    turns: int = 5
    peers_up_to: int = 0  # topics


def measure(sizes: Sizes, topics: int) -> dict[str, Any]:
    """Sluice and, with few enough topics, its peers."""
    with ExitStack() as stack:
        contestants = {"sluice": stack.enter_context(Contestant(SluiceDecider, sizes, topics))}
        facts = contestants["sluice"].facts()
        if topics <= sizes.peers_up_to:
            common = (sizes.corpus, sizes.generated, topics, sizes.turn_s)
            words = Contestant(peers.VowpalWabbitDecider, *common, form="words")
            contestants["vw words"] = stack.enter_context(words)
            counts = Contestant(peers.VowpalWabbitDecider, *common, form="counts")
            contestants["vw counts"] = stack.enter_context(counts)
            scikit_learn = Contestant(peers.ScikitLearnDecider, *common, weights=sizes.weights)
            contestants["scikit-learn"] = stack.enter_context(scikit_learn)
        taken = take_turns(contestants, sizes.turns)
    return {
        "topics": topics,
        "docs": {name: rates(turns) for name, turns in taken.items()},
        "times_faster": {name: times_faster(taken["sluice"], turns) for name, turns in taken.items()},
        **facts,
    }


class SluiceDecider(Work):
    def __init__(self, sizes: Sizes, topics: int) -> None:
        corpus = load(sizes.corpus, sizes.generated)
        maker = TopicMaker(corpus.past)
        self._frequencies = maker.frequencies
        self._bank, self._load_s = Bank[float](), 0.0
        self._latest: list[BankEntry[float]] = []
        entries = maker.topics(topics, sizes.weights)
        while chunk := list(islice(entries, CHUNK_SIZE)):
            self._load_s += timed(self._bank.load, chunk).wall
            self._latest = chunk[:PUTS]
        self._merge_s = timed(self._merge).wall
        self._stream = corpus.stream
        self._decide(self._stream[:1])  # kernels are loaded when they are first called
        self._count = fitting(self._decide, self._stream, sizes.turn_s)

    def turn(self) -> Turn:
        documents = repeated(self._stream, self._count)
        return Turn(len(documents), timed(self._decide, documents))

    def facts(self) -> dict[str, Any]:
        snapshot = self._bank.snapshot()
        indexes = [part.index for segment in snapshot.segments for part in segment.body.parts]
        served = sum(index.weights for index in indexes)
        peak = peak_mb()  # before all that follows; includes the corpus, and the matrix that topics were made from
        alone = [timed(self._decide, [document]) for document in self._stream[:SINGLE_DOCUMENTS]]
        hits = self._decide(self._stream[:BATCH_SIZE]) / len(self._stream[:BATCH_SIZE])
        text = [timed(bags, self._stream[:BATCH_SIZE], PLAIN) for _ in range(5)]
        put = [timed(self._bank.put, topic) for topic in self._latest]
        self._merge()  # before the turns, as a service merges what was put two seconds ago
        return {
            "served_weights": served,
            "bytes_per_weight": sum(index.nbytes for index in indexes) / served,
            "dense_mb": sum(index.postings.dense.nbytes for index in indexes) / 1e6,
            "peak_mb": peak,
            "load_s": self._load_s,
            "merge_s": self._merge_s,
            "hits_per_document": hits,
            "text_alone_per_cpu_s": BATCH_SIZE / float(np.median([t.cpu for t in text])),
            "one_document": quantiles(alone),
            "put": quantiles(put),
        }

    def _merge(self) -> None:
        while self._bank.merge():
            pass

    def _decide(self, documents: list[Document]) -> int:
        """The number of decisions that are not `reject`."""
        hits = 0
        snapshot = self._bank.snapshot()
        for start in range(0, len(documents), BATCH_SIZE):
            counts = bags(documents[start : start + BATCH_SIZE], PLAIN)
            hits += len(snapshot.hits(counts, self._frequencies.idf(counts.features)).topics)
        return hits
