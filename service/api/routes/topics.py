"""Topics: created, listed, read, changed, deleted."""

from hashlib import blake2b
from typing import Annotated

from fastapi import Header, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service import schemas
from service.api import present
from service.api.deps import Cursor, Limit, ReadySluice, TopicPath, new_router, paged, read, reply_topic
from service.api.openapi import answers, takes
from service.errors import PreconditionFailed
from service.topics.published import PublishedModel

router = new_router()

NEW_TOPIC = TypeAdapter(schemas.NewTopic)
TOPIC_CHANGE = TypeAdapter(schemas.TopicChange)

IfMatch = Annotated[str | None, Header()]


@router.post(
    "/topics",
    status_code=201,
    tags=["topics"],
    **takes(schemas.NewTopic),
    **answers(schemas.Topic, 409, tagged=True, created=True),
)
async def create_topic(request: Request, sluice: ReadySluice) -> Response:
    """Create a topic. It decides by its query at once, before any judgement."""
    new = await read(request, NEW_TOPIC)
    published = await sluice.topics.create(new)
    warnings = await sluice.goal_costs.of_new(published, new)
    return await reply_topic(sluice, published, 201, {"Location": f"/topics/{published.topic}"}, warnings)


@router.get("/topics", tags=["topics"], **answers(schemas.Page[schemas.Topic], tagged=True))
async def list_topics(sluice: ReadySluice, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All topics, by id."""
    topics, following = await sluice.topics.page(cursor or "", limit)
    counts = await sluice.counters.load([published.topic for published in topics])
    page = paged([present.topic(*pair, sluice.config) for pair in zip(topics, counts, strict=True)], following)
    page.headers["ETag"] = f'"{blake2b(page.body, digest_size=8).hexdigest()}"'
    return page


@router.get("/topics/{topic}", tags=["topics"], **answers(schemas.Topic, 404, tagged=True))
async def read_topic(sluice: ReadySluice, topic: TopicPath) -> Response:
    """A topic: its settings and its state."""
    return await reply_topic(sluice, await sluice.topics.find(topic))


@router.patch(
    "/topics/{topic}",
    tags=["topics"],
    **takes(schemas.TopicChange),
    **answers(schemas.Topic, 404, 409, 412, tagged=True),
)
async def change_topic(request: Request, sluice: ReadySluice, topic: TopicPath, if_match: IfMatch = None) -> Response:
    """Change some of a topic's settings. With another learner or query, all its judgements are learned again."""
    published, change = await sluice.topics.find(topic), await read(request, TOPIC_CHANGE)
    expected = _expected_version(published, if_match)
    warnings = await sluice.goal_costs.of_change(published, change)
    return await reply_topic(sluice, await sluice.topics.change(topic, change, expected), warnings=warnings)


@router.delete("/topics/{topic}", status_code=204, tags=["topics"], **answers(None, 404, 412))
async def delete_topic(sluice: ReadySluice, topic: TopicPath, if_match: IfMatch = None) -> Response:
    """Delete a topic and everything about it."""
    expected = None if if_match is None else _expected_version(await sluice.topics.find(topic), if_match)
    await sluice.topics.delete(topic, expected)
    return Response(status_code=204)


def _expected_version(published: PublishedModel, if_match: str | None) -> int | None:
    """The version that the caller insists on; None if any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    if present.etag(published) not in [tag.strip() for tag in if_match.split(",")]:
        raise PreconditionFailed("The topic has changed since you read it; read it again.")
    return published.version
