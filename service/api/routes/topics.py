"""The public contract, path by path. Each handler reads, asks the `Sluice`, and answers; nothing is decided here."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from hashlib import blake2b
from itertools import repeat
from typing import Annotated, TypeVar

from fastapi import Header, Query, Request
from pydantic import TypeAdapter
from pydantic_core import to_json
from starlette.responses import Response

from service import schemas
from service.api import ndjson, present
from service.api.bodies import JSON, NDJSON, media_type
from service.api.deps import (
    AnySluice,
    Cursor,
    DocumentPath,
    Limit,
    NumberCursor,
    ReadySluice,
    TopicPath,
    VersionPath,
    at_most,
    new_router,
    paged,
    read,
    reply,
    topic_answer,
)
from service.api.openapi import answers, takes
from service.api.problems import problem
from service.api.prometheus import overview
from service.api.telemetry import CONTENT_TYPE, Telemetry
from service.clock import time_of
from service.errors import PreconditionFailed, ServiceError, StoreUnavailable
from service.schemas.fields import TopicId
from service.schemas.models import ModelFile, ModelInfo, Version
from service.schemas.parsing import check_length, parse
from service.sluice import Sluice
from service.topics.published import PublishedModel
from service.topics.results import DocumentResult
from service.topics.state import TopicState

router = new_router()

NEW_TOPIC = TypeAdapter(schemas.NewTopic)
TOPIC_CHANGE = TypeAdapter(schemas.TopicChange)
CLASSIFY = TypeAdapter(schemas.Classify)
FEW_DECISIONS = 50  # are written faster than a thread is found
DOCUMENT = TypeAdapter(schemas.Document)
JUDGEMENT = TypeAdapter(schemas.Judgement)
FEEDBACK: TypeAdapter[schemas.Judgement | schemas.Judgements] = TypeAdapter(schemas.Feedback)
MODEL_FILE = TypeAdapter(ModelFile)

T = TypeVar("T")


# -- topics ------------------------------------------------------------------------------------------------------------


@router.post("/topics", status_code=201, tags=["topics"], **takes(schemas.NewTopic), **answers(schemas.Topic, 409))
async def create_topic(request: Request, sluice: ReadySluice) -> Response:
    """Make a topic. It works from its query text at once, before any judgement."""
    served = await sluice.topics.create(await read(request, NEW_TOPIC))
    return await topic_answer(sluice, served, 201, {"Location": f"/topics/{served.topic}"})


@router.get("/topics", tags=["topics"], **answers(schemas.Page[schemas.Topic], tagged=True))
async def list_topics(sluice: ReadySluice, limit: Limit = 100, cursor: Cursor = None) -> Response:
    """All topics, by id."""
    found, following = await sluice.topics.page(cursor or "", limit)
    counts = await sluice.counters.read([served.topic for served in found])
    page = paged([present.topic(*pair, sluice.config) for pair in zip(found, counts, strict=True)], following)
    page.headers["ETag"] = f'"{blake2b(page.body, digest_size=8).hexdigest()}"'
    return page


@router.get("/topics/{topic}", tags=["topics"], **answers(schemas.Topic, 404, tagged=True))
async def read_topic(sluice: ReadySluice, topic: TopicPath) -> Response:
    """A topic, its settings and how it stands."""
    return await topic_answer(sluice, await sluice.topics.find(topic))


@router.patch(
    "/topics/{topic}",
    tags=["topics"],
    **takes(schemas.TopicChange),
    **answers(schemas.Topic, 404, 409, 412, tagged=True),
)
async def change_topic(
    request: Request, sluice: ReadySluice, topic: TopicPath, if_match: Annotated[str | None, Header()] = None
) -> Response:
    """Change some of a topic's settings. Another learner or query refolds all its judgements."""
    expected = _matched(await sluice.topics.find(topic), if_match)
    return await topic_answer(sluice, await sluice.topics.change(topic, await read(request, TOPIC_CHANGE), expected))


@router.delete("/topics/{topic}", status_code=204, tags=["topics"], **answers(None, 404, 412))
async def delete_topic(
    sluice: ReadySluice, topic: TopicPath, if_match: Annotated[str | None, Header()] = None
) -> Response:
    """Delete a topic and everything about it."""
    await sluice.topics.delete(topic, None if if_match is None else _matched(await sluice.topics.find(topic), if_match))
    return Response(status_code=204)


# -- documents ---------------------------------------------------------------------------------------------------------


