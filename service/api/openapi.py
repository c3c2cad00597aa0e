"""What `/docs` says of bodies and answers. Handlers read and write the raw bytes themselves, so FastAPI has to be told.

The examples are true: sent in the order of the paths to an empty Sluice they are answered as the document says. A test
sends them.
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
from service.archive import file
from service.archive.lines import ArchiveLine
from service.schemas import Problem, flow, jobs, review
from service.schemas.metrics import PreviewRequest
from service.schemas.models import ModelFile

EVENTS = "text/event-stream"
_REF = "#/components/schemas/{model}"
_MODE: Literal["validation"] = "validation"
_PROBLEM = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model=Problem.__name__)}}}
_REASONS = {
    400: "Not JSON in UTF-8.",
    404: "No such topic, version or judgement; or the document is not remembered (any more): send its text.",
    409: "The id is taken, or the topic kept changing.",
    412: "The topic is not the one that If-Match names.",
    413: "More bytes, lines, values or documents than is allowed.",
    415: "Neither of the media types that are taken, or compressed.",
    422: "A field or a parameter is missing, unknown or out of range.",
    503: "The store does not answer, or the topics are still being loaded; Retry-After says when to try again.",
}
_WITH_BODY = (400, 413, 415)
_ETAG = {"ETag": {"description": "For If-Match.", "schema": {"type": "string"}}}
_LOCATION = {"Location": {"description": "Where it is.", "schema": {"type": "string"}}}
_RETRY = {"Retry-After": {"description": "Seconds.", "schema": {"type": "integer"}}}

# The bodies of requests. Their examples stand in examples.json, by the name of the type.
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
)
_examples = json.loads((files(__package__) / "examples.json").read_text(encoding="utf-8"))
EXAMPLES: dict[type[BaseModel], dict[str, Any]] = {body: _examples[body.__name__] for body in BODIES}
EXAMPLES[ArchiveLine] = {str(n): line for n, line in enumerate(file.example())}


def takes(*models: type[BaseModel], line: type[BaseModel] | None = None) -> dict[str, Any]:
    """The request's body is one of these; or, as NDJSON, a `line` a line."""
    refs = [{"$ref": _REF.format(model=model.__name__)} for model in models]
    examples = {name: {"value": value} for model in models for name, value in EXAMPLES[model].items()}
    content: dict[str, Any] = {}
    if models:
        content[JSON] = {"schema": refs[0] if len(refs) == 1 else {"anyOf": refs}, "examples": examples}
    if line:
        sent = [to_json(value).decode() + "\n" for value in EXAMPLES[line].values()]
        content[NDJSON] = _lines(line) | {"example": "".join(sent)}
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}}


def answers(
    model: Any,
    *problems: int,
    line: type[BaseModel] | None = None,
    events: type[BaseModel] | None = None,
    text: str | None = None,
    tagged: bool = False,
) -> dict[str, Any]:
    """The answer is this, with an ETag if `tagged`; or events, each with one of these; or text of this media type; or a
    problem document."""
    responses: dict[int | str, Any] = {status: _problem(status) for status in (*problems, 422, 503)}
    if line:
        responses[200] = {"content": {NDJSON: _lines(line, "or a `Problem`, ")}}
    if events:
        responses[200] = {"content": {EVENTS: _events(events)}}
    if text:
        responses[200] = {"content": {text: {"schema": {"type": "string"}}}}
    if tagged:
        responses[200] = {"headers": _ETAG}
    return {"response_model": model, "responses": responses}


class Documented(FastAPI):
    """FastAPI with a document that knows our bodies."""

    def openapi(self) -> dict[str, Any]:
        if self.openapi_schema is None:
            found = super().openapi()
            models: set[type[BaseModel]] = {*EXAMPLES, schemas.Result, schemas.Learned, flow.Passed, Problem}
            _, extra = models_json_schema([(model, _MODE) for model in models], ref_template=_REF)
            found["components"]["schemas"] = extra["$defs"] | found["components"]["schemas"]
            for path in found["paths"].values():
                for operation in path.values():
                    _complete(operation)
        return self.openapi_schema or {}


def _complete(operation: dict[str, Any]) -> None:
    """What is true of every operation of a kind."""
    responses = operation["responses"]
    if "requestBody" in operation:
        responses |= {str(status): _problem(status) for status in _WITH_BODY}
    if "201" in responses:
        responses["201"]["headers"] = _ETAG | _LOCATION
    if "202" in responses and "requestBody" in operation:
        responses["202"]["headers"] = _LOCATION
    operation["responses"] = dict(sorted(responses.items()))


def _problem(status: int) -> dict[str, Any]:
    described = {"description": _REASONS[status], "content": _PROBLEM}
    return described | ({"headers": _RETRY} if status == 503 else {})


def _events(model: type[BaseModel]) -> dict[str, Any]:
    schema = {"type": "string", "description": f"A `{model.__name__}` as JSON is the `data` of each event."}
    return {"schema": schema, "x-event": {"$ref": _REF.format(model=model.__name__)}}


def _lines(model: type[BaseModel], otherwise: str = "") -> dict[str, Any]:
    """OpenAPI has no word for a schema of lines, so theirs is named in words and, for programs, as `x-line`."""
    schema = {"type": "string", "description": f"A `{model.__name__}`, {otherwise}in JSON on each line."}
    return {"schema": schema, "x-line": {"$ref": _REF.format(model=model.__name__)}}
