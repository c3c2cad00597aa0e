"""Review, known items, and the recall that known items and audits show."""

from typing import Annotated

from fastapi import Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service import schemas
from service.api.deps import DocumentPath, Limit, ReadySluice, TopicPath, at_most, new_router, read, reply
from service.api.openapi import answers, takes
from service.schemas.fields import DOCUMENT_ID_CHARS
from service.schemas.review import KnownAdded, KnownPage, NewKnown, ReviewPage, Skip, Skipped

SKIP = TypeAdapter(Skip)
NEW_KNOWN = TypeAdapter(NewKnown)

ReviewLimit = Annotated[int, Query(ge=1, le=100, description="Maximum number of items in the answer.")]
DocumentCursor = Annotated[
    str | None, Query(min_length=1, max_length=DOCUMENT_ID_CHARS, description="`next` of the previous page.")
]

router = new_router()


@router.get("/topics/{topic}/review", tags=["review"], **answers(ReviewPage, 404))
async def review(sluice: ReadySluice, topic: TopicPath, limit: ReviewLimit = 20) -> Response:
    """Documents worth judging, best first, and whether more judgements would still help."""
    published = await sluice.topics.find(topic)
    report = await sluice.goals.report(published)
    return reply(await sluice.review.offers(published, report, limit))


@router.post("/topics/{topic}/review/skip", tags=["review"], **takes(Skip), **answers(Skipped, 404))
async def skip(request: Request, sluice: ReadySluice, topic: TopicPath) -> Response:
    """Do not offer this document again. Skipping says nothing about its relevance."""
    published, asked = await sluice.topics.find(topic), await read(request, SKIP)
    await sluice.review.skip(published, asked.document)
    return reply(Skipped(topic=topic, document=asked.document))


@router.post("/topics/{topic}/known", tags=["review"], **takes(NewKnown), **answers(KnownAdded, 404))
async def add_known(request: Request, sluice: ReadySluice, topic: TopicPath) -> Response:
    """Test the topic with relevant documents that were found elsewhere. They are never learned from."""
    published, asked = await sluice.topics.find(topic), await read(request, NEW_KNOWN)
    at_most(sluice, asked.documents, "documents")
    total, new = await sluice.known.add(published, asked.documents)
    return reply(KnownAdded(topic=topic, added=new, known=total))


@router.get("/topics/{topic}/known", tags=["review"], **answers(KnownPage, 404))
async def list_known(
    sluice: ReadySluice, topic: TopicPath, limit: Limit = 100, cursor: DocumentCursor = None
) -> Response:
    """Known items by id, with the topic's decision about each as of now, and the recall over all of them."""
    return reply(await sluice.known.page(await sluice.topics.find(topic), cursor, limit))


@router.delete("/topics/{topic}/known/{document:path}", status_code=204, tags=["review"], **answers(None, 404))
async def delete_known(sluice: ReadySluice, topic: TopicPath, document: DocumentPath) -> Response:
    """Remove a known item."""
    await sluice.topics.find(topic)
    await sluice.known.remove(topic, document)
    return Response(status_code=204)


@router.get("/recall", tags=["review"], **answers(schemas.PooledRecall))
async def pooled_recall(sluice: ReadySluice) -> Response:
    """Recall over all topics whose audits are asked for or judged, taken together."""
    return reply(await sluice.goals.pooled())
