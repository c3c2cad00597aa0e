"""The published models of topics, and the records of their versions."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from service.errors import NotFound
from service.store.redis.connection import Connection
from service.store.redis.keys import CHANGES, topic_key
from service.store.redis.scripts import BATCH_SIZE, entry_number, topic_script

# Publishes a model unless this version or a newer one is published already. A fold is deterministic, so every process
# saves the same bytes for a version, and the slower one has nothing to repeat. Arguments: born, version, blob, digest,
# record, versions kept, channel, message.
SAVE = """
local topic, model, versions = KEYS[1], KEYS[2], KEYS[3]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
local standing = redis.call('HGET', model, 'version')
if standing and tonumber(standing) >= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', model, 'version', ARGV[2], 'blob', ARGV[3], 'digest', ARGV[4], 'born', ARGV[1])
local newest = redis.call('XREVRANGE', versions, '+', '-', 'COUNT', 1)[1]
if not newest or tonumber(string.match(newest[1], '%d+')) < tonumber(ARGV[2]) then
  redis.call('XADD', versions, 'MAXLEN', ARGV[6], ARGV[2] .. '-0', 'record', ARGV[5])
end
redis.call('PUBLISH', ARGV[7], ARGV[8])
return 1
"""


@dataclass(frozen=True, slots=True)
class Saved:
    """A published model as it is stored."""

    born: str
    version: int
    blob: bytes

    @property
    def digest(self) -> str:
        return blake2b(self.blob, digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class ModelChange:
    """A model was published, or (version 0) a topic deleted."""

    topic: str
    born: str
    version: int

    def to_message(self) -> str:
        return f"{self.topic} {self.born} {self.version}"

    @classmethod
    def from_message(cls, message: bytes) -> "ModelChange":
        topic, born, version = message.decode().split(" ")
        return cls(topic, born, int(version))


class VersionStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._redis = connection.redis

    async def save(self, topic: str, model: Saved, record: str, kept: int) -> bool:
        """Publishes the model and notifies the other processes; False if it, or a newer one, is published already."""
        message = ModelChange(topic, model.born, model.version).to_message()
        args = (model.born, model.version, model.blob, model.digest, record, kept, CHANGES, message)
        (saved,) = await self._connection.run([topic_script(SAVE, topic, ("topic", "model", "versions"), *args)])
        if saved is None:
            raise NotFound.topic_gone(topic)
        return bool(saved)

    async def load(self, topics: Sequence[str]) -> list[Saved | None]:
        """The published model of each topic, in as few round trips as it takes."""
        rows: list[Any] = []
        async with self._connection.acquire():
            for start in range(0, len(topics), BATCH_SIZE):
                pipe = self._redis.pipeline(transaction=False)
                for topic in topics[start : start + BATCH_SIZE]:
                    pipe.hmget(topic_key(topic, "model"), ["born", "version", "blob"])
                rows += await pipe.execute()
        return [_saved(*row) for row in rows]

    async def load_digest(self, topic: str) -> str | None:
        """The stored digest of the published model."""
        async with self._connection.acquire():
            digest = await self._redis.hget(topic_key(topic, "model"), "digest")
        return None if digest is None else digest.decode()

    async def published(self, topics: Sequence[str]) -> list[int | None]:
        """The number of each topic's published version."""
        async with self._connection.acquire():
            pipe = self._redis.pipeline(transaction=False)
            for topic in topics:
                pipe.hget(topic_key(topic, "model"), "version")
            rows = await pipe.execute()
        return [None if row is None else int(row) for row in rows]

    async def records(self, topic: str, before: int, limit: int) -> list[tuple[int, str]]:
        """Versions before the given one (0: all) and their records, newest first."""
        async with self._connection.acquire():
            last = f"({before}-0" if before else "+"
            rows = await self._redis.xrevrange(topic_key(topic, "versions"), last, "-", count=limit)
        return [(entry_number(id), fields[b"record"].decode()) for id, fields in rows]

    async def forget(self, topic: str) -> None:
        """Deletes the published model, so that the next process that folds the log saves it again."""
        async with self._connection.acquire():
            await self._redis.delete(topic_key(topic, "model"))

    async def changes(self) -> AsyncGenerator[ModelChange | None, None]:
        """Each model published and each topic deleted anywhere; None once, when the subscription has begun."""
        async with self._connection.subscribed(CHANGES) as subscription:
            while True:
                message = await subscription.get_message(timeout=None)
                if message and message["type"] == "subscribe":
                    yield None
                elif message and message["type"] == "message":
                    yield ModelChange.from_message(message["data"])


def _saved(born: bytes | None, version: bytes | None, blob: bytes | None) -> Saved | None:
    if born is None or version is None or blob is None:
        return None
    return Saved(born.decode(), int(version), blob)
