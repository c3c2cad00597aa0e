"""The first visit: from a feed and a sentence to an inbox; and the other ways in."""

import asyncio

from fastapi import Request
from pydantic import ValidationError
from starlette.responses import Response

from service.api.deps import AnySluice, ReadySluice
from service.console.forms import Form
from service.console.pages import new_router, page, see_other
from service.console.routes.topics import new_topic
from service.errors import BadInput, Conflict
from service.schemas.parsing import from_validation
from service.schemas.sources import NewSource

MAX_FEEDS = 50  # in one form

router = new_router()


@router.get("/console/start", include_in_schema=False)
async def ways_in(request: Request, sluice: AnySluice) -> Response:
    """The page of ways in."""
    return page(request, "start.html", address=str(request.base_url).rstrip("/"))


@router.post("/console/start", include_in_schema=False)
async def begin(request: Request, sluice: ReadySluice) -> Response:
    """Make a topic, and read these feeds: those that are read already are left as they are."""
    form = await Form.read(request, sluice.config)
    addresses = (form.get("feeds") or "").split()
    if not addresses or len(addresses) > MAX_FEEDS:
        raise BadInput(f"Give the address of a feed, or of up to {MAX_FEEDS}, each on a line.")
    feeds = list(map(feed, dict.fromkeys(addresses)))
    if (form.get("query") or "").strip():
        await sluice.topics.create(new_topic(form))
    added = await asyncio.gather(*map(sluice.sources.create, feeds), return_exceptions=True)
    wrong = [error for error in added if isinstance(error, BaseException) and not isinstance(error, Conflict)]
    if wrong:
        raise wrong[0]
    return see_other("/")


def feed(address: str) -> NewSource:
    """A feed at this address; `BadInput` if there can be none."""
    try:
        return NewSource(kind="feed", url=address)
    except ValidationError as error:
        raise from_validation(error) from None
