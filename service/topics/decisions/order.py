"""In which order to show what a topic let through, where that is learned from its judgements (models/ranking).

A ranker is fitted when a ranking is asked for: to the newest MAX_JUDGED judged documents whose text the topic's output
still has, as features beside the query, each with the score that the topic's model gives it without having learned from
it. So it needs nothing that is stored, follows every judgement, and changes no decision and no model.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from models.core.vectors import Bag, Reals
from models.ranking import ranker
from models.ranking.features import NAMES, Shown, earlier_source_gains, matrix, source_gains
from models.ranking.pairs import Label
from models.ranking.ranker import Ranker
from models.text.analysis import Analysis
from service.store.stream.outbox import Placed, order
from service.topics.state import TopicState, to_bag

MAX_JUDGED = 500
SOURCE = NAMES.index("source")


class JudgedDocument(NamedTuple):
    """A judgement as a ranking learns from it."""

    label: Label
    score: float  # by the model without it
    at_ms: int


class Judgements(NamedTuple):
    """The judgements in force that a ranking can learn from, near-duplicates once, and the query."""

    documents: Mapping[str, JudgedDocument]
    query: Bag | None

    @classmethod
    def of(cls, state: TopicState) -> "Judgements":
        resolved, held_out = state.snapshot()
        newest = sorted(state.distinct_judgements(), key=lambda standing: -standing.newest.seq)
        documents = {
            document: JudgedDocument(
                Label(standing.relevant, standing.grade), held_out[document], standing.newest.at_ms
            )
            for standing in newest
            if (document := standing.first.document) in held_out
        }
        query = to_bag(resolved.settings.features)
        return cls(documents, query if len(query.features) else None)


class Output:
    """What a topic let through, as features: each document once, and twice if it was judged."""

    def __init__(self, judgements: Judgements, analysis: Analysis, now_ms: int) -> None:
        self._judgements = judgements
        self._analysis = analysis
        self._now_ms = now_ms
        self._sources: list[str] = []
        self._rows: list[Reals] = []
        self._judged: dict[str, tuple[str, Reals]] = {}  # source and features of a document when it was judged

    def add(self, entries: Sequence[Placed], scores: Sequence[float]) -> None:
        judged = [each for each in entries if each.entry.document in self._judgements.documents]
        shown = [
            _shown(each, score, self._now_ms - order(each.place)[0])
            for each, score in zip(entries, scores, strict=True)
        ]
        for each in judged:
            judgement = self._judgements.documents[each.entry.document]
            shown.append(_shown(each, judgement.score, judgement.at_ms - order(each.place)[0]))
        rows = matrix(shown, self._judgements.query, self._analysis, np.zeros(len(shown)))
        self._sources += [each.entry.source for each in entries]
        self._rows.append(rows[: len(entries)])
        for each, row in zip(judged, rows[len(entries) :], strict=True):
            self._judged[each.entry.document] = each.entry.source, row

    def judged(self) -> tuple[list[str], Reals, list[Label]]:
        """The newest judged documents, their features, and what was said of them."""
        documents = [each for each in self._judgements.documents if each in self._judged][:MAX_JUDGED]
        labels = [self._judgements.documents[each].label for each in documents]
        psi = np.array([self._judged[each][1] for each in documents]).reshape(len(documents), len(NAMES))
        gains = np.array([label.gain for label in labels], float)
        # Judgements are newest first.
        psi[:, SOURCE] = earlier_source_gains([self._judged[each][0] for each in documents][::-1], gains[::-1])[::-1]
        return documents, psi, labels

    def ranked(self, fitted: Ranker) -> Reals:
        """The scores of all that was added, in that order."""
        documents, _, labels = self.judged()
        gains = np.array([label.gain for label in labels], float)
        psi = np.concatenate(self._rows)
        psi[:, SOURCE] = source_gains(self._sources, [self._judged[each][0] for each in documents], gains)
        return fitted.scores(psi)


def learned(output: Output, C: float) -> Ranker | None:
    """The ranker that the judged documents give; None while they are too few."""
    _, psi, labels = output.judged()
    return ranker.learn(psi, labels, C) if ranker.enough(labels) else None


def _shown(placed: Placed, score: float, age_ms: int) -> Shown:
    entry = placed.entry
    return Shown(entry.title, entry.text, entry.source, score, age_ms)
