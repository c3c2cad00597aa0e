"""Reading requests: bounded, strict, from the raw bytes."""

from collections.abc import AsyncIterator
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request

from service.errors import BadRequest, TooLarge, WrongMediaType
from service.problems import from_validation

JSON = "application/json"
NDJSON = "application/x-ndjson"

T = TypeVar("T")


def media_type(request: Request, *allowed: str) -> str:
    """The request's media type, which must be one of these."""
    sent, _, parameters = request.headers.get("content-type", "").partition(";")
    kind = sent.strip().lower()
    charset = parameters.strip().lower().removeprefix("charset=").strip('"')
    if kind not in allowed:
        raise WrongMediaType(f"Send {' or '.join(allowed)} (the header Content-Type says).")
    if charset not in ("", "utf-8", "utf8"):
        raise WrongMediaType("Send UTF-8.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise WrongMediaType("Send the body as it is, without Content-Encoding.")
    return kind


async def body(request: Request, limit: int) -> bytes:
    """The whole body, if it is not longer than the limit; nothing beyond the limit is kept."""
    _declared(request, limit)
    parts: list[bytes] = []
    size = 0
    async for chunk in _chunks(request):
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        parts.append(chunk)
    return b"".join(parts)


async def lines(request: Request, limit: int, line_limit: int) -> AsyncIterator[list[bytes]]:
    """The lines of a body as they arrive, some at a time, blank ones left out.

    A line longer than its limit is cut one byte beyond it, so that whoever parses it can tell, and the rest of it is
    passed over. A body longer than its limit raises TooLarge when it gets there.
    """
    _declared(request, limit)
    size, rest, skipping = 0, b"", False
    async for chunk in _chunks(request):
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        *whole, tail = chunk.split(b"\n")
        if whole:
            whole[0] = b"" if skipping else rest + whole[0]
            rest, skipping = tail, False
        elif not skipping:
            rest += tail
        if len(rest) > line_limit:
            whole.append(rest[: line_limit + 1])
            rest, skipping = b"", True
        if ready := [line[: line_limit + 1] for line in whole if line.strip()]:
            yield ready
    if rest.strip():
        yield [rest]


def parse(adapter: TypeAdapter[T], raw: bytes) -> T:
    """The value that these bytes say, or the error that says why not."""
    if raw.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise BadRequest("Send UTF-8 without a byte order mark.")
    try:
        return adapter.validate_json(raw)
    except ValidationError as error:
        raise from_validation(error) from None


def _declared(request: Request, limit: int) -> None:
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is longer than {limit:,} bytes; send less at once.")


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        raise BadRequest("The body ended early.") from None
