"""Every error as an answer: one shape (RFC 9457), made in one place."""

from collections.abc import Sequence
from typing import Any

import structlog
from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route

from service.errors import BadInput, FieldError, NotFound, ServiceError
from service.schemas.parsing import MAX_FIELD_ERRORS, sentence

MEDIA_TYPE = "application/problem+json"
MAX_ID_CHARS = 60  # of an id that is repeated
ROUTING = {
    404: ("Not found", "There is nothing at this path; /docs lists what there is."),
    405: ("Method not allowed", "This path does not support this method; the Allow header lists those it does."),
}

log = structlog.get_logger("sluice.api")


def problem(error: ServiceError) -> dict[str, Any]:
    """The problem document of an error: the body of an answer, or a line of a stream."""
    body = {"type": "about:blank", "title": error.title, "status": error.status, "detail": error.detail}
    return body | ({"errors": error.errors} if error.errors else {})


def answer(error: ServiceError) -> Response:
    return Response(to_json(problem(error)), error.status, error.headers, MEDIA_TYPE)


def install(app: FastAPI, routes: Sequence[BaseRoute]) -> None:
    """Maps everything that can go wrong in a request to a problem document. `routes` are those of the contract."""

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
        findings = error.errors()
        for finding in findings:
            place, name = finding["loc"][:2]
            if place == "path":  # nothing has an id of this form
                return answer(NotFound(f"There is no {name} {finding['input'][:MAX_ID_CHARS]!r}."))
        return answer(BadInput("Some parameters are not valid.", _parameter_errors(findings)))

    @app.exception_handler(Exception)
    async def bug(request: Request, error: Exception) -> Response:
        log.error("request failed", method=request.method, path=request.url.path, exc_info=error)
        return answer(ServiceError("Internal error; nothing is wrong with your request. The log has the details."))


def _allowed(request: Request, routes: Sequence[BaseRoute]) -> str:
    """All methods of the path. Starlette names those of the first matching route, and we have a route per method."""
    matching = [each for each in routes if isinstance(each, Route) and each.matches(request.scope)[0] is not Match.NONE]
    methods = {method for route in matching for method in route.methods or ()}
    return ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))


def _parameter_errors(findings: Sequence[Any]) -> list[FieldError]:
    """Errors of parameters, which have no pointer into the body: `?limit` is in the query, others are headers."""
    return [
        FieldError(pointer=f"{'?' * (e['loc'][0] == 'query')}{e['loc'][1]}", detail=sentence(e))
        for e in findings[:MAX_FIELD_ERRORS]
    ]
