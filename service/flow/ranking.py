"""What a topic let through, highest score first: the ranking that routing is about.

Scores of different models cannot be compared: a query alone, 500 judgements later and an SVM after a retraining each
have their own scale. So what passed under an earlier version is scored again by the current one, from the title and
text that the output stream keeps. What passed under the current version keeps its score. The decision stays the one
that was made.

A page ends with a score and a place in the stream, and the next one begins below them. If the topic learns in between,
a document may be on both pages, or on neither.

Beside the page stands the NDCG of those that were judged, by the grades they were given. There each document has the
score that it would have if it had not been learned from: with its own score, a judged document is nearly always where
it belongs.

Only scores and places are kept while the stream is read, CHUNK entries at a time; the page is read again at the end.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.core.measures import gain
from models.goals.reporting import prequential, rankings
from service.schemas import Document
from service.schemas.flow import Passed, Ranked, RankedPage
from service.schemas.metrics import Figure
from service.store.resolve import StandingJudgement
from service.store.stream.outbox import START, Outbox, Placed, order
from service.tasks import Pool
from service.topics.background import Epochs
from service.topics.decisions.deciding import verdicts_of
from service.topics.decisions.registry import Registry
from service.topics.learning import Learning
from service.topics.published import DIGITS, PublishedModel
from service.topics.state import TopicState

CHUNK = 500  # entries that are read and scored together


class Rank(NamedTuple):
    """A place in the ranking. Among equal scores the newer document is the higher one."""

    score: float
    place: tuple[int, int]

    @classmethod
    def of_cursor(cls, cursor: str) -> "Rank":
        score, _, place = cursor.partition("_")
        return cls(float(score), order(place))

    @property
    def cursor(self) -> str:
        return f"{self.score}_{self.stream_place}"

    @property
    def stream_place(self) -> str:
        return "{}-{}".format(*self.place)


class Ranking:
    def __init__(self, outbox: Outbox, registry: Registry, learning: Learning, epochs: Epochs, pool: Pool) -> None:
        self._outbox = outbox
        self._registry = registry
        self._learning = learning
        self._epochs = epochs
        self._pool = pool

    async def page(
        self, published: PublishedModel, since_ms: int, below: str | None, limit: int, judged: bool
    ) -> RankedPage:
        """The highest documents below that cursor that passed since then. Without `judged` those that have a judgement
        are left out."""
        topic = published.topic
        standing, samples = await self._learning.read(topic, _judged)
        ranks, passed = await self._ranks(published, since_ms, frozenset() if judged else frozenset(standing))
        if below is not None:
            last = Rank.of_cursor(below)
            ranks = [rank for rank in ranks if rank < last]
        ranks.sort(reverse=True)
        shown = ranks[:limit]
        entries = await self._outbox.load(topic, [rank.stream_place for rank in shown])
        items = [
            _ranked(placed.passed(topic), rank.score, standing.get(placed.entry.document))
            for rank, placed in zip(shown, entries, strict=True)
            if placed
        ]
        judged_here = [sample for sample in samples if sample.document in passed]
        return RankedPage(items=items, next=shown[-1].cursor if ranks[limit:] else None, ndcg=_ndcg(judged_here))

    async def _ranks(
        self, published: PublishedModel, since_ms: int, left_out: frozenset[str]
    ) -> tuple[list[Rank], set[str]]:
        """The ranks of what passed, in no order, and all that passed. Of a document that passed twice, the newer entry
        counts."""
        ranks: list[Rank] = []
        seen: set[str] = set()
        place: str | None = None
        while place != START:
            entries = await self._outbox.newest(published.topic, place, CHUNK, since_ms)
            place = entries[-1].place if len(entries) == CHUNK else START
            new = []
            for placed in entries:
                if placed.entry.document not in seen:
                    seen.add(placed.entry.document)
                    if placed.entry.document not in left_out:
                        new.append(placed)
            scores = await self._pool.run(self._scores, published, new)
            ranks += [Rank(score, order(placed.place)) for score, placed in zip(scores, new, strict=True)]
        return ranks, seen

    def _scores(self, published: PublishedModel, entries: Sequence[Placed]) -> list[float]:
        scores = {placed.place: placed.entry.score for placed in entries}
        old = [placed for placed in entries if placed.entry.version != published.version]
        if old:
            documents = [Document(title=placed.entry.title, text=placed.entry.text) for placed in old]
            _, verdicts = verdicts_of(self._registry, published.topic, documents, self._epochs.current)
            for placed, verdict in zip(old, verdicts, strict=True):
                scores[placed.place] = round(verdict.score, DIGITS)
        return list(scores.values())


class _Sample(NamedTuple):
    """A judged document, with its score by the model that did not learn from it."""

    document: str
    score: float
    gain: int


def _judged(state: TopicState) -> tuple[dict[str, StandingJudgement], list[_Sample]]:
    """The judgements in force by document, and those that measure the ranking: near-duplicates once."""
    resolved, held_out = state.snapshot()
    samples = [
        _Sample(standing.first.document, held_out[standing.first.document], gain(standing.relevant, standing.grade))
        for standing in state.distinct_judgements()
        if standing.first.document in held_out
    ]
    return resolved.judged, samples


def _ndcg(samples: Sequence[_Sample]) -> Figure | None:
    scores, gains = np.array([s.score for s in samples], float), np.array([s.gain for s in samples], float)
    ndcg = rankings.ndcg(scores, gains, prequential.TAIL)
    if ndcg is None or ndcg.estimate is None:
        return None
    estimate, low, high = (round(number, DIGITS) for number in (ndcg.estimate, ndcg.low, ndcg.high))
    return Figure(estimate=estimate, low=low, high=high)


def _ranked(passed: Passed, score: float, standing: StandingJudgement | None) -> Ranked:
    relevant, grade = (standing.relevant, standing.grade) if standing else (None, None)
    return Ranked(**passed.model_dump() | {"score": score}, relevant=relevant, grade=grade)