@router.post(
    "/classify",
    tags=["documents"],
    **takes(schemas.Classify, line=schemas.Document),
    **answers(schemas.Results, 404, line=schemas.Result),
)
async def classify(
    request: Request,
    sluice: ReadySluice,
    topics: Annotated[list[TopicId] | None, Query(description="NDJSON: the topics to ask; else all.")] = None,
    explain: Annotated[bool, Query(description="NDJSON: say why.")] = False,
    store: Annotated[bool, Query(description="NDJSON: remember the documents.")] = True,
    include: Annotated[str | None, Query(pattern="^all$", description="NDJSON: rejections too.")] = None,
    duplex: Annotated[bool, Query(description="NDJSON: answer while the request is being sent.")] = False,
) -> Response:
    """Decide accept, reject or abstain for each document and topic."""
    telemetry: Telemetry = request.app.state.telemetry
    if media_type(request, JSON, NDJSON) == JSON:
        asked = await read(request, CLASSIFY)
        at_most(sluice, asked.documents, "documents")
        for one in asked.documents:
            check_length(one, sluice.config.max_text_chars)
        results = await sluice.classifier.classify(asked.documents, asked)
        telemetry.documents.inc(len(results))
        return _results(await _written(sluice, results))
    options = schemas.ClassifyOptions(topics=topics, explain=explain, store=store, include="all" if include else None)
    for topic in topics or ():
        await sluice.topics.find(topic)

    def document(line: bytes) -> schemas.Document:
        parsed = parse(DOCUMENT, line, sluice.config)
        check_length(parsed, sluice.config.max_text_chars)
        return parsed

    async def classified(documents: Sequence[schemas.Document]) -> list[bytes]:
        results = await sluice.classifier.classify_any(documents, options)
        telemetry.documents.inc(len(results))
        return await _written(sluice, results)

    each = partial(_each, sluice, document, classified)
    return await ndjson.answer(request, sluice.config, each, duplex=duplex, in_turn=not store)


@router.post(
    "/feedback",
    tags=["documents"],
    **takes(schemas.Judgement, schemas.Judgements, line=schemas.Judgement),
    **answers(schemas.Learned | schemas.LearnedAll, 404, line=schemas.Learned),
)
async def feedback(
    request: Request,
    sluice: ReadySluice,
    duplex: Annotated[bool, Query(description="NDJSON: answer while the request is being sent.")] = False,
) -> Response:
    """Say whether documents are relevant. The answer comes when the judgement is durable and has been learned."""

    async def judged(judgements: Sequence[schemas.Judgement]) -> list[schemas.Learned | ServiceError]:
        answers = await sluice.judge.judge(judgements)
        request.app.state.telemetry.judged(one.status for one in answers if isinstance(one, schemas.Learned))
        return answers

    async def learned(judgements: Sequence[schemas.Judgement]) -> list[bytes]:
        answers = await judged(judgements)
        lost = [one for one in answers if isinstance(one, StoreUnavailable)]
        if lost and len(lost) == len(answers):
            raise lost[0]  # nothing was taken, and nothing will be while we go on asking
        return [to_json(problem(one) if isinstance(one, ServiceError) else one) for one in answers]

    if media_type(request, JSON, NDJSON) == NDJSON:

        def judgement(line: bytes) -> schemas.Judgement:
            return parse(JUDGEMENT, line, sluice.config)

        return await ndjson.answer(request, sluice.config, partial(_each, sluice, judgement, learned), duplex=duplex)
    given = await read(request, FEEDBACK)
    if isinstance(given, schemas.Judgements):
        at_most(sluice, given.judgements, "judgements")
        return _results(await learned(given.judgements))
    (answer,) = await judged([given])
    if isinstance(answer, ServiceError):
        raise answer
    return reply(answer)


@router.get("/topics/{topic}/judgements", tags=["documents"], **answers(schemas.Page[schemas.PastJudgement], 404))
async def list_judgements(
    sluice: ReadySluice, topic: TopicPath, limit: Limit = 100, cursor: NumberCursor = None
) -> Response:
    """The judgements that stand, newest first."""
    before = int(cursor) if cursor else None
    judged = await sluice.learning.read(topic, lambda fold: list(fold.resolved.judged.values()))
    standing = sorted(judged, key=lambda one: -one.latest.seq)
    rest = [one for one in standing if before is None or one.latest.seq < before]
    items = [
        schemas.PastJudgement(
            document=one.first.document,
            relevant=one.relevant,
            title=one.first.title,
            by=one.latest.by or None,
            at=time_of(one.latest.at_ms),
            version=one.latest.seq,
            before=schemas.Before.model_validate({"decision": one.first.decision, "score": one.first.score}),
        )
        for one in rest[:limit]
    ]
    return paged(items, str(items[-1].version) if rest[limit:] else None)


@router.delete("/topics/{topic}/judgements/{document:path}", tags=["documents"], **answers(schemas.Withdrawn, 404))
async def withdraw_judgement(sluice: ReadySluice, topic: TopicPath, document: DocumentPath) -> Response:
    """Take a judgement back. The model becomes what it would have been without it."""
    version = await sluice.judge.withdraw(topic, document)
    return reply(schemas.Withdrawn(topic=topic, document=document, version=version))


# -- versions and models -----------------------------------------------------------------------------------------------


