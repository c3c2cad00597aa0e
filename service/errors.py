"""The errors this service raises on purpose.

* ServiceError
  x BadRequest          400   not JSON, not UTF-8, nested too deeply
  x Unauthorized        401   a key is needed, or this one does not work
  x Forbidden           403   a web page from another origin tried to change something; the key lacks a scope
  x NotFound            404   no such topic, version or judgement; a document that is not remembered (send its text)
  x Conflict            409   the id is taken; the version can no longer be reached
  x PreconditionFailed  412   If-Match names another version
  x TooLarge            413   more bytes, lines or documents than the settings allow
  x WrongMediaType      415   neither application/json nor application/x-ndjson
  x BadInput            422   a field is missing, unknown or out of range
  x TooManyRequests     429   the key's allowance is used up
  x StoreUnavailable    503   Redis did not answer, or is full
    x GroupGone         503   somebody deleted a stream that is being read
  x Busy                503   more listeners than the settings allow, or one that does not keep up

`api/problems.py` turns each into an RFC 9457 problem document. The detail is a sentence that says what to do; it
repeats nothing of the input but ids.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar, TypedDict


class FieldError(TypedDict):
    """What is wrong with one field of the request, and a JSON pointer to it."""

    pointer: str
    detail: str


def one_line(detail: str, errors: Iterable[Mapping[str, object]]) -> str:
    """The detail and all field errors in a single line."""
    fields = (
        f"{field['pointer']}: {field['detail']}" if field["pointer"] else str(field["detail"]) for field in errors
    )
    return " ".join((detail, *fields))


class ServiceError(Exception):
    status: ClassVar[int] = 500
    title: ClassVar[str] = "Internal error"
    retry_after_s: ClassVar[int | None] = None

    def __init__(self, detail: str, errors: Sequence[FieldError] = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.errors = list(errors)

    @property
    def headers(self) -> dict[str, str]:
        """What the answer says in its headers."""
        return {"Retry-After": str(self.retry_after_s)} if self.retry_after_s else {}


class BadRequest(ServiceError):
    status = 400
    title = "Bad request"


class Unauthorized(ServiceError):
    status = 401
    title = "Unauthorized"

    @property
    def headers(self) -> dict[str, str]:
        return {"WWW-Authenticate": "Bearer"}


class Forbidden(ServiceError):
    status = 403
    title = "Forbidden"


class NotFound(ServiceError):
    status = 404
    title = "Not found"

    @classmethod
    def topic(cls, topic: str) -> "NotFound":
        return cls(f"There is no topic {topic!r}.")

    @classmethod
    def topic_gone(cls, topic: str) -> "NotFound":
        """The error for a topic that was there a moment ago."""
        return cls(f"There is no topic {topic!r} any more.")


class Conflict(ServiceError):
    status = 409
    title = "Conflict"


class PreconditionFailed(ServiceError):
    status = 412
    title = "Precondition failed"


class TooLarge(ServiceError):
    status = 413
    title = "Too large"


class WrongMediaType(ServiceError):
    status = 415
    title = "Unsupported media type"


class BadInput(ServiceError):
    status = 422
    title = "Invalid input"


class TooManyRequests(ServiceError):
    """The allowance of a key is used up: `quota` requests in `window_s` seconds. One more may be sent after `wait_s`, a
    whole quota after `whole_s`."""

    status = 429
    title = "Too many requests"

    def __init__(self, detail: str, quota: int, window_s: int, wait_s: float, whole_s: float) -> None:
        super().__init__(detail)
        self._headers = {
            "Retry-After": str(math.ceil(wait_s)),
            "RateLimit-Policy": f'"key";q={quota};w={window_s}',
            "RateLimit": f'"key";r=0;t={math.ceil(whole_s)}',
        }

    @property
    def headers(self) -> dict[str, str]:
        return self._headers


class StoreUnavailable(ServiceError):
    status = 503
    title = "Store unavailable"
    retry_after_s = 1


class GroupGone(StoreUnavailable):
    """A stream was deleted, and with it the consumer group that reads it."""


class SearchUnavailable(ServiceError):
    status = 503
    title = "Search unavailable"
    retry_after_s = 1


class Busy(ServiceError):
    status = 503
    title = "Busy"
    retry_after_s = 1
