"""Many documents or judgements as NDJSON, in batches: one request each, sent when the last one has been answered.

So memory is bounded however long the stream is, and any HTTP connection will do. A batch that failed is retried by
itself, which is safe: a document that is sent twice counts once, and a judgement that is sent twice is `known`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, TypeAdapter

from service.client.calls import Call
from service.client.errors import Refused, UnexpectedReply
from service.schemas import Problem

BATCH_LINES, BATCH_BYTES = 500, 2_000_000
NDJSON = {"Content-Type": "application/x-ndjson"}

T = TypeVar("T")
Item = BaseModel | Mapping[str, Any] | bytes  # a model of service.schemas, the same as a mapping, or a line of JSON


@dataclass(slots=True)
class Lines(Generic[T]):
    """Collects lines for one path and makes calls of them; each line gets a result or a problem."""

    path: str
    result: TypeAdapter[T | Problem]
    params: Mapping[str, Any] = field(default_factory=dict)
    progress: Callable[[int], None] | None = None  # called with the number of lines answered so far
    _pending: list[bytes] = field(default_factory=list)
    _pending_bytes: int = 0
    _answered: int = 0

    def add(self, item: Item) -> Iterator[Call[list[T | Problem]]]:
        """Adds an item, and yields the call to send first if the batch is full. Blank lines get no reply, so they are
        left out."""
        line = item if isinstance(item, bytes) else json.dumps(to_json(item), ensure_ascii=False).encode()
        line = line.strip() + b"\n"
        if line == b"\n":
            return
        if len(self._pending) >= BATCH_LINES or (self._pending and self._pending_bytes + len(line) > BATCH_BYTES):
            yield from self.flush()
        self._pending.append(line)
        self._pending_bytes += len(line)

    def flush(self) -> Iterator[Call[list[T | Problem]]]:
        """Yields the call for all that was added and not sent, if there is any."""
        if self._pending:
            batch, self._pending, self._pending_bytes = self._pending, [], 0
            parse = self._parser(len(batch))
            yield Call("POST", self.path, parse, params=self.params, content=b"".join(batch), headers=NDJSON)

    def _parser(self, expected: int) -> Callable[[bytes], list[T | Problem]]:
        def parse(content: bytes) -> list[T | Problem]:
            results = [self.result.validate_json(line) for line in content.splitlines()]
            if len(results) != expected and results and isinstance(results[-1], Problem):
                raise Refused(results[-1])  # why the stream ended early
            if len(results) != expected:
                raise UnexpectedReply
            self._answered += expected
            if self.progress:
                self.progress(self._answered)
            return results

        return parse


def to_json(item: BaseModel | Mapping[str, Any]) -> Mapping[str, Any]:
    """The item as JSON; of a model, only the fields that were set."""
    return item.model_dump(mode="json", by_alias=True, exclude_unset=True) if isinstance(item, BaseModel) else item
