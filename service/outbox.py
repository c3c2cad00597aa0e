"""What topics let through, as streams for others to read.

    sluice:out:ID            stream   a decision other than reject an entry, bounded; its fields are those of `Entry`
    {sluice:out:ID}:seen     zset     "id decision" of what was appended, by when; what comes again is not appended
    {sluice:out:ID}:owner    string   `born` of the topic whose stream it is

The stream's name is for people to type, so it has no hash tag; a name that has all of it for its tag lies in the same
slot of a Redis Cluster. That is not the slot of the topic's other keys, so the topic and its stream never change in one
script: `owner` keeps a process that has not heard that the topic was deleted from writing to the stream of the next
one. Of a deleted topic `owner` is empty, for as long as it can take a process to hear of it.

An entry is appended after its document is remembered and before anybody is told the decision. Who is killed in between
will be sent the document again, so that the entry is there at least once; `seen` makes it once, but for documents that
come again after `kept` others, or that are decided otherwise by then. Such entries have the same `id`.
"""

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple, Self

from pydantic_core import to_json

from service.connection import Connection, Script, problems
from service.schemas import Decision

GONE_S = 60
AT_ONCE = 100  # entries of a stream that are read together
START = "0-0"  # before every entry

# Appends what has not been appended yet. Arguments: born, most entries kept, time, and the entries: in JSON, since one
# argument is sent and read in a fraction of the time that thousands take. What can be asked and said of SOME at a time
# is; a sixth of the store's time.
APPEND = """
local out, seen, owner, SOME = KEYS[1], KEYS[2], KEYS[3], 500
local standing = redis.call('GET', owner)
if standing and standing ~= ARGV[1] then return 0 end
if not standing then redis.call('SET', owner, ARGV[1]) end
local entries, names, here, added = cjson.decode(ARGV[4]), {}, {}, 0
for i, e in ipairs(entries) do names[i] = e[1] .. ' ' .. e[2] end
for from = 1, #names, SOME do
  local to, new = math.min(from + SOME - 1, #names), {}
  local known = redis.call('ZMSCORE', seen, unpack(names, from, to))
  for i = from, to do
    local e, name = entries[i], names[i]
    if not known[i - from + 1] and not here[name] then
      here[name], added = true, added + 1
      redis.call('XADD', out, '*', 'id', e[1], 'decision', e[2], 'score', e[3], 'version', e[4],
        'document', e[5], 'title', e[6], 'text', e[7], 'duplicate_of', e[8])
      new[#new + 1] = ARGV[3]
      new[#new + 1] = name
    end
  end
  if #new > 0 then redis.call('ZADD', seen, unpack(new)) end
end
if added > 0 then
  redis.call('XTRIM', out, 'MAXLEN', '~', ARGV[2])
  redis.call('ZREMRANGEBYRANK', seen, 0, -tonumber(ARGV[2]) - 1)
end
return added
"""

# A new topic owns the stream from now on; what is left of another is gone. Arguments: born.
BEGIN = """
if redis.call('GET', KEYS[3]) == ARGV[1] then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('SET', KEYS[3], ARGV[1])
return 1
"""

# The topic is deleted, and its stream with it, unless it is another's already. Arguments: born, seconds.
END = """
local standing = redis.call('GET', KEYS[3])
if standing and standing ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1], KEYS[2])
redis.call('SET', KEYS[3], '', 'EX', ARGV[2])
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
    duplicate_of: str = ""  # the document that this one repeats, if it does (see repeats.py)

    @classmethod
    def read(cls, fields: Mapping[bytes, bytes]) -> Self:
        said: dict[str, Any] = {name.decode(): value.decode() for name, value in fields.items()}
        score, version = float(said.pop("score")), int(said.pop("version"))
        return cls(score=score, version=version, **said)

    def said(self) -> dict[str, Any]:
        """As it is shown."""
        return self._asdict() | {"duplicate_of": self.duplicate_of or None}


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
        async with self._connection.asking():
            rows = await self._redis.xrevrange(key(topic), f"({before}" if before else "+", "-", count=limit)
        return [Placed.read(row) for row in rows]

    async def following(self, topic: str, after: str) -> list[Placed]:
        """The entries after that place, oldest first, some of them."""
        async with self._connection.asking():
            rows = await self._redis.xrange(key(topic), f"({after}", "+", count=AT_ONCE)
        return [Placed.read(row) for row in rows]

    async def last(self, topic: str) -> str:
        """The place of the newest entry."""
        found = await self.newest(topic, None, 1)
        return found[0].place if found else START

    async def wait(self, places: Mapping[str, str]) -> dict[str, list[Placed]]:
        """What comes after these places in streams of topics, when something does; nothing if that takes too long.

        On a Redis Cluster one command reads streams of one slot only: there, ask for one topic at a time.
        """
        streams = {key(topic): place for topic, place in places.items()}
        with problems():
            rows = await self._redis.xread(streams, count=AT_ONCE, block=self._connection.block_ms)
        topics = {key(topic).encode(): topic for topic in places}
        return {topics[name]: [Placed.read(row) for row in found] for name, found in rows or ()}


def append(topic: str, born: str, entries: Sequence[Entry], kept: int, now_ms: int) -> Script:
    # Numbers as strings, or Lua would write them its own way.
    fields = [(e.id, e.decision, str(e.score), str(e.version), *e[4:]) for e in entries]
    return Script(APPEND, _keys(topic), [born, kept, now_ms, to_json(fields)])


def begin(topic: str, born: str) -> Script:
    return Script(BEGIN, _keys(topic), [born])


def end(topic: str, born: str) -> Script:
    return Script(END, _keys(topic), [born, GONE_S])


def entry_id(topic: str, document: str) -> str:
    return blake2b(f"{topic}\0{document}".encode(), digest_size=16).hexdigest()


def order(place: str) -> tuple[int, int]:
    """Places in a stream, so that they can be compared."""
    ms, _, n = place.partition("-")
    return int(ms), int(n or 0)


def key(topic: str) -> str:
    return f"sluice:out:{topic}"


def _keys(topic: str) -> tuple[str, str, str]:
    return key(topic), f"{{{key(topic)}}}:seen", f"{{{key(topic)}}}:owner"
