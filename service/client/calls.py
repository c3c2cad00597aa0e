"""A call: what to send, how to parse the reply, and whether it may be sent again.

    repeatable   sending it twice does no more than sending it once: reads, and whatever the service makes idempotent
    done_if      the status that a retry gets if the first attempt was applied but its reply was lost: 409 for a topic
                 that exists now, 404 for one that is gone. The call then counts as done, and `instead`, if there is
                 one, fetches the result

Nothing here does any I/O: `steps` is a generator that yields the next call or pause and receives its outcome, so the
blocking and the async client differ only in how they carry out a step.
"""

import random
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from service.client.errors import Refused, UnexpectedReply, Unreachable

NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)  # the service cannot have applied the call
RETRY_STATUSES = (502, 503, 504)
MAX_RETRY_AFTER_S = 60.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a call is sent, and how long to wait between attempts.

    The pause doubles each time, up to `most_s`. Up to half of it is taken off at random, so that clients that failed
    together do not come back together. If the service sends Retry-After, that is waited for first.
    """

    attempts: int = 5
    first_s: float = 0.2
    most_s: float = 10.0

    def pause_s(self, failures: int, rng: random.Random, retry_after_s: float | None = None) -> float:
        backoff = min(self.most_s, self.first_s * 2.0 ** (failures - 1)) * rng.uniform(0.5, 1)
        return backoff if retry_after_s is None else min(MAX_RETRY_AFTER_S, retry_after_s) + backoff


DEFAULT_RETRIES = Retries()


@dataclass(frozen=True, slots=True)
class Call(Generic[T]):
    method: str
    path: str
    parse: Callable[[bytes], T]
    repeatable: bool = True
    params: Mapping[str, Any] = field(default_factory=dict)
    json: Any = None
    content: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    done_if: int | None = None
    instead: "Call[T] | None" = None

    def request(self, http: httpx.Client | httpx.AsyncClient) -> httpx.Request:
        params = {name: value for name, value in self.params.items() if value is not None}
        body = {"json": self.json} if self.json is not None else {"content": self.content}
        return http.build_request(self.method, self.path, params=params, headers=self.headers, **body)


@dataclass(frozen=True, slots=True)
class Pause:
    seconds: float


Steps = Generator["Call[Any] | Pause", Any, T]


def steps(call: Call[T], retries: Retries, rng: random.Random) -> Steps[T]:
    """Yields the calls to send and the pauses to make, and returns the result. The caller sends the response to each
    call back into the generator, or throws the transport error."""
    in_doubt = False  # whether an earlier attempt may have been applied
    for attempt in range(1, retries.attempts + 1):
        last = attempt == retries.attempts
        try:
            response: httpx.Response = yield call
            if response.is_success:
                return call.parse(response.content)
            raise Refused.from_response(response)
        except Refused as refused:
            if in_doubt and refused.status == call.done_if:
                return (yield from steps(call.instead, retries, rng)) if call.instead else call.parse(b"")
            if last or not call.repeatable or refused.status not in RETRY_STATUSES:
                raise
            in_doubt = True
            yield Pause(retries.pause_s(attempt, rng, refused.retry_after_s))
        except ValidationError as error:
            raise UnexpectedReply from error
        except httpx.TransportError as error:
            sent = not isinstance(error, NOT_SENT)
            if last or (sent and not call.repeatable):
                raise Unreachable(_sentence(error, call)) from error
            in_doubt = in_doubt or sent
            yield Pause(retries.pause_s(attempt, rng))
    raise ValueError("Retries.attempts must be at least 1")


def parse_as(model: type[T]) -> Callable[[bytes], T]:
    """Parser of a JSON reply."""
    return TypeAdapter(model).validate_json


def no_result(_: bytes) -> None:
    """Parser of a reply whose body does not matter."""


def _sentence(error: httpx.TransportError, call: Call[Any]) -> str:
    if isinstance(error, NOT_SENT):
        return "Cannot connect to Sluice. Is it running, and is the address right?"
    problem = "did not arrive in time" if isinstance(error, httpx.TimeoutException) else "was cut short"
    return f"The reply to {call.method} {call.path} {problem}."
