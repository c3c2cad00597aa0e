"""Raw text to decisions, against few and against very many topics; one document alone; memory.

Sluice reads raw text. Vowpal Wabbit is given words, one line a document, in two forms: `words`, the text as the
tokeniser has cut it, and `counts`, where each distinct word stands once with its count, so that counting, too, has
been done for it. It keeps its default of 2^18 weights, which is its fastest: topics share weights then, the more the
more there are, but it need not leave the cache. scikit-learn's HashingVectorizer reads raw text; its matrix is
multiplied with a sparse one that has as many weights a topic as ours.
"""

from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.bank.bank import Bank
from models.bank.segment import Entry
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

BATCH = 500  # documents scored by one call
CHUNK = 5000  # topics made and loaded at a time
ALONE = 2000  # documents scored one at a time
PUTS = 500


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    weights: int = 300
    turn_s: float = 1.0
    turns: int = 5
    peers_up_to: int = 0  # topics


def measure(sizes: Sizes, topics: int) -> dict[str, Any]:
    """All contenders against so many topics."""
    entered = {"sluice": Contestant(SluiceDecider, sizes, topics)}
    try:
        facts = entered["sluice"].facts()
        if topics <= sizes.peers_up_to:
            common = (sizes.corpus, sizes.generated, topics, sizes.turn_s)
            entered["vw words"] = Contestant(peers.VowpalWabbitDecider, *common, form="words")
            entered["vw counts"] = Contestant(peers.VowpalWabbitDecider, *common, form="counts")
            entered["scikit-learn"] = Contestant(peers.ScikitLearnDecider, *common, weights=sizes.weights)
        taken = take_turns(entered, sizes.turns)
    finally:
        for contender in entered.values():
            contender.__exit__(None, None, None)
    return {
        "topics": topics,
        "docs": {name: rates(turns) for name, turns in taken.items()},
        "times_faster": {name: times_faster(taken["sluice"], turns) for name, turns in taken.items()},
        **facts,
    }


class SluiceDecider(Work):
    def __init__(self, sizes: Sizes, topics: int) -> None:
        corpus = load(sizes.corpus, sizes.generated)
        past = TopicMaker(corpus.past)
        self._frequencies = past.frequencies
        self._bank, self._load_s = Bank[float](), 0.0
        self._latest: list[Entry[float]] = []
        made = past.topics(topics, sizes.weights)
        while chunk := list(islice(made, CHUNK)):
            self._load_s += timed(self._bank.load, chunk).wall
            self._latest = chunk[:PUTS]
        self._merge_s = timed(self._merged).wall
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
        peak = peak_mb()  # before anything below; with the corpus, and the matrix that topics were made from
        alone = [timed(self._decide, [document]) for document in self._stream[:ALONE]]
        hits = self._decide(self._stream[:BATCH]) / len(self._stream[:BATCH])
        text = [timed(bags, self._stream[:BATCH], PLAIN) for _ in range(5)]
        put = [timed(self._bank.put, topic) for topic in self._latest]
        self._merged()  # turns come after this, and a service has merged what was put two seconds ago
        return {
            "served_weights": served,
            "bytes_per_weight": sum(index.nbytes for index in indexes) / served,
            "dense_mb": sum(index.postings.dense.nbytes for index in indexes) / 1e6,
            "peak_mb": peak,
            "load_s": self._load_s,
            "merge_s": self._merge_s,
            "hits_per_document": hits,
            "text_alone_per_cpu_s": BATCH / float(np.median([t.cpu for t in text])),
            "one_document": quantiles(alone),
            "put": quantiles(put),
        }

    def _merged(self) -> None:
        while self._bank.merge():
            pass

    def _decide(self, documents: list[Document]) -> int:
        """How many decisions are not `reject`."""
        found = 0
        snapshot = self._bank.snapshot()
        for start in range(0, len(documents), BATCH):
            counts = bags(documents[start : start + BATCH], PLAIN)
            found += len(snapshot.hits(counts, self._frequencies.idf(counts.features)).topics)
        return found
