"""How well a topic has done, and what it would do under other settings."""

from fastapi import Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service.api import present
from service.api.deps import ReadySluice, TopicPath, new_router, read, reply
from service.api.openapi import answers, takes
from service.feedback.metrics import evidence, metrics
from service.schemas.metrics import Metrics, Preview, PreviewRequest

PREVIEW = TypeAdapter(PreviewRequest)

router = new_router()


@router.get("/topics/{topic}/metrics", tags=["measures"], **answers(Metrics, 404))
async def read_metrics(sluice: ReadySluice, topic: TopicPath) -> Response:
    """How well the topic has done on documents that it decided before they were judged; each figure with an
    interval."""
    published = await sluice.topics.find(topic)
    judged = await sluice.learning.read(topic, evidence)
    (counts,) = await sluice.counters.load([topic])
    return reply(await sluice.pool.run(metrics, published, judged, counts))


@router.post("/topics/{topic}/preview", tags=["measures"], **takes(PreviewRequest), **answers(Preview, 404))
async def preview(request: Request, sluice: ReadySluice, topic: TopicPath) -> Response:
    """What would change under other settings, without changing anything."""
    await sluice.topics.find(topic)
    outcome = await sluice.previews.preview(topic, await read(request, PREVIEW))
    return reply(present.preview(outcome, sluice.config))
