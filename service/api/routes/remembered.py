"""The documents that are remembered: one of them, with what was decided and said about it."""

from typing import Annotated, Literal

from fastapi import Query
from starlette.responses import Response

from service.api.deps import DocumentPath, ReadySluice, new_router, reply
from service.api.openapi import answers
from service.schemas import ClassifyOptions
from service.schemas.fields import TopicId
from service.schemas.remembered import RememberedDocument

router = new_router()


@router.get("/documents/{document:path}", tags=["documents"], **answers(RememberedDocument, 404))
async def show_document(
    sluice: ReadySluice,
    document: DocumentPath,
    topics: Annotated[list[TopicId] | None, Query(description="Topics to look at; default: all.")] = None,
    now: Annotated[bool, Query(description="Decide the document again, by the models as they are now.")] = False,
    explain: Annotated[bool, Query(description="With `now`: explain each of these decisions.")] = False,
    include: Annotated[Literal["all"] | None, Query(description="List rejections, too.")] = None,
) -> Response:
    """A remembered document, with the decisions on it and its judgements. Rejections are left out unless topics are
    named."""
    options = ClassifyOptions(topics=topics, explain=explain, store=False, include=include)
    return reply(await sluice.documents.find(document, options, now))
