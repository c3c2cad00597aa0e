"""Sources of documents: added, listed, tried, polled, paused, deleted."""

from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service.api.bodies import body, media_type
from service.api.deps import Limit, ReadySluice, new_router, paged, read, reply
from service.api.openapi import answers, takes
from service.schemas import Page
from service.schemas.fields import TopicId
from service.schemas.sources import (
    AnySource,
    ImportedFeeds,
    NewFile,
    NewFolder,
    NewSource,
    Polled,
    Source,
    SourceChange,
    SourceId,
    SourceState,
    Tried,
    TrySource,
)
from service.sources import opml

NEW_SOURCE: TypeAdapter[AnySource] = TypeAdapter(AnySource)
CHANGE = TypeAdapter(SourceChange)
TRY_SOURCE = TypeAdapter(TrySource)

SourcePath = Annotated[SourceId, Path(description="The source's id.")]
IdCursor = Annotated[TopicId | None, Query(description="`next` of the previous page.")]

OPML = "text/x-opml"
EXAMPLE = opml.write([opml.Outline("Example", "https://example.org/feed.xml")])

router = new_router()


@router.post(
    "/sources", status_code=201, tags=["sources"], **takes(NewSource, NewFile, NewFolder), **answers(Source, 409)
)
async def create_source(request: Request, sluice: ReadySluice) -> Response:
    """Add a feed (RSS, Atom or JSON Feed), or a file or folder that grows. It is read at once, and then regularly."""
    source = await sluice.sources.create(await read(request, NEW_SOURCE))
    return reply(source, 201, {"Location": f"/sources/{source.id}"})


@router.get("/sources", tags=["sources"], **answers(Page[Source]))
async def list_sources(
    sluice: ReadySluice,
    limit: Limit = 100,
    cursor: IdCursor = None,
    state: Annotated[SourceState | None, Query(description="Only sources in this state.")] = None,
) -> Response:
    """Sources by id, each with how its polls went."""
    return paged(*await sluice.sources.page(cursor or "", limit, state))


@router.post("/sources/try", tags=["sources"], **takes(TrySource), **answers(Tried))
async def try_source(request: Request, sluice: ReadySluice) -> Response:
    """Fetch a feed and show what it offers; nothing is stored."""
    return reply(await sluice.sources.look(await read(request, TRY_SOURCE)))


@router.post("/sources/opml", tags=["sources"], **takes(text=(OPML, EXAMPLE)), **answers(ImportedFeeds))
async def import_sources(request: Request, sluice: ReadySluice) -> Response:
    """Add the feeds of an OPML file, as feed readers export it; those that are there already are left as they are."""
    media_type(request, OPML, "text/xml", "application/xml")
    content = await body(request, sluice.config.max_body_bytes)
    return reply(await sluice.sources.add_all(await sluice.pool.run(opml.read, content)))


@router.get("/sources/opml", tags=["sources"], **answers(None, text=f"{OPML}; charset=utf-8"))
async def export_sources(sluice: ReadySluice) -> Response:
    """All sources as OPML, for feed readers."""
    return Response(opml.write(await sluice.sources.outlines()), media_type=OPML)


@router.get("/sources/{source}", tags=["sources"], **answers(Source, 404))
async def read_source(sluice: ReadySluice, source: SourcePath) -> Response:
    """A source, with how its polls went."""
    return reply(await sluice.sources.find(source))


@router.patch("/sources/{source}", tags=["sources"], **takes(SourceChange), **answers(Source, 404))
async def change_source(request: Request, sluice: ReadySluice, source: SourcePath) -> Response:
    """Pause a source, resume it, or change its pace."""
    return reply(await sluice.sources.change(source, await read(request, CHANGE)))


@router.delete("/sources/{source}", status_code=204, tags=["sources"], **answers(None, 404))
async def delete_source(sluice: ReadySluice, source: SourcePath) -> Response:
    """Delete a source. The documents that it has given stay."""
    await sluice.sources.delete(source)
    return Response(status_code=204)


@router.post("/sources/{source}/poll", tags=["sources"], **answers(Polled, 404, 409))
async def poll_source(sluice: ReadySluice, source: SourcePath) -> Response:
    """Poll a source now, even a paused one, and list what is new."""
    return reply(await sluice.sources.poll(source))
