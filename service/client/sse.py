"""Server-sent events: what the lines of a stream say, and how a listener goes on where it was.

A connection that ends, breaks, or is ended because its listener was too slow, is made again, from the last event that
came (Last-Event-ID), so that none is missed while the service keeps them. Whoever gets nothing, not even a sign of
life, as often as calls are tried, gives up.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import httpx
from pydantic import ValidationError

from service.client.calls import WORTH_WAITING, Retries
from service.client.errors import ClientError, Refused, Strange, Unreachable
from service.schemas import Problem

T = TypeVar("T")


@dataclass(slots=True)
class Listener(Generic[T]):
    path: str
    read: Callable[[bytes], T]
    after: str | None = None  # the last event that came; "0": from the beginning of what is kept
    _failed: int = 0
    _begun: bytes = b""  # a line that goes on
    _event: str = ""
    _id: str | None = None
    _data: list[str] = field(default_factory=list)

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        self._begun, self._event, self._id, self._data = b"", "", self.after, []
        place = {} if self.after is None else {"Last-Event-ID": self.after}
        return http.build_request("GET", self.path, headers={"Accept": "text/event-stream", **place})

    def take(self, chunk: bytes) -> Iterator[T]:
        """What is complete with these bytes. Lines end with line feeds and nothing else, whatever a text may hold."""
        self._failed = 0
        *lines, self._begun = (self._begun + chunk).split(b"\n")
        for line in lines:
            yield from self._take(line.removesuffix(b"\r").decode())

    def _take(self, line: str) -> Iterator[T]:
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                self._event = value
            elif name == "id":
                self._id = value
            elif name == "data":
                self._data.append(value)
            return
        event, data = self._event, "\n".join(self._data)
        self._event, self._data = "", []
        try:
            if event == "problem":
                raise Refused(Problem.model_validate_json(data))
            if data:
                yield self.read(data.encode())
        except ValidationError:
            raise Strange from None
        self.after = self._id  # it has been given to whoever asked: from here on, when we have to ask again

    def pause_s(
        self, error: ClientError | httpx.TransportError | None, retries: Retries, chance: random.Random
    ) -> float:
        """How long to wait before connecting again; raises where that is no use."""
        if isinstance(error, Strange) or (isinstance(error, Refused) and error.status not in WORTH_WAITING):
            raise error
        self._failed += 1
        if self._failed >= retries.attempts:
            raise (
                error if isinstance(error, Refused) else Unreachable("The stream broke off again and again.")
            ) from error
        return retries.pause_s(self._failed, chance)
