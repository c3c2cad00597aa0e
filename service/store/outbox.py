"""What topics let through, as streams for others to read.

    sluice:out:ID             stream   a decision other than reject an entry, bounded; its fields are those of `Entry`
    {sluice:out:ID}:lately    set      what was appended, as id and decision: what comes again is not appended
    {sluice:out:ID}:before    set      the same of what came before that
    {sluice:out:ID}:owner     string   `born` of the topic whose stream it is
    {sluice:out:ID}:began     string   since when, in milliseconds; absent where an earlier version began it

The stream's name is for people to type, so it has no hash tag; a name that has all of it for its tag lies in the same
slot of a Redis Cluster. That is not the slot of the topic's other keys, so the topic and its stream never change in one
script: `owner` keeps a process that has not heard that the topic was deleted from writing to the stream of the next
one. Of a deleted topic `owner` is empty, for as long as it can take a process to hear of it.

An entry is appended after its document is remembered and before anybody is told the decision. Who is killed in between
will be sent the document again, so that the entry is there at least once; the two sets make it once, but for documents
that come again after `kept` others at least, or that are decided otherwise by then. Such entries have the same `id`.
When `lately` has `kept` members it becomes `before`, so nothing has to be kept in order of time. (A sorted set, and
entries in JSON, took the store half as long again.)
"""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Self

from pydantic_core import from_json

from service.schemas import Decision
from service.store.connection import Connection, translated_errors
from service.store.keys import out_key, out_part_key
from service.store.scripts import Script, Step

GONE_S = 60  # in which every process hears that a topic was deleted
AT_ONCE = 100  # entries of a stream that are read together
SOME = 500  # entries that are appended together
START = "0-0"  # before every entry
LOOK_S = 0.05  # between two looks at streams of a cluster

# Appends what has not been appended yet. Arguments: born, most entries kept, the names of the entries in the sets, of
# WIDTH bytes each, and the entries, each value after its length: one argument is sent and read in a fraction of the
# time that thousands take.
WIDTH = 17
# How a name ends: as the document was decided when it first came, or when it came again, which says nothing of that.
# One of the two is enough: who took a document over may be done with it before who had it first.
ACCEPTED, ABSTAINED = (b"+", b"*"), (b"?", b"!")
APPEND = f"""
local out, lately, before, owner = unpack(KEYS)
local standing = redis.call('GET', owner)
if standing and standing ~= ARGV[1] then return 0 end
if not standing then redis.call('SET', owner, ARGV[1]) end
local names, here, new, form, at = {{}}, {{}}, {{}}, string.rep('>I4c0', 11), 1
for from = 1, #ARGV[3], {WIDTH} do names[#names + 1] = string.sub(ARGV[3], from, from + {WIDTH - 1}) end
local known = redis.call('SMISMEMBER', lately, unpack(names))
local older = redis.call('SMISMEMBER', before, unpack(names))
local twins, twin = {{}}, {{[42] = '+', [43] = '*', [33] = '?', [63] = '!'}}
for i, name in ipairs(names) do twins[i] = string.sub(name, 1, -2) .. twin[string.byte(name, -1)] end
for _, set in ipairs({{lately, before}}) do
  for i, found in ipairs(redis.call('SMISMEMBER', set, unpack(twins))) do known[i] = known[i] + found end
end
for i, name in ipairs(names) do
  local id, decision, score, version, document, title, text, first, source, published, metadata, rest =
    struct.unpack(form, ARGV[4], at)
  at = rest
  if known[i] + older[i] == 0 and not here[name] then
    here[name], new[#new + 1] = true, name
    local about = {{}}
    if source ~= '' then about[1], about[2] = 'source', source end
    if published ~= '' then about[#about + 1], about[#about + 2] = 'published', published end
    if metadata ~= '' then about[#about + 1], about[#about + 2] = 'metadata', metadata end
    redis.call('XADD', out, '*', 'id', id, 'decision', decision, 'score', score, 'version', version,
      'document', document, 'title', title, 'text', text, 'duplicate_of', first, unpack(about))
  end
end
if #new > 0 then
  redis.call('XTRIM', out, 'MAXLEN', '~', ARGV[2])
  redis.call('SADD', lately, unpack(new))
  if redis.call('SCARD', lately) >= tonumber(ARGV[2]) then
    redis.call('RENAME', lately, before)
  end
end
return #new
"""

