"""Server-sent events: how the lines of a stream become events, and where to resume after an interruption.

If the connection ends, breaks, or is closed because the client read too slowly, it is opened again after the last event
that arrived (Last-Event-ID), so none is missed as long as the service keeps them. After as many failures in a row as a
call has attempts, without so much as a keep-alive in between, the client gives up.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Generic, TypeVar

import httpx
from pydantic import ValidationError

from service.client.calls import RETRY_STATUSES, Retries
from service.client.errors import ClientError, Refused, UnexpectedReply, Unreachable
from service.schemas import Problem

T = TypeVar("T")


@dataclass(slots=True)
class Listener(Generic[T]):
    path: str
    parse: Callable[[bytes], T]
    after: str | None = None  # id of the last event that arrived; "0": from the oldest event that is kept
    _failures: int = 0
    _partial: bytes = b""  # a line whose end has not arrived
    _event: str = ""
    _id: str | None = None
    _data: list[str] = field(default_factory=list)

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        self._partial, self._event, self._id, self._data = b"", "", self.after, []
        resume = {} if self.after is None else {"Last-Event-ID": self.after}
        return http.build_request("GET", self.path, headers={"Accept": "text/event-stream", **resume})

    def feed(self, chunk: bytes) -> Iterator[T]:
        """Yields the events that these bytes complete. Only a line feed ends a line: a text may hold any other line
        separator."""
        self._failures = 0
        *lines, self._partial = (self._partial + chunk).split(b"\n")
        for line in lines:
            yield from self._feed_line(line.removesuffix(b"\r").decode())

    def _feed_line(self, line: str) -> Iterator[T]:
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
            if data and not event:  # events with a name are about other things, such as the goal
                yield self.parse(data.encode())
        except ValidationError:
            raise UnexpectedReply from None
        self.after = self._id  # only now, when the caller has the event: a new connection resumes behind it

    def pause_s(self, error: ClientError | httpx.TransportError | None, retries: Retries, rng: random.Random) -> float:
        """How long to wait before connecting again; raises the error if that would not help."""
        if isinstance(error, UnexpectedReply) or (isinstance(error, Refused) and error.status not in RETRY_STATUSES):
            raise error
        self._failures += 1
        if self._failures >= retries.attempts:
            raise (error if isinstance(error, Refused) else Unreachable("The stream keeps breaking off.")) from error
        return retries.pause_s(self._failures, rng)
