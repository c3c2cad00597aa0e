"""The documents that are remembered: for feedback by id, review, previews and backfills.

A blob is a stamp of eight bytes, then the whole document as JSON, compressed if it is long. The stamp is the time when
the document first arrived, in milliseconds, plus NAMED_FLAG if the request named its topics. So the stamp shows which
topics the document has passed: all that existed at that time, or only some of them.

Beside each partition stands a log of its changes: which documents came, or came again with something else in them, and
which were forgotten. Whoever reads it in order knows what is remembered without asking for all of it (see
service/documents). It is cut when it is long; then all of the partition must be read.

Short documents are not compressed: 900 bytes would shrink to 500, but take as long as all topics take to decide on
them.
"""

import json
import secrets
import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Self

from service.schemas import Document
from service.store.redis.connection import Connection
from service.store.redis.keys import STORE_NAME, documents_changes_key, documents_key, documents_order_key
from service.store.redis.scripts import Script, Step

STAMP_BYTES = 8
NAMED_FLAG = 1 << 48
MIN_COMPRESSED = 4000  # bytes of JSON; shorter documents are not compressed
PARTITIONS = 16
START = "0-0"  # before every change

# Remembers documents in one partition and deletes the oldest beyond the limit. Replies for each
# document 1 if it is new, 0 if it was there already, or the earlier blob if that had something else in it. One that is
# sent again keeps its first stamp. What has changed is noted in the log of the partition. There is one command
# for BATCH documents: one for each would take the store twice as long. Arguments: limit, then document, blob, …
REMEMBER = f"""
local documents, order, changes, BATCH = KEYS[1], KEYS[2], KEYS[3], 500
local ids, fresh, put, gone = {{}}, {{}}, {{}}, {{}}
for at = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
for from = 1, #ids, BATCH do
  local to, pairs, new = math.min(from + BATCH - 1, #ids), {{}}, {{}}
  local standing = redis.call('HMGET', documents, unpack(ids, from, to))
  for i = from, to do
    local known, blob = standing[i - from + 1], ARGV[2 * i + 1]
    if known then
      blob = string.sub(known, 1, {STAMP_BYTES}) .. string.sub(blob, {STAMP_BYTES + 1})
    else
      new[#new + 1] = ids[i]
    end
    if blob ~= known then put[#put + 1] = ids[i] end
    fresh[i] = not known and 1 or blob == known and 0 or known
    pairs[#pairs + 1] = ids[i]
    pairs[#pairs + 1] = blob
  end
  redis.call('HSET', documents, unpack(pairs))
  if #new > 0 then redis.call('RPUSH', order, unpack(new)) end
end
local over = redis.call('HLEN', documents) - tonumber(ARGV[1])
while over > 0 do
  local oldest = redis.call('LPOP', order, math.min(over, BATCH))
  redis.call('HDEL', documents, unpack(oldest))
  for _, id in ipairs(oldest) do gone[#gone + 1] = id end
  over = over - BATCH
end
local noted = {{}}
if #put > 0 then noted[1], noted[2] = 'put', cjson.encode(put) end
if #gone > 0 then noted[#noted + 1], noted[#noted + 2] = 'gone', cjson.encode(gone) end
if #noted > 0 then redis.call('XADD', changes, 'MAXLEN', '~', ARGV[1], '*', unpack(noted)) end
return fresh
"""


class Remembered(NamedTuple):
    document: Document
    came_ms: int
    everywhere: bool  # it was sent to every topic that existed

    def passed(self, created_ms: int) -> bool:
        """Whether a topic that was created at that time existed when the document arrived."""
        return self.came_ms >= created_ms


def pack(ids: Sequence[str], documents: Sequence[Document], now_ms: int, everywhere: bool) -> dict[str, bytes]:
    """By id, the blobs of documents that arrive now, for all topics or for named ones."""
    stamp = (now_ms + (0 if everywhere else NAMED_FLAG)).to_bytes(STAMP_BYTES)
    pairs = zip(ids, documents, strict=True)
    texts = {
        name: d.model_copy(update={"id": name}).model_dump_json(exclude_defaults=True).encode() for name, d in pairs
    }
    return {
        name: stamp + (zlib.compress(text, 1) if len(text) > MIN_COMPRESSED else text) for name, text in texts.items()
    }


def unpack(blob: bytes) -> Remembered:
    stamp, text = int.from_bytes(blob[:STAMP_BYTES]), blob[STAMP_BYTES:]
    json = text if text.startswith(b"{") else zlib.decompress(text)
    return Remembered(Document.model_validate_json(json), stamp % NAMED_FLAG, stamp < NAMED_FLAG)


class Change(NamedTuple):
    """Documents of one partition that came or changed, and documents that were forgotten; in this order."""

    place: str
    put: list[str]
    gone: list[str]

    @classmethod
    def from_row(cls, row: Any) -> Self:
        place, fields = row
        return cls(place.decode(), *(json.loads(fields.get(name, b"[]")) for name in (b"put", b"gone")))


class DocumentStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._redis = connection.redis

    async def load(self, documents: Sequence[str]) -> list[bytes | None]:
        """The blobs of these documents; None for one that is not remembered."""
        call = _LoadCall(documents)
        return call.blobs(await self._connection.run(call.cmds))

    async def newest(self, start: int, stop: int) -> list[str]:
        """Ids of remembered documents, newest first: of each partition, those from place `start` to `stop`."""
        first, last = start // PARTITIONS, -(-stop // PARTITIONS)
        async with self._connection.acquire():
            pipe = self._redis.pipeline(transaction=False)
            for partition in range(PARTITIONS):
                pipe.lrange(documents_order_key(partition), -last, -first - 1)
            return [document.decode() for ids in await pipe.execute() for document in reversed(ids)]

    async def store_name(self) -> str:
        """A name that this store, as it is filled now, has and no other."""
        steps: list[Step] = [("SET", STORE_NAME, secrets.token_hex(8), "NX"), ("GET", STORE_NAME)]
        _, name = await self._connection.run(steps)
        return str(name.decode())

    async def change_spans(self) -> list[tuple[str, str]]:
        """Of each partition, the oldest and the newest place in its log; both START where it is empty."""
        keys = [documents_changes_key(partition) for partition in range(PARTITIONS)]
        steps: list[Step] = [step for key in keys for step in _ends_cmds(key)]
        ends = [rows[0][0].decode() if rows else START for rows in await self._connection.run(steps)]
        return list(zip(ends[::2], ends[1::2], strict=True))

    async def changes_after(self, partition: int, place: str, count: int) -> list["Change"]:
        """The next changes of a partition after that place, oldest first."""
        step: Step = ("XRANGE", documents_changes_key(partition), f"({place}", "+", "COUNT", count)
        (rows,) = await self._connection.run([step])
        return [Change.from_row(row) for row in rows]

    async def newest_of(self, partition: int, start: int, stop: int) -> list[str]:
        """Ids of a partition's documents, newest first, from place `start` to `stop`."""
        (ids,) = await self._connection.run([("LRANGE", documents_order_key(partition), -stop, -start - 1)])
        return [id.decode() for id in reversed(ids)]


class RememberCall:
    """Commands that remember documents by id, delete the oldest, and load the `wanted` ones; and a parser of the
    replies."""

    def __init__(self, documents: Mapping[str, bytes], kept: int, wanted: Sequence[str] = ()) -> None:
        self._documents = documents
        self._wanted = wanted
        self._partitions, limit = _partitioned(documents), -(-kept // PARTITIONS)
        remember: list[Step] = []
        for partition, ids in self._partitions.items():
            blobs = [arg for document in ids for arg in (document, documents[document])]
            keys = [documents_key(partition), documents_order_key(partition), documents_changes_key(partition)]
            remember.append(Script(REMEMBER, keys, [limit, *blobs]))
        self._load = _LoadCall(wanted)
        self.cmds = [*remember, *self._load.cmds]

    def results(self, replies: Sequence[Any]) -> "RememberResults":
        count = len(self._partitions)
        pairs = zip(self._partitions.values(), replies[:count], strict=True)
        noted = {document: flag for ids, flags in pairs for document, flag in zip(ids, flags, strict=True)}
        new = {document for document, flag in noted.items() if flag == 1}
        earlier = {document: flag for document, flag in noted.items() if isinstance(flag, bytes)}
        blobs = zip(self._wanted, self._load.blobs(replies[count:]), strict=True)
        return RememberResults(new, {**dict(blobs), **{name: self._documents[name] for name in new}}, earlier)


class RememberResults(NamedTuple):
    new: set[str]
    blobs: dict[str, bytes | None]  # of new documents, and of the wanted ones
    earlier: dict[str, bytes]  # the earlier blobs of documents that have changed


class _LoadCall:
    """Commands that load documents, and a parser of the replies."""

    def __init__(self, documents: Sequence[str]) -> None:
        self._documents = documents
        self._partitions = _partitioned(dict.fromkeys(documents))
        self.cmds: list[Step] = [("HMGET", documents_key(p), *ids) for p, ids in self._partitions.items()]

    def blobs(self, replies: Sequence[list[bytes | None]]) -> list[bytes | None]:
        pairs = zip(self._partitions.values(), replies, strict=True)
        blobs = {document: blob for ids, row in pairs for document, blob in zip(ids, row, strict=True)}
        return [blobs[document] for document in self._documents]


def _ends_cmds(key: str) -> list[Step]:
    return [("XRANGE", key, "-", "+", "COUNT", 1), ("XREVRANGE", key, "+", "-", "COUNT", 1)]


def _partitioned(documents: Iterable[str]) -> dict[int, list[str]]:
    partitions: dict[int, list[str]] = {}
    for document in documents:
        partitions.setdefault(partition_of(document), []).append(document)
    return partitions


def partition_of(document: str) -> int:
    return blake2b(document.encode(), digest_size=2).digest()[0] % PARTITIONS
