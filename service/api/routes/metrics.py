"""How well a topic has done, and what it would do under other settings."""

from contextlib import suppress

from fastapi import Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service.api import present
from service.api.deps import ReadySluice, TopicPath, new_router, read, reply
from service.api.openapi import answers, takes
from service.errors import NotFound
from service.feedback.curves import curve_of, scored_evidence, tradeoff_of
from service.feedback.metrics import evidence, metrics, overview
from service.schemas.metrics import Curve, Metrics, Overview, Preview, PreviewRequest, Tradeoff

PREVIEW = TypeAdapter(PreviewRequest)

router = new_router()


@router.get("/metrics/overview", tags=["measures"], **answers(Overview))
async def read_overview(sluice: ReadySluice) -> Response:
    """How well all topics have done: micro and macro averages, each with an interval. Reads every topic's log."""
    topics = list(sluice.registry.topics)
    counts = await sluice.counters.load(topics)
    judged = []
    for topic, counted in zip(topics, counts, strict=True):
        with suppress(NotFound):  # deleted meanwhile
            judged.append((await sluice.learning.read(topic, evidence), counted))
    return reply(await sluice.pool.run(overview, judged))


@router.get("/topics/{topic}/metrics", tags=["measures"], **answers(Metrics, 404))
async def read_metrics(sluice: ReadySluice, topic: TopicPath) -> Response:
    """How well the topic has done on documents that it decided before they were judged; each figure with an
    interval."""
    published = await sluice.topics.find(topic)
    judged = await sluice.learning.read(topic, evidence)
    (counts,) = await sluice.counters.load([topic])
    return reply(await sluice.pool.run(metrics, published, judged, counts))


@router.get("/topics/{topic}/curve", tags=["measures"], **answers(Curve, 404))
async def read_curve(sluice: ReadySluice, topic: TopicPath) -> Response:
    """Precision and recall at every cut, each with an interval, and where the topic stands now."""
    published = await sluice.topics.find(topic)
    scored = await sluice.learning.read(topic, scored_evidence)
    (counts,) = await sluice.counters.load([topic])
    return reply(await sluice.pool.run(curve_of, published, scored, counts))


@router.get("/topics/{topic}/tradeoff", tags=["measures"], **answers(Tradeoff, 404))
async def read_tradeoff(sluice: ReadySluice, topic: TopicPath) -> Response:
    """The least error among the decided for each share that is left undecided, with the cuts that give it, and where
    the topic stands now."""
    published = await sluice.topics.find(topic)
    scored = await sluice.learning.read(topic, scored_evidence)
    (counts,) = await sluice.counters.load([topic])
    return reply(await sluice.pool.run(tradeoff_of, published, scored, counts))


@router.post("/topics/{topic}/preview", tags=["measures"], **takes(PreviewRequest), **answers(Preview, 404))
async def preview(request: Request, sluice: ReadySluice, topic: TopicPath) -> Response:
    """Shows what would change under other settings, without changing anything."""
    await sluice.topics.find(topic)
    outcome = await sluice.previews.preview(topic, await read(request, PREVIEW))
    return reply(present.preview(outcome, sluice.config))
