"""Topics as files, path by path."""

from typing import Annotated

from fastapi import Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service import schemas
from service.api import ndjson
from service.api.bodies import NDJSON, lines, media_type
from service.api.deps import ReadySluice, TopicPath, new_router, reply_topic
from service.api.openapi import answers, takes
from service.archive.file import MOST_BYTES, ArchiveReader
from service.archive.lines import ArchiveLine
from service.schemas.fields import TopicId
from service.schemas.parsing import parse

ARCHIVE_LINE = TypeAdapter(ArchiveLine)

router = new_router()


@router.get("/topics/{topic}/export", tags=["moving"], **answers(None, 404, line=ArchiveLine))
async def export_topic(sluice: ReadySluice, topic: TopicPath) -> Response:
    """The topic with its log as a file, NDJSON: to keep, or to import elsewhere."""
    return ndjson.ChunkedResponse(await sluice.transfer.lines(topic), NDJSON)


@router.post(
    "/topics/import", status_code=201, tags=["moving"], **takes(line=ArchiveLine), **answers(schemas.Topic, 409)
)
async def import_topic(
    request: Request,
    sluice: ReadySluice,
    id: Annotated[TopicId | None, Query(description="Another name for the topic.")] = None,
    replace: Annotated[bool, Query(description="Take the place of a topic of that name.")] = False,
) -> Response:
    """Make a topic of a file that was exported, here or elsewhere: as a whole or not at all. It decides as it did. The
    same file again changes nothing; a name that is taken is refused, unless what has it is to be replaced."""
    media_type(request, NDJSON)
    reader = ArchiveReader(lambda line: parse(ARCHIVE_LINE, line, sluice.config))
    most = min(MOST_BYTES, sluice.config.max_stream_bytes)
    async for some in lines(request, most, sluice.config.max_body_bytes):
        await sluice.pool.run(reader.take, some)
    published, outcome = await sluice.transfer.take(reader.finish(), id, replace)
    status = 201 if outcome == "made" else 200
    return await reply_topic(sluice, published, status, {"Location": f"/topics/{published.topic}"})
