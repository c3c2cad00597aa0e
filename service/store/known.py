"""Known items of topics: relevant documents that somebody found elsewhere; never learned from."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from service.errors import NotFound
from service.store.redis.connection import Connection
from service.store.redis.keys import topic_key
from service.store.redis.scripts import topic_script

# Adds known items, all or none. Returns how many there are now and how many of them are new, or an empty list if there
# would be too many. Arguments: born, limit, then document, blob, …
ADD = """
local topic, known = KEYS[1], KEYS[2]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
local before, new = redis.call('HLEN', known), 0
for at = 3, #ARGV, 2 do new = new + 1 - redis.call('HEXISTS', known, ARGV[at]) end
if before + new > tonumber(ARGV[2]) then return {} end
for at = 3, #ARGV, 2 do redis.call('HSET', known, ARGV[at], ARGV[at + 1]) end
return {before + new, new}
"""


@dataclass(frozen=True, slots=True)
class KnownDocument:
    title: str
    bag: bytes

    def to_bytes(self) -> bytes:
        return json.dumps(self.title).encode() + b"\n" + self.bag

    @classmethod
    def from_bytes(cls, blob: bytes) -> "KnownDocument":
        title, _, bag = blob.partition(b"\n")
        return cls(json.loads(title), bag)


class KnownStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, topic: str, born: str, blobs: Mapping[str, bytes], limit: int) -> tuple[int, int] | None:
        """Adds items by document, all or none. Returns how many there are now, and how many of them are new; None if
        there would be more than the limit."""
        pairs = [part for pair in blobs.items() for part in pair]
        (counts,) = await self._connection.run([topic_script(ADD, topic, ("topic", "known"), born, limit, *pairs)])
        if counts is None:
            raise NotFound.topic_gone(topic)
        return (int(counts[0]), int(counts[1])) if counts else None

    async def load(self, topic: str) -> dict[str, bytes]:
        async with self._connection.acquire():
            stored = await self._connection.redis.hgetall(topic_key(topic, "known"))
        return {document.decode(): blob for document, blob in stored.items()}

    async def remove(self, topic: str, document: str) -> bool:
        """Removes an item; False if the document is not among them."""
        (removed,) = await self._connection.run([("HDEL", topic_key(topic, "known"), document)])
        return bool(removed)
