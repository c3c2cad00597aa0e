"""How calls, lists in pages, lines and event streams are sent: `BlockingSender` waits, `AsyncSender` awaits.

The two are alike line by line. What to send and when to retry is decided in `calls.py`, `lines.py` and `sse.py`.
"""

import asyncio
import ssl
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import SystemRandom
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import httpx

from service.client.calls import DEFAULT_RETRIES, Call, Pause, Retries, parse_as, steps
from service.client.errors import ClientError, Refused, Unreachable
from service.client.lines import Item, Lines
from service.client.sse import Listener
from service.schemas import Page, Problem

URL = "http://127.0.0.1:8000"
TIMEOUT_S = 60.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PagedList(Generic[T]):
    """A list that is fetched page by page."""

    path: str
    page: type[Page[T]]
    limit: int
    params: Mapping[str, Any] = field(default_factory=dict)

    def call(self, cursor: str | None) -> Call[Page[T]]:
        params = {**self.params, "limit": self.limit, "cursor": cursor}
        return Call("GET", self.path, parse_as(self.page), params=params)


class BlockingSender:
    def __init__(
        self,
        url: str = URL,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: Retries = DEFAULT_RETRIES,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        address = _parse_url(url)
        self._http = httpx.Client(
            base_url=address, headers=_headers(key), timeout=timeout_s, verify=_verify(address), transport=transport
        )
        self._retries, self._rng = retries, SystemRandom()

    def send(self, call: Call[T]) -> T:
        """Sends a call, again if it has to and may be, and returns its result."""
        todo = steps(call, self._retries, self._rng)
        try:
            step = next(todo)
            while True:
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    step = next(todo)
                    continue
                try:
                    response = self._http.send(step.request(self._http))
                except httpx.TransportError as error:
                    step = todo.throw(error)
                else:
                    step = todo.send(response)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def pages(self, items: PagedList[T]) -> Iterator[T]:
        cursor: str | None = None
        while True:
            page = self.send(items.call(cursor))
            yield from page.items
            if (cursor := page.next) is None:
                return

    def stream(self, items: Iterable[Item], lines: Lines[T]) -> Iterator[T | Problem]:
        for item in items:
            for call in lines.add(item):
                yield from self.send(call)
        for call in lines.flush():
            yield from self.send(call)

    def listen(self, listener: Listener[T]) -> Iterator[T]:
        while True:
            failure: ClientError | httpx.TransportError | None = None
            try:
                response = self._http.send(listener.request(self._http), stream=True)
                try:
                    if not response.is_success:
                        response.read()
                        raise Refused.from_response(response)
                    for chunk in response.iter_bytes():
                        yield from listener.feed(chunk)
                finally:
                    response.close()
            except (ClientError, httpx.TransportError) as error:
                failure = error
            time.sleep(listener.pause_s(failure, self._retries, self._rng))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncSender:
    def __init__(
        self,
        url: str = URL,
        *,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        retries: Retries = DEFAULT_RETRIES,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        address = _parse_url(url)
        self._http = httpx.AsyncClient(
            base_url=address, headers=_headers(key), timeout=timeout_s, verify=_verify(address), transport=transport
        )
        self._retries, self._rng = retries, SystemRandom()

    async def send(self, call: Call[T]) -> T:
        """Sends a call, again if it has to and may be, and returns its result."""
        todo = steps(call, self._retries, self._rng)
        try:
            step = next(todo)
            while True:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    step = next(todo)
                    continue
                try:
                    response = await self._http.send(step.request(self._http))
                except httpx.TransportError as error:
                    step = todo.throw(error)
                else:
                    step = todo.send(response)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def pages(self, items: PagedList[T]) -> AsyncIterator[T]:
        cursor: str | None = None
        while True:
            page = await self.send(items.call(cursor))
            for item in page.items:
                yield item
            if (cursor := page.next) is None:
                return

    async def stream(self, items: Iterable[Item] | AsyncIterable[Item], lines: Lines[T]) -> AsyncIterator[T | Problem]:
        async for item in _iterate(items):
            for call in lines.add(item):
                for result in await self.send(call):
                    yield result
        for call in lines.flush():
            for result in await self.send(call):
                yield result

    async def listen(self, listener: Listener[T]) -> AsyncIterator[T]:
        while True:
            failure: ClientError | httpx.TransportError | None = None
            try:
                response = await self._http.send(listener.request(self._http), stream=True)
                try:
                    if not response.is_success:
                        await response.aread()
                        raise Refused.from_response(response)
                    async for chunk in response.aiter_bytes():
                        for event in listener.feed(chunk):
                            yield event
                finally:
                    await response.aclose()
            except (ClientError, httpx.TransportError) as error:
                failure = error
            await asyncio.sleep(listener.pause_s(failure, self._retries, self._rng))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _parse_url(url: str) -> httpx.URL:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        parsed = httpx.URL()
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise Unreachable("The address of the service must be a URL that begins with http:// or https://.")
    return parsed


def _headers(key: str | None) -> dict[str, str]:
    if key is None:
        return {}
    if not key.isascii() or not key.isprintable():
        raise Unreachable("The key must be printable ASCII; copy it again, without line breaks.")
    return {"Authorization": f"Bearer {key}"}


def _verify(address: httpx.URL) -> bool | ssl.SSLContext:
    """Which certificates to trust. Reading the usual ones takes longer than a call, so for plain HTTP it is none: if a
    connection were encrypted after all, it would be refused."""
    return address.scheme == "https" or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _iterate(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
