"""The first page: what waits for a judgement. Judging, skipping, and taking a judgement back."""

from collections.abc import Sequence
from typing import Annotated, Any

from fastapi import Path, Query, Request
from starlette.responses import Response

from service import schemas
from service.api import present
from service.api.deps import AnySluice, ReadySluice, caller_of, reply
from service.api.openapi import answers
from service.api.telemetry import Telemetry
from service.console import waiting, words
from service.console.forms import Form
from service.console.pages import (
    HTML,
    is_fragment,
    name_of,
    new_router,
    page,
    prefers_json,
    see_other,
)
from service.console.waiting import Order, Show
from service.console.words import key_of
from service.errors import BadInput, NotFound, ServiceError, StoreUnavailable
from service.schemas import ClassifyOptions, Judgement, Learned
from service.schemas.fields import TopicId
from service.sentences import number_of
from service.sluice import Sluice
from service.topics.published import PublishedModel

PAGE = 30  # items at first, and more each time
MAX_ITEMS = 300
MAX_LISTED = 200  # topics beside the list
NO_DECISIONS = ClassifyOptions(topics=[])
VERDICTS = {"yes": "Relevant", "no": "Not relevant", "skip": "Skipped"}

TopicQuery = Annotated[TopicId | None, Query(description="Only this topic.")]
OrderQuery = Annotated[Order, Query()]
ShowQuery = Annotated[Show, Query()]
LimitQuery = Annotated[int, Query(ge=1, le=MAX_ITEMS)]

router = new_router()


@router.get("/", tags=["health"], **answers(schemas.About, text=HTML))
async def home(
    request: Request,
    sluice: AnySluice,
    topic: TopicQuery = None,
    order: OrderQuery = "newest",
    show: ShowQuery = "all",
    limit: LimitQuery = PAGE,
) -> Response:
    """The console, for people: what waits for a judgement. With `Accept: application/json`: the service's name, its
    version, and where to go on."""
    if prefers_json(request):
        links = {"console": "/", "docs": "/docs", "openapi": "/openapi.json", "topics": "/topics", "ready": "/readyz"}
        return reply(schemas.About(name="Sluice", version=request.app.version, links=links))
    if not sluice.sync.ready.is_set():
        raise StoreUnavailable("The topics are still being loaded. This page tries again in a moment.")
    return await _inbox(request, sluice, "inbox.html", topic, order, show, limit)


@router.get("/console/inbox", include_in_schema=False)
async def items(
    request: Request,
    sluice: ReadySluice,
    topic: TopicQuery = None,
    order: OrderQuery = "newest",
    show: ShowQuery = "all",
    limit: LimitQuery = PAGE,
) -> Response:
    """The list alone."""
    return await _inbox(request, sluice, "items.html", topic, order, show, limit)


@router.get("/console/text/{topic}/{document:path}", include_in_schema=False)
async def text(
    request: Request, sluice: ReadySluice, topic: TopicId, document: Annotated[str, Path(max_length=300)]
) -> Response:
    """A document's whole text, with the deciding words marked."""
    known = await sluice.documents.find(document, NO_DECISIONS, now=False)
    item = await waiting.remembered_item(sluice, await sluice.topics.find(topic), document)
    if item is None:  # forgotten in between
        raise NotFound("This document is not remembered any more; only its beginning is.")
    whole = words.marked(known.text, [*item.toward, *item.against])
    return page(request, "text.html", item=item, whole=whole)


@router.post("/console/judgements", include_in_schema=False)
async def judge(request: Request, sluice: ReadySluice) -> Response:
    """Judge or skip one document or several."""
    form = await Form.read(request, sluice.config)
    verdict, named = form.one("verdict"), form.all("item")
    if verdict not in VERDICTS:
        raise BadInput("A verdict is yes, no or skip.")
    if not named:
        raise BadInput("Nothing is selected: choose documents with x, or with their boxes.")
    done, failed = await judge_pairs(request, sluice, named, verdict)
    if failed and not done:
        raise failed[0]
    if not is_fragment(request):
        return see_other("/")
    lines = await _lines(sluice, [await sluice.topics.find(topic) for topic in dict.fromkeys(t for t, _ in done)])
    titles = {document: await _title(sluice, document) for _, document in done}
    said = f"{VERDICTS[verdict]}: {titles[done[0][1]] if len(done) == 1 else number_of(len(done), 'document')}."
    if failed:
        said += f" {number_of(len(failed), 'document')} could not be judged: {failed[0].detail}"
    judged = [
        {"topic": topic, "document": document, "key": key_of(topic, document), "title": titles[document]}
        for topic, document in done
    ]
    return page(request, "judged.html", judged=judged, verdict=verdict, word=VERDICTS[verdict], topics=lines, said=said)


