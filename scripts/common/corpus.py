"""A corpus: JSON lines, gzipped or not, one document a line with "id", "split" (train or test; others are left out),
"date", "title", "text" and "topics". Documents are put in the order of their dates, training documents first.
"""

import fnmatch
import gzip
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from models.core.measures import Bools
from models.text.analysis import Document

LEAST_TRAIN, LEAST_TEST = 10, 3  # relevant documents; of the 90 topics of ModApte, 59 have so many


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    name: str
    documents: Sequence[Document]
    topics: Sequence[frozenset[str]]  # of each document
    train: int  # the first so many documents are for training, the others for testing

    def relevant(self, topic: str) -> Bools:
        return np.array([topic in names for names in self.topics], np.bool_)

    @property
    def holdout(self) -> "Corpus":
        """The last quarter of the training documents in the place of the test documents, which are not there at all."""
        return self.held_out(0.75)

    def held_out(self, share: float) -> "Corpus":
        """The same, with this share of the training documents still to train with."""
        return Corpus(self.name, self.documents[: self.train], self.topics[: self.train], int(share * self.train))

    def largest(self, train: int = LEAST_TRAIN, test: int = LEAST_TEST, patterns: Sequence[str] = ("*",)) -> list[str]:
        """Topics with at least so many relevant documents, the most common in training first; see `matches`."""
        trained = Counter(name for names in self.topics[: self.train] for name in names)
        tested = Counter(name for names in self.topics[self.train :] for name in names)
        names = [name for name, n in trained.items() if n >= train and tested[name] >= test and matches(name, patterns)]
        return sorted(names, key=lambda name: (-trained[name], name))


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether some pattern fits, and none of those that begin with an exclamation mark."""
    wanted = [p for p in patterns if not p.startswith("!")] or ["*"]
    unwanted = [p[1:] for p in patterns if p.startswith("!")]
    fits = [any(fnmatch.fnmatchcase(name, p) for p in some) for some in (wanted, unwanted)]
    return fits[0] and not fits[1]


def read(path: Path) -> Corpus:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        rows = [row for row in map(json.loads, lines) if row["split"] in ("train", "test")]
    rows.sort(key=lambda row: (row["split"] == "test", row.get("date") or ""))  # stable: equal dates as in the file
    return Corpus(
        path.name.split(".")[0],
        [(row.get("title") or "", row["text"]) for row in rows],
        [frozenset(row["topics"]) for row in rows],
        sum(row["split"] == "train" for row in rows),
    )


def read_queries(path: Path | None) -> Mapping[str, str]:
    """A JSON object, topic: query. A topic that is not in it is looked for by the words of its name."""
    return {} if path is None else {str(k): str(v) for k, v in json.loads(path.read_text(encoding="utf-8")).items()}
