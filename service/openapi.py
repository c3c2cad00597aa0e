"""What `/docs` says of bodies. Handlers read the raw bytes themselves, so FastAPI has to be told what they expect."""

from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from service.bodies import JSON, NDJSON
from service.problems import MEDIA_TYPE
from service.schemas import Problem

_REF = "#/components/schemas/{model}"
_MODE: Literal["validation"] = "validation"
_taken: set[type[BaseModel]] = set()


def takes(*models: type[BaseModel], line: type[BaseModel] | None = None) -> dict[str, Any]:
    """The request's body is one of these; or, as NDJSON, a `line` a line."""
    _taken.update(models)
    refs = [{"$ref": _REF.format(model=model.__name__)} for model in models]
    content: dict[str, Any] = {JSON: {"schema": refs[0] if len(refs) == 1 else {"anyOf": refs}}}
    if line:
        _taken.add(line)
        content[NDJSON] = {"schema": {"$ref": _REF.format(model=line.__name__)}}
    return {"openapi_extra": {"requestBody": {"required": True, "content": content}}}


def answers(model: Any, *problems: int, line: type[BaseModel] | None = None) -> dict[str, Any]:
    """The answer is this; or a problem document."""
    schema = {MEDIA_TYPE: {"schema": {"$ref": _REF.format(model=Problem.__name__)}}}
    responses: dict[int | str, Any] = {status: {"content": schema} for status in (*problems, 422, 503)}
    if line:
        _taken.add(line)
        responses[200] = {"content": {NDJSON: {"schema": {"$ref": _REF.format(model=line.__name__)}}}}
    return {"response_model": model, "responses": responses}


def install(app: FastAPI) -> None:
    """Adds the models that only `takes` and `answers` name to what FastAPI finds by itself."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            found = plain()
            models: set[type[BaseModel]] = {*_taken, Problem}
            _, extra = models_json_schema([(model, _MODE) for model in models], ref_template=_REF)
            found["components"]["schemas"] = extra["$defs"] | found["components"]["schemas"]
        return app.openapi_schema or {}

    app.openapi = openapi  # type: ignore[method-assign]  # the documented way to extend it
