"""What `/docs` shows of bodies and answers. Handlers read and write raw bytes, so FastAPI cannot derive it.

`takes` describes the body of a request, `answers` what comes back; both are keyword arguments of a route's decorator.
The examples work: a test sends them to an empty service and checks each answer against the document.
"""

import json
from importlib.resources import files
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from pydantic_core import to_json

from service import schemas
from service.api.bodies import JSON, NDJSON
from service.api.problems import MEDIA_TYPE
from service.api.scopes import PUBLIC, scope_of
from service.archive import file
from service.archive.lines import ArchiveLine
from service.schemas import Problem, flow, jobs, review, sources
from service.schemas.access import NewKey
from service.schemas.feeds import JsonFeed
from service.schemas.metrics import PreviewRequest
from service.schemas.models import ModelFile

EVENTS = "text/event-stream"
KEY = "key"  # name of the security scheme: a key, where the service asks for one
_REF = "#/components/schemas/{model}"
_MODE: Literal["validation"] = "validation"
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model=Problem.__name__)}}}
_REASONS = {
    400: "The body is not JSON in UTF-8.",
    401: "A key is needed, or this one does not work.",
    403: "The key lacks the scope that is needed, or a web page of another origin asks.",
    404: "No such topic, version, judgement, job or source; or a document that is not remembered (send its text).",
    409: "The id or the address is taken, there are too many, or others kept changing or using it.",
    412: "The topic has changed: its ETag is not in If-Match.",
    413: "More bytes, lines, values or documents than allowed.",
    415: "The media type is not supported, or the body is compressed.",
    422: "A field or a parameter is missing, unknown or out of range.",
    429: "The key's allowance is used up; try again after Retry-After seconds.",
    503: "The store does not answer, or topics are still being loaded; try again after Retry-After seconds.",
}
_WITH_BODY = (400, 413, 415)
_WITH_KEY = (401, 403, 429)
_ETAG = {"ETag": {"description": "For If-Match.", "schema": {"type": "string"}}}
_LOCATION = {"Location": {"description": "Path of what was created.", "schema": {"type": "string"}}}
_RETRY = {"Retry-After": {"description": "Seconds to wait.", "schema": {"type": "integer"}}}

# The bodies of requests; examples.json has examples of each, by the name of the type.
BODIES: tuple[type[BaseModel], ...] = (
    schemas.NewTopic,
    schemas.TopicChange,
    schemas.Classify,
    schemas.Document,
    schemas.Judgement,
    schemas.Judgements,
    PreviewRequest,
    jobs.Retrain,
    jobs.Compare,
    jobs.Backfill,
    flow.Routes,
    flow.Replay,
    review.Skip,
    review.NewKnown,
    ModelFile,
    NewKey,
    sources.NewSource,
    sources.NewFile,
    sources.NewFolder,
    sources.SourceChange,
    sources.TrySource,
)
_examples = json.loads((files(__package__) / "examples.json").read_text(encoding="utf-8"))
EXAMPLES: dict[type[BaseModel], dict[str, Any]] = {body: _examples[body.__name__] for body in BODIES}
EXAMPLES[ArchiveLine] = {str(n): line for n, line in enumerate(file.example())}


def takes(
    *models: type[BaseModel], line: type[BaseModel] | None = None, text: tuple[str, str] | None = None
) -> dict[str, Any]:
    """The body of the request is one of these models; or NDJSON, with a `line` on each line; or `text`, given as a
    media type and an example."""
    refs = [{"$ref": _REF.format(model=model.__name__)} for model in models]
    examples = {name: {"value": value} for model in models for name, value in EXAMPLES[model].items()}
    content: dict[str, Any] = {}
    if models:
        content[JSON] = {"schema": refs[0] if len(refs) == 1 else {"anyOf": refs}, "examples": examples}
    if line:
        lines = [to_json(value).decode() + "\n" for value in EXAMPLES[line].values()]
        content[NDJSON] = _lines(line) | {"example": "".join(lines)}
    if text:
        kind, example = text
        content[kind] = {"schema": {"type": "string"}, "example": example}
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}}


def answers(
    model: Any,
    *problems: int,
    line: type[BaseModel] | None = None,
    events: type[BaseModel] | None = None,
    text: str | None = None,
    media: tuple[str, type[BaseModel]] | None = None,
    tagged: bool = False,
    created: bool = False,
) -> dict[str, Any]:
    """The answer is this model, with an ETag if `tagged`, and status 201 if `created`; or NDJSON, with a `line` on each
    line; or server-sent events, each with such a model; or text, or a model, of this media type; or one of the
    `problems`, by status."""
    responses: dict[int | str, Any] = {status: _problem(status) for status in (*problems, 422, 503)}
    if line:
        responses[200] = {"content": {NDJSON: _lines(line, " or a `Problem`")}}
    if events:
        responses[200] = {"content": {EVENTS: _events(events)}}
    if text:
        responses[200] = {"content": {text: {"schema": {"type": "string"}}}}
    if media:
        responses[200] = {"content": {media[0]: {"schema": {"$ref": _REF.format(model=media[1].__name__)}}}}
    if tagged:
        responses[201 if created else 200] = {"headers": _ETAG}
    return {"response_model": model, "responses": responses}


class Documented(FastAPI):
    """FastAPI with an OpenAPI document that includes our bodies."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            document = super().openapi()
            models: set[type[BaseModel]] = {*EXAMPLES, schemas.Result, schemas.Learned, flow.Passed, JsonFeed, Problem}
            _, extra = models_json_schema([(model, _MODE) for model in models], ref_template=_REF)
            document["components"]["schemas"] = extra["$defs"] | document["components"]["schemas"]
            for path in document["paths"].values():
                for operation in path.values():
                    _complete(operation)
            document["components"]["securitySchemes"] = {KEY: {"type": "http", "scheme": "bearer"}}
        return self.openapi_schema or {}


def _complete(operation: dict[str, Any]) -> None:
    """Adds the answers and headers that all operations of a kind share."""
    responses = operation["responses"]
    if "requestBody" in operation:
        responses |= {str(status): _problem(status) for status in _WITH_BODY}
    if (scope := scope_of(operation["operationId"])) != PUBLIC:
        responses |= {str(status): _problem(status) for status in _WITH_KEY}
        operation |= {"security": [{KEY: []}, {}], "x-scope": scope}
    if "201" in responses:
        responses["201"]["headers"] = responses["201"].get("headers", {}) | _LOCATION
    if "202" in responses and "requestBody" in operation:
        responses["202"]["headers"] = _LOCATION
    operation["responses"] = dict(sorted(responses.items()))


def _problem(status: int) -> dict[str, Any]:
    response = {"description": _REASONS[status], "content": _PROBLEM}
    return response | ({"headers": _RETRY} if status in (429, 503) else {})


def _events(model: type[BaseModel]) -> dict[str, Any]:
    schema = {"type": "string", "description": f"The `data` of each event is a `{model.__name__}` as JSON."}
    return {"schema": schema, "x-event": {"$ref": _REF.format(model=model.__name__)}}


def _lines(model: type[BaseModel], alternative: str = "") -> dict[str, Any]:
    """OpenAPI cannot express the schema of each line, so it is named in words and, for programs, as `x-line`."""
    schema = {"type": "string", "description": f"A `{model.__name__}`{alternative} as JSON on each line."}
    return {"schema": schema, "x-line": {"$ref": _REF.format(model=model.__name__)}}