@router.post("/console/judgements/withdraw", include_in_schema=False)
async def withdraw(request: Request, sluice: ReadySluice) -> Response:
    """Take a judgement back: the document waits again, and the model is what it would have been."""
    form = await Form.read(request, sluice.config)
    topic, document = _pair(form.one("item"))
    published = await sluice.topics.find(topic)
    await sluice.judge.withdraw(topic, document)
    if not is_fragment(request):
        return see_other("/")
    published = await sluice.topics.find(topic)
    item = await waiting.remembered_item(sluice, published, document)
    said = "Taken back; the model is what it would have been without that judgement."
    lines = await _lines(sluice, [published])
    return page(request, "withdrawn.html", item=item, key=key_of(topic, document), topics=lines, said=said)


async def _inbox(
    request: Request, sluice: Sluice, template: str, topic: str | None, order: Order, show: Show, limit: int
) -> Response:
    if topic:
        listed, following = [await sluice.topics.find(topic)], None
    else:
        listed, following = await sluice.topics.page("", MAX_LISTED)
    found = await waiting.waiting(sluice, listed, order, show, limit)
    asked = {"topic": topic, "order": order, "show": show, "limit": limit}
    values: dict[str, Any] = {
        "items": found.items,
        "more": found.more and limit < MAX_ITEMS,
        "page_size": PAGE,
        "asked": asked,
    }
    if template == "inbox.html":
        others = listed if not topic else (await sluice.topics.page("", MAX_LISTED))[0]
        lines = await _lines(sluice, others)
        values |= {
            "address": str(request.base_url).rstrip("/"),
            "topics": lines,
            "not_all": following is not None,
            "waiting": found,
        }
    return page(request, template, **values)


async def _lines(sluice: Sluice, topics: Sequence[PublishedModel]) -> list[schemas.Topic]:
    """Topics with their state, as the contract shows them."""
    counts = await sluice.counters.load([published.topic for published in topics])
    return [present.topic(*pair, sluice.config) for pair in zip(topics, counts, strict=True)]


def _pair(value: str) -> tuple[str, str]:
    """A topic and a document, joined by a slash, which no topic's id has."""
    topic, slash, document = value.partition("/")
    if not slash:
        raise BadInput("An item is a topic and a document, joined by a slash.")
    return topic, document


async def judge_pairs(
    request: Request, sluice: Sluice, named: Sequence[str], verdict: str
) -> tuple[list[tuple[str, str]], list[ServiceError]]:
    """Judges or skips documents, each named as `topic/document`. Returns those that were, and why others were not."""
    pairs = [_pair(value) for value in dict.fromkeys(named)]
    return await (_skip(sluice, pairs) if verdict == "skip" else _judge(request, sluice, pairs, verdict))


async def _judge(
    request: Request, sluice: Sluice, pairs: Sequence[tuple[str, str]], verdict: str
) -> tuple[list[tuple[str, str]], list[ServiceError]]:
    caller, relevant = caller_of(request), verdict == "yes"
    by = name_of(request) or (caller.name if caller else None)
    try:
        judgements = [Judgement(topic=topic, document=document, relevant=relevant, by=by) for topic, document in pairs]
    except ValueError as error:
        raise BadInput("A topic or a document that is named here cannot exist.") from error
    outcomes = await sluice.judge.judge(judgements)
    telemetry: Telemetry = request.app.state.telemetry
    telemetry.judged(each.status for each in outcomes if isinstance(each, Learned))
    done = [pair for pair, outcome in zip(pairs, outcomes, strict=True) if isinstance(outcome, Learned)]
    return done, [outcome for outcome in outcomes if isinstance(outcome, ServiceError)]


async def _skip(sluice: Sluice, pairs: Sequence[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[ServiceError]]:
    done, failed = list[tuple[str, str]](), list[ServiceError]()
    for topic, document in pairs:
        try:
            await sluice.review.skip(await sluice.topics.find(topic), document)
            done.append((topic, document))
        except ServiceError as error:
            failed.append(error)
    return done, failed


async def _title(sluice: Sluice, document: str) -> str:
    try:
        known = await sluice.documents.find(document, NO_DECISIONS, now=False)
    except NotFound:
        return document
    return words.title_of(known.title, known.text)
