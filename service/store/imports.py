"""Topics that are imported from a file: written part by part, then put in place by one script.

A log may be too long for one command, so it is first staged under keys that nobody reads and that expire; then one
script renames them all. A process that dies in between leaves nothing behind.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Literal, NamedTuple, TypeVar, get_args

from service.store.events import Event, Head
from service.store.redis.connection import Connection
from service.store.redis.keys import PARTS
from service.store.redis.scripts import Arg, flat, topic_script

STAGED = ("log", "judged", "versions", "known", "skipped")
BATCH_SIZE = 200  # entries per command
EXPIRES_S = 600

# Writes a part of a topic under a key that expires. Arguments: command, seconds, then the entries, each after its
# length.
STAGE = """
local at = 3
while at <= #ARGV do
  local last = at + tonumber(ARGV[at])
  redis.call(ARGV[1], KEYS[1], unpack(ARGV, at + 1, last))
  at = last + 1
end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return 1
"""

DISCARD = "return redis.call('DEL', unpack(KEYS))"

# Creates a topic from what was staged. Keys: the topic's parts, then pairs of a part and the key it was staged under.
# An existing topic stays, unless it is to be replaced; one that was imported from the same file is reported as `there`.
# Arguments: born, seq, floor, digest of the file, "1" to replace, number of parts, then the tally.
IMPORT = """
local topic, log, tally, parts = KEYS[1], KEYS[2], KEYS[6], tonumber(ARGV[6])
if redis.call('EXISTS', KEYS[parts + 2]) == 0 then return redis.error_reply('TRYAGAIN what was staged has expired') end
local there = redis.call('EXISTS', topic, log) > 0
if there and ARGV[5] ~= '1' then
  return redis.call('HGET', topic, 'origin') == ARGV[4] and 'there' or 'taken'
end
for at = 1, parts do redis.call('DEL', KEYS[at]) end
redis.call('HSET', topic, 'born', ARGV[1], 'seq', ARGV[2], 'floor', ARGV[3], 'origin', ARGV[4])
redis.call('HSET', tally, unpack(ARGV, 7))
for at = parts + 1, #KEYS, 2 do
  if redis.call('EXISTS', KEYS[at + 1]) == 1 then
    redis.call('RENAME', KEYS[at + 1], KEYS[at])
    redis.call('PERSIST', KEYS[at])
  end
end
return there and 'replaced' or 'made'
"""

Outcome = Literal["made", "replaced", "there", "taken"]
OUTCOMES: dict[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}
T = TypeVar("T")


class StagedTopic(NamedTuple):
    """Everything about a topic except the head of its log and its tally."""

    events: Sequence[Event]
    judged: Mapping[str, str]  # document -> label
    versions: Mapping[int, str]  # version -> record
    known: Mapping[str, bytes]
    skipped: Mapping[str, int]  # document -> time

    def entries(self) -> dict[str, tuple[str, Iterable[list[Arg]]]]:
        """By part, the command that writes an entry, and the arguments of each entry."""
        return {
            "log": ("XADD", ([f"{event.seq}-0", *flat(event.to_fields())] for event in self.events)),
            "judged": ("HSET", ([document, label] for document, label in self.judged.items())),
            "versions": ("XADD", ([f"{version}-0", "record", record] for version, record in self.versions.items())),
            "known": ("HSET", ([document, blob] for document, blob in self.known.items())),
            "skipped": ("ZADD", ([at_ms, document] for document, at_ms in self.skipped.items())),
        }


class ImportStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def stage(self, topic: str, born: str, staged: StagedTopic) -> None:
        """Writes the parts under temporary keys."""
        for part, (command, rows) in staged.entries().items():
            for batch in _batches(rows):
                counted = [arg for row in batch for arg in (len(row), *row)]
                name = _staged(part, born)
                await self._connection.run([topic_script(STAGE, topic, [name], command, EXPIRES_S, *counted)])

    async def put(self, topic: str, head: Head, tally: Sequence[Arg], *, digest: str, replace: bool) -> Outcome:
        """Creates the topic from what was staged with this `born`; `digest` is that of the file."""
        pairs = [name for part in STAGED for name in (part, _staged(part, head.born))]
        args = (head.born, head.seq, head.floor, digest, int(replace), len(PARTS), *tally)
        (outcome,) = await self._connection.run([topic_script(IMPORT, topic, [*PARTS, *pairs], *args)])
        return OUTCOMES[outcome.decode()]

    async def discard(self, topic: str, born: str) -> None:
        """Deletes what was staged but not put in place."""
        await self._connection.run([topic_script(DISCARD, topic, [_staged(part, born) for part in STAGED])])


def _staged(part: str, born: str) -> str:
    return f"{part}:{born}"


def _batches(rows: Iterable[T]) -> Iterator[Sequence[T]]:
    left = iter(rows)
    while batch := list(islice(left, BATCH_SIZE)):
        yield batch
