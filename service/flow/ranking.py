"""What a topic let through, highest score first: the ranking that routing is about.

Scores of different models cannot be compared: a query alone, 500 judgements later and an SVM after a retraining each
have their own scale. So what passed under an earlier version is scored again by the current one, from the title and
text that the output stream keeps. What passed under the current version keeps its score. The decision stays the one
that was made.

Where the topic's `ranking` is learned, they are ordered by what a ranker makes of that score and of the document beside
the query (topics/decisions/order.py), once enough was judged.

A page ends with a rank and a place in the stream, and the next one begins below them. Its cursor also names the newest
entry of the first page: later pages leave out what has come since. So nothing is shown twice or lost while documents
arrive. If the topic learns in between, a document may be on both pages, or on neither.

Beside the page stands the NDCG of those that were judged, by the grades they were given. There each document has the
rank that it would have if it had not been learned from: with its own, a judged document is nearly always where it
belongs.

Only scores, places and features are kept while the stream is read, CHUNK entries at a time; the page is read again at
the end.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from models.goals.reporting import prequential, rankings
from models.ranking import ranker
from service.schemas import Document
from service.schemas.flow import Passed, Ranked, RankedPage
from service.schemas.metrics import Figure
from service.store.resolve import StandingJudgement
from service.store.stream.outbox import START, Outbox, Placed, order
from service.tasks import Pool
from service.topics.background import Epochs
from service.topics.decisions.deciding import verdicts_of
from service.topics.decisions.order import Judgements, Output, learned
from service.topics.decisions.registry import Registry
from service.topics.learning import Learning
from service.topics.published import DIGITS, PublishedModel
from service.topics.state import TopicState

CHUNK = 500  # entries that are read and scored together


class Rank(NamedTuple):
    """A place in the ranking. Among equals the newer document is the higher one."""

    rank: float
    place: tuple[int, int]

    @property
    def stream_place(self) -> str:
        return "{}-{}".format(*self.place)


class Cursor(NamedTuple):
    """Where a page ended, and the newest entry that its ranking has."""

    last: Rank
    newest: tuple[int, int] | None

    @classmethod
    def parse(cls, cursor: str) -> "Cursor":
        rank, place, *newest = cursor.split("_")
        return cls(Rank(float(rank), order(place)), order(newest[0]) if newest else None)


class Listing(NamedTuple):
    """What passed, in no order. Of a document that passed twice, the newer entry counts."""

    ranks: list[Rank]
    documents: list[str]
    scores: list[float]  # by the topic's model
    newest: tuple[int, int]
    held_out: Mapping[str, float]  # ranks of judged documents that were not learned from them
    by_feedback: bool  # the order is learned


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
        topic, cursor = published.topic, Cursor.parse(below) if below is not None else None
        standing, judgements = await self._learning.read(topic, _judged)
        listing = await self._listing(published, judgements, since_ms, cursor.newest if cursor else None)
        passed = [i for i, rank in enumerate(listing.ranks) if rank.place[0] >= since_ms]
        left = [i for i in passed if judged or listing.documents[i] not in standing]
        if cursor:
            left = [i for i in left if listing.ranks[i] < cursor.last]
        left.sort(key=lambda i: listing.ranks[i], reverse=True)
        shown = left[:limit]
        entries = await self._outbox.load(topic, [listing.ranks[i].stream_place for i in shown])
        items = [
            _ranked(placed.passed(topic), listing, i, standing.get(placed.entry.document))
            for i, placed in zip(shown, entries, strict=True)
            if placed
        ]
        return RankedPage(
            items=items,
            next=_cursor(listing.ranks[shown[-1]], listing.newest) if left[limit:] else None,
            ndcg=_ndcg(listing, judgements, {listing.documents[i] for i in passed}),
            ranked_by="feedback" if listing.by_feedback else "score",
        )

    async def _listing(
        self, published: PublishedModel, judgements: Judgements, since_ms: int, newest: tuple[int, int] | None
    ) -> Listing:
        """What passed up to that entry, ranked; since then, unless the ranking learns from what passed earlier."""
        setting = published.settings.ranking
        oldest_ms = 0 if setting else since_ms
        output: Output | None = None
        ranks: list[Rank] = []
        documents: dict[str, float] = {}
        place = f"{newest[0]}-{newest[1] + 1}" if newest else None
        while place != START:
            entries = await self._outbox.newest(published.topic, place, CHUNK, oldest_ms)
            newest = newest or (order(entries[0].place) if entries else (0, 0))
            place = entries[-1].place if len(entries) == CHUNK else START
            new = {each.entry.document: each for each in reversed(entries) if each.entry.document not in documents}
            scores = await self._pool.run(self._scores, published, list(new.values()))
            documents |= zip(new, scores, strict=True)
            ranks += [Rank(score, order(each.place)) for each, score in zip(new.values(), scores, strict=True)]
            if setting:
                output = output or Output(judgements, self._registry.analysis, newest[0])
                await self._pool.run(output.add, list(new.values()), scores)
        held_out = {document: each.score for document, each in judgements.documents.items()}
        listing = Listing(ranks, list(documents), list(documents.values()), newest or (0, 0), held_out, False)
        if setting and output:
            return await self._pool.run(_ordered, listing, output, setting.C)
        return listing

    def _scores(self, published: PublishedModel, entries: Sequence[Placed]) -> list[float]:
        scores = {placed.place: placed.entry.score for placed in entries}
        old = [placed for placed in entries if placed.entry.version != published.version]
        if old:
            documents = [Document(title=placed.entry.title, text=placed.entry.text) for placed in old]
            _, verdicts = verdicts_of(self._registry, published.topic, documents, self._epochs.current)
            for placed, verdict in zip(old, verdicts, strict=True):
                scores[placed.place] = round(verdict.score, DIGITS)
        return list(scores.values())


def _ordered(listing: Listing, output: Output, C: float) -> Listing:
    """The listing as a ranker orders it; as it is while too few documents were judged."""
    fitted = learned(output, C)
    if fitted is None:
        return listing
    documents, psi, labels = output.judged()
    held_out = dict(zip(documents, ranker.held_out(psi, labels, C).tolist(), strict=True))
    by_feedback = [round(score, DIGITS) for score in output.ranked(fitted).tolist()]
    ranks = [each._replace(rank=rank) for each, rank in zip(listing.ranks, by_feedback, strict=True)]
    return listing._replace(ranks=ranks, held_out=held_out, by_feedback=True)


def _judged(state: TopicState) -> tuple[dict[str, StandingJudgement], Judgements]:
    """The judgements in force by document, and those that a ranking is measured by and learns from."""
    return dict(state.resolved.judged), Judgements.of(state)


def _ndcg(listing: Listing, judgements: Judgements, passed: set[str]) -> Figure | None:
    judged = [document for document in judgements.documents if document in passed and document in listing.held_out]
    scores = np.array([listing.held_out[document] for document in judged], float)
    gains = np.array([judgements.documents[document].label.gain for document in judged], float)
    ndcg = rankings.ndcg(scores, gains, prequential.TAIL)
    if ndcg is None or ndcg.estimate is None:
        return None
    estimate, low, high = (round(number, DIGITS) for number in (ndcg.estimate, ndcg.low, ndcg.high))
    return Figure(estimate=estimate, low=low, high=high)


def _cursor(last: Rank, newest: tuple[int, int]) -> str:
    return f"{last.rank}_{last.stream_place}_{newest[0]}-{newest[1]}"


def _ranked(passed: Passed, listing: Listing, i: int, standing: StandingJudgement | None) -> Ranked:
    relevant, grade = (standing.relevant, standing.grade) if standing else (None, None)
    fields = passed.model_dump() | {"score": listing.scores[i], "relevant": relevant, "grade": grade}
    return Ranked(**fields, rank=listing.ranks[i].rank if listing.by_feedback else None)
