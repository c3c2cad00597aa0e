"""The output streams of topics: the decisions they let through, and how their goals stand, for others to read.

A stream's owner is the topic whose decisions it holds. The stream is not in the slot of the topic's other keys (see
store/redis/keys.py), so no script can change both. A process that does not know yet that the topic was deleted must not
write to the stream of a new topic of the same name: `owner` prevents that. After a deletion it stays empty for GONE_S.

An entry is appended after its document is remembered and before the request is answered. If the process is killed in
between, the document is sent again, so the entry is there at least once. The sets `lately` and `before` make it exactly
once, except for documents that are sent again after at least `kept` others, or that are decided differently than the
last time; such entries have the same `id`. When `lately` has `kept` members it becomes `before`, so nothing has to be
sorted by time. (A sorted set, and entries in JSON, took the store half as long again.)

When a topic's goal changes its state, that is an entry, too, with the decision `goal`. The state that was announced
last is stored beside the stream, and compared and set in the same script that appends the entry: however many processes
look, and whichever of them dies, there is one entry for each change. A process that looks with an older model, or at
older counts, than the one that announced last is ignored.
"""

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Literal, NamedTuple, Self

from pydantic_core import from_json

from service.clock import time_of
from service.schemas import ORIGIN, Decision
from service.schemas.flow import GoalChanged, Passed
from service.store.redis.connection import Connection
from service.store.redis.errors import translated_errors
from service.store.redis.keys import out_key, out_part_key
from service.store.redis.scripts import Script, Step

GONE_S = 60  # within which every process learns that a topic was deleted
READ_SIZE = 100  # entries of a stream that are read together
FIND_TOPICS = 10  # streams in which a document is looked for together
APPEND_SIZE = 500  # entries that are appended together: a script cannot unpack many more
# The fields of an entry that are appended, in the order of `Entry`: so many always, the others if they are not empty.
ALWAYS = 8
FIELDS = (
    *("id", "decision", "score", "version", "document", "title", "text", "duplicate_of"),
    *("source", "published", "metadata", "certain", "url", "author", "language", "updated"),
)
GOAL = "goal"
START = "0-0"  # before every entry
POLL_S = 0.05  # between two reads of streams of a cluster

# A member of the sets is the 16 bytes of an entry's id, and a byte for the decision and for whether the document was
# new. Only the decision on a new document is the one that was made when it passed. Either byte means that the entry was
# appended: a batch that was claimed from another consumer may be written before the original. Of the two marks for a
# document that was sent again at most the newer is kept, so that it is known what was appended last.
MEMBER_BYTES = 17
ACCEPTED, ABSTAINED = b"+", b"?"
ACCEPTED_AGAIN, ABSTAINED_AGAIN = b"*", b"!"
MARKS = (ACCEPTED, ABSTAINED, ACCEPTED_AGAIN, ABSTAINED_AGAIN)

