"""The store: topics, and everything else that Redis remembers, as one object (see store/redis/keys.py for all of
it)."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.clock import now_ms
from service.store.api_keys import ApiKeyStore
from service.store.counts import CountStore
from service.store.events import Event, Head
from service.store.imports import ImportStore
from service.store.jobs import JobStore
from service.store.known import KnownStore
from service.store.logs import LogStore
from service.store.redis.connection import Connection
from service.store.redis.keys import CHANGES, PARTS, TOPICS, out_part_key, topic_key
from service.store.redis.scripts import Arg, flat, topic_script
from service.store.redis.scripts import Step as Step  # for callers that pass steps on
from service.store.review import ReviewStore
from service.store.sources import SourceStore
from service.store.stream import outbox
from service.store.stream.documents import DocumentStore
from service.store.stream.epochs import EpochStore
from service.store.stream.inbox import Inbox
from service.store.stream.outbox import Outbox
from service.store.stream.routes import RouteStore
from service.store.versions import ModelChange, VersionStore

# Creates a topic with its first event, unless it exists. Arguments: born, how many documents have passed so far, the
# event's fields.
CREATE = """
local topic, log, tally = KEYS[1], KEYS[2], KEYS[3]
if redis.call('EXISTS', topic, log) > 0 then return 0 end
redis.call('HSET', topic, 'born', ARGV[1], 'seq', 1, 'floor', 0)
redis.call('HSET', tally, 'since', ARGV[2])
redis.call('XADD', log, '1-0', unpack(ARGV, 3))
return 1
"""

# Deletes all keys of a topic. Arguments: born, channel, message, the version it must have or nothing.
DELETE = """
if redis.call('HGET', KEYS[1], 'born') ~= ARGV[1] then return 0 end
if ARGV[4] ~= '' and redis.call('HGET', KEYS[1], 'seq') ~= ARGV[4] then return 0 end
redis.call('DEL', unpack(KEYS))
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
"""

# Rebuilds what can be derived from a log: the judgements in force, and the head and the list of versions if they are
# lost. The model is deleted; the next process that folds the log saves it again. Arguments: born, seq, floor, then two
# lists: document and label pairs, after their number, and version and record pairs.
REBUILD = """
local topic, judged, model, versions = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('EXISTS', topic) == 0 then
  redis.call('HSET', topic, 'born', ARGV[1], 'seq', ARGV[2], 'floor', ARGV[3])
elseif redis.call('HGET', topic, 'seq') ~= ARGV[2] then
  return 0
end
redis.call('DEL', judged, model)
local last = 4 + tonumber(ARGV[4])
for from = 5, last, 1000 do redis.call('HSET', judged, unpack(ARGV, from, math.min(from + 999, last))) end
if redis.call('EXISTS', versions) == 0 then
  for at = last + 2, #ARGV, 2 do redis.call('XADD', versions, ARGV[at] .. '-0', 'record', ARGV[at + 1]) end
