"""Many documents, or judgements, as NDJSON: cut into requests of moderate size, each answered before the next is sent.

So memory is bounded however long the stream is; a request that failed is sent again by itself, which is safe, since a
document that comes twice counts once and a judgement that stands already is `known`; and an ordinary connection does.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter

from service.client.calls import Call
from service.client.errors import Refused, Strange
from service.schemas import Problem

AT_ONCE, BYTES = 500, 2_000_000  # lines, or bytes, a request
NDJSON = {"Content-Type": "application/x-ndjson"}

T = TypeVar("T")


@dataclass(slots=True)
class Lines(Generic[T]):
    """Where lines go, and what comes back for each."""

    path: str
    result: TypeAdapter[T | Problem]
    params: Mapping[str, Any] = field(default_factory=dict)
    progress: Callable[[int], None] | None = None  # told how many lines have been answered
    at_once: int = AT_ONCE
    _waiting: list[bytes] = field(default_factory=list)
    _bytes: int = 0
    _answered: int = 0

    def put(self, item: BaseModel | Mapping[str, Any] | bytes) -> Iterator[Call[list[T | Problem]]]:
        """One more, or a line that is JSON already (a blank one has no answer, and is left out); gives the call that is
        to be sent first, if one is due."""
        raw = item if isinstance(item, bytes) else json.dumps(plain(item), ensure_ascii=False).encode()
        raw = raw.strip() + b"\n"
        if raw == b"\n":
            return
        if self._waiting and (len(self._waiting) >= self.at_once or self._bytes + len(raw) > BYTES):
            yield from self.rest()
        self._waiting.append(raw)
        self._bytes += len(raw)

    def rest(self) -> Iterator[Call[list[T | Problem]]]:
        """The call for what has been put and not been sent."""
        if self._waiting:
            sent, self._waiting, self._bytes = self._waiting, [], 0
            yield Call(
                "POST", self.path, self._reads(len(sent)), params=self.params, content=b"".join(sent), headers=NDJSON
            )

    def _reads(self, n: int) -> Callable[[bytes], list[T | Problem]]:
        def read(content: bytes) -> list[T | Problem]:
            results = [self.result.validate_json(line) for line in content.splitlines()]
            if len(results) != n and results and isinstance(results[-1], Problem):
                raise Refused(results[-1])  # the stream ended early, and this is why
            if len(results) != n:
                raise Strange
            self._answered += n
            if self.progress:
                self.progress(self._answered)
            return results

        return read


def plain(item: BaseModel | Mapping[str, Any]) -> Mapping[str, Any]:
    """As JSON has it; of a model only what was given."""
    return item.model_dump(mode="json", by_alias=True, exclude_unset=True) if isinstance(item, BaseModel) else item
