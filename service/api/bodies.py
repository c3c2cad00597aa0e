"""Reading the bodies of requests: bounded in size, and of the media type that the headers declare."""

from collections.abc import AsyncIterator
from email.message import Message

from starlette.requests import ClientDisconnect, Request

from service.errors import BadRequest, TooLarge, WrongMediaType

JSON = "application/json"
NDJSON = "application/x-ndjson"


def media_type(request: Request, *allowed: str) -> str:
    """The request's media type, which must be one of these."""
    sent = request.headers.get("content-type", "")
    kind, charset = (sent, "utf-8") if sent in allowed else _content_type(sent)
    if kind not in allowed:
        raise WrongMediaType(f"Send {' or '.join(allowed)}, with the matching Content-Type header.")
    if charset not in ("utf-8", "utf8"):
        raise WrongMediaType("Send the body in UTF-8.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise WrongMediaType("Send the body uncompressed, without Content-Encoding.")
    return kind


def declared_within(request: Request, limit: int) -> None:
    """Refuses a body whose Content-Length is above the limit, before any of it is read."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise _too_large(limit)


async def body(request: Request, limit: int) -> bytes:
    """The whole body; raises TooLarge as soon as it is longer than the limit."""
    declared_within(request, limit)
    parts: list[bytes] = []
    size = 0
    async for chunk in _chunks(request):
        size += len(chunk)
        if size > limit:
            raise _too_large(limit)
        parts.append(chunk)
    return b"".join(parts)


async def lines(request: Request, limit: int, line_limit: int) -> AsyncIterator[list[bytes]]:
    """The lines of a body in batches, as they arrive, without blank ones.

    A line longer than its limit is cut one byte beyond it, so that `parse` refuses it, and the rest of it is skipped.
    A body longer than its limit raises TooLarge after the last line that ends within it.
    """
    left, skipping = limit, False
    rest = bytearray()  # of a line whose end has not arrived yet
    async for chunk in _chunks(request):
        *whole, tail = chunk[:left].split(b"\n")
        left -= len(chunk)
        if whole:
            whole[0] = b"" if skipping else bytes(rest + whole[0])
            rest.clear()
            skipping = False
        if not skipping:
            rest += tail
        if len(rest) > line_limit:
            whole.append(bytes(rest))
            rest.clear()
            skipping = True
        if ready := [line[: line_limit + 1] for line in whole if line.strip()]:
            yield ready
        if left < 0:
            raise _too_large(limit)
    if rest.strip():
        yield [bytes(rest)]


def _content_type(sent: str) -> tuple[str, str]:
    header = Message()
    header["content-type"] = sent
    return header.get_content_type(), str(header.get_content_charset("utf-8"))


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"The body is longer than {limit:,} bytes; send it in parts.")


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        raise BadRequest("The connection closed before the whole body arrived.") from None
