"""The two ways to send: one blocks, one awaits. What is sent, when again, and what is made of it, is said elsewhere."""

import asyncio
import time
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from random import SystemRandom
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import httpx
from pydantic import BaseModel

from service.client.calls import USUAL, Call, Pause, Retries, flow, reading
from service.client.errors import ClientError, Refused, Unreachable
from service.client.lines import Lines
from service.client.sse import Listener
from service.schemas import Page, Problem

URL = "http://127.0.0.1:8000"
TIMEOUT_S = 60.0

T = TypeVar("T")

Item = BaseModel | Mapping[str, Any] | bytes  # a model of service.schemas, the same as a mapping, or as JSON


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """A list that comes in pages."""

    path: str
    page: type[Page[T]]
    limit: int

    def call(self, cursor: str | None) -> Call[Page[T]]:
        return Call("GET", self.path, reading(self.page), params={"limit": self.limit, "cursor": cursor})


class Blocking:
    def __init__(
        self,
        url: str = URL,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: Retries = USUAL,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._http = httpx.Client(base_url=_address(url), timeout=timeout_s, transport=transport)
        self._retries, self._chance = retries, SystemRandom()

    def send(self, call: Call[T]) -> T:
        """The answer to a call."""
        steps = flow(call, self._retries, self._chance)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                    step = next(steps)
                    continue
                try:
                    answer = self._http.send(step.request(self._http))
                except httpx.TransportError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    def pages(self, listed: Listed[T]) -> Iterator[T]:
        cursor: str | None = None
        while True:
            page = self.send(listed.call(cursor))
            yield from page.items
            if (cursor := page.next) is None:
                return

    def stream(self, items: Iterable[Item], lines: Lines[T]) -> Iterator[T | Problem]:
        for item in items:
            for call in lines.put(item):
                yield from self.send(call)
        for call in lines.rest():
            yield from self.send(call)

    def listen(self, listener: Listener[T]) -> Iterator[T]:
        while True:
            problem: ClientError | httpx.TransportError | None = None
            try:
                answer = self._http.send(listener.request(self._http), stream=True)
                try:
                    if not answer.is_success:
                        answer.read()
                        raise Refused.of(answer)
                    for chunk in answer.iter_bytes():
                        yield from listener.take(chunk)
                finally:
                    answer.close()
            except (ClientError, httpx.TransportError) as error:
                problem = error
            time.sleep(listener.pause_s(problem, self._retries, self._chance))

    def close(self) -> None:
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Awaiting:
    def __init__(
        self,
        url: str = URL,
        *,
        timeout_s: float = TIMEOUT_S,
        retries: Retries = USUAL,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._http = httpx.AsyncClient(base_url=_address(url), timeout=timeout_s, transport=transport)
        self._retries, self._chance = retries, SystemRandom()

    async def send(self, call: Call[T]) -> T:
        """The answer to a call."""
        steps = flow(call, self._retries, self._chance)
        try:
            step = next(steps)
            while True:
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                    step = next(steps)
                    continue
                try:
                    answer = await self._http.send(step.request(self._http))
                except httpx.TransportError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: T = end.value
            return result

    async def pages(self, listed: Listed[T]) -> AsyncIterator[T]:
        cursor: str | None = None
        while True:
            page = await self.send(listed.call(cursor))
            for item in page.items:
                yield item
            if (cursor := page.next) is None:
                return

    async def stream(self, items: Iterable[Item] | AsyncIterable[Item], lines: Lines[T]) -> AsyncIterator[T | Problem]:
        async for item in _awaited(items):
            for call in lines.put(item):
                for result in await self.send(call):
                    yield result
        for call in lines.rest():
            for result in await self.send(call):
                yield result

    async def listen(self, listener: Listener[T]) -> AsyncIterator[T]:
        while True:
            problem: ClientError | httpx.TransportError | None = None
            try:
                answer = await self._http.send(listener.request(self._http), stream=True)
                try:
                    if not answer.is_success:
                        await answer.aread()
                        raise Refused.of(answer)
                    async for chunk in answer.aiter_bytes():
                        for event in listener.take(chunk):
                            yield event
                finally:
                    await answer.aclose()
            except (ClientError, httpx.TransportError) as error:
                problem = error
            await asyncio.sleep(listener.pause_s(problem, self._retries, self._chance))

    async def close(self) -> None:
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        address = httpx.URL()
    if address.scheme not in ("http", "https") or not address.host:
        raise Unreachable("That is no address of a service: it begins with http:// or https://.")
    return address


async def _awaited(items: Iterable[T] | AsyncIterable[T]) -> AsyncIterator[T]:
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
    else:
        for item in items:
            yield item
