"""Server-sent events: what the lines of a stream say, and how a listener goes on where it was.

A connection that ends, breaks, or is ended because its listener was too slow, is made again, from the last event that
came (Last-Event-ID), so that none is missed while the service keeps them. Whoever gets nothing, not even a sign of
life, as often as calls are tried, gives up.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import httpx

from service.client.calls import WORTH_WAITING, Retries
from service.client.errors import ClientError, Refused, Unreachable
from service.schemas import Problem

T = TypeVar("T")


@dataclass(slots=True)
class Listener(Generic[T]):
    path: str
    read: Callable[[bytes], T]
    after: str | None = None  # the last event that came; "0": from the beginning of what is kept
    _failed: int = 0
    _event: str = ""
    _id: str | None = None
    _data: list[str] = field(default_factory=list)

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        self._event, self._id, self._data = "", None, []
        place = {} if self.after is None else {"Last-Event-ID": self.after}
        return http.build_request("GET", self.path, headers={"Accept": "text/event-stream", **place})

    def take(self, line: str) -> T | None:
        """What is complete with this line, if anything is."""
        self._failed = 0
        if line:
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            if name == "event":
                self._event = value
            elif name == "id":
                self._id = value
            elif name == "data":
                self._data.append(value)
            return None
        event, data, place = self._event, "\n".join(self._data), self._id
        self._event, self._id, self._data = "", None, []
        if event == "problem":
            raise Refused(Problem.model_validate_json(data))
        if not data:
            return None
        self.after = self.after if place is None else place
        return self.read(data.encode())

    def pause_s(
        self, error: ClientError | httpx.TransportError | None, retries: Retries, chance: random.Random
    ) -> float:
        """How long to wait before connecting again; raises where that is no use."""
        if isinstance(error, Refused) and error.status not in WORTH_WAITING:
            raise error
        self._failed += 1
        if self._failed >= retries.attempts:
            raise (
                error if isinstance(error, Refused) else Unreachable("The stream broke off again and again.")
            ) from error
        return retries.pause_s(self._failed, chance)