# Appends the entries that have not been appended yet. Arguments: born, maximum length of the stream, the entries'
# members, and the entries, each value after its length: one argument is sent and read in a fraction of the time that
# thousands take.
APPEND = f"""
local out, lately, before, owner = unpack(KEYS)
local standing = redis.call('GET', owner)
if standing and standing ~= ARGV[1] then return 0 end
if not standing then redis.call('SET', owner, ARGV[1]) end
local FIELDS = {{{", ".join(map(repr, FIELDS))}}}
local names, here, new, form, at = {{}}, {{}}, {{}}, string.rep('>I4c0', {len(FIELDS)}), 1
for from = 1, #ARGV[3], {MEMBER_BYTES} do names[#names + 1] = string.sub(ARGV[3], from, from + {MEMBER_BYTES - 1}) end
local function noted(mark)
  local marked, found = {{}}, {{}}
  for i, name in ipairs(names) do marked[i] = string.sub(name, 1, -2) .. mark end
  local older = redis.call('SMISMEMBER', before, unpack(marked))
  for i, here in ipairs(redis.call('SMISMEMBER', lately, unpack(marked))) do found[i] = here + older[i] > 0 end
  return found, marked
end
local accepted, abstained = noted('+'), noted('?')
local again = {{}}
again['*'], again['!'] = {{noted('*')}}, {{noted('!')}}
local function appended(i, mark)  -- whether the last entry about the document had this decision
  local to_accept = mark == '+' or mark == '*'
  local one, other = again[to_accept and '*' or '!'][1][i], again[to_accept and '!' or '*'][1][i]
  if one or other then return one end
  if to_accept then return accepted[i] else return abstained[i] end
end
for i, name in ipairs(names) do
  local values = {{struct.unpack(form, ARGV[4], at)}}
  at = values[#FIELDS + 1]
  local mark = string.sub(name, -1)
  if not appended(i, mark) and not here[name] then
    here[name], new[#new + 1] = true, name
    local stale = mark == '*' and '!' or mark == '!' and '*'
    if stale and again[stale][1][i] then
      redis.call('SREM', lately, again[stale][2][i])
      redis.call('SREM', before, again[stale][2][i])
    end
    local fields = {{}}
    for n, field in ipairs(FIELDS) do
      if n <= {ALWAYS} or values[n] ~= '' then fields[#fields + 1], fields[#fields + 2] = field, values[n] end
    end
    redis.call('XADD', out, '*', unpack(fields))
  end
end
if #new > 0 then
  redis.call('XTRIM', out, 'MAXLEN', '~', ARGV[2])
  redis.call('SADD', lately, unpack(new))
  if redis.call('SCARD', lately) >= tonumber(ARGV[2]) then redis.call('RENAME', lately, before) end
end
return #new
"""

# Appends an entry if the goal's state is not the one that was announced last; every goal begins with `learning`. An
# empty state means that there is no goal. Arguments: born, state, version, documents, id, detail, maximum length.
ANNOUNCE = """
local out, lately, before, owner, began, goal = unpack(KEYS)
local standing = redis.call('GET', owner)
if standing and standing ~= ARGV[1] then return 0 end
if ARGV[2] == '' then return redis.call('DEL', goal) * 0 end
local known = redis.call('HMGET', goal, 'born', 'state', 'version', 'documents')
local was = 'learning'
if known[1] == ARGV[1] then
  local version, documents = tonumber(known[3]), tonumber(known[4])
  if version > tonumber(ARGV[3]) or (version == tonumber(ARGV[3]) and documents > tonumber(ARGV[4])) then return 0 end
  was = known[2]
end
if was == ARGV[2] then return 0 end
redis.call('HSET', goal, 'born', ARGV[1], 'state', ARGV[2], 'version', ARGV[3], 'documents', ARGV[4])
redis.call('XADD', out, '*', 'id', ARGV[5], 'decision', 'goal', 'score', '0', 'version', ARGV[3], 'document', '',
  'title', '', 'text', ARGV[6], 'duplicate_of', '', 'before', was, 'state', ARGV[2])
redis.call('XTRIM', out, 'MAXLEN', '~', ARGV[7])
redis.call('SADD', lately, ARGV[5] .. 'g')
return 1
"""

# Returns which of these members were appended, and a time: documents that arrived since then and are in neither set
# were not appended. The time is −1 if it is not known: if there is no `began`, or if a set was dropped and the others
# hold less than the stream does. Arguments: members.
LOOK_UP = f"""
local out, lately, before, began = KEYS[1], KEYS[2], KEYS[3], redis.call('GET', KEYS[5])
local names = {{}}
for from = 1, #ARGV[1], {MEMBER_BYTES} do names[#names + 1] = string.sub(ARGV[1], from, from + {MEMBER_BYTES - 1}) end
local known, older = redis.call('SMISMEMBER', lately, unpack(names)), redis.call('SMISMEMBER', before, unpack(names))
for i = 1, #names do known[i] = known[i] + older[i] end
local since, size = tonumber(began or -1), redis.call('SCARD', before)
if size > 0 then
  local first = redis.call('XRANGE', out, '-', '+', 'COUNT', 1)[1]
  local all = redis.call('XLEN', out) <= redis.call('SCARD', lately) + size
  since = all and first and began and math.max(since, tonumber(string.match(first[1], '%d+'))) or -1
end
return {{since, known}}
"""

