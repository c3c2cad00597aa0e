"""A call: what is sent, what is made of the answer, and whether it may be sent again.

    repeatable   asking twice is as good as asking once: reading, and whatever the service makes idempotent
    done_if      the refusal that a repeated call gets when the first had been applied, though its answer was lost:
                 409 for a topic that is there now, 404 for one that is gone. It then counts as done, and `instead`
                 asks for what the answer would have been

Nothing here sends anything: `flow` says step by step what is to be done, and is told what came of it, so that clients
that block and clients that await are the same but for the doing.
"""

import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from service.client.errors import Refused, Strange, Unreachable

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)  # whatever was asked was not done
WORTH_WAITING = (502, 503, 504)
LONGEST_S = 60.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is sent, and how long is waited before it is sent again: as long as the service says, else twice
    as long each time, less up to half of it by chance: those who failed together shall not come back together."""

    attempts: int = 5
    first_s: float = 0.2
    most_s: float = 10.0

    def pause_s(self, failed: int, chance: random.Random, told_s: float | None = None) -> float:
        usual = min(self.most_s, self.first_s * 2.0 ** (failed - 1)) * chance.uniform(0.5, 1)
        return usual if told_s is None else min(LONGEST_S, told_s) + usual


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    method: str
    path: str
    read: Callable[[bytes], T]
    repeatable: bool = True
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    done_if: int | None = None
    instead: "Call[T] | None" = None

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        told = {name: value for name, value in self.params.items() if value is not None}
        body = {"json": self.json} if self.json is not None else {"content": self.content}
        return http.build_request(self.method, self.path, params=told, headers=self.headers, **body)


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Flow = Generator["Call[Any] | Pause", Any, T]
USUAL = Retries()


def flow(call: Call[T], retries: Retries, chance: random.Random) -> Flow[T]:
    """The steps of a call, to its answer: calls to be sent, which are told the answer or thrown why there is none, and
    pauses."""
    doubtful = False  # an earlier try may have been applied
    for failed in range(1, retries.attempts + 1):
        last = failed == retries.attempts
        try:
            answer: httpx.Response = yield call
            if answer.is_success:
                return call.read(answer.content)
            raise Refused.of(answer)
        except Refused as refused:
            if doubtful and refused.status == call.done_if:
                return (yield from flow(call.instead, retries, chance)) if call.instead else call.read(b"")
            if last or not call.repeatable or refused.status not in WORTH_WAITING:
                raise
            doubtful = True
            yield Pause(retries.pause_s(failed, chance, refused.retry_after_s))
        except ValidationError as error:
            raise Strange from error
        except httpx.TransportError as error:
            sent = not isinstance(error, NOT_SENT)
            if last or (sent and not call.repeatable):
                raise Unreachable(_sentence(error, call)) from error
            doubtful = doubtful or sent
            yield Pause(retries.pause_s(failed, chance))
    raise ValueError("a call is tried at least once")


def reading(model: type[T]) -> Callable[[bytes], T]:
    """The answer's JSON as this."""
    return TypeAdapter(model).validate_json


def nothing(_: bytes) -> None:
    """The answer says nothing but that it was done."""


def _sentence(error: httpx.TransportError, call: Call[Any]) -> str:
    if isinstance(error, NOT_SENT):
        return "No Sluice answers there; is it running, and is its address right?"
    said = "did not come in time" if isinstance(error, httpx.TimeoutException) else "was cut short"
    return f"The answer to {call.method} {call.path} {said}."
