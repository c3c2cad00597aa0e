"""Search over the documents that are remembered: found by words, judged on the spot, or the words made a topic."""

from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from fastapi import Query, Request
from starlette.responses import Response

from service.api.deps import ReadySluice
from service.console.forms import Form
from service.console.pages import new_router, page, see_other
from service.console.routes.inbox import MAX_LISTED, VERDICTS, judge_pairs
from service.documents.search import Asked
from service.errors import BadInput
from service.schemas.fields import HIT

PAGE = 30
FIELDS = ("q", "topic", "decision", "source", "sort")

# A form sends all of its fields, also those that were left empty.
Words = Annotated[str, Query(max_length=1000)]
Filter = Annotated[str, Query(max_length=1000)]
Decided = Annotated[Literal["", "accept", "abstain", "reject"], Query()]
Sorted = Annotated[Literal["newest", "best"], Query()]
HitCursor = Annotated[str | None, Query(pattern=HIT)]

router = new_router()


@router.get("/console/search", include_in_schema=False)
async def find(
    request: Request,
    sluice: ReadySluice,
    q: Words = "",
    topic: Filter = "",
    decision: Decided = "",
    source: Filter = "",
    sort: Sorted = "newest",
    cursor: HitCursor = None,
) -> Response:
    """What fits these words, newest or best first."""
    if decision and not topic:
        raise BadInput("Choose the topic whose decision you mean, too.")
    asked = Asked(q, topic or None, decision or None, source or None, sort=sort)
    found = await sluice.search.page(asked, cursor, PAGE)
    fields: dict[str, Any] = {"q": q, "topic": topic, "decision": decision, "source": source, "sort": sort}
    return page(
        request,
        "search.html",
        found=found,
        asked=fields,
        more=urlencode(fields | {"cursor": found.next}) if found.next else "",
        topics=(await sluice.topics.page("", MAX_LISTED))[0],
    )


@router.post("/console/search", include_in_schema=False)
async def judge(request: Request, sluice: ReadySluice) -> Response:
    """Judge a document that was found, and show the same search again."""
    form = await Form.read(request, sluice.config)
    verdict, item = form.one("verdict"), form.one("item")
    if verdict not in VERDICTS or verdict == "skip":
        raise BadInput("A document that was found is relevant or not: yes or no.")
    _, failed = await judge_pairs(request, sluice, [item], verdict)
    if failed:
        raise failed[0]
    return see_other("/console/search?" + urlencode({name: form.get(name) or "" for name in FIELDS}))
