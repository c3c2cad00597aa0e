"""Peers that decide: Vowpal Wabbit and scikit-learn. decide.py describes what they are given.

They are imported where they are used: the extra `bench` installs them, and Sluice can be measured without them.

Vowpal Wabbit does the same work as Sluice: a score and a cut for each topic, and the topics that pass are written to a
file. It runs with the options one would use to decide. On Reuters with 90 topics, given words, it decided 29,000
documents a CPU second on a busy machine; with learning left on 22,000, with 2^24 weights 21,000, with `--probabilities`
and the logistic loss that they need 24,000; 2^22 weights and `--sgd` make no difference. Only input that it has parsed
before, from its cache, is faster, by a tenth when given counts; but documents of a stream are new.

scikit-learn spends five sixths of its time in HashingVectorizer at 90 topics. Usually the other factor would be `coef_`
of a trained classifier, dense, with 2^20 weights a topic; a matrix with as many weights as ours favours it.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp

from models.text.analysis import Document
from scripts.benchmarks.contest import Seconds, Turn, Work, fitting, repeated, timed
from scripts.benchmarks.topics import TopicMaker, centroids, cuts
from scripts.common.corpus import load

TRAINING_SIZE = 2000  # documents that Vowpal Wabbit learns from: enough for a model that is not empty
BATCH_SIZE = 500  # documents scored by one call
WORD = re.compile(r"\w+")

Form = Literal["words", "counts"]


class VowpalWabbitDecider(Work):
    """`--multilabel_oaa`, reading a file in its own C++ loop (faster than a call from Python for each document)."""

    def __init__(self, path: Path | None, generated: int, topics: int, turn_s: float, form: Form) -> None:
        import vowpalwabbit

        self._workspace = vowpalwabbit.Workspace
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-bench-")
        corpus = load(path, generated)
        labels: list[list[str]] = [[] for _ in corpus.past.documents]
        for number, kind in enumerate(TopicMaker(corpus.past).kinds(topics)):
            for document in kind.tolist():
                labels[document].append(str(number))
        train = [f"{','.join(of)} {_line(d, form)}" for of, d in zip(labels, corpus.past.documents, strict=True)]
        self._read(train[:TRAINING_SIZE], f"--multilabel_oaa {topics} -f {self._file('model')}")
        self._lines = [_line(document, form) for document in corpus.stream]
        self._count = fitting(self._decide, self._lines, turn_s)

    def turn(self) -> Turn:
        lines = repeated(self._lines, self._count)
        nothing = self._decide([""])  # loads the model
        whole = self._decide(lines)
        return Turn(len(lines), Seconds(whole.wall - nothing.wall, whole.cpu - nothing.cpu))

    def facts(self) -> dict[str, Any]:
        return {}

    def _decide(self, lines: list[str]) -> Seconds:
        return self._read(lines, f"-t -i {self._file('model')} -p {self._file('decisions')}")

    def _read(self, lines: list[str], options: str) -> Seconds:
        self._file("lines").write_text("\n".join(lines) + "\n")
        return timed(lambda: self._workspace(f"--quiet --no_stdin -d {self._file('lines')} {options}").finish())

    def _file(self, name: str) -> Path:
        return Path(self._folder.name) / name


class ScikitLearnDecider(Work):
    """HashingVectorizer, then a product of two sparse matrices, then thresholds."""

    def __init__(self, path: Path | None, generated: int, topics: int, turn_s: float, weights: int) -> None:
        from sklearn.feature_extraction.text import HashingVectorizer

        self._vectorizer = HashingVectorizer(alternate_sign=False, dtype=np.float32)
        corpus = load(path, generated)
        past = self._vectorizer.transform(_texts(corpus.past.documents))
        rows = list(centroids(sp.csr_array(past), TopicMaker(corpus.past).kinds(topics), weights))
        at = np.concatenate([columns for columns, _ in rows])
        starts = np.cumsum([0, *(len(columns) for columns, _ in rows)])
        W = sp.csc_array((np.concatenate([w for _, w in rows]), at, starts), shape=(past.shape[1], topics))
        self._W = W.tocsr()
        self._cut = np.array([cuts(w)[0] for _, w in rows], np.float32)
        self._stream = corpus.stream
        self._count = fitting(self._decide, self._stream, turn_s)

    def turn(self) -> Turn:
        documents = repeated(self._stream, self._count)
        return Turn(len(documents), timed(self._decide, documents))

    def facts(self) -> dict[str, Any]:
        return {}

    def _decide(self, documents: list[Document]) -> int:
        hits = 0
        for start in range(0, len(documents), BATCH_SIZE):
            X = self._vectorizer.transform(_texts(documents[start : start + BATCH_SIZE]))
            scores = X @ self._W
            hits += int(np.count_nonzero(scores.data >= self._cut[scores.indices]))
        return hits


def _texts(documents: Sequence[Document]) -> list[str]:
    return [f"{title}\n{text}" for title, text in documents]


def _line(document: Document, form: Form) -> str:
    words = WORD.findall(" ".join(document).lower())
    if form == "counts":
        return "| " + " ".join(f"{word}:{n}" for word, n in Counter(words).items())
    return "| " + " ".join(words)