end
return 1
"""


class Store:
    def __init__(self, url: str, timeout_s: float = 1.0) -> None:
        self.connection = Connection(url, timeout_s)
        self.logs = LogStore(self.connection)
        self.versions = VersionStore(self.connection)
        self.documents = DocumentStore(self.connection)
        self.epochs = EpochStore(self.connection)
        self.counts = CountStore(self.connection)
        self.review = ReviewStore(self.connection)
        self.known = KnownStore(self.connection)
        self.imports = ImportStore(self.connection)
        self.inbox = Inbox(self.connection)
        self.outbox = Outbox(self.connection)
        self.routes = RouteStore(self.connection)
        self.jobs = JobStore(self.connection)
        self.api_keys = ApiKeyStore(self.connection)
        self.sources = SourceStore(self.connection)
        self._redis = self.connection.redis
        self._acquire = self.connection.acquire

    async def close(self) -> None:
        await self.connection.close()

    async def ping(self) -> None:
        async with self._acquire():
            await self.connection.ping()

    async def memory(self) -> tuple[int, int]:
        """Bytes that Redis uses, and its limit; 0 if there is none."""
        nodes = await self.connection.info("memory")
        limits = [int(node.get("maxmemory", 0)) for node in nodes]
        return sum(int(node["used_memory"]) for node in nodes), sum(limits) if all(limits) else 0

    async def run(self, steps: Sequence[Step]) -> list[Any]:
        """Replies to the steps, in as few round trips as it takes."""
        return await self.connection.run(steps)

    # -- topics --------------------------------------------------------------------------------------------------------

    async def topics(self, after: str = "", limit: int | None = None) -> list[str]:
        """Ids of topics in order, beginning after the given one."""
        async with self._acquire():
            rows = await self._redis.zrangebylex(
                TOPICS, f"({after}" if after else "-", "+", start=0, num=-1 if limit is None else limit
            )
        return [row.decode() for row in rows]

    async def count_topics(self) -> int:
        async with self._acquire():
            return int(await self._redis.zcard(TOPICS))

    async def heads(self, topics: Sequence[str]) -> list[Head | None]:
        """The head of each topic's log, in one round trip; None where there is no topic."""
        async with self._acquire():
            pipe = self._redis.pipeline(transaction=False)
            for topic in topics:
                pipe.hmget(topic_key(topic, "topic"), ["born", "seq", "floor"])
            rows = await pipe.execute()
        return [Head(row[0].decode(), int(row[1]), int(row[2])) if row[0] else None for row in rows]

    async def create(self, topic: str, born: str, first: Event) -> bool:
        """Creates the topic with its first event; False if the id is taken."""
        # Listed first: a crash in between leaves an id without a topic, which readers skip, never the reverse. And
        # listed again, because another process may be deleting a topic of this name, and unlists it last.
        await self.enlist(topic)
        passed = await self.counts.passed()
        created = await self._call(CREATE, topic, ("topic", "log", "tally"), born, passed, *flat(first.to_fields()))
        if created:
            await self.begin_stream(topic, born)
        await self.enlist(topic)
        return bool(created)

    async def begin_stream(self, topic: str, born: str) -> None:
        """Gives the topic an empty output stream."""
        await self.connection.run([outbox.begin_cmd(topic, born, now_ms())])

    async def delete(self, topic: str, born: str, version: int | None = None) -> bool:
        """Deletes this topic, if it is there, and at that version where one is given."""
        message, expected = ModelChange(topic, born, 0).to_message(), "" if version is None else version
        if not await self._call(DELETE, topic, PARTS, born, CHANGES, message, expected):
            return False
        await self.connection.run([outbox.end_cmd(topic, born)])
        await self._unlist(topic)
        return True

    async def clear(self, topic: str) -> bool:
        """Finishes the deletion of a topic that was cut short; False if there was nothing left to delete."""
        async with self._acquire():
            listed = await self._redis.zscore(TOPICS, topic)
            owner = await self._redis.get(out_part_key(topic, "owner"))
        # In this order: if a new topic of this name was created meanwhile, its stream stays, or still has its old
        # owner.
        if listed is None or (await self.heads([topic]))[0]:
            return False
        if owner:
            await self.connection.run([outbox.end_cmd(topic, owner.decode())])
        await self._unlist(topic)
        return True

    async def rebuild(self, topic: str, head: Head, judged: Mapping[str, str], records: Mapping[int, str]) -> bool:
        """Lists the topic and rebuilds what its log implies, except the model; False if the log has grown."""
        await self.enlist(topic)
        args: list[Arg] = [head.born, head.seq, head.floor]
        for pairs in (judged.items(), records.items()):
            args += [2 * len(pairs), *(part for pair in pairs for part in pair)]
        return bool(await self._call(REBUILD, topic, ("topic", "judged", "model", "versions"), *args))

    async def enlist(self, topic: str) -> None:
        await self.connection.run([("ZADD", TOPICS, 0, topic)])

    async def _unlist(self, topic: str) -> None:
        await self.connection.run([("ZREM", TOPICS, topic)])
        if (await self.heads([topic]))[0]:
            await self.enlist(topic)  # another process has created a topic of this name meanwhile

    async def _call(self, script: str, topic: str, parts: Sequence[str], *args: Arg) -> Any:
        (reply,) = await self.connection.run([topic_script(script, topic, parts, *args)])
        return reply
