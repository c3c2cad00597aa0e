"""Versions of a topic, and its model: shown, exported, replaced."""

from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service import schemas
from service.api import present
from service.api.deps import (
    Limit,
    NumberCursor,
    ReadySluice,
    TopicPath,
    VersionPath,
    new_router,
    paged,
    read,
    reply,
    reply_topic,
)
from service.api.openapi import answers, takes
from service.clock import time_of
from service.schemas.models import ModelFile, ModelInfo, Version
from service.sluice import Sluice
from service.topics.state import TopicState

router = new_router()

MODEL_FILE = TypeAdapter(ModelFile)


@router.get("/topics/{topic}/versions", tags=["versions"], **answers(schemas.Page[Version], 404))
async def list_versions(
    sluice: ReadySluice, topic: TopicPath, limit: Limit = 100, cursor: NumberCursor = None
) -> Response:
    """Published models, newest first."""
    await sluice.topics.find(topic)
    return paged(*await load_versions(sluice, topic, int(cursor or 0), limit))


async def load_versions(sluice: Sluice, topic: str, before: int, limit: int) -> tuple[list[Version], str | None]:
    """Published models before that version (0: all), newest first, and where the next page begins."""
    records = await sluice.learning.versions(topic, before, limit + 1)
    items = [Version(created=time_of(record.pop("created_ms")), **record) for record in records[:limit]]
    return items, str(items[-1].version) if records[limit:] else None


@router.post(
    "/topics/{topic}/versions/{version}/restore", tags=["versions"], **answers(schemas.Topic, 404, 409, tagged=True)
)
async def restore_version(sluice: ReadySluice, topic: TopicPath, version: VersionPath) -> Response:
    """Serve an old version again, as a new one. Judgements since then no longer count, until they are made again."""
    return await reply_topic(sluice, await sluice.topics.restore(topic, version))


@router.get("/topics/{topic}/model", tags=["versions"], **answers(ModelInfo | ModelFile, 404))
async def read_model(
    sluice: ReadySluice,
    topic: TopicPath,
    format: Annotated[Literal["export"] | None, Query(description="`export`: a portable file.")] = None,
) -> Response:
    """The model: thresholds, and the terms that count most for and against. A portable file has words alone: of a
    model that goes by meaning, too, it holds one of words that scores documents much as it does."""
    published, words = await sluice.topics.find(topic), await sluice.learning.read(topic, TopicState.terms)
    if not format:
        return reply(present.model_info(published, words))
    epoch, weights = await sluice.epochs.load(published.epoch), sluice.config.served_weights
    sample = epoch.weighted(epoch.sample) if published.projection else []
    return reply(await sluice.pool.run(present.model_file, published, words, sample, weights))


@router.put(
    "/topics/{topic}/model",
    tags=["versions"],
    **takes(ModelFile),
    **answers(schemas.Topic, 404, 409, tagged=True),
)
async def replace_model(request: Request, sluice: ReadySluice, topic: TopicPath) -> Response:
    """Serve a model that was exported, here or elsewhere. Learning continues from it."""
    file = await read(request, MODEL_FILE)
    model = present.model(file, sluice.config.served_weights)
    return await reply_topic(sluice, await sluice.topics.put_model(topic, model, present.words(file)))
