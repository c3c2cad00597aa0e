"""Documents and judgements about them: the routes that carry most of the traffic, one at a time or as NDJSON."""

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import Query, Request
from pydantic import TypeAdapter
from pydantic_core import to_json
from starlette.responses import Response

from service import schemas
from service.api import ndjson, present
from service.api.bodies import JSON, NDJSON, media_type
from service.api.deps import (
    DocumentPath,
    Limit,
    NumberCursor,
    ReadySluice,
    TopicPath,
    at_most,
    caller_of,
    new_router,
    paged,
    read,
    reply,
)
from service.api.openapi import answers, takes
from service.api.problems import problem
from service.api.telemetry import Telemetry
from service.errors import ServiceError, StoreUnavailable
from service.schemas.fields import TopicId
from service.schemas.parsing import check_length, parse

router = new_router()

CLASSIFY = TypeAdapter(schemas.Classify)
DOCUMENT = TypeAdapter(schemas.Document)
JUDGEMENT = TypeAdapter(schemas.Judgement)
FEEDBACK: TypeAdapter[schemas.Judgement | schemas.Judgements] = TypeAdapter(schemas.Feedback)

Duplex = Annotated[bool, Query(description="NDJSON: answer while the request is being sent.")]


@router.post(
    "/classify",
    tags=["documents"],
    **takes(schemas.Classify, line=schemas.Document),
    **answers(schemas.Results, 404, line=schemas.Result),
)
async def classify(
    request: Request,
    sluice: ReadySluice,
    topics: Annotated[list[TopicId] | None, Query(description="NDJSON: topics to decide for; default: all.")] = None,
    explain: Annotated[bool, Query(description="NDJSON: explain each decision.")] = False,
    store: Annotated[bool, Query(description="NDJSON: remember the documents.")] = True,
    include: Annotated[Literal["all"] | None, Query(description="NDJSON: list rejections, too.")] = None,
    duplex: Duplex = False,
) -> Response:
    """Decide accept, reject or abstain for each document and topic."""
    telemetry: Telemetry = request.app.state.telemetry
    if media_type(request, JSON, NDJSON) == JSON:
        asked = await read(request, CLASSIFY)
        at_most(sluice, asked.documents, "documents")
        for document in asked.documents:
            check_length(document, sluice.config.max_text_chars)
        results = await sluice.classifier.classify(asked.documents, asked, present.results)
        telemetry.documents.inc(len(results))
        return _reply_results(results)
    options = schemas.ClassifyOptions(topics=topics, explain=explain, store=store, include="all" if include else None)
    for topic in topics or ():
        await sluice.topics.find(topic)

    def parse_line(line: bytes) -> schemas.Document:
        document = parse(DOCUMENT, line, sluice.config)
        check_length(document, sluice.config.max_text_chars)
        return document

    async def classify_all(documents: Sequence[schemas.Document]) -> list[bytes]:
        results = await sluice.classifier.classify_any(documents, options, present.results)
        telemetry.documents.inc(len(results))
        return results

    handle = ndjson.line_handler(sluice.pool, parse_line, classify_all)
    return await ndjson.answer(request, sluice.config, handle, duplex=duplex, in_turn=not store)


@router.post(
    "/feedback",
    tags=["documents"],
    **takes(schemas.Judgement, schemas.Judgements, line=schemas.Judgement),
    **answers(schemas.Learned | schemas.LearnedAll, 404, line=schemas.Learned),
)
async def feedback(request: Request, sluice: ReadySluice, duplex: Duplex = False) -> Response:
    """Say whether documents are relevant. The answer comes when the judgement is durable and has been learned."""
    caller = caller_of(request)

    async def judge(judgements: Sequence[schemas.Judgement]) -> list[schemas.Learned | ServiceError]:
        if caller is not None:
            judgements = [each if each.by else each.model_copy(update={"by": caller.name}) for each in judgements]
        outcomes = await sluice.judge.judge(judgements)
        request.app.state.telemetry.judged(each.status for each in outcomes if isinstance(each, schemas.Learned))
        return outcomes

    async def judge_all(judgements: Sequence[schemas.Judgement]) -> list[bytes]:
        outcomes = await judge(judgements)
        lost = [outcome for outcome in outcomes if isinstance(outcome, StoreUnavailable)]
        if lost and len(lost) == len(outcomes):
            raise lost[0]  # nothing was taken, and nothing will be while we go on asking
        return [to_json(problem(outcome) if isinstance(outcome, ServiceError) else outcome) for outcome in outcomes]

    def parse_line(line: bytes) -> schemas.Judgement:
        return parse(JUDGEMENT, line, sluice.config)

    if media_type(request, JSON, NDJSON) == NDJSON:
        handle = ndjson.line_handler(sluice.pool, parse_line, judge_all)
        return await ndjson.answer(request, sluice.config, handle, duplex=duplex)
    asked = await read(request, FEEDBACK)
    if isinstance(asked, schemas.Judgements):
        at_most(sluice, asked.judgements, "judgements")
        return _reply_results(await judge_all(asked.judgements))
    (outcome,) = await judge([asked])
    if isinstance(outcome, ServiceError):
        raise outcome
    return reply(outcome)


@router.get("/topics/{topic}/judgements", tags=["documents"], **answers(schemas.Page[schemas.PastJudgement], 404))
async def list_judgements(
    sluice: ReadySluice, topic: TopicPath, limit: Limit = 100, cursor: NumberCursor = None
) -> Response:
    """The judgements in force, newest first."""
    return paged(*await sluice.judge.page(topic, int(cursor) if cursor else None, limit))


@router.delete("/topics/{topic}/judgements/{document:path}", tags=["documents"], **answers(schemas.Withdrawn, 404))
async def withdraw_judgement(sluice: ReadySluice, topic: TopicPath, document: DocumentPath) -> Response:
    """Withdraw a judgement. The model becomes what it would have been without it."""
    version = await sluice.judge.withdraw(topic, document)
    return reply(schemas.Withdrawn(topic=topic, document=document, version=version))


def _reply_results(results: Sequence[bytes]) -> Response:
    """The answer `{"results": […]}`, from results that are JSON already."""
    chunks = ndjson.joined(b'{"results":[', b",", results, b"]}")
    length = sum(map(len, results)) + len(results) - 1 + len(b'{"results":[]}')
    return ndjson.ChunkedResponse(chunks, JSON, length)
