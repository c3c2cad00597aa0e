"""What `/docs` says of bodies and answers. Handlers read and write the raw bytes themselves, so FastAPI has to be told.

The examples are true: sent in the order of the paths to an empty Sluice they are answered as the document says. A test
sends them.
"""

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
from service.schemas import Problem, flow, jobs, metrics, review
from service.schemas import models as schemas_models

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

_OIL = {"title": "OPEC meets", "text": "Crude prices rose after OPEC agreed to cut output."}
_GRAIN = {"id": "d2", "text": "Farmers in Kansas expect a smaller wheat harvest after the drought."}
_JUDGEMENT = {"topic": "crude", "document": "d1", "relevant": True}
EXAMPLES: dict[type[BaseModel], dict[str, Any]] = {
    schemas.NewTopic: {
        "a query is enough": {"id": "crude", "name": "Crude oil", "query": "crude oil OPEC barrels output price"},
        "with a learner and a goal": {
            "name": "Grain",
            "query": "wheat maize harvest",
            "learner": {"kind": "winnow", "params": {"variant": "balanced", "alpha": 1.3}},
            "goal": {"min_precision": 0.95, "max_abstain": 0.15},
        },
    },
    schemas.TopicChange: {
        "another learner": {"name": "Oil", "learner": {"kind": "eg"}},
        "no goal": {"goal": None},
        "single words": {"terms": {"pin": ["opec", "brent"], "ban": ["reuters"]}},
    },
    schemas.Classify: {
        "for every topic": {"documents": [{"id": "d1", **_OIL}, _GRAIN]},
        "for one, and why": {"documents": [_OIL], "topics": ["crude"], "explain": True, "store": False},
    },
    schemas.Document: {"": _OIL},
    schemas.Judgement: {
        "by id": _JUDGEMENT,
        "with its text": {"topic": "crude", "document": _GRAIN, "relevant": False, "by": "ann"},
    },
    schemas.Judgements: {"several": {"judgements": [_JUDGEMENT, _JUDGEMENT | {"document": _OIL}]}},
    metrics.PreviewRequest: {
        "a goal": {"goal": {"min_precision": 0.9, "max_abstain": 0.2}},
        "a rule, with few examples": {"rules": {"accept_if": None, "reject_if": "sport"}, "limit": 5},
    },
    jobs.Retrain: {
        "all topics, if it helps": {"kind": "retrain", "method": "svm"},
        "one, without publishing": {
            "kind": "retrain",
            "topics": ["crude"],
            "method": "boosting",
            "params": {"S": 100},
            "publish": "never",
        },
    },
    jobs.Compare: {"two methods": {"kind": "compare", "topic": "crude", "methods": [{"method": "svm"}]}},
    jobs.Backfill: {"what is remembered": {"kind": "backfill", "topics": ["crude"]}},
    flow.Routes: {
        "to a webhook, and to a stream": {
            "routes": [
                {
                    "to": "webhook",
                    "url": "https://example.org/sluice",
                    "on": ["accept"],
                    "secret": "whsec_c2x1aWNlIHNsdWljZSBzbHVpY2Ugc2x1aWNl",
                },
                {"to": "stream", "key": "crude-news"},
            ]
        }
    },
    flow.Replay: {"what is dead": {"after": None}},
    review.Skip: {"by id": {"document": "d2"}},
    review.NewKnown: {"by id, and with its text": {"documents": ["d1", _OIL | {"id": "k1"}]}},
    ArchiveLine: {str(n): line for n, line in enumerate(file.example())},
    schemas_models.ModelFile: {
        "two words": {
            "format": "sluice-model/1",
            "kind": "wh",
            "view": "tfidf",
            "bias": 0.05,
            "rest": 0.0,
            "reject_below": 0.1,
            "accept_above": 0.2,
            "terms": {"opec": 0.8, "wheat": -0.5},
        }
    },
}


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