@router.get("/topics/{topic}/versions", tags=["versions"], **answers(schemas.Page[Version], 404))
async def list_versions(
    sluice: ReadySluice, topic: TopicPath, limit: Limit = 100, cursor: NumberCursor = None
) -> Response:
    """Published models, newest first."""
    await sluice.topics.find(topic)
    records = await sluice.learning.versions(topic, int(cursor or 0), limit + 1)
    items = [Version(created=time_of(record.pop("created_ms")), **record) for record in records[:limit]]
    return paged(items, str(items[-1].version) if records[limit:] else None)


@router.post(
    "/topics/{topic}/versions/{version}/restore", tags=["versions"], **answers(schemas.Topic, 404, 409, tagged=True)
)
async def restore_version(sluice: ReadySluice, topic: TopicPath, version: VersionPath) -> Response:
    """Serve an old version again, as a new one. Judgements since then no longer count, until they are made again."""
    return await topic_answer(sluice, await sluice.topics.restore(topic, version))


@router.get("/topics/{topic}/model", tags=["versions"], **answers(ModelInfo | ModelFile, 404))
async def read_model(
    sluice: ReadySluice,
    topic: TopicPath,
    format: Annotated[str | None, Query(pattern="^export$", description="`export`: a portable file.")] = None,
) -> Response:
    """What decides: thresholds, and the terms that count most for and against."""
    served, words = await sluice.topics.find(topic), await sluice.learning.read(topic, TopicState.terms)
    return reply(present.model_file(served, words) if format else present.model_info(served, words))


@router.put(
    "/topics/{topic}/model",
    tags=["versions"],
    **takes(ModelFile),
    **answers(schemas.Topic, 404, 409, tagged=True),
)
async def replace_model(request: Request, sluice: ReadySluice, topic: TopicPath) -> Response:
    """Serve a model that was exported, here or elsewhere. Learning goes on from it."""
    file = await read(request, MODEL_FILE)
    model = present.model(file, sluice.config.served_weights)
    return await topic_answer(sluice, await sluice.topics.put_model(topic, model, present.words(file)))


# -- health ------------------------------------------------------------------------------------------------------------


@router.get("/healthz", tags=["health"], **answers(schemas.Health))
async def healthz() -> Response:
    """The process is up."""
    return reply(schemas.Health(status="ok"))


@router.get("/readyz", tags=["health"], **answers(schemas.Health))
async def readyz(sluice: ReadySluice) -> Response:
    """The store answers and all models are loaded."""
    await sluice.store.ping()
    return reply(schemas.Health(status="ok", topics=len(sluice.registry.topics)))


@router.get("/metrics", tags=["health"], **answers(None, text=CONTENT_TYPE))
async def scrape(request: Request, sluice: AnySluice) -> Response:
    """What the service does and how it stands, for Prometheus; also while the store does not answer."""
    telemetry: Telemetry = request.app.state.telemetry
    telemetry.note(len(sluice.registry.topics), sluice.registry.bank_bytes)
    found = await overview(sluice, request.app.version)
    return Response(await sluice.pool.run(telemetry.text, found), media_type=CONTENT_TYPE)


# -- how ---------------------------------------------------------------------------------------------------------------


async def _each(
    sluice: Sluice,
    read: Callable[[bytes], T],
    handle: Callable[[Sequence[T]], Awaitable[list[bytes]]],
    lines: Sequence[bytes],
) -> list[bytes]:
    """A line out for each line in: what `handle` makes of it, or the problem with it."""

    def each_read() -> list[T | ServiceError]:
        return [_or_error(read, line) for line in lines]

    parsed = await sluice.pool.run(each_read)
    items = [one for one in parsed if not isinstance(one, ServiceError)]
    try:
        handled = iter(await handle(items) if items else [])
    except StoreUnavailable:
        raise
    except ServiceError as error:
        handled = repeat(to_json(problem(error)))
    return [to_json(problem(one)) if isinstance(one, ServiceError) else next(handled) for one in parsed]


def _or_error(read: Callable[[bytes], T], line: bytes) -> T | ServiceError:
    try:
        return read(line)
    except ServiceError as error:
        return error


async def _written(sluice: Sluice, results: Sequence[DocumentResult]) -> list[bytes]:
    """The results as JSON; many are written in a thread."""
    if sum(len(result.decisions) for result in results) <= FEW_DECISIONS:
        return present.results(results)
    return await sluice.pool.run(present.results, results)


def _results(results: Sequence[bytes]) -> Response:
    pieces = ndjson.pieces(b'{"results":[', b",", results, b"]}")
    return ndjson.Pieces(pieces, JSON, sum(map(len, results)) + len(results) - 1 + len(b'{"results":[]}'))


def _matched(served: PublishedModel, if_match: str | None) -> int | None:
    """The version that the caller insists on; None if any will do."""
    if if_match is None or if_match.strip() == "*":
        return None
    if present.etag(served) not in [tag.strip() for tag in if_match.split(",")]:
        raise PreconditionFailed("The topic has changed since you read it; read it again.")
    return served.version
