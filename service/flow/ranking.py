"""What a topic let through, highest score first: the ranking that routing is about.

Scores of different models cannot be compared: a query alone, 500 judgements later and an SVM after a retraining each
have their own scale. So what passed under an earlier version is scored again by the current one, from the title and
text that the output stream keeps. What passed under the current version keeps its score. The decision stays the one
that was made.

Where the topic's `ranking` is learned, they are ordered by what a ranker makes of that score and of the document beside
the query (topics/decisions/order.py), once enough was judged.

A page ends with a rank and a place in the stream, and the next one begins below them. Its cursor also names the newest
entry, the version and the epoch of the first page. Later pages leave out what has come since, and if the topic has
learned or the stream's background changed, its log is folded again up to that version: nothing is shown twice or lost
meanwhile. (Only if that version cannot be restored any more, or the epoch is forgotten, the ranking of the moment has
to do.)

Beside the page stands the NDCG of those that were judged, by the grades they were given. There each document has the
rank that it would have if it had not been learned from: with its own, a judged document is nearly always where it
belongs.

Only scores, places and features are kept while the stream is read, CHUNK entries at a time; the page is read again at
the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from models.goals.reporting import prequential, rankings
from models.ranking import ranker
from models.text.analysis import bags
from service.schemas.flow import Passed, Ranked, RankedPage
from service.schemas.metrics import Figure
from service.store.resolve import StandingJudgement
from service.store.stream.outbox import START, Placed, order
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epoch, Epochs
from service.topics.decisions.deciding import bag_of
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
    """Where a page ended, and what its ranking was made of: all entries up to the newest, by this version, with the idf
    of this epoch."""

    last: Rank
    newest: tuple[int, int] | None = None
    version: int = 0
    epoch: int = 0

    @classmethod
    def parse(cls, cursor: str) -> "Cursor":
        rank, place, *made_of = cursor.split("_")
        last = Rank(float(rank), order(place))
        if len(made_of) < 2:
            return cls(last)
        return cls(last, order(made_of[0]), *order(made_of[1]))

    def __str__(self) -> str:
        newest = "{}-{}".format(*(self.newest or (0, 0)))
        return f"{self.last.rank}_{self.last.stream_place}_{newest}_{self.version}-{self.epoch}"


class Basis(NamedTuple):
    """What a ranking is made of."""

    published: PublishedModel
    judgements: Judgements
    epoch: Epoch


class Listing(NamedTuple):
    """What passed, in no order. Of a document that passed twice, the newer entry counts."""

    ranks: list[Rank]
    documents: list[str]
    scores: list[float]  # by the topic's model
    newest: tuple[int, int]
    held_out: Mapping[str, float]  # ranks of judged documents that were not learned from them
    by_feedback: bool  # the order is learned


class Ranking:
    def __init__(
        self, store: Store, registry: Registry, learning: Learning, epochs: Epochs, weights: int, pool: Pool
    ) -> None:
        self._outbox = store.outbox
        self._stored_epochs = store.epochs.numbers
        self._analysis = registry.analysis
        self._learning = learning
        self._epochs = epochs
        self._weights = weights
        self._pool = pool

    async def page(
        self, published: PublishedModel, since_ms: int, below: str | None, limit: int, judged: bool
    ) -> RankedPage:
        """The highest documents below that cursor that passed since then. Without `judged` those that have a judgement
        are left out."""
        topic, cursor = published.topic, Cursor.parse(below) if below is not None else None
        standing = await self._learning.read(topic, lambda state: dict(state.resolved.judged))
        basis = await self._basis(published, cursor)
        listing = await self._listing(basis, since_ms, cursor.newest if cursor else None)
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
            next=str(Cursor(listing.ranks[shown[-1]], listing.newest, basis.published.version, basis.epoch.number))
            if left[limit:]
            else None,
            ndcg=_ndcg(listing, basis.judgements, {listing.documents[i] for i in passed}),
            ranked_by="feedback" if listing.by_feedback else "score",
        )

    async def _basis(self, published: PublishedModel, cursor: Cursor | None) -> Basis:
        """What the ranking is made of, or was when the cursor's first page was read."""
        topic = published.topic
        if cursor and cursor.version:
            earlier = await self._earlier(topic, cursor)
            if earlier:
                return earlier
        version, judgements = await self._learning.read(topic, lambda s: (s.resolved.version, Judgements.of(s)))
        if version != published.version:  # it has learned in this moment
            published = await self._learning.catch_up(topic)
        return Basis(published, judgements, self._epochs.current)

    async def _earlier(self, topic: str, cursor: Cursor) -> Basis | None:
        """The topic as it was; None if that is not known any more."""
        head, events = await self._learning.read(topic, lambda state: (state.head, list(state.events)))
        then = [event for event in events if event.seq <= cursor.version]
        if not head.floor <= cursor.version <= events[-1].seq or not then:
            return None
        if not {cursor.epoch, then[-1].epoch} <= {0, *await self._stored_epochs()}:
            return None
        idf, background = await self._epochs.load(cursor.epoch), await self._epochs.load(then[-1].epoch)

        def fold() -> Basis:
            state = TopicState(topic, replace(head, seq=then[-1].seq), then, self._weights)
            return Basis(state.build_model(background), Judgements.of(state), idf)

        return await self._pool.run(fold)

    async def _listing(self, basis: Basis, since_ms: int, newest: tuple[int, int] | None) -> Listing:
        """What passed up to that entry, ranked; since then, unless the ranking learns from what passed earlier."""
        published, judgements = basis.published, basis.judgements
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
            scores = await self._pool.run(self._scores, basis, list(new.values()))
            documents |= zip(new, scores, strict=True)
            ranks += [Rank(score, order(each.place)) for each, score in zip(new.values(), scores, strict=True)]
            if setting:
                output = output or Output(judgements, self._analysis, newest[0])
                await self._pool.run(output.add, list(new.values()), scores)
        held_out = {document: each.score for document, each in judgements.documents.items()}
        listing = Listing(ranks, list(documents), list(documents.values()), newest or (0, 0), held_out, False)
        if setting and output:
            return await self._pool.run(_ordered, listing, output, setting.C)
        return listing

    def _scores(self, basis: Basis, entries: Sequence[Placed]) -> list[float]:
        published = basis.published
        scores = {placed.place: placed.entry.score for placed in entries}
        old = [placed for placed in entries if placed.entry.version != published.version]
        counted = bags([(placed.entry.title, placed.entry.text) for placed in old], self._analysis)
        idf = basis.epoch.frequencies.idf(counted.features)
        for i, placed in enumerate(old):
            scores[placed.place] = round(published.decide_bag(bag_of(counted, idf, i))[1], DIGITS)
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


def _ndcg(listing: Listing, judgements: Judgements, passed: set[str]) -> Figure | None:
    judged = [document for document in judgements.documents if document in passed and document in listing.held_out]
    scores = np.array([listing.held_out[document] for document in judged], float)
    gains = np.array([judgements.documents[document].label.gain for document in judged], float)
    ndcg = rankings.ndcg(scores, gains, prequential.TAIL)
    if ndcg is None or ndcg.estimate is None:
        return None
    estimate, low, high = (round(number, DIGITS) for number in (ndcg.estimate, ndcg.low, ndcg.high))
    return Figure(estimate=estimate, low=low, high=high)


def _ranked(passed: Passed, listing: Listing, i: int, standing: StandingJudgement | None) -> Ranked:
    relevant, grade = (standing.relevant, standing.grade) if standing else (None, None)
    fields = passed.model_dump() | {"score": listing.scores[i], "relevant": relevant, "grade": grade}
    return Ranked(**fields, rank=listing.ranks[i].rank if listing.by_feedback else None)
