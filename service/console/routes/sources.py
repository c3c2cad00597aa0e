"""Where documents come from: feeds and files, how their polls went; added, paused, polled, deleted."""

from typing import Annotated

from fastapi import Path, Request
from starlette.responses import Response

from service.api.deps import ReadySluice
from service.console.forms import Form
from service.console.pages import new_router, page, see_other
from service.console.routes.start import feed
from service.errors import BadInput
from service.schemas.sources import SourceChange, SourceId

LISTED = 200

SourcePath = Annotated[SourceId, Path()]

router = new_router()


@router.get("/console/sources", include_in_schema=False)
async def list_sources(request: Request, sluice: ReadySluice) -> Response:
    """All sources, by id."""
    sources, following = await sluice.sources.page("", LISTED, None)
    return page(request, "sources.html", sources=sources, not_all=following is not None)


@router.post("/console/sources", include_in_schema=False)
async def add(request: Request, sluice: ReadySluice) -> Response:
    """Read one more feed."""
    form = await Form.read(request, sluice.config)
    await sluice.sources.create(feed(form.one("url").strip()))
    return see_other("/console/sources")


@router.post("/console/sources/{source}", include_in_schema=False)
async def act(request: Request, sluice: ReadySluice, source: SourcePath) -> Response:
    """Pause it, go on with it, poll it now, or delete it."""
    what = (await Form.read(request, sluice.config)).one("what")
    if what in ("pause", "resume"):
        await sluice.sources.change(source, SourceChange(paused=what == "pause"))
    elif what == "poll":
        await sluice.sources.poll(source)
    elif what == "delete":
        await sluice.sources.delete(source)
    else:
        raise BadInput("A source is paused, resumed, polled or deleted.")
    return see_other("/console/sources")
