"""Streams of lines through HTTP: one item in, one line out, in order, in bounded memory.

An ordinary client sends everything before it reads anything. If we answered while it sends, both would wait for ever
once the buffers between us are full; so answers are spooled (in memory, then on disk) until the request has been read.
A client that reads while it writes says `?duplex=true` and gets each line as soon as it is ready.

Where the order in which items take effect does not matter, and nobody waits for single answers, the next ones are begun
while the store is still busy with those before: of documents that are stored, an eighth more in the same time.

An item that fails has a problem document on its line and the stream goes on. What ends the stream early (a limit, a
store that is gone) is a problem on the last line; if no line came before it, it is the answer.

Starlette's StreamingResponse listens for a disconnect while it sends, and so eats the request's chunks when the body is
still being read; hence a Response of our own, which only sends.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import ExitStack
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.api.bodies import NDJSON, declared_within, lines
from service.api.problems import problem
from service.config import Config
from service.errors import ServiceError, TooLarge
from service.tasks import cancel_all

BATCH = 256  # lines handled together
AHEAD = 1  # batches that are begun before an earlier one is done
SPOOLED_BYTES = 4_000_000  # answers kept in memory before they go to disk
PIECE = 1 << 16

Handle = Callable[[Sequence[bytes]], Coroutine[Any, Any, list[bytes]]]


class Pieces(Response):
    """An answer that is sent piece by piece, so that a long one lets others be answered in between."""

    def __init__(self, pieces: AsyncIterator[bytes], media_type: str, length: int | None = None) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        if length is not None:
            self.headers["content-length"] = str(length)
        self._pieces = pieces

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def pieces(before: bytes, between: bytes, results: Sequence[bytes], after: bytes) -> AsyncIterator[bytes]:
    """The results joined, some at a time."""
    at_once: list[bytes] = []
    size = 0
    for result in results:
        at_once.append(result)
        size += len(result)
        if size > PIECE:
            yield before + between.join(at_once)
            before, at_once, size = between, [], 0
            await asyncio.sleep(0)
    yield (before if at_once else b"") + between.join(at_once) + after


async def answer(request: Request, settings: Config, handle: Handle, *, duplex: bool, in_turn: bool = True) -> Response:
    """Passes the lines of the request to `handle`, some at a time; it returns a line for each. Unless they are to be
    handled in turn, some more may be begun before those are done."""
    declared_within(request, settings.max_stream_bytes)
    if duplex:
        return Pieces(_to_the_end(_answered(request, settings, handle, 0)), NDJSON)
    answered = _answered(request, settings, handle, 0 if in_turn else AHEAD)
    with ExitStack() as opened:
        spool = opened.enter_context(SpooledTemporaryFile(SPOOLED_BYTES))
        try:
            async for piece in answered:
                spool.write(piece)
                if spool.tell() > settings.max_stream_bytes:
                    raise TooLarge("The answers are longer than a stream may be; send fewer lines or use ?duplex=true.")
        except ServiceError as error:
            if not spool.tell():
                raise
            spool.write(_line(error))
        spool.seek(0)
        return Pieces(_unspooled(spool, opened.pop_all()), NDJSON)


async def _answered(request: Request, settings: Config, handle: Handle, ahead: int) -> AsyncIterator[bytes]:
    batches, begun = _batches(request, settings), deque[asyncio.Task[list[bytes]]]()
    reading, ended = True, None
    try:
        while reading or begun:
            while reading and len(begun) <= ahead:
                try:
                    begun.append(asyncio.create_task(handle(await anext(batches))))
                except StopAsyncIteration:
                    reading = False
                except ServiceError as error:  # of what was read before it, everything is answered
                    reading, ended = False, error
            if begun:
                yield b"".join(line + b"\n" for line in await begun.popleft())
    finally:
        await cancel_all(begun)
        await asyncio.gather(*begun, return_exceptions=True)  # one has failed, and has said why for all
    if ended:
        raise ended


async def _batches(request: Request, settings: Config) -> AsyncIterator[list[bytes]]:
    left = settings.max_stream_lines
    async for arrived in lines(request, settings.max_stream_bytes, settings.max_body_bytes):
        for start in range(0, min(left, len(arrived)), BATCH):
            yield arrived[start : min(left, start + BATCH)]
        left -= len(arrived)
        if left < 0:
            raise TooLarge(f"A stream may have {settings.max_stream_lines:,} lines; send the rest in another.")


async def _to_the_end(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    try:
        async for piece in pieces:
            yield piece
    except ServiceError as error:
        yield _line(error)


async def _unspooled(spool: IO[bytes], opened: ExitStack) -> AsyncIterator[bytes]:
    with opened:
        while piece := await asyncio.to_thread(spool.read, PIECE):
            yield piece


def _line(error: ServiceError) -> bytes:
    return to_json(problem(error)) + b"\n"
