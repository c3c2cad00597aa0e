"""Who is at this browser: the key that it shows, where keys are needed, and the name that signs its judgements.

The key is kept in a cookie that no script can read and no other site can send. Only pages take it; the API takes keys
from the `Authorization` header alone.
"""

from urllib.parse import quote

from fastapi import Request
from starlette.responses import Response

from service.api.deps import AnySluice
from service.console.forms import Form
from service.console.pages import KEY_COOKIE, NAME_COOKIE, new_router, see_other

KEPT_S = 30 * 86_400
NAME_KEPT_S = 10 * 365 * 86_400

router = new_router()


@router.post("/console/key", include_in_schema=False)
async def enter(request: Request, sluice: AnySluice) -> Response:
    """Keep a key that is known here."""
    key = (await Form.read(request, sluice.config)).one("key").strip()
    if sluice.keys:
        await sluice.keys.authenticate(key)
    return _keeping(request, KEY_COOKIE, key, KEPT_S)


@router.post("/console/leave", include_in_schema=False)
async def leave(request: Request) -> Response:
    """Forget the key."""
    return _keeping(request, KEY_COOKIE, "", 0)


@router.post("/console/name", include_in_schema=False)
async def sign(request: Request, sluice: AnySluice) -> Response:
    """Keep the name with which this browser's judgements are signed."""
    name = (await Form.read(request, sluice.config)).one("name").strip()
    return _keeping(request, NAME_COOKIE, name[:100], NAME_KEPT_S)


def _keeping(request: Request, name: str, value: str, kept_s: int) -> Response:
    response = see_other("/")
    secure = request.url.scheme == "https"
    response.set_cookie(name, quote(value), max_age=kept_s, samesite="strict", httponly=True, secure=secure)
    return response
