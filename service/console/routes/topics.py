"""All topics, and a new one: made from a sentence, with a look at what it would do today."""

import re
from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request
from pydantic import ValidationError
from starlette.responses import Response

from service.api import present
from service.api.deps import ReadySluice
from service.clock import now_ms, time_of
from service.console import charts, words
from service.console.forms import Form
from service.console.pages import new_router, page, see_other
from service.errors import BadInput
from service.schemas import NewTopic
from service.schemas.fields import TopicId
from service.schemas.jobs import Backfill
from service.schemas.parsing import from_validation

PAGE = 50
NAME_WORDS = 6  # of a sentence, which name its topic if nobody else does
VOLUME = 300  # decisions that a sparkline is drawn from

router = new_router()


@router.get("/console/topics", include_in_schema=False)
async def list_topics(
    request: Request, sluice: ReadySluice, after: Annotated[str, Query(max_length=200)] = ""
) -> Response:
    """Topics by id, each with its state in words."""
    found, following = await sluice.topics.page(after, PAGE)
    counts = await sluice.counters.load([published.topic for published in found])
    topics = [present.topic(*pair, sluice.config) for pair in zip(found, counts, strict=True)]
    return page(request, "topics.html", topics=topics, following=following, after=after)


@router.get("/console/topics/{topic}/volume", include_in_schema=False)
async def volume(request: Request, sluice: ReadySluice, topic: TopicId) -> Response:
    """How much has passed lately, as a few bars and in words."""
    entries = await sluice.outbox.newest(topic, None, VOLUME)
    times, now = [entry.passed(topic).at for entry in entries], time_of(now_ms())
    last_day = sum(now - at < timedelta(days=1) for at in times)
    oldest = words.age(min(times), now) if times else ""
    full = len(times) == VOLUME
    bars = charts.sparkline(times, now)
    return page(request, "volume.html", bars=bars, last_day=last_day, total=len(times), oldest=oldest, full=full)


@router.post("/console/topics/preview", include_in_schema=False)
async def preview(request: Request, sluice: ReadySluice) -> Response:
    """What the topic would do with the newest documents."""
    form = await Form.read(request, sluice.config)
    if not (form.get("query") or "").strip():
        return page(request, "begin.html", begin=None)
    return page(request, "begin.html", begin=await sluice.newest.begin(new_topic(form)))


@router.post("/console/topics", include_in_schema=False)
async def create(request: Request, sluice: ReadySluice) -> Response:
    """Make the topic, and, if asked, let it look at the documents that are remembered."""
    form = await Form.read(request, sluice.config)
    if not (form.get("query") or "").strip():
        raise BadInput("Say in a sentence or a few words what the topic is about.")
    published = await sluice.topics.create(new_topic(form))
    if form.get("look_back"):
        await sluice.jobs.submit(Backfill(kind="backfill", topics=[published.topic]))
    return see_other(f"/console/topics/{published.topic}")


def new_topic(form: Form) -> NewTopic:
    """The topic that a form describes, named by its first words if by nothing else."""
    query = (form.get("query") or "").strip()
    name = (form.get("name") or "").strip() or " ".join(re.findall(r"\w[\w'’-]*", query)[:NAME_WORDS])
    try:
        return NewTopic(name=name[:1000] or "topic", query=query)
    except ValidationError as error:
        raise from_validation(error) from None
