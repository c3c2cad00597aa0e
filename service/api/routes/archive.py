"""Topics as files: exported and imported."""

from typing import Annotated

from fastapi import Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service import schemas
from service.api import ndjson
from service.api.bodies import NDJSON, lines, media_type
from service.api.deps import ReadySluice, TopicPath, new_router, reply_topic
from service.api.openapi import answers, takes
from service.archive.file import MAX_BYTES, ArchiveReader
from service.archive.lines import ArchiveLine
from service.schemas.fields import TopicId
from service.schemas.parsing import parse

ARCHIVE_LINE = TypeAdapter(ArchiveLine)

router = new_router()


@router.get("/topics/{topic}/export", tags=["moving"], **answers(None, 404, line=ArchiveLine))
async def export_topic(sluice: ReadySluice, topic: TopicPath) -> Response:
    """The topic with its log as an NDJSON file, to keep or to import elsewhere."""
    return ndjson.ChunkedResponse(await sluice.transfer.export(topic), NDJSON)


@router.post(
    "/topics/import",
    status_code=201,
    tags=["moving"],
    **takes(line=ArchiveLine),
    **answers(schemas.Topic, 409, tagged=True, created=True),
)
async def import_topic(
    request: Request,
    sluice: ReadySluice,
    id: Annotated[TopicId | None, Query(description="Import the topic under this id.")] = None,
    replace: Annotated[bool, Query(description="Replace an existing topic of that id.")] = False,
) -> Response:
    """Create a topic from an exported file, completely or not at all. It decides as it did where it was exported.
    Sending the same file again changes nothing. If the id is taken, the file is refused, unless `replace` is true."""
    media_type(request, NDJSON)
    reader = ArchiveReader(lambda line: parse(ARCHIVE_LINE, line, sluice.config))
    max_bytes = min(MAX_BYTES, sluice.config.max_stream_bytes)
    async for batch in lines(request, max_bytes, sluice.config.max_body_bytes):
        await sluice.pool.run(reader.feed, batch)
    published, outcome = await sluice.transfer.import_topic(reader.finish(), id, replace)
    status = 201 if outcome == "made" else 200
    return await reply_topic(sluice, published, status, {"Location": f"/topics/{published.topic}"})
