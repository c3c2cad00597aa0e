"""Every error, on its way out: one shape (RFC 9457), from one place.

The sentences never repeat what was sent: an error must not be a way to make the service say something, nor to make a
megabyte come back for a megabyte sent.
"""

from collections.abc import Sequence
from typing import Any

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from service import schemas
from service.errors import BadInput, BadRequest, FieldError, NotFound, ServiceError
from service.schemas import jobs
from service.schemas.fields import SHAPES

MEDIA_TYPE = "application/problem+json"
SHOWN = 20  # field errors in one answer
ROUTING = {
    404: ("Not found", "There is nothing at this path; see /docs."),
    405: ("Method not allowed", "This path does not take this method; the header Allow names those it does."),
}

TAGS = (*schemas.TAGS, *jobs.TAGS.values())  # pydantic's names for the forms that a field may have

log = structlog.get_logger("sluice.api")


def problem(error: ServiceError) -> dict[str, Any]:
    """The error as an object: the body of an answer, or a line of a stream."""
    body = {"type": "about:blank", "title": error.title, "status": error.status, "detail": error.detail}
    return body | ({"errors": error.errors} if error.errors else {})


def answer(error: ServiceError) -> Response:
    headers = {"Retry-After": str(error.retry_after_s)} if error.retry_after_s else None
    return Response(to_json(problem(error)), error.status, headers, MEDIA_TYPE)


def from_validation(error: ValidationError) -> ServiceError:
    """What pydantic found, in our words: broken JSON is the client's syntax, the rest is its content."""
    found = error.errors(include_url=False, include_input=False)
    if found[0]["type"] == "json_invalid":
        return BadRequest(f"This is not valid JSON: {found[0]['msg'].removeprefix('Invalid JSON: ')}.")
    return BadInput("Some fields are not as they should be.", _field_errors(found))


def install(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Maps everything that can go wrong in a request to a problem document; `routes` are those of the contract."""

    @app.exception_handler(ServiceError)
    async def ours(_: Request, error: ServiceError) -> Response:
        return answer(error)

    @app.exception_handler(HTTPException)
    async def routing(request: Request, error: HTTPException) -> Response:
        title, detail = ROUTING.get(error.status_code, (str(error.detail), str(error.detail)))
        allowed = _allowed(request, routes) if error.status_code == 405 else ""
        headers = {"Allow": allowed} if allowed else error.headers
        body = {"type": "about:blank", "title": title, "status": error.status_code, "detail": detail}
        return Response(to_json(body), error.status_code, headers, MEDIA_TYPE)

    @app.exception_handler(RequestValidationError)
    async def parameters(_: Request, error: RequestValidationError) -> Response:
        found = error.errors()
        if any(one["loc"][0] == "path" for one in found):  # whatever has an id, none has this one
            return answer(NotFound("There is nothing with this id.", _parameter_errors(found)))
        return answer(BadInput("Some parameters are not as they should be.", _parameter_errors(found)))

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> Response:
        log.error("request failed", method=request.method, path=request.url.path, exc_info=error)
        return answer(ServiceError("Something went wrong here, not in your request; the log has the details."))


def _allowed(request: Request, routes: Sequence[BaseRoute]) -> str:
    """Every method of the path: Starlette names those of the first route it finds there, and we have one for each."""
    here = [each for each in routes if isinstance(each, Route) and each.matches(request.scope)[0] is not Match.NONE]
    methods = {method for route in here for method in route.methods or ()}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _field_errors(found: Sequence[Any]) -> list[FieldError]:
    return [FieldError(pointer=_pointer(e["loc"]), detail=_sentence(e)) for e in found[:SHOWN]]


def _parameter_errors(found: Sequence[Any]) -> list[FieldError]:
    """Parameters are not in the body: ?limit stands in the query, {topic} in the path."""
    forms = {"query": "?{}", "path": "{{{}}}"}
    return [
        FieldError(pointer=forms.get(e["loc"][0], "{}").format(e["loc"][1]), detail=_sentence(e)) for e in found[:SHOWN]
    ]


def _pointer(location: Sequence[int | str]) -> str:
    """RFC 6901, without what pydantic adds of its own; a long name is cut, it is the sender's."""
    parts = [str(part)[:60] for part in location if part not in TAGS and part != "[key]"]
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in parts)


def _sentence(found: Any) -> str:
    if found["type"] == "extra_forbidden":
        return "There is no such field."
    if found["type"] in ("union_tag_not_found", "union_tag_invalid"):
        return "It is none of the forms that can stand here."
    if found["type"] == "string_pattern_mismatch":
        return SHAPES.get(found["ctx"]["pattern"], "It does not have the form that /docs describes.")
    said = str(found["msg"]).removeprefix("Value error, ")[:300]
    return said[:1].upper() + said[1:].rstrip(".") + "."
