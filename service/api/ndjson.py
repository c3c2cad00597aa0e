"""Streams of lines through HTTP: one item in, one line out, in order, in bounded memory.

An ordinary client sends everything before it reads anything. If we answered while it sends, both would wait forever
once the buffers between us are full; so answers are spooled (in memory, then on disk) until the request has been read.
A client that reads while it writes says `?duplex=true` and gets each line as soon as it is ready.

Where the order in which items take effect does not matter, and nobody waits for single answers, the next batch is begun
while the store is still busy with the one before: of documents that are stored, an eighth more in the same time.

An item that fails has a problem document on its line, and the stream goes on. What ends the stream early (a limit, a
lost store) is a problem on the last line; if no line came before it, it is the whole answer.

Starlette's StreamingResponse listens for a disconnect while it sends, and so swallows chunks of the request if its body
is still being read; hence a Response of our own, which only sends.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import ExitStack
from itertools import repeat
from tempfile import SpooledTemporaryFile
from typing import IO, Any, TypeVar

from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from service.api.bodies import NDJSON, declared_within, lines
from service.api.problems import problem
from service.config import Config
from service.errors import ServiceError, StoreUnavailable, TooLarge
from service.tasks import Pool, cancel_all

BATCH_LINES = 256  # handled together
BATCHES_AHEAD = 1  # begun before an earlier one is done
SPOOL_BYTES = 4_000_000  # of answers kept in memory before they go to disk
CHUNK_BYTES = 1 << 16

Handle = Callable[[Sequence[bytes]], Coroutine[Any, Any, list[bytes]]]
T = TypeVar("T")


class ChunkedResponse(Response):
    """An answer that is sent chunk by chunk, so that a long one lets others be answered in between."""

    def __init__(self, chunks: AsyncIterator[bytes], media_type: str, length: int | None = None) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        if length is not None:
            self.headers["content-length"] = str(length)
        self._chunks = chunks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for chunk in self._chunks:
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def joined(before: bytes, between: bytes, results: Sequence[bytes], after: bytes) -> AsyncIterator[bytes]:
    """The results joined, a chunk at a time."""
    chunk: list[bytes] = []
    size = 0
    for result in results:
        chunk.append(result)
        size += len(result)
        if size > CHUNK_BYTES:
            yield before + between.join(chunk)
            before, chunk, size = between, [], 0
            await asyncio.sleep(0)
    yield (before if chunk else b"") + between.join(chunk) + after


def line_handler(
    pool: Pool, parse: Callable[[bytes], T], handle: Callable[[Sequence[T]], Awaitable[list[bytes]]]
) -> Handle:
    """Returns a handler that gives a line for each line: what `handle` makes of the parsed item, or the problem."""

    def parse_or_error(line: bytes) -> T | ServiceError:
        try:
            return parse(line)
        except ServiceError as error:
            return error

    def parse_all(lines: Sequence[bytes]) -> list[T | ServiceError]:
        return [parse_or_error(line) for line in lines]

    async def handle_lines(lines: Sequence[bytes]) -> list[bytes]:
        parsed = await pool.run(parse_all, lines)
        items = [item for item in parsed if not isinstance(item, ServiceError)]
        try:
            results = iter(await handle(items) if items else [])
        except StoreUnavailable:
            raise
        except ServiceError as error:
            results = repeat(to_json(problem(error)))
        return [to_json(problem(item)) if isinstance(item, ServiceError) else next(results) for item in parsed]

    return handle_lines


async def answer(request: Request, config: Config, handle: Handle, *, duplex: bool, in_turn: bool = True) -> Response:
    """Passes the lines of the request to `handle`, a batch at a time; it returns a line for each. Unless they are to be
    handled in turn, the next batch may be begun before the one before is done."""
    declared_within(request, config.max_stream_bytes)
    if duplex:
        return ChunkedResponse(_with_last_problem(_answers(request, config, handle, 0)), NDJSON)
    answers = _answers(request, config, handle, 0 if in_turn else BATCHES_AHEAD)
    with ExitStack() as stack:
        spool = stack.enter_context(SpooledTemporaryFile(SPOOL_BYTES))
        try:
            async for chunk in answers:
                spool.write(chunk)
                if spool.tell() > config.max_stream_bytes:
                    raise TooLarge("The answers are longer than a stream may be; send fewer lines or use ?duplex=true.")
        except ServiceError as error:
            if not spool.tell():
                raise
            spool.write(_problem_line(error))
        spool.seek(0)
        return ChunkedResponse(_read_spool(spool, stack.pop_all()), NDJSON)


async def _answers(request: Request, config: Config, handle: Handle, ahead: int) -> AsyncIterator[bytes]:
    batches, begun = _batches(request, config), deque[asyncio.Task[list[bytes]]]()
    reading, failure = True, None
    try:
        while reading or begun:
            while reading and len(begun) <= ahead:
                try:
                    begun.append(asyncio.create_task(handle(await anext(batches))))
                except StopAsyncIteration:
                    reading = False
                except ServiceError as error:  # everything that was read before it is still answered
                    reading, failure = False, error
            if begun:
                yield b"".join(line + b"\n" for line in await begun.popleft())
    finally:
        await cancel_all(begun)
        await asyncio.gather(*begun, return_exceptions=True)  # the first failure was raised, and stands for all
    if failure:
        raise failure


async def _batches(request: Request, config: Config) -> AsyncIterator[list[bytes]]:
    left = config.max_stream_lines
    async for arrived in lines(request, config.max_stream_bytes, config.max_body_bytes):
        for start in range(0, min(left, len(arrived)), BATCH_LINES):
            yield arrived[start : min(left, start + BATCH_LINES)]
        left -= len(arrived)
        if left < 0:
            raise TooLarge(f"A stream may have at most {config.max_stream_lines:,} lines; send the rest in another.")


async def _with_last_problem(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks, and what ended them early as a problem on the last line."""
    try:
        async for chunk in chunks:
            yield chunk
    except ServiceError as error:
        yield _problem_line(error)


async def _read_spool(spool: IO[bytes], stack: ExitStack) -> AsyncIterator[bytes]:
    """Yields what was spooled, a chunk at a time; closes the spool at the end."""
    with stack:
        while chunk := await asyncio.to_thread(spool.read, CHUNK_BYTES):
            yield chunk


def _problem_line(error: ServiceError) -> bytes:
    return to_json(problem(error)) + b"\n"
