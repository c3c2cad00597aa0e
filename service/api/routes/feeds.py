"""Feeds for feed readers, as Atom and as JSON Feed: of what a topic accepts, and of a search."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from service.api import feeds
from service.api.deps import ReadySluice, TopicPath, new_router
from service.api.feeds import ATOM_TYPE, JSON_FEED_TYPE, Feed
from service.api.openapi import answers
from service.api.routes.remembered import AskedFor
from service.clock import time_of
from service.documents.search import Asked
from service.schemas.feeds import JsonFeed
from service.schemas.flow import Passed
from service.sluice import Sluice

MAX_PAGES = 10  # of the topic's output that are read to find what was accepted
Unsure = Annotated[bool, Query(description="Also what the topic abstained on.")]
Entries = Annotated[int, Query(ge=1, le=500, description="Maximum number of entries.")]

router = new_router()


@router.get("/topics/{topic}/feed.atom", tags=["flow"], **answers(None, 404, text=ATOM_TYPE))
async def topic_atom(
    request: Request, sluice: ReadySluice, topic: TopicPath, unsure: Unsure = False, limit: Entries = 50
) -> Response:
    """What the topic accepted lately, for feed readers, as Atom."""
    feed = await _of_topic(request, sluice, topic, unsure, limit)
    return feeds.answer(request, feeds.atom(feed), ATOM_TYPE)


@router.get("/topics/{topic}/feed.json", tags=["flow"], **answers(None, 404, media=(JSON_FEED_TYPE, JsonFeed)))
async def topic_json_feed(
    request: Request, sluice: ReadySluice, topic: TopicPath, unsure: Unsure = False, limit: Entries = 50
) -> Response:
    """The same as JSON Feed."""
    feed = await _of_topic(request, sluice, topic, unsure, limit)
    return feeds.answer(request, feeds.json_feed(feed), JSON_FEED_TYPE)


@router.get("/documents.atom", tags=["documents"], **answers(None, 404, text=ATOM_TYPE))
async def search_atom(request: Request, sluice: ReadySluice, asked: AskedFor, limit: Entries = 50) -> Response:
    """What a search of the remembered documents finds, for feed readers, as Atom."""
    feed = await _of_search(request, sluice, asked, limit)
    return feeds.answer(request, feeds.atom(feed), ATOM_TYPE)


@router.get("/documents.json", tags=["documents"], **answers(None, 404, media=(JSON_FEED_TYPE, JsonFeed)))
async def search_json_feed(request: Request, sluice: ReadySluice, asked: AskedFor, limit: Entries = 50) -> Response:
    """The same as JSON Feed."""
    feed = await _of_search(request, sluice, asked, limit)
    return feeds.answer(request, feeds.json_feed(feed), JSON_FEED_TYPE)


async def _of_topic(request: Request, sluice: Sluice, topic: str, unsure: bool, limit: int) -> Feed:
    published = await sluice.topics.find(topic)
    name = published.settings.name or topic
    said = "Accepted, and what it is unsure about" if unsure else "Accepted"
    return Feed(
        id=feeds.feed_id(topic, published.born, str(unsure)),
        title=name,
        subtitle=f"{said}, by Sluice. Query: {published.settings.query}" if published.settings.query else said,
        address=str(request.url),
        updated=time_of(published.settings.created_ms),
        items=[feeds.passed_item(passed) for passed in await _passed(sluice, topic, unsure, limit)],
    )


async def _passed(sluice: Sluice, topic: str, unsure: bool, limit: int) -> list[Passed]:
    """The newest entries; of a document that is there twice, the newer one."""
    found: dict[str, Passed] = {}
    place: str | None = None
    for _ in range(MAX_PAGES):
        entries = await sluice.outbox.newest(topic, place, limit)
        for placed in entries:
            if placed.entry.decision == "accept" or unsure:
                found.setdefault(placed.entry.document, placed.passed(topic))
        if len(found) >= limit or len(entries) < limit:
            break
        place = entries[-1].place
    return list(found.values())[:limit]


async def _of_search(request: Request, sluice: Sluice, asked: Asked, limit: int) -> Feed:
    page = await sluice.search.page(asked, None, limit)
    what = asked.q.strip() or asked.topic or asked.source or "All documents"
    return Feed(
        id=feeds.feed_id("search", *map(str, asked)),
        title=what,
        subtitle="Found by Sluice among the documents that it remembers",
        address=str(request.url),
        updated=feeds.NEVER,
        items=[feeds.found_item(found) for found in page.items],
    )