# Which of these names were appended; and since when that is known of whatever was not: −1 if not now, when the sets, of
# which one has just been forgotten, may hold less than the stream does. Arguments: names.
APPENDED = f"""
local out, lately, before, began = KEYS[1], KEYS[2], KEYS[3], redis.call('GET', KEYS[5])
local names = {{}}
for from = 1, #ARGV[1], {WIDTH} do names[#names + 1] = string.sub(ARGV[1], from, from + {WIDTH - 1}) end
local known, older = redis.call('SMISMEMBER', lately, unpack(names)), redis.call('SMISMEMBER', before, unpack(names))
for i = 1, #names do known[i] = known[i] + older[i] end
local since, forgotten = tonumber(began or -1), redis.call('SCARD', before)
if forgotten > 0 then
  local first = redis.call('XRANGE', out, '-', '+', 'COUNT', 1)[1]
  local all = redis.call('XLEN', out) <= redis.call('SCARD', lately) + forgotten
  since = all and first and began and math.max(since, tonumber(string.match(first[1], '%d+'))) or -1
end
return {{since, known}}
"""

# A new topic owns the stream from now on; what is left of another is gone. Arguments: born, milliseconds.
BEGIN = """
local out, lately, before, owner, began = unpack(KEYS)
if redis.call('GET', owner) == ARGV[1] then return 0 end
redis.call('DEL', out, lately, before)
redis.call('SET', owner, ARGV[1])
redis.call('SET', began, ARGV[2])
return 1
"""

# The topic is deleted, and its stream with it, unless it is another's already. Arguments: born, seconds.
END = """
local out, lately, before, owner, began = unpack(KEYS)
local standing = redis.call('GET', owner)
if standing and standing ~= ARGV[1] then return 0 end
redis.call('DEL', out, lately, before, began)
redis.call('SET', owner, '', 'EX', ARGV[2])
return 1
"""


class Entry(NamedTuple):
    id: str  # the same whenever the same document passes the same topic
    decision: Decision
    score: float
    version: int
    document: str
    title: str
    text: str
    duplicate_of: str = ""  # the document that this one repeats, if it does (see signatures.py)
    source: str = ""  # this and what follows is as it came with the document, if it did
    published: str = ""
    metadata: str = ""  # JSON

    @classmethod
    def read(cls, fields: Mapping[bytes, bytes]) -> Self:
        said: dict[str, Any] = {name.decode(): value.decode() for name, value in fields.items()}
        score, version = float(said.pop("score")), int(said.pop("version"))
        return cls(score=score, version=version, **said)

    def said(self) -> dict[str, Any]:
        """As it is shown."""
        about = {name: getattr(self, name) or None for name in ("duplicate_of", "source", "published")}
        return self._asdict() | about | {"metadata": from_json(self.metadata) if self.metadata else None}


class Placed(NamedTuple):
    """An entry, and the place in its stream from which one can go on reading."""

    place: str
    entry: Entry

    @classmethod
    def read(cls, row: Any) -> Self:
        place, fields = row
        return cls(place.decode(), Entry.read(fields))

    @property
    def at_ms(self) -> int:
        return order(self.place)[0]


