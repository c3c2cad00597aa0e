"""Searching what is remembered, for words, time, source, and what a topic decided.

    words, source, time  →  the index  →  what the topic decided, from the store  →  a page, with the texts around words

What a topic decided is not in the index: the store knows it anyway, for any documents at once, and is always right. So
a search for a topic's decisions takes hits from the index in chunks, newest or best first, and keeps those that fit. A
page ends after MAX_SCANNED hits, however few have fitted, so that no search takes long; the next page goes on there.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from service.clock import time_of
from service.documents.following import Follower
from service.documents.index import Below, Hit, Query, Sort, Texts, reading
from service.documents.words import parse
from service.errors import BadInput, FieldError
from service.schemas import Decision
from service.schemas.fields import MAX_MS
from service.schemas.remembered import Found, FoundPage, Matches
from service.store.topics import Store
from service.tasks import Pool
from service.topics.crud import Topics

CHUNK = 500  # hits that are read together
MAX_SCANNED = 50_000
NEVER_MS = -1
DIGITS = 6  # of a score


class Asked(NamedTuple):
    """What a search asks for; see `GET /documents`."""

    q: str = ""
    topic: str | None = None
    decision: Decision | None = None
    source: str | None = None
    since_ms: int = 0
    until_ms: int = MAX_MS
    sort: Sort = "newest"


class Kept(NamedTuple):
    hit: Hit
    decision: Decision | None  # of the topic, if one is named


class Search:
    def __init__(self, store: Store, topics: Topics, directory: Path, pool: Pool) -> None:
        self.follower = Follower(store.documents, directory)
        self._store = store
        self._topics = topics
        self._directory = directory
        self._pool = pool

    async def page(self, asked: Asked, cursor: str | None, limit: int) -> FoundPage:
        """The next hits behind the cursor. BadInput if the words cannot be understood, NotFound if there is no such
        topic."""
        if asked.decision and not asked.topic:
            raise BadInput(
                "The search cannot be understood.",
                [FieldError(pointer="?decision", detail="Name the `topic` whose decision is meant.")],
            )
        query = Query(
            parse(asked.q) if asked.q.strip() else None, asked.source, asked.since_ms, asked.until_ms, asked.sort
        )
        created_ms = (await self._topics.find(asked.topic)).settings.created_ms if asked.topic else 0
        complete = await self.follower.current()
        store = await self._store.documents.store_name()
        below, scanned = _below(cursor), 0
        kept: list[Kept] = []
        while len(kept) <= limit:
            wanted = CHUNK if asked.topic else limit + 1
            hits = await self._pool.run(self._hits, store, query, below, wanted)
            kept += await self._decided(asked, created_ms, hits)
            scanned += len(hits)
            if hits:
                below = hits[-1].score, hits[-1].number
            if len(hits) < wanted:
                below = None
                break
            if scanned >= MAX_SCANNED:
                break
        page, rest = kept[:limit], kept[limit:]
        if rest:
            below = page[-1].hit.score, page[-1].hit.number
        texts = await self._pool.run(self._texts, store, query, [each.hit for each in page])
        labels: dict[str, bool] = {}
        if asked.topic:
            labels = await self._store.logs.labels(asked.topic, [each.hit.id for each in page])
        items = [
            _found(each, text, query, labels.get(each.hit.id)) for each, text in zip(page, texts, strict=True) if text
        ]
        return FoundPage(items=items, next=f"{below[0]!r}_{below[1]}" if below else None, complete=complete)

    def _hits(self, store: str, query: Query, below: Below | None, limit: int) -> list[Hit]:
        with reading(self._directory, store) as reader:
            return reader.hits(query, below, limit)

    def _texts(self, store: str, query: Query, hits: Sequence[Hit]) -> list[Texts | None]:
        with reading(self._directory, store) as reader:
            return [reader.texts(hit, query.wanted) for hit in hits]

    async def _decided(self, asked: Asked, created_ms: int, hits: Sequence[Hit]) -> list[Kept]:
        """The hits that the topic decided as asked: any but rejections, if nothing is asked."""
        if not asked.topic:
            return [Kept(hit, None) for hit in hits]
        # A document that is not in the topic's stream was rejected, if it was put to all topics.
        came = {hit.id: hit.came_ms if hit.everywhere and hit.came_ms >= created_ms else NEVER_MS for hit in hits}
        decisions = await self._store.outbox.decisions({asked.topic: came}, latest=True)
        wanted = (asked.decision,) if asked.decision else ("accept", "abstain")
        pairs = ((hit, decisions.get((asked.topic, hit.id))) for hit in hits)
        return [Kept(hit, decision) for hit, decision in pairs if decision in wanted]


def _below(cursor: str | None) -> Below | None:
    if cursor is None:
        return None
    score, _, number = cursor.partition("_")
    return float(score), int(number)


def _found(kept: Kept, texts: Texts, query: Query, relevant: bool | None) -> Found:
    hit = kept.hit
    ranked = query.sort == "best" and query.wanted is not None and query.wanted.all_of
    return Found(
        document=hit.id,
        title=texts.title,
        snippet=texts.snippet,
        matches=Matches(title=texts.in_title, snippet=texts.in_snippet),
        **texts.origin,
        at=time_of(hit.came_ms),
        score=round(hit.score, DIGITS) if ranked else None,
        decision=kept.decision,
        relevant=relevant,
    )
