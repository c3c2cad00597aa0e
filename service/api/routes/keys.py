"""Keys: made, listed, revoked."""

from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service.access.keys import Keys
from service.api.deps import AnySluice, Limit, new_router, paged, read, reply
from service.api.openapi import answers, takes
from service.errors import Conflict
from service.schemas import Page
from service.schemas.access import IssuedKey, Key, NewKey
from service.schemas.fields import KEY_ID
from service.sluice import Sluice

NEW_KEY = TypeAdapter(NewKey)

KeyPath = Annotated[str, Path(pattern=KEY_ID, description="The key's id.", examples=["0123456789abcdef"])]
KeyCursor = Annotated[str | None, Query(pattern=KEY_ID, description="`next` of the previous page.")]

router = new_router()


@router.post("/keys", status_code=201, tags=["keys"], **takes(NewKey), **answers(IssuedKey, 409))
async def issue_key(request: Request, sluice: AnySluice) -> Response:
    """Make a key. It is shown in this answer only: what is kept is a hash."""
    new = await read(request, NEW_KEY)
    issued = await _keys(sluice).issue(new)
    return reply(issued, 201, {"Location": f"/keys/{issued.id}", "Cache-Control": "no-store"})


@router.get("/keys", tags=["keys"], **answers(Page[Key], 409))
async def list_keys(sluice: AnySluice, limit: Limit = 100, cursor: KeyCursor = None) -> Response:
    """Keys, oldest first, without what is secret about them."""
    return paged(*await _keys(sluice).page(cursor or "", limit))


@router.delete("/keys/{key}", status_code=204, tags=["keys"], **answers(None, 404, 409))
async def revoke_key(sluice: AnySluice, key: KeyPath) -> Response:
    """Revoke a key. All processes refuse it within a second."""
    await _keys(sluice).revoke(key)
    return Response(status_code=204)


def _keys(sluice: Sluice) -> Keys:
    if sluice.keys is None:
        raise Conflict("Keys are not in use here: start the service with SLUICE_ACCESS=keys.")
    return sluice.keys