# Gives the stream to a new topic, and deletes whatever an earlier one has left. Arguments: born, milliseconds.
BEGIN = """
local out, lately, before, owner, began, goal = unpack(KEYS)
if redis.call('GET', owner) == ARGV[1] then return 0 end
redis.call('DEL', out, lately, before, goal)
redis.call('SET', owner, ARGV[1])
redis.call('SET', began, ARGV[2])
return 1
"""

# Deletes the stream of a deleted topic, unless it belongs to another already. Arguments: born, seconds.
END = """
local out, lately, before, owner, began, goal = unpack(KEYS)
local standing = redis.call('GET', owner)
if standing and standing ~= ARGV[1] then return 0 end
redis.call('DEL', out, lately, before, began, goal)
redis.call('SET', owner, '', 'EX', ARGV[2])
return 1
"""


class Entry(NamedTuple):
    id: str  # the same whenever the same document passes the same topic
    decision: Decision | Literal["goal"]
    score: float
    version: int
    document: str
    title: str
    text: str  # of the document; how the goal stands, in a sentence
    duplicate_of: str = ""  # the document that this one repeats, if it does (see signatures.py)
    source: str = ""  # this and the fields below are those of the document; empty if it has none
    published: str = ""
    metadata: str = ""  # JSON
    certain: str = ""  # JSON; empty if the topic's goal asks nothing of what is accepted
    url: str = ""  # this and the fields below are the document's, too
    author: str = ""
    language: str = ""
    updated: str = ""  # JSON; empty if the document did not come before with another text
    before: str = ""  # this and the field below: the states of a goal that has changed
    state: str = ""

    @classmethod
    def from_fields(cls, stored: Mapping[bytes, bytes]) -> Self:
        fields: dict[str, Any] = {name.decode(): value.decode() for name, value in stored.items()}
        score, version = float(fields.pop("score")), int(fields.pop("version"))
        return cls(score=score, version=version, **fields)


class Placed(NamedTuple):
    """An entry, and its place in the stream: the id that Redis gave it, after which reading can resume."""

    place: str
    entry: Entry

    @classmethod
    def from_row(cls, row: Any) -> Self:
        place, fields = row
        return cls(place.decode(), Entry.from_fields(fields))

    @property
    def is_goal(self) -> bool:
        """Whether it is about the topic's goal, not about a document."""
        return self.entry.decision == GOAL

    def goal_change(self, topic: str) -> GoalChanged:
        entry, at = self.entry, time_of(order(self.place)[0])
        states = {"before": entry.before, "state": entry.state}
        return GoalChanged.model_validate(
            {"id": entry.id, "topic": topic, "version": entry.version, "detail": entry.text, "at": at} | states
        )

    def passed(self, topic: str) -> Passed:
        """The entry as users see it: None for what is empty, metadata parsed."""
        fields = self.entry._asdict()
        del fields["before"], fields["state"]
        fields |= {name: fields[name] or None for name in ("duplicate_of", *ORIGIN)}
        fields |= {name: from_json(fields[name]) if fields[name] else None for name in ("metadata", "certain")}
        fields["updated"] = bool(fields["updated"])
        return Passed(topic=topic, at=time_of(order(self.place)[0]), **fields)


