"""Documents to measure with: real ones from a file, or generated.

A corpus is JSON lines, gzipped or not, with "title", "text" and "topics" (a list of names). The first half is the past,
from which topics are made; the second half is the stream that is scored, so no topic meets the documents it was made
from.
"""

import gzip
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from models.text.analysis import Document

SEED = 20
STREAM = 5000  # documents that are scored over and over
SHORTEST = 50  # characters; what is shorter is a headline without its story
WORDS = 40_000
THEMES = 300


class Corpus(NamedTuple):
    name: str
    documents: list[Document]
    topics: list[frozenset[str]]

    @property
    def past(self) -> "Corpus":
        middle = len(self.documents) // 2
        return Corpus(self.name, self.documents[:middle], self.topics[:middle])

    @property
    def stream(self) -> list[Document]:
        return self.documents[len(self.documents) // 2 :][:STREAM]


def load(path: Path | None, generated: int) -> Corpus:
    """The corpus of that file, or this many generated documents."""
    return read(path) if path else generate(generated)


def read(path: Path) -> Corpus:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if len(row.get("text") or "") > SHORTEST]
    documents = [(row.get("title") or "", row["text"]) for row in rows]
    return Corpus(path.name, documents, [frozenset(row.get("topics") or ()) for row in rows])


def generate(n: int) -> Corpus:
    """Documents of about 130 words, by Zipf's law, a third of them from one of some themes, which are the topics."""
    rng = np.random.default_rng(SEED)
    letters = rng.choice(list("etaoinshrdlu"), (WORDS, 12))
    words = np.array(["".join(row[: rng.integers(2, 12)]) for row in letters])
    likely = np.cumsum(1 / np.arange(1, WORDS + 1))
    themes = rng.choice(words, (THEMES, 150))
    documents, topics = [], []
    for _ in range(n):
        size = int(rng.lognormal(4.5, 0.6)) + 10
        theme = int(rng.integers(THEMES) * rng.random())  # some themes are far more common than others
        common = words[np.searchsorted(likely, rng.random(size) * likely[-1])]
        own = rng.choice(themes[theme], size // 2)
        mixed = rng.permutation(np.concatenate([common, own])).tolist()
        documents.append((" ".join(mixed[:6]), " ".join(mixed[6:])))
        topics.append(frozenset([f"theme-{theme}"]))
    return Corpus("generated", documents, topics)
