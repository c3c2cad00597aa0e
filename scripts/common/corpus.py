"""Labelled documents, from a file or generated.

A file is JSON lines, gzipped or not, one document a line, with "title", "text" and "topics" (a list of names).

`read` is for measuring quality. It also needs "split" and, to order the documents, "date": training documents come
first, then test documents, each by date. Documents whose split is neither "train" nor "test" are left out.

`load` is for measuring speed. It takes all documents in the order of the file: the first half is for training, the
second is the stream that is scored, so that no topic meets a document it was made from.
"""

import fnmatch
import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from models.core.measures import Bools
from models.text.analysis import Document

MIN_TRAIN, MIN_TEST = 10, 3  # relevant documents; of the 90 topics of ModApte, 59 have that many
SEED = 20
STREAM_SIZE = 5000  # documents that are scored over and over
HEADLINE_LENGTH = 50  # characters; a text that is no longer is a headline without its story
VOCABULARY_SIZE = 40_000  # of generated documents
THEMES = 300  # of generated documents: their topics


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    name: str
    documents: Sequence[Document]
    topics: Sequence[frozenset[str]]  # of each document
    train: int  # number of documents for training, which come first; the others are for testing

    def relevant(self, topic: str) -> Bools:
        return np.array([topic in names for names in self.topics], np.bool_)

    def grouped(self, groups: Mapping[str, Sequence[str]]) -> "Corpus":
        """The corpus with groups of topics in place of its topics: each topic is part of the first group that has a
        pattern for it, or of none."""
        of_topic: dict[str, str] = {}
        for topic in {name for names in self.topics for name in names}:
            group = next((name for name, patterns in groups.items() if _fits(topic, patterns)), None)
            of_topic |= {topic: group} if group else {}
        topics = [frozenset(of_topic[name] for name in names if name in of_topic) for names in self.topics]
        return replace(self, topics=topics)

    @property
    def past(self) -> "Corpus":
        """The training documents alone."""
        return replace(self, documents=self.documents[: self.train], topics=self.topics[: self.train])

    @property
    def stream(self) -> list[Document]:
        """The first documents after those for training."""
        return list(self.documents[self.train :][:STREAM_SIZE])

    @property
    def holdout(self) -> "Corpus":
        """The last quarter of the training documents in place of the test documents, which are dropped."""
        return self.held_out(0.75)

    def held_out(self, share: float) -> "Corpus":
        """The training documents alone, the first `share` of them for training and the others for testing."""
        return replace(self.past, train=int(share * self.train))

    def largest(self, train: int = MIN_TRAIN, test: int = MIN_TEST, patterns: Sequence[str] = ("*",)) -> list[str]:
        """Topics with at least this many relevant documents, the most common in training first; see `matches`."""
        trained = Counter(name for names in self.topics[: self.train] for name in names)
        tested = Counter(name for names in self.topics[self.train :] for name in names)
        names = [name for name, n in trained.items() if n >= train and tested[name] >= test and matches(name, patterns)]
        return sorted(names, key=lambda name: (-trained[name], name))


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern fits, and none of those that begin with an exclamation mark."""
    wanted = [p for p in patterns if not p.startswith("!")] or ["*"]
    unwanted = [p[1:] for p in patterns if p.startswith("!")]
    return _fits(name, wanted) and not _fits(name, unwanted)


def parse_groups(text: str) -> dict[str, list[str]]:
    """Patterns by group: `comp=comp.*,rest=alt.*|misc.*` has two groups, the second with two patterns."""
    pairs = [part.partition("=") for part in text.split(",") if part]
    for name, _, patterns in pairs:
        if not name or not patterns:
            raise ValueError("write a group as NAME=PATTERN or NAME=PATTERN|PATTERN, and a comma between groups")
    return {name: patterns.split("|") for name, _, patterns in pairs}


def read(path: Path) -> Corpus:
    """The documents of a file by their split and date."""
    rows = [row for row in _rows(path) if row["split"] in ("train", "test")]
    rows.sort(key=lambda row: (row["split"] == "test", row.get("date") or ""))  # stable: equal dates as in the file
    return _corpus(path, rows, sum(row["split"] == "train" for row in rows))


def load(path: Path | None, generated: int) -> Corpus:
    """The stories of a file in its order, halved; without a file, `generated` documents."""
    if path is None:
        return generate(generated)
    rows = [row for row in _rows(path) if len(row.get("text") or "") > HEADLINE_LENGTH]
    return _corpus(path, rows, len(rows) // 2)


def generate(n: int) -> Corpus:
    """Documents of about 130 words that follow Zipf's law, a third of them from one of several themes: the topics."""
    rng = np.random.default_rng(SEED)
    letters = rng.choice(list("etaoinshrdlu"), (VOCABULARY_SIZE, 12))
    words = np.array(["".join(row[: rng.integers(2, 12)]) for row in letters])
    likely = np.cumsum(1 / np.arange(1, VOCABULARY_SIZE + 1))
    themes = rng.choice(words, (THEMES, 150))
    documents, topics = [], []
    for _ in range(n):
        size = int(rng.lognormal(4.5, 0.6)) + 10
        theme = int(rng.integers(THEMES) * rng.random())  # low numbers are far more common than high ones
        common = words[np.searchsorted(likely, rng.random(size) * likely[-1])]
        thematic = rng.choice(themes[theme], size // 2)
        mixed = rng.permutation(np.concatenate([common, thematic])).tolist()
        documents.append((" ".join(mixed[:6]), " ".join(mixed[6:])))
        topics.append(frozenset([f"theme-{theme}"]))
    return Corpus("generated", documents, topics, n // 2)


def read_queries(path: Path | None) -> Mapping[str, str]:
    """A JSON object of queries by topic. The query of a topic that is not in it is the topic's name."""
    return {} if path is None else {str(k): str(v) for k, v in json.loads(path.read_text(encoding="utf-8")).items()}


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _corpus(path: Path, rows: Sequence[Mapping[str, Any]], train: int) -> Corpus:
    documents = [(row.get("title") or "", row["text"]) for row in rows]
    topics = [frozenset(row.get("topics") or ()) for row in rows]
    return Corpus(path.name.split(".")[0], documents, topics, train)


def _fits(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