class Outbox:
    """Reads the streams."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._redis = connection.redis

    async def newest(self, topic: str, before: str | None, limit: int, since_ms: int = 0) -> list[Placed]:
        """The decisions before that place that were appended since then, newest first."""
        found: list[Placed] = []
        while len(found) < limit:  # changes of goals are left out
            rows = await self._rows_before(topic, before, limit, since_ms)
            found += [placed for placed in map(Placed.from_row, rows) if not placed.is_goal]
            if len(rows) < limit:
                break
            before = rows[-1][0].decode()
        return found[:limit]

    async def _rows_before(self, topic: str, before: str | None, limit: int, since_ms: int = 0) -> list[Any]:
        if before and order(before) == order(START):
            return []  # Redis refuses a range that ends before it begins
        async with self._connection.acquire():
            end = f"({before}" if before else "+"
            rows: list[Any] = await self._redis.xrevrange(out_key(topic), end, str(since_ms), count=limit)
        return rows

    async def load(self, topic: str, places: Sequence[str]) -> list[Placed | None]:
        """The entries at these places; None where one was dropped meanwhile."""
        steps: list[Step] = [("XRANGE", out_key(topic), place, place) for place in places]
        return [Placed.from_row(rows[0]) if rows else None for rows in await self._connection.run(steps)]

    async def find(self, document: str, topics: Sequence[str], since_ms: int) -> dict[str, Placed]:
        """By topic, the newest entry about the document among the READ_SIZE entries from that time on."""
        steps: list[Step] = [
            ("XRANGE", out_key(topic), str(max(0, since_ms)), "+", "COUNT", READ_SIZE) for topic in topics
        ]
        found: dict[str, Placed] = {}
        for start in range(0, len(steps), FIND_TOPICS):
            replies = await self._connection.run(steps[start : start + FIND_TOPICS])
            for topic, rows in zip(topics[start : start + FIND_TOPICS], replies, strict=True):
                for placed in map(Placed.from_row, rows):
                    if placed.entry.document == document:
                        found[topic] = placed
        return found

    async def read_after(self, topic: str, place: str) -> list[Placed]:
        """The next entries after that place, oldest first."""
        async with self._connection.acquire():
            rows = await self._redis.xrange(out_key(topic), f"({place}", "+", count=READ_SIZE)
        return [Placed.from_row(row) for row in rows]

    async def last_place(self, topic: str) -> str:
        """The place of the newest entry."""
        newest = await self._rows_before(topic, None, 1)
        return newest[0][0].decode() if newest else START

    async def decisions(
        self, came: Mapping[str, Mapping[str, int]], latest: bool = False
    ) -> dict[tuple[str, str], Decision]:
        """By topic and document, the decision that was made when the document passed, as far as it is still known; or
        the `latest` that was appended, where it was sent again. `came` has the time when it passed, in milliseconds, by
        topic and document."""
        parts = [
            (topic, list(documents)[start : start + APPEND_SIZE // len(MARKS)])
            for topic, documents in came.items()
            for start in range(0, len(documents), APPEND_SIZE // len(MARKS))
        ]
        decisions: dict[tuple[str, str], Decision] = {}
        replies = await self._connection.run([_look_up_cmd(*part) for part in parts])
        for (topic, documents), (since, known) in zip(parts, replies, strict=True):
            rows = zip(*(known[n :: len(MARKS)] for n in range(len(MARKS))), strict=True)
            for document, (accepted, abstained, accepted_again, abstained_again) in zip(documents, rows, strict=True):
                if latest and accepted_again != abstained_again:
                    decisions[topic, document] = "accept" if accepted_again else "abstain"
                elif accepted or abstained:
                    decisions[topic, document] = "accept" if accepted else "abstain"
                elif 0 <= since <= came[topic][document]:
                    decisions[topic, document] = "reject"
        return decisions

    async def wait(self, places: Mapping[str, str]) -> dict[str, list[Placed]]:
        """By topic, the entries after these places, as soon as there are any; nothing if that takes too long."""
        if self._connection.cluster:
            return await self._poll(places)
        streams = {out_key(topic): place for topic, place in places.items()}
        with translated_errors():
            rows = await self._redis.xread(streams, count=READ_SIZE, block=self._connection.block_ms)
        topics = {out_key(topic).encode(): topic for topic in places}
        return {topics[name]: [Placed.from_row(row) for row in entries] for name, entries in rows or ()}

    async def _poll(self, places: Mapping[str, str]) -> dict[str, list[Placed]]:
        """Does the same on a cluster, where no command can block on streams of several slots, and blocking on each
        stream would take a connection per topic."""
        deadline_s = time.monotonic() + self._connection.block_ms / 1000
        reads: list[Step] = [
            ("XRANGE", out_key(topic), f"({place}", "+", "COUNT", READ_SIZE) for topic, place in places.items()
        ]
        while True:
            replies = await self._connection.run(reads)
            pairs = zip(places, replies, strict=True)
            entries = {topic: [Placed.from_row(row) for row in rows] for topic, rows in pairs if rows}
            if entries or time.monotonic() > deadline_s:
                return entries
            await asyncio.sleep(POLL_S)


def append_cmds(
    topic: str, born: str, entries: Sequence[Entry], kept: int, again: Collection[str] = frozenset()
) -> list[Script]:
    """Commands that append the entries; each replies how many were new. `again`: documents that were sent before."""
    parts = [entries[start : start + APPEND_SIZE] for start in range(0, len(entries), APPEND_SIZE)]
    members = [b"".join(_member(entry, entry.document in again) for entry in part) for part in parts]
    packed = [b"".join(map(_packed, part)) for part in parts]
    keys = _keys(topic)
    return [Script(APPEND, keys, [born, kept, *args]) for args in zip(members, packed, strict=True)]


def announce_cmd(topic: str, born: str, state: str, version: int, documents: int, detail: str, kept: int) -> Script:
    """Command that announces the state of a topic's goal, as of that version and so many documents, if it has changed;
    an empty state means that there is no goal."""
    id = blake2b(f"{topic}\0goal\0{born}\0{version}\0{documents}\0{state}".encode(), digest_size=16).hexdigest()
    return Script(ANNOUNCE, _keys(topic), [born, state, version, documents, id, detail, kept])


def begin_cmd(topic: str, born: str, now_ms: int) -> Script:
    """Command that gives the topic an empty stream of its own."""
    return Script(BEGIN, _keys(topic), [born, now_ms])


def end_cmd(topic: str, born: str) -> Script:
    """Command that deletes the stream of a topic."""
    return Script(END, _keys(topic), [born, GONE_S])


def _look_up_cmd(topic: str, documents: Sequence[str]) -> Script:
    ids = [bytes.fromhex(entry_id(topic, document)) for document in documents]
    return Script(LOOK_UP, _keys(topic), [b"".join(id + mark for id in ids for mark in MARKS)])


def entry_id(topic: str, document: str) -> str:
    return blake2b(f"{topic}\0{document}".encode(), digest_size=16).hexdigest()


def order(place: str) -> tuple[int, int]:
    """A place in a stream as numbers that can be compared."""
    ms, _, n = place.partition("-")
    return int(ms), int(n or 0)


def _member(entry: Entry, again: bool) -> bytes:
    if entry.decision == "accept":
        return bytes.fromhex(entry.id) + (ACCEPTED_AGAIN if again else ACCEPTED)
    return bytes.fromhex(entry.id) + (ABSTAINED_AGAIN if again else ABSTAINED)


def _packed(entry: Entry) -> bytes:
    values = [str(value).encode() for value in entry[: len(FIELDS)]]
    return b"".join(part for value in values for part in (len(value).to_bytes(4), value))


def _keys(topic: str) -> list[str]:
    return [out_key(topic), *(out_part_key(topic, part) for part in ("lately", "before", "owner", "began", "goal"))]
