"""The documents that are remembered: search, and one of them with what was decided and said about it."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import Depends, Query
from starlette.responses import Response

from service.api.deps import DocumentPath, Limit, ReadySluice, new_router, reply
from service.api.openapi import answers
from service.clock import ms_of
from service.documents.search import Asked
from service.schemas import ClassifyOptions, Decision
from service.schemas.fields import HIT, MAX_MS, Line, TopicId
from service.schemas.remembered import FoundPage, RememberedDocument

Q = Annotated[Line, Query(description='What to look for: words, "phrases", -words that must not occur, and prefix*.')]
OfTopic = Annotated[TopicId | None, Query(description="Only what this topic did not reject; or see `decision`.")]
WithDecision = Annotated[Decision | None, Query(description="Only what the topic decided so when it passed.")]
Source = Annotated[Line | None, Query(description="Only documents of this source.")]
Since = Annotated[datetime | None, Query(description="Only what came at this time or later; without a zone it is UTC.")]
Until = Annotated[datetime | None, Query(description="Only what came before this time.")]
Sorted = Annotated[Literal["newest", "best"], Query(description="`best`: what fits the words best comes first.")]
HitCursor = Annotated[str | None, Query(pattern=HIT, description="`next` of the previous page.")]

router = new_router()


async def _asked(
    q: Q = "",
    topic: OfTopic = None,
    decision: WithDecision = None,
    source: Source = None,
    since: Since = None,
    until: Until = None,
    sort: Sorted = "newest",
) -> Asked:
    since_ms, until_ms = ms_of(since) if since else 0, ms_of(until) if until else MAX_MS
    return Asked(q, topic, decision, source, since_ms, until_ms, sort)


AskedFor = Annotated[Asked, Depends(_asked)]


@router.get("/documents", tags=["documents"], **answers(FoundPage, 404))
async def search_documents(
    sluice: ReadySluice, asked: AskedFor, limit: Limit = 100, cursor: HitCursor = None
) -> Response:
    """Search the documents that are remembered, by words, topic, decision, source and time."""
    return reply(await sluice.search.page(asked, cursor, limit))


@router.get("/documents/{document:path}", tags=["documents"], **answers(RememberedDocument, 404))
async def show_document(
    sluice: ReadySluice,
    document: DocumentPath,
    topics: Annotated[list[TopicId] | None, Query(description="Topics to look at; default: all.")] = None,
    now: Annotated[bool, Query(description="Decide the document again, by the models as they are now.")] = False,
    explain: Annotated[bool, Query(description="With `now`: explain each of these decisions.")] = False,
    include: Annotated[Literal["all"] | None, Query(description="List rejections, too.")] = None,
) -> Response:
    """A remembered document, with the decisions on it and its judgements. Rejections are left out unless topics are
    named."""
    options = ClassifyOptions(topics=topics, explain=explain, store=False, include=include)
    return reply(await sluice.documents.find(document, options, now))