class Outbox:
    """The streams, read."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._redis = connection.redis

    async def newest(self, topic: str, before: str | None, limit: int) -> list[Placed]:
        """The entries before that place, newest first."""
        if before and order(before) == order(START):
            return []  # Redis takes no interval that ends before it begins
        async with self._connection.asking():
            rows = await self._redis.xrevrange(out_key(topic), f"({before}" if before else "+", "-", count=limit)
        return [Placed.read(row) for row in rows]

    async def read_after(self, topic: str, after: str) -> list[Placed]:
        """The entries after that place, oldest first, some of them."""
        async with self._connection.asking():
            rows = await self._redis.xrange(out_key(topic), f"({after}", "+", count=AT_ONCE)
        return [Placed.read(row) for row in rows]

    async def last(self, topic: str) -> str:
        """The place of the newest entry."""
        found = await self.newest(topic, None, 1)
        return found[0].place if found else START

    async def decisions(self, came: Mapping[str, Mapping[str, int]]) -> dict[tuple[str, str], Decision]:
        """By topic and document, what was decided of documents when they came, in milliseconds, as far as that is still
        known."""
        parts = [
            (topic, list(documents)[start : start + SOME // 2])
            for topic, documents in came.items()
            for start in range(0, len(documents), SOME // 2)
        ]
        found: dict[tuple[str, str], Decision] = {}
        answers = await self._connection.run([_appended(*part) for part in parts])
        for (topic, documents), (since, known) in zip(parts, answers, strict=True):
            for document, accepted, abstained in zip(documents, known[::2], known[1::2], strict=True):
                if accepted or abstained:
                    found[topic, document] = "accept" if accepted else "abstain"
                elif 0 <= since <= came[topic][document]:
                    found[topic, document] = "reject"
        return found

    async def wait(self, places: Mapping[str, str]) -> dict[str, list[Placed]]:
        """What comes after these places in streams of topics, when something does; nothing if that takes too long."""
        if self._connection.cluster:
            return await self._look_around(places)
        streams = {out_key(topic): place for topic, place in places.items()}
        with translated_errors():
            rows = await self._redis.xread(streams, count=AT_ONCE, block=self._connection.block_ms)
        topics = {out_key(topic).encode(): topic for topic in places}
        return {topics[name]: [Placed.read(row) for row in found] for name, found in rows or ()}

    async def _look_around(self, places: Mapping[str, str]) -> dict[str, list[Placed]]:
        """The same on a cluster, where no command waits for streams of several slots, and where to wait for each by
        itself would take a connection a topic: so they are looked at now and then."""
        deadline_s = time.monotonic() + self._connection.block_ms / 1000
        looks: list[Step] = [
            ("XRANGE", out_key(topic), f"({at}", "+", "COUNT", AT_ONCE) for topic, at in places.items()
        ]
        while True:
            answers = await self._connection.run(looks)
            pairs = zip(places, answers, strict=True)
            found = {topic: [Placed.read(row) for row in rows] for topic, rows in pairs if rows}
            if found or time.monotonic() > deadline_s:
                return found
            await asyncio.sleep(LOOK_S)


def append(
    topic: str, born: str, entries: Sequence[Entry], kept: int, again: Collection[str] = frozenset()
) -> list[Script]:
    """What appends them, SOME at a time: a script can unpack so many. Some documents have come before, and come
    `again`."""
    parts = [entries[start : start + SOME] for start in range(0, len(entries), SOME)]
    names = [b"".join(_name(entry, entry.document in again) for entry in part) for part in parts]
    packed = [b"".join(map(_packed, part)) for part in parts]
    keys = _keys(topic)
    return [Script(APPEND, keys, [born, kept, *args]) for args in zip(names, packed, strict=True)]


def _appended(topic: str, documents: Sequence[str]) -> Script:
    ids = [bytes.fromhex(entry_id(topic, document)) for document in documents]
    return Script(APPENDED, _keys(topic), [b"".join(id + mark[0] for id in ids for mark in (ACCEPTED, ABSTAINED))])


def begin(topic: str, born: str, now_ms: int) -> Script:
    return Script(BEGIN, _keys(topic), [born, now_ms])


def end(topic: str, born: str) -> Script:
    return Script(END, _keys(topic), [born, GONE_S])


def entry_id(topic: str, document: str) -> str:
    return blake2b(f"{topic}\0{document}".encode(), digest_size=16).hexdigest()


def order(place: str) -> tuple[int, int]:
    """Places in a stream, so that they can be compared."""
    ms, _, n = place.partition("-")
    return int(ms), int(n or 0)


def _name(entry: Entry, again: bool) -> bytes:
    return bytes.fromhex(entry.id) + (ACCEPTED if entry.decision == "accept" else ABSTAINED)[again]


def _packed(entry: Entry) -> bytes:
    values = [str(value).encode() for value in entry]
    return b"".join(part for value in values for part in (len(value).to_bytes(4), value))


def _keys(topic: str) -> list[str]:
    return [out_key(topic), *(out_part_key(topic, part) for part in ("lately", "before", "owner", "began"))]
