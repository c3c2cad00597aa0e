"""Everything Redis remembers of topics. (What else it remembers is told by memory, outbox, inbox, jobstore, tallies …)

    sluice:topics                  zset     ids of all topics, in order of name; rebuilt from the logs when lost
    sluice:{ID}:topic              hash     born, seq, floor: the head of the log; origin: the file it came from, if any
    sluice:{ID}:log                stream   the truth: events numbered by seq (see log.py)
    sluice:{ID}:judged             hash     document -> label that stands; what makes appending idempotent
    sluice:{ID}:model              hash     version, blob, digest, born: what is served
    sluice:{ID}:versions           stream   a record for each published version, bounded
    sluice:{ID}:tally              hash     how the stream was decided, in total and lately (see topics/counts.py)
    sluice:{ID}:likely             zset     accepted documents worth a judgement, by when they passed; bounded
    sluice:{ID}:uncertain          zset     the same of those abstained from
    sluice:{ID}:skipped            zset     documents not to be offered again, by when; bounded
    sluice:{ID}:known              hash     document -> blob: relevant, found elsewhere, never learned from; bounded
    sluice:{ID}:PART:BORN                   the parts of a topic that is just being imported; they expire
    sluice:{stream}:passed         string   how many documents have been put to all topics
    sluice:{stream}:decided        hash     documents put to named topics; decisions to accept, abstain: ever
    sluice:{stream}:goals          hash     state -> how many topics' goals are in it; expires when it is old
    sluice:documents:…                      documents, for feedback by id (see documents.py)
    sluice:{background}:…                   what the stream as a whole looks like (see epochs.py)
    sluice:changes                 channel  "ID BORN VERSION" for each published model; version 0 is a deleted topic
    sluice:out:ID                  stream   what the topic lets through (see outbox.py)
    sluice:{repeats}:…                      which documents came lately, by their signatures (see signatures.py)

The braces are Redis Cluster's hash tags: all keys of a topic live in one slot, so one script may touch them together,
and nothing here needs two slots at once. The log, the documents, the background that logs name, and what stands beside
the log without touching the model (tallies, what waits for a judgement, known items) are the truth; all else is derived
from the logs, and `run/replay.py` makes it anew.

Scripts are sent whole (EVAL), but in bulk: Redis keeps them compiled by digest anyway, and a restarted store needs no
reloading.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from service.clock import now_ms
from service.errors import NotFound
from service.store import outbox
from service.store.connection import Connection
from service.store.counts import CountStore
from service.store.documents import Memory
from service.store.epochs import EpochStore
from service.store.imports import ImportStore
from service.store.inbox import Inbox
from service.store.jobs import JobStore
from service.store.keys import PARTS, topic_key
from service.store.known import KnownStore
from service.store.log import Event, Head
from service.store.outbox import Outbox
from service.store.review import ReviewStore
from service.store.routes import Routes
from service.store.scripts import Arg, flat, topic_script
from service.store.scripts import Step as Step  # for others, who pass steps on

TOPICS = "sluice:topics"
CHANGES = "sluice:changes"
CHUNK = 1000  # entries a command, so that a long read or write never holds the store up

# Makes a topic with its first event, unless it is there. Arguments: born, how many documents have passed so far, the
# event's fields.
CREATE = """
local topic, log, tally = KEYS[1], KEYS[2], KEYS[3]
if redis.call('EXISTS', topic, log) > 0 then return 0 end
redis.call('HSET', topic, 'born', ARGV[1], 'seq', 1, 'floor', 0)
redis.call('HSET', tally, 'since', ARGV[2])
redis.call('XADD', log, '1-0', unpack(ARGV, 3))
return 1
"""

# Removes a topic and all that is known of it. Arguments: born, channel, message, the version it must have or nothing.
DELETE = """
if redis.call('HGET', KEYS[1], 'born') ~= ARGV[1] then return 0 end
if ARGV[4] ~= '' and redis.call('HGET', KEYS[1], 'seq') ~= ARGV[4] then return 0 end
redis.call('DEL', unpack(KEYS))
redis.call('PUBLISH', ARGV[2], ARGV[3])
return 1
"""

# The head of a log and its next events. Arguments: first id, most events.
READ = """
local head = redis.call('HMGET', KEYS[1], 'born', 'seq', 'floor')
if not head[1] then return false end
return {head[1], head[2], head[3], redis.call('XRANGE', KEYS[2], ARGV[1], '+', 'COUNT', ARGV[2])}
"""

# Judgements and withdrawals, any number in one go (one fsync). A judgement that says what stands already changes
# nothing. One that is new goes into the log with the number of documents that the topic has accepted so far. Flat
# arguments: born, count, then for each: "judge", document, label, number of fields, field, value, … or "withdraw",
# document, "", number of fields, …
APPEND = """
local topic, log, judged, tally = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
local answers, at, accepted = {}, 3, tonumber(redis.call('HGET', tally, 'accepted') or 0)
for n = 1, tonumber(ARGV[2]) do
  local op, document, label, width = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  local standing = redis.call('HGET', judged, document)
  local status
  if op == 'judge' then
    status = (standing == label and 'known') or (standing and 'corrected') or 'learned'
  else
    status = standing and 'withdrawn' or 'absent'
  end
  local seq = tonumber(redis.call('HGET', topic, 'seq'))
  if status ~= 'known' and status ~= 'absent' then
    seq = redis.call('HINCRBY', topic, 'seq', 1)
    local fields = {unpack(ARGV, at + 4, at + 3 + width)}
    if status == 'learned' and accepted > 0 then fields[width + 1], fields[width + 2] = 'after', accepted end
    redis.call('XADD', log, seq .. '-0', unpack(fields))
    if op == 'judge' then redis.call('HSET', judged, document, label) else redis.call('HDEL', judged, document) end
  end
  answers[n] = {status, seq, status == 'learned' and accepted or 0}
  at = at + 4 + width
