"""What all handlers share: dependencies and parameters, reading a body, writing an answer.

Every router made here also checks the name by which the service is called, the page that calls it, the caller's key,
and that it knows all query parameters."""

import re
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Annotated, TypeVar
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.routing import APIRoute
from pydantic import BaseModel, TypeAdapter
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Receive, Scope, Send

from service import schemas
from service.access.keys import Caller
from service.api import present
from service.api.bodies import JSON, body, media_type
from service.api.scopes import PUBLIC, scope_of
from service.config import LOOPBACK
from service.errors import BadInput, FieldError, Forbidden, StoreUnavailable, TooLarge, Unauthorized
from service.schemas.fields import NUMBER, TopicId
from service.schemas.parsing import MAX_FIELD_ERRORS, parse
from service.sluice import Sluice
from service.topics.published import PublishedModel

PORT = re.compile(r":\d*$")
BEARER = "bearer "
MAX_INLINE_BYTES = 100_000  # a longer body is parsed in a thread

T = TypeVar("T")


# Dependencies are coroutines even if they await nothing: FastAPI runs plain functions in a thread, which doubles the
# time of a small request and makes it wait for large ones that hold the interpreter.


async def _any_sluice(request: Request) -> Sluice:
    sluice: Sluice = request.app.state.sluice
    return sluice


async def _ready_sluice(request: Request) -> Sluice:
    sluice = await _any_sluice(request)
    if not sluice.sync.ready.is_set():
        # Deciding with only some of the topics would give wrong answers that look right.
        raise StoreUnavailable("The topics are still being loaded; try again.")
    return sluice


ReadySluice = Annotated[Sluice, Depends(_ready_sluice)]
AnySluice = Annotated[Sluice, Depends(_any_sluice)]  # perhaps before all topics are loaded
TopicPath = Annotated[TopicId, Path(description="The topic's id.")]
DocumentPath = Annotated[str, Path(description="The document's id; slashes need no escaping.", examples=["d1"])]
VersionPath = Annotated[int, Path(ge=1, lt=2**53, examples=[1])]
Limit = Annotated[int, Query(ge=1, le=1000, description="Maximum number of items in the answer.")]
Cursor = Annotated[str | None, Query(max_length=200, description="`next` of the previous page.")]
NumberCursor = Annotated[str | None, Query(pattern=NUMBER, description="`next` of the previous page.", examples=["17"])]


def new_router() -> APIRouter:
    return APIRouter(
        dependencies=[Depends(_own_name), Depends(_own_page), Depends(_allowed), Depends(_known_parameters)],
        route_class=Route,
        generate_unique_id_function=lambda route: route.name,  # what a generated client calls the operation
    )


async def read(request: Request, adapter: TypeAdapter[T]) -> T:
    media_type(request, JSON)
    if request.query_params:
        raise BadInput("With a JSON body, send the options in the body, not in the query string.")
    sluice = await _any_sluice(request)
    raw = await body(request, sluice.config.max_body_bytes)
    if len(raw) > MAX_INLINE_BYTES:
        return await sluice.pool.run(parse, adapter, raw, sluice.config)
    return parse(adapter, raw, sluice.config)


def at_most(sluice: Sluice, items: Sequence[object], what: str) -> None:
    if len(items) > sluice.config.max_documents:
        raise TooLarge(f"A request may have at most {sluice.config.max_documents:,} {what}; send the rest in another.")


def reply(value: BaseModel, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(value.model_dump_json(by_alias=True), status, headers, JSON)


def paged(items: Sequence[BaseModel], following: str | None) -> Response:
    return reply(schemas.Page(items=list(items), next=following))


async def reply_topic(
    sluice: Sluice,
    published: PublishedModel,
    status: int = 200,
    headers: dict[str, str] | None = None,
    warnings: Sequence[str] = (),
) -> Response:
    try:
        (counts,) = await sluice.counters.load([published.topic])
    except StoreUnavailable:
        counts = None  # the rest of the topic is known without the store, and still worth an answer
    topic = present.topic(published, counts, sluice.config, warnings)
    return reply(topic, status, {"ETag": present.etag(published)} | (headers or {}))


async def _own_name(request: Request) -> None:
    """Guards against DNS rebinding. A service that only this machine can reach is still reached by its browsers: a page
    whose own host name is made to resolve to it would count as the same origin. Such a name has a dot, and is not
    configured."""
    config = (await _any_sluice(request)).config
    if config.host not in LOOPBACK:
        return
    name = PORT.sub("", request.headers.get("host", "")).strip("[]").lower()
    if (
        "." in name
        and not name.endswith(".localhost")
        and not _is_address(name)
        and name not in (config.hosts or "").split(",")
    ):
        raise Forbidden("The Host header names an unknown host; add it to SLUICE_HOSTS if it is yours.")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


async def _own_page(request: Request) -> None:
    """Guards against cross-site requests: a web page may change something only if it is ours. Browsers let any page
    send simple requests to any address, but name its origin. Other clients send no origin, and are let through."""
    if request.method in ("GET", "HEAD"):
        return
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    same = origin is None or origin.partition("://")[2] == request.headers.get("host")
    if not (same if site is None else site in ("same-origin", "none")):
        raise Forbidden("Web pages of another origin may not change anything here.")


async def _allowed(request: Request) -> None:
    """Lets a caller through whose key has the scope that the operation needs."""
    keys, needed = (await _any_sluice(request)).keys, scope_of(request.scope["route"].name)
    if keys is None or needed == PUBLIC:
        return
    shown = _shown(request)
    if not shown.lower().startswith(BEARER):
        raise Unauthorized("A key is needed: send `Authorization: Bearer KEY`. Commands take it from SLUICE_KEY.")
    caller = await keys.authenticate(shown[len(BEARER) :].strip())
    if not caller.may(needed):
        raise Forbidden(f"This key may not do that: it needs the scope {needed!r}.")
    request.state.caller = caller


def _shown(request: Request) -> str:
    """What the caller shows: the header, or, on a page, the key that the browser keeps."""
    header, cookie = request.headers.get("authorization"), request.scope["route"].key_cookie
    if header is None and cookie and (kept := request.cookies.get(cookie)):
        return f"{BEARER}{unquote(kept)}"
    return header or ""


def caller_of(request: Request) -> Caller | None:
    """Who calls, by the key; None where no key is needed."""
    return getattr(request.state, "caller", None)


async def _known_parameters(request: Request) -> None:
    """Refuses unknown query parameters: a misspelt one is an error, as a misspelt field is."""
    dependant = request.scope["route"].dependant
    known = {each.alias for part in (dependant, *dependant.dependencies) for each in part.query_params}
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        errors = [
            FieldError(pointer=f"?{name[:60]}", detail="There is no such parameter.")
            for name in unknown[:MAX_FIELD_ERRORS]
        ]
        raise BadInput("Some parameters are not valid.", errors)


class Route(APIRoute):
    """A route that answers HEAD as it answers GET; the server leaves out the body."""

    # Where a browser shows its key. Only pages have this: a cookie is sent whoever asks, a header is not.
    key_cookie: str | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        return super().matches(_as_get(scope))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().handle(_as_get(scope), receive, send)


def _as_get(scope: Scope) -> Scope:
    return {**scope, "method": "GET"} if scope.get("method") == "HEAD" else scope
