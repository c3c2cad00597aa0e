"""Documents as the store remembers them, for feedback by id and for all that looks back.

    sluice:documents:{P}           hash     document -> blob, in PARTITIONS parts
    sluice:documents:{P}:order     list     the same ids, oldest first, so that the oldest can be forgotten

A blob is when the document first came, in milliseconds (eight bytes), then the whole of it as JSON, compressed if it is
long. The time tells which topics it has passed: those that were there already; with NAMED, some of these.

A document of 900 bytes would shrink to 500, and that would take as long as all topics take to decide about it.
"""

import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

from service.schemas import Document
from service.store.connection import Connection
from service.store.keys import documents_key, documents_order_key
from service.store.scripts import Script, Step

STAMP = 8  # bytes
NAMED = 1 << 48  # added to the time of what was put to topics by their names, not to all that there were
LONG = 4000  # bytes of JSON
PARTITIONS = 16

# Remembers documents in one partition and forgets the oldest beyond the limit. Answers 1 for each that is new; one that
# comes again keeps its first eight bytes, which say when it came. A command for SOME at a time: one for each would take
# the store twice as long. Arguments: limit, then document, blob, …
REMEMBER = """
local documents, order, SOME = KEYS[1], KEYS[2], 500
local ids, fresh = {}, {}
for at = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
for from = 1, #ids, SOME do
  local to, pairs, new = math.min(from + SOME - 1, #ids), {}, {}
  local standing = redis.call('HMGET', documents, unpack(ids, from, to))
  for i = from, to do
    local known, blob = standing[i - from + 1], ARGV[2 * i + 1]
    if known then blob = string.sub(known, 1, 8) .. string.sub(blob, 9) end
    if not known then new[#new + 1] = ids[i] end
    fresh[i] = known and 0 or 1
    pairs[#pairs + 1] = ids[i]
    pairs[#pairs + 1] = blob
  end
  redis.call('HSET', documents, unpack(pairs))
  if #new > 0 then redis.call('RPUSH', order, unpack(new)) end
end
local over = redis.call('HLEN', documents) - tonumber(ARGV[1])
while over > 0 do
  redis.call('HDEL', documents, unpack(redis.call('LPOP', order, math.min(over, SOME))))
  over = over - SOME
end
return fresh
"""


class Remembered(NamedTuple):
    document: Document
    came_ms: int
    everywhere: bool  # it was put to every topic that there was

    def passed(self, created_ms: int) -> bool:
        """Whether a topic that was made then has seen it come."""
        return self.came_ms >= created_ms


def packed(ids: Sequence[str], documents: Sequence[Document], now_ms: int, everywhere: bool) -> dict[str, bytes]:
    stamp, pairs = (now_ms + (0 if everywhere else NAMED)).to_bytes(STAMP), zip(ids, documents, strict=True)
    whole = {name: d.model_copy(update={"id": name}).model_dump_json().encode() for name, d in pairs}
    return {name: stamp + (zlib.compress(text, 1) if len(text) > LONG else text) for name, text in whole.items()}


def unpacked(blob: bytes) -> Remembered:
    text = blob[STAMP:]
    whole = text if text.startswith(b"{") else zlib.decompress(text)
    came = int.from_bytes(blob[:STAMP])
    return Remembered(Document.model_validate_json(whole), came % NAMED, came < NAMED)


class Memory:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._redis = connection.redis

    async def recall(self, documents: Sequence[str]) -> list[bytes | None]:
        recalled = _Recalled(documents)
        return recalled.found(await self._connection.run(recalled.steps))

    async def newest(self, start: int, stop: int) -> list[str]:
        """Ids of remembered documents, newest first, from the start-th on; of each partition as many."""
        first, last = start // PARTITIONS, -(-stop // PARTITIONS)
        async with self._connection.asking():
            pipe = self._redis.pipeline(transaction=False)
            for part in range(PARTITIONS):
                pipe.lrange(documents_order_key(part), -last, -first - 1)
            return [document.decode() for ids in await pipe.execute() for document in reversed(ids)]


class Remembering:
    """What keeps documents, forgetting the oldest, and recalls those that are sought; and what its answers say."""

    def __init__(self, documents: Mapping[str, bytes], kept: int, sought: Sequence[str] = ()) -> None:
        self._documents = documents
        self._sought = sought
        self._parts, limit = _parts(documents), -(-kept // PARTITIONS)
        remember: list[Step] = []
        for part, ids in self._parts.items():
            blobs = [arg for document in ids for arg in (document, documents[document])]
            remember.append(Script(REMEMBER, [documents_key(part), documents_order_key(part)], [limit, *blobs]))
        self._recalled = _Recalled(sought)
        self.steps = [*remember, *self._recalled.steps]

    def heard(self, answers: Sequence[Any]) -> tuple[set[str], dict[str, bytes | None]]:
        """Those of the documents that are new; and these, with those that were sought, as they are remembered."""
        remembered = answers[: len(self._parts)]
        pairs = zip(self._parts.values(), remembered, strict=True)
        new = {document for ids, flags in pairs for document, flag in zip(ids, flags, strict=True) if flag}
        found = self._recalled.found(answers[len(self._parts) :])
        return new, {**dict(zip(self._sought, found, strict=True)), **{name: self._documents[name] for name in new}}


class _Recalled:
    """What asks for some documents, and finds them in the answers."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._documents = documents
        self._parts = _parts(dict.fromkeys(documents))
        self.steps: list[Step] = [("HMGET", documents_key(part), *ids) for part, ids in self._parts.items()]

    def found(self, answers: Sequence[list[bytes | None]]) -> list[bytes | None]:
        pairs = zip(self._parts.values(), answers, strict=True)
        blobs = {document: blob for ids, found in pairs for document, blob in zip(ids, found, strict=True)}
        return [blobs[document] for document in self._documents]


def _parts(documents: Iterable[str]) -> dict[int, list[str]]:
    parts: dict[int, list[str]] = {}
    for document in documents:
        part = blake2b(document.encode(), digest_size=2).digest()[0] % PARTITIONS
        parts.setdefault(part, []).append(document)
    return parts