end
return answers
"""

# One event that may change everything (new settings, restore, publish, compaction), if nobody was faster: compares
# `seq`, appends, and where a new set of standing judgements is given, replaces the old one. Versions from before the
# floor can no longer be restored and are not listed. Arguments: born, expected seq, floor, "1" to replace judgements,
# then three counted lists: event fields, document and label pairs, ids of events that are no longer needed.
AMEND = """
local topic, log, judged, versions = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
if redis.call('HGET', topic, 'seq') ~= ARGV[2] then return 0 end
local at = 5
local function counted()
  local first, last = at + 1, at + tonumber(ARGV[at])
  at = last + 1
  return first, last
end
local seq = redis.call('HINCRBY', topic, 'seq', 1)
redis.call('HSET', topic, 'floor', ARGV[3])
redis.call('XADD', log, seq .. '-0', unpack(ARGV, counted()))
local first, last = counted()
if ARGV[4] == '1' then
  redis.call('DEL', judged)
  for from = first, last, 1000 do redis.call('HSET', judged, unpack(ARGV, from, math.min(from + 999, last))) end
end
first, last = counted()
for from = first, last, 1000 do redis.call('XDEL', log, unpack(ARGV, from, math.min(from + 999, last))) end
redis.call('XTRIM', versions, 'MINID', ARGV[3] .. '-0')
return seq
"""

# Makes anew what can be derived from a log: its head, if that is lost, the judgements that stand, and the list of
# versions, if that is lost. The model is forgotten, for the next to save it. Arguments: born, seq, floor, then two
# counted lists: document and label pairs, version and record pairs.
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

# Publishes a model unless a newer one is there. A fold is deterministic, so whoever saves version n saves the same
# bytes, and the loser has nothing to do over. Arguments: born, version, blob, digest, record, versions kept, channel,
# message.
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


class Store:
    def __init__(self, url: str, timeout_s: float = 1.0) -> None:
        self.connection = Connection(url, timeout_s)
        self.documents = Memory(self.connection)
        self.epochs = EpochStore(self.connection)
        self.counts = CountStore(self.connection)
        self.review = ReviewStore(self.connection)
        self.known = KnownStore(self.connection)
        self.imports = ImportStore(self.connection)
        self.inbox = Inbox(self.connection)
        self.outbox = Outbox(self.connection)
        self.routes = Routes(self.connection)
        self.jobs = JobStore(self.connection)
        self._redis = self.connection.redis
        self._asking = self.connection.asking

    async def close(self) -> None:
        await self.connection.close()

    async def ping(self) -> None:
        async with self._asking():
            await self.connection.ping()

    # -- topics --------------------------------------------------------------------------------------------------------

    async def topics(self, after: str = "", limit: int | None = None) -> list[str]:
        """Ids of topics in order, those that come after the given one."""
        async with self._asking():
            rows = await self._redis.zrangebylex(
                TOPICS, f"({after}" if after else "-", "+", start=0, num=-1 if limit is None else limit
            )
        return [row.decode() for row in rows]

    async def count_topics(self) -> int:
        async with self._asking():
            return int(await self._redis.zcard(TOPICS))

    async def create(self, topic: str, born: str, first: Event) -> bool:
        """Makes the topic with its first event; False if the id is taken."""
        # Listed first: a crash in between leaves an id without a topic, which reading skips, never the reverse. And
        # once more, for somebody may just be deleting a topic of this name, whose last step is to strike it off.
        await self.enlist(topic)
        since = await self.counts.passed()
        made = await self._eval(CREATE, topic, ("topic", "log", "tally"), born, since, *flat(first.to_fields()))
        if made:
            await self.begin_stream(topic, born)
        await self.enlist(topic)
        return bool(made)

    async def begin_stream(self, topic: str, born: str) -> None:
        """What this topic lets through goes to a stream with nothing of another topic in it."""
        await self.connection.run([outbox.begin(topic, born, now_ms())])

    async def delete(self, topic: str, born: str, version: int | None = None) -> bool:
        """Deletes this topic, if it is there, and at that version where one is given."""
        expected = "" if version is None else version
        if not await self._eval(DELETE, topic, PARTS, born, CHANGES, f"{topic} {born} 0", expected):
            return False
        await self.connection.run([outbox.end(topic, born)])
        await self._strike(topic)
        return True

    async def clear(self, topic: str) -> bool:
        """Clears away what is left of a topic whose deletion did not come to its end; whether there was anything."""
        async with self._asking():
            listed = await self._redis.zscore(TOPICS, topic)
            owner = await self._redis.get(outbox.owner(topic))
        # In this order: if another topic has been made meanwhile, the stream is its own, or has the owner it had.
        if listed is None or (await self.heads([topic]))[0]:
            return False
        if owner:
            await self.connection.run([outbox.end(topic, owner.decode())])
        await self._strike(topic)
        return True

    async def _strike(self, topic: str) -> None:
        await self.unlist(topic)
        if (await self.heads([topic]))[0]:
            await self.enlist(topic)  # somebody has made another one of this name meanwhile

    async def enlist(self, topic: str) -> None:
        await self.connection.run([("ZADD", TOPICS, 0, topic)])

    async def unlist(self, topic: str) -> None:
        await self.connection.run([("ZREM", TOPICS, topic)])

    async def heads(self, topics: Sequence[str]) -> list[Head | None]:
        """Where each topic's log stands, in one round trip; None where there is no topic."""
        async with self._asking():
            pipe = self._redis.pipeline(transaction=False)
            for topic in topics:
                pipe.hmget(topic_key(topic, "topic"), ["born", "seq", "floor"])
            rows = await pipe.execute()
        return [Head(row[0].decode(), int(row[1]), int(row[2])) if row[0] else None for row in rows]

    # -- the log -------------------------------------------------------------------------------------------------------

    async def log(self, topic: str, after: int = 0) -> tuple[Head, list[Event]]:
        """The head of the topic's log and its events after the given one."""
        events: list[Event] = []
        begun: Head | None = None
        while True:
            at = events[-1].seq if events else after
            row = await self._eval(READ, topic, ("topic", "log"), f"({at}-0" if at else "-", CHUNK)
            if not row:
                raise NotFound.topic(topic)
            head = Head(row[0].decode(), int(row[1]), int(row[2]))
            if begun and (head.born, head.floor) != (begun.born, begun.floor):
                events, begun = [], None  # compacted, or another topic, since the last chunk: begin again
                continue
            begun = head
            events += [_event(entry) for entry in row[3]]
            if len(row[3]) < CHUNK:
                return head, events

    async def append(self, topic: str, born: str, events: Sequence[Event]) -> list[tuple[str, Event]]:
        """Judgements and withdrawals, all or none; for each what it came to, and itself as the log has it: with its
        number, or that of the last event if it changes nothing."""
        args: list[Arg] = [born, len(events)]
        for event in events:
            fields = flat(event.to_fields())
            op = "judge" if event.kind == "judged" else "withdraw"
            args += [op, event.document, int(event.relevant), len(fields), *fields]
        answers = await self._eval(APPEND, topic, ("topic", "log", "judged", "tally"), *args)
        if answers is None:
            raise NotFound.topic_gone(topic)
        return [
            (status.decode(), replace(event, seq=int(seq), after=int(after)))
            for event, (status, seq, after) in zip(events, answers, strict=True)
        ]

    async def amend(
        self,
        topic: str,
        head: Head,
        event: Event,
        *,
        floor: int | None = None,
        judged: Mapping[str, bool] | None = None,
        obsolete: Sequence[int] = (),
    ) -> int | None:
        """One event that changes more than a judgement, if the log still ends at `head`; None if it has moved on."""
        labels = [part for document, label in (judged or {}).items() for part in (document, int(label))]
        args: list[Arg] = [head.born, head.seq, head.floor if floor is None else floor, int(judged is not None)]
        for counted in (flat(event.to_fields()), labels, [f"{seq}-0" for seq in obsolete]):
            args += [len(counted), *counted]
        seq = await self._eval(AMEND, topic, ("topic", "log", "judged", "versions"), *args)
        if seq is None:
            raise NotFound.topic_gone(topic)
        return int(seq) or None

    async def logs(self) -> AsyncIterator[str]:
        """Every topic that has a log, listed or not."""
        async with self._asking():
            async for name in self._redis.scan_iter(match=topic_key("*", "log"), count=CHUNK):
                yield name.decode().removeprefix("sluice:{").removesuffix("}:log")

    async def bare_log(self, topic: str) -> list[Event]:
        """The topic's events, whatever else is lost."""
        events: list[Event] = []
        while True:
            after = f"({events[-1].seq}-0" if events else "-"
            async with self._asking():
                rows = await self._redis.xrange(topic_key(topic, "log"), after, "+", count=CHUNK)
            events += [Event.from_fields(_seq(row[0]), row[1]) for row in rows]
            if len(rows) < CHUNK:
                return events

    async def rebuild(self, topic: str, head: Head, judged: Mapping[str, bool], records: Mapping[int, str]) -> bool:
        """Lists the topic and makes anew what its log implies, but for the model; False if the log has moved on."""
        await self.enlist(topic)
        args: list[Arg] = [head.born, head.seq, head.floor]
        labels = {document: int(label) for document, label in judged.items()}
        for pairs in (labels.items(), records.items()):
            args += [2 * len(pairs), *(part for pair in pairs for part in pair)]
        return bool(await self._eval(REBUILD, topic, ("topic", "judged", "model", "versions"), *args))

    async def forget_model(self, topic: str) -> None:
        async with self._asking():
            await self._redis.delete(topic_key(topic, "model"))

    # -- models --------------------------------------------------------------------------------------------------------

    async def save(self, topic: str, model: Saved, record: str, kept: int) -> bool:
        """Publishes the model unless a newer one is there; tells the other processes."""
        message = f"{topic} {model.born} {model.version}"
        args = (model.born, model.version, model.blob, model.digest, record, kept, CHANGES, message)
        saved = await self._eval(SAVE, topic, ("topic", "model", "versions"), *args)
        if saved is None:
            raise NotFound.topic_gone(topic)
        return bool(saved)

    async def models(self, topics: Sequence[str]) -> list[Saved | None]:
        """The published model of each topic, in as few round trips as it takes."""
        rows: list[Any] = []
        async with self._asking():
            for start in range(0, len(topics), CHUNK):
                pipe = self._redis.pipeline(transaction=False)
                for topic in topics[start : start + CHUNK]:
                    pipe.hmget(topic_key(topic, "model"), ["born", "version", "blob"])
                rows += await pipe.execute()
        return [_saved(row) for row in rows]

    async def digest(self, topic: str) -> str | None:
        """What is stored as the digest of the published model."""
        async with self._asking():
            digest = await self._redis.hget(topic_key(topic, "model"), "digest")
        return None if digest is None else digest.decode()

    async def published(self, topics: Sequence[str]) -> list[int | None]:
        """The version that is published of each topic."""
        async with self._asking():
            pipe = self._redis.pipeline(transaction=False)
            for topic in topics:
                pipe.hget(topic_key(topic, "model"), "version")
            rows = await pipe.execute()
        return [None if row is None else int(row) for row in rows]

    async def versions(self, topic: str, before: int, limit: int) -> list[tuple[int, str]]:
        """Version numbers and their records, newest first."""
        async with self._asking():
            last = f"({before}-0" if before else "+"
            rows = await self._redis.xrevrange(topic_key(topic, "versions"), last, "-", count=limit)
        return [(_seq(row[0]), row[1][b"record"].decode()) for row in rows]

    # -- the whole -----------------------------------------------------------------------------------------------------

    async def memory(self) -> tuple[int, int]:
        """Bytes that the store holds, and those it may; 0 where there is no limit."""
        nodes = await self.connection.info("memory")
        limits = [int(node.get("maxmemory", 0)) for node in nodes]
        return sum(int(node["used_memory"]) for node in nodes), sum(limits) if all(limits) else 0

    async def run(self, steps: Sequence[Step]) -> list[Any]:
        """Replies to the steps, in as few round trips as it takes."""
        return await self.connection.run(steps)

    # -- notice --------------------------------------------------------------------------------------------------------

    async def changes(self) -> AsyncGenerator[ModelChange | None, None]:
        """Each model published and each topic deleted anywhere; None once, when listening has begun."""
        async with self.connection.subscribed(CHANGES) as listener:
            while True:
                message = await listener.get_message(timeout=None)
                if message and message["type"] == "subscribe":
                    yield None
                elif message and message["type"] == "message":
                    topic, born, version = message["data"].decode().split(" ")
                    yield ModelChange(topic, born, int(version))

    async def _eval(self, script: str, topic: str, parts: Sequence[str], *args: Arg) -> Any:
        (answer,) = await self.connection.run([topic_script(script, topic, parts, *args)])
        return answer


def _event(entry: Any) -> Event:
    flat = entry[1]
    return Event.from_fields(_seq(entry[0]), dict(zip(flat[::2], flat[1::2], strict=True)))


def _seq(stream_id: bytes) -> int:
    return int(stream_id.partition(b"-")[0])


def _saved(row: list[bytes | None]) -> Saved | None:
    born, version, blob = row
    if born is None or version is None or blob is None:
        return None
    return Saved(born.decode(), int(version), blob)
