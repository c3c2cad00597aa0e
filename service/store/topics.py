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
from typing import Any, NamedTuple

from service.clock import now_ms
from service.errors import NotFound
from service.store import outbox, scripts
from service.store.connection import Arg, Connection, Script, Step
from service.store.documents import Memory
from service.store.epochs import EpochStore
from service.store.log import Event

TOPICS = "sluice:topics"
CHANGES = "sluice:changes"
PASSED = "sluice:{stream}:passed"
DECIDED = "sluice:{stream}:decided"
GOALS = "sluice:{stream}:goals"
PARTS = ("topic", "log", "judged", "model", "versions", "tally", "likely", "uncertain", "skipped", "known")
CHUNK = 1000  # entries a command, so that a long read or write never holds the store up


class TopicCall(NamedTuple):
    """A script on some parts of a topic."""

    script: str
    topic: str
    parts: Sequence[str]
    args: Sequence[Arg]


def key(topic: str, part: str) -> str:
    return f"sluice:{{{topic}}}:{part}"


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


@dataclass(frozen=True, slots=True)
class Head:
    """Where a topic's log stands."""

    born: str
    seq: int
    floor: int


class Store:
    def __init__(self, url: str, timeout_s: float = 1.0) -> None:
        self.connection = Connection(url, timeout_s)
        self.documents = Memory(self.connection)
        self.epochs = EpochStore(self.connection)
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
        since = await self.passed()
        made = await self._eval(scripts.CREATE, topic, ("topic", "log", "tally"), born, since, *flat(first))
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
        if not await self._eval(scripts.DELETE, topic, PARTS, born, CHANGES, f"{topic} {born} 0", expected):
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
                pipe.hmget(key(topic, "topic"), ["born", "seq", "floor"])
            rows = await pipe.execute()
        return [Head(row[0].decode(), int(row[1]), int(row[2])) if row[0] else None for row in rows]

    # -- the log -------------------------------------------------------------------------------------------------------

    async def log(self, topic: str, after: int = 0) -> tuple[Head, list[Event]]:
        """The head of the topic's log and its events after the given one."""
        events: list[Event] = []
        begun: Head | None = None
        while True:
            at = events[-1].seq if events else after
            row = await self._eval(scripts.READ, topic, ("topic", "log"), f"({at}-0" if at else "-", CHUNK)
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
            fields = flat(event)
            op = "judge" if event.kind == "judged" else "withdraw"
            args += [op, event.document, int(event.relevant), len(fields), *fields]
        answers = await self._eval(scripts.APPEND, topic, ("topic", "log", "judged", "tally"), *args)
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
        for counted in (flat(event), labels, [f"{seq}-0" for seq in obsolete]):
            args += [len(counted), *counted]
        seq = await self._eval(scripts.AMEND, topic, ("topic", "log", "judged", "versions"), *args)
        if seq is None:
            raise NotFound.topic_gone(topic)
        return int(seq) or None

    async def logs(self) -> AsyncIterator[str]:
        """Every topic that has a log, listed or not."""
        async with self._asking():
            async for name in self._redis.scan_iter(match=key("*", "log"), count=CHUNK):
                yield name.decode().removeprefix("sluice:{").removesuffix("}:log")

    async def bare_log(self, topic: str) -> list[Event]:
        """The topic's events, whatever else is lost."""
        events: list[Event] = []
        while True:
            after = f"({events[-1].seq}-0" if events else "-"
            async with self._asking():
                rows = await self._redis.xrange(key(topic, "log"), after, "+", count=CHUNK)
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
        return bool(await self._eval(scripts.REBUILD, topic, ("topic", "judged", "model", "versions"), *args))

    async def forget_model(self, topic: str) -> None:
        async with self._asking():
            await self._redis.delete(key(topic, "model"))

    # -- models --------------------------------------------------------------------------------------------------------

    async def save(self, topic: str, model: Saved, record: str, kept: int) -> bool:
        """Publishes the model unless a newer one is there; tells the other processes."""
        message = f"{topic} {model.born} {model.version}"
        args = (model.born, model.version, model.blob, model.digest, record, kept, CHANGES, message)
        saved = await self._eval(scripts.SAVE, topic, ("topic", "model", "versions"), *args)
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
                    pipe.hmget(key(topic, "model"), ["born", "version", "blob"])
                rows += await pipe.execute()
        return [_saved(row) for row in rows]

    async def digest(self, topic: str) -> str | None:
        """What is stored as the digest of the published model."""
        async with self._asking():
            digest = await self._redis.hget(key(topic, "model"), "digest")
        return None if digest is None else digest.decode()

    async def published(self, topics: Sequence[str]) -> list[int | None]:
        """The version that is published of each topic."""
        async with self._asking():
            pipe = self._redis.pipeline(transaction=False)
            for topic in topics:
                pipe.hget(key(topic, "model"), "version")
            rows = await pipe.execute()
        return [None if row is None else int(row) for row in rows]

    async def versions(self, topic: str, before: int, limit: int) -> list[tuple[int, str]]:
        """Version numbers and their records, newest first."""
        async with self._asking():
            last = f"({before}-0" if before else "+"
            rows = await self._redis.xrevrange(key(topic, "versions"), last, "-", count=limit)
        return [(_seq(row[0]), row[1][b"record"].decode()) for row in rows]

    # -- what stands beside the log ------------------------------------------------------------------------------------

    async def passed(self) -> int:
        """How many documents have been put to all topics."""
        async with self._asking():
            return int(await self._redis.get(PASSED) or 0)

    async def decided(self) -> tuple[int, dict[str, int]]:
        """How many documents have been put to all topics, and how all were decided."""
        passed, decided = await self.connection.run([("GET", PASSED), ("HGETALL", DECIDED)])
        return int(passed or 0), _numbers(decided)

    async def note_goals(self, states: Mapping[str, int], kept_s: int) -> None:
        """Remembers for a while how many goals are in which state."""
        flat = [part for pair in states.items() for part in pair]
        await self.connection.run([("DEL", GOALS), ("HSET", GOALS, *flat), ("EXPIRE", GOALS, kept_s)])

    async def goals(self) -> dict[str, int]:
        async with self._asking():
            return _numbers(await self._redis.hgetall(GOALS))

    async def memory(self) -> tuple[int, int]:
        """Bytes that the store holds, and those it may; 0 where there is no limit."""
        said = await self.connection.info("memory")
        limits = [int(one.get("maxmemory", 0)) for one in said]
        return sum(int(one["used_memory"]) for one in said), sum(limits) if all(limits) else 0

    async def run(self, calls: Sequence[TopicCall]) -> list[Any]:
        """Scripts on any number of topics, in as few round trips as it takes."""
        return await self.connection.run([_keyed(call) for call in calls])

    async def counters(self, topics: Sequence[str]) -> tuple[int, list[dict[bytes, bytes]]]:
        """How many documents have passed, and what each topic has counted of them."""
        answers: list[Any] = []
        async with self._asking():
            for start in range(0, max(1, len(topics)), CHUNK):
                pipe = self._redis.pipeline(transaction=False)
                for topic in topics[start : start + CHUNK]:
                    pipe.hgetall(key(topic, "tally"))
                pipe.get(PASSED)
                *rows, passed = await pipe.execute()
                answers += rows
        return int(passed or 0), answers

    async def known(self, topic: str) -> dict[str, bytes]:
        async with self._asking():
            found = await self._redis.hgetall(key(topic, "known"))
        return {document.decode(): blob for document, blob in found.items()}

    async def skipped(self, topic: str) -> list[tuple[str, int]]:
        """Documents that are not to be offered again, and since when."""
        async with self._asking():
            found = await self._redis.zrange(key(topic, "skipped"), 0, -1, withscores=True)
        return [(document.decode(), int(at_ms)) for document, at_ms in found]

    async def forget_known(self, topic: str, document: str) -> bool:
        (forgotten,) = await self.connection.run([("HDEL", key(topic, "known"), document)])
        return bool(forgotten)

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
        (answer,) = await self.run([TopicCall(script, topic, parts, args)])
        return answer


def counting(documents: int, decided: Mapping[str, int], calls: Sequence[TopicCall]) -> list[Step]:
    """What counts documents that were put to all topics, and how any were decided, and runs the scripts that count for
    each topic. The first answer is how many documents have been by now."""
    steps: list[Step] = [("INCRBY", PASSED, documents)]
    steps += [("HINCRBY", DECIDED, name, n) for name, n in decided.items() if n]
    return [*steps, *(_keyed(call) for call in calls)]


def _numbers(found: Mapping[bytes, bytes]) -> dict[str, int]:
    return {name.decode(): int(n) for name, n in found.items()}


def _keyed(call: TopicCall) -> Script:
    return Script(call.script, [key(call.topic, part) for part in call.parts], call.args)


def flat(event: Event) -> list[Arg]:
    return [part for pair in event.to_fields().items() for part in pair]


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
