"""From values to HTML: the templates, the headers that every page has, and errors as pages.

A request of htmx (`HX-Request`) gets a fragment; its errors are a sentence that the script shows where it shows what
was done. A request that does not ask for HTML gets the problem document that the API would send.
"""

from collections.abc import Callable, Coroutine
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.responses import Response

from service.api import deps
from service.api.bodies import JSON
from service.clock import now_ms, time_of
from service.console import static, words
from service.errors import BadInput, NotFound, ServiceError, Unauthorized

HTML = "text/html; charset=utf-8"
NAME_COOKIE, KEY_COOKIE = "sluice_name", "sluice_key"
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with none at all, browsers would send forms with the origin `null`
    "Cache-Control": "no-store",
    "Vary": "Accept, HX-Request",
}

_environment = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_environment.globals |= {"static": static.address, "words": words}
_environment.filters["age"] = lambda at: words.age(at, time_of(now_ms()))
_environment.filters["key"] = words.key_of
_environment.filters["path"] = lambda text: quote(str(text), safe="")


def render(template: str, **values: Any) -> str:
    return _environment.get_template(template).render(**values)


def page(request: Request, template: str, status: int = 200, **values: Any) -> Response:
    """A whole page, or a fragment of one, as the template has it."""
    text = render(template, here=request.url.path, me=name_of(request), has_key=KEY_COOKIE in request.cookies, **values)
    return Response(text, status, HEADERS, HTML)


def see_other(address: str) -> Response:
    return Response(status_code=303, headers=HEADERS | {"Location": address})


def is_fragment(request: Request) -> bool:
    """Whether htmx asks, for a part of a page."""
    return request.headers.get("hx-request") == "true"


def prefers_json(request: Request) -> bool:
    accept = request.headers.get("accept", "")
    return JSON in accept and "text/html" not in accept


def name_of(request: Request) -> str:
    """Who judges, as the person at this browser wants to be called."""
    return unquote(request.cookies.get(NAME_COOKIE, ""))[:100]


class _PageRoute(deps.Route):
    """A route whose errors are pages, too, and to which a browser shows its key in a cookie. Its name, which says what
    scope it needs (api/scopes.py), has the module's in it."""

    key_cookie = KEY_COOKIE

    def __init__(self, path: str, endpoint: Callable[..., Any], *, name: str | None = None, **options: Any) -> None:
        if name is None and not options.get("include_in_schema", True):
            name = f"page_{endpoint.__module__.rpartition('.')[2]}_{endpoint.__name__}"
        super().__init__(path, endpoint, name=name, **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_as_page(request: Request) -> Response:
            try:
                return await handle(request)
            except (ServiceError, RequestValidationError) as error:
                if not (is_fragment(request) or "text/html" in request.headers.get("accept", "")):
                    raise
                return _error_page(request, _as_ours(error))

        return handle_as_page


def new_router() -> APIRouter:
    """A router with the guards of the API, whose paths are pages."""
    router = deps.new_router()
    router.route_class = _PageRoute
    return router


def _as_ours(error: ServiceError | RequestValidationError) -> ServiceError:
    if isinstance(error, ServiceError):
        return error
    if any(finding["loc"][0] == "path" for finding in error.errors()):
        return NotFound("There is no such page.")
    return BadInput("This address has a value that no page understands.")


def _error_page(request: Request, error: ServiceError) -> Response:
    title = HTTPStatus(error.status).phrase if error.status >= 500 else error.title
    template = "said.html" if is_fragment(request) else "error.html"
    ask_key = isinstance(error, Unauthorized)
    values = {"title": title, "detail": error.detail, "errors": error.errors, "ask_key": ask_key}
    response = page(request, template, error.status, **values)
    response.headers.update(error.headers or {})
    return response
