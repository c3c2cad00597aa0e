"""Documents that arrive by a stream rather than by HTTP, and the consumers that decide them.

All consumers form one consumer group (see store/redis/consumer_group.py), so each document is decided at least once,
whichever process dies. Nothing here drops an entry to make room: consumers read no more than they can hold, and the
rest stays in the stream as long as Redis has memory. When it has none left, Redis refuses further entries, and
producers get its error.

An entry is deleted when it is acknowledged, so what is in the stream is pending or was never delivered.
"""

import socket
from collections.abc import Mapping, Sequence
from os import getpid
from secrets import token_hex
from typing import Any, NamedTuple, Self

from service.schemas import Document
from service.store.redis.connection import Connection
from service.store.redis.consumer_group import Arrived, ConsumerGroup
from service.store.redis.errors import translated_errors
from service.store.redis.keys import DEAD, IN, consumer_key
from service.store.redis.scripts import Arg, Script, Step, entry_number, flat

GROUP = "sluice"
ADDED = 50  # documents that are appended in one round trip
SILENT_S = 30  # without a report, after which a consumer does not count as alive
MAX_DEAD_BYTES, CUT_BYTES = 1_000_000, 1000  # of a dead letter; if it is larger, each field is cut to CUT_BYTES

# The number of entries, the oldest one, and each consumer with its number of pending entries. Arguments: group.
STATUS = """
local length, pending = redis.call('XLEN', KEYS[1]), {}
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
for _, flat in ipairs(consumers) do
  local consumer = {}
  for i = 1, #flat, 2 do consumer[flat[i]] = flat[i + 1] end
  pending[#pending + 1] = {consumer.name, consumer.pending}
end
local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
return {length, oldest and oldest[1] or false, pending}
"""


class Dead(NamedTuple):
    arrived: Arrived
    reason: str


class ConsumerStats(NamedTuple):
    """What a consumer has done since it started."""

    started_ms: int
    documents: int = 0
    dead: int = 0
    taken_over: int = 0
    per_s: float = 0.0  # documents, lately

    @classmethod
    def from_fields(cls, stored: Mapping[bytes, bytes]) -> Self | None:
        if not stored:
            return None
        started_ms, documents, dead, taken_over, per_s = (float(stored[name.encode()]) for name in cls._fields)
        return cls(int(started_ms), int(documents), int(dead), int(taken_over), per_s)


class ConsumerStatus(NamedTuple):
    """A consumer: how many entries it has pending, and its statistics, if it is alive."""

    name: str
    pending: int
    stats: ConsumerStats | None


class InboxStatus(NamedTuple):
    entries: int
    oldest_ms: int | None  # when it was added
    dead: int
    consumers: list[ConsumerStatus]

    @property
    def pending(self) -> int:
        """Entries that were delivered and not acknowledged."""
        return sum(consumer.pending for consumer in self.consumers)

    @property
    def lag(self) -> int:
        """Entries that were never delivered."""
        return max(0, self.entries - self.pending)

    def lag_s(self, now_ms: int) -> float:
        """How long the oldest entry has been there."""
        return 0.0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms) / 1000


class Inbox:
    def __init__(self, connection: Connection) -> None:
        self.name = f"{socket.gethostname()}-{getpid()}-{token_hex(2)}"
        self.group = ConsumerGroup(connection, IN, GROUP, self.name)
        self._connection = connection
        self._redis = connection.redis

    # -- for producers -------------------------------------------------------------------------------------------------

    async def add(self, documents: Sequence[Document | bytes]) -> None:
        """Appends documents, in this order; they are durable when it returns. Bytes are the JSON of a document, or else
        become a dead letter."""
        for start in range(0, len(documents), ADDED):
            batch = [
                each if isinstance(each, bytes) else each.model_dump_json(exclude_none=True)
                for each in documents[start : start + ADDED]
            ]
            await self._connection.run([("XADD", IN, "*", "document", json) for json in batch])

    async def waiting(self) -> int:
        """How many documents are not decided yet."""
        (entries,) = await self._connection.run([("XLEN", IN)])
        return int(entries)

    # -- for consumers -------------------------------------------------------------------------------------------------

    async def wait(self) -> bool:
        """Whether there is any entry in the stream; waits a moment for one."""
        with translated_errors():
            return bool(await self._redis.xread({IN: "0"}, count=1, block=self._connection.block_ms))

    def ack_cmds(self, places: Sequence[str], dead: Sequence[Dead], kept: int) -> list[Step]:
        """Commands that acknowledge and delete entries whose results are durable, and move those that are `dead` to the
        dead letters, of which at most `kept` are kept."""
        steps: list[Step] = [("XADD", DEAD, "MAXLEN", "~", kept, "*", *_dead_fields(entry)) for entry in dead]
        return [*steps, self.group.ack_cmd(*places), ("XDEL", IN, *places)]

    async def run(self, steps: Sequence[Step]) -> list[Any]:
        return await self._connection.run(steps)

    async def report(self, stats: ConsumerStats) -> None:
        """Reports that this consumer is alive, and deletes those that have been silent for long. Raises if Redis is
        full."""
        await self._connection.ensure_room()
        steps = [self.group.heartbeat_cmd(), *self.report_cmds(stats), self.group.drop_idle_cmd(SILENT_S)]
        await self._connection.run(steps)

    def report_cmds(self, stats: ConsumerStats) -> list[Step]:
        """Commands that write the statistics. A full Redis refuses them, and all others in the same round trip."""
        name = consumer_key(self.name)
        return [("HSET", name, *flat(stats._asdict())), ("EXPIRE", name, SILENT_S)]

    # -- for monitoring ------------------------------------------------------------------------------------------------

    async def load_status(self) -> InboxStatus:
        dead, (entries, oldest, rows) = await self._connection.run([("XLEN", DEAD), Script(STATUS, [IN], [GROUP])])
        names = [name.decode() for name, _ in rows]
        reports = await self._connection.run([("HGETALL", consumer_key(name)) for name in names])
        stats = map(ConsumerStats.from_fields, reports)
        consumers = [ConsumerStatus(n, int(row[1]), s) for n, row, s in zip(names, rows, stats, strict=True)]
        return InboxStatus(int(entries), entry_number(oldest) if oldest else None, int(dead), consumers)


def _dead_fields(dead: Dead) -> list[Arg]:
    whole = dead.arrived.size <= MAX_DEAD_BYTES
    fields: list[Arg] = [part if whole else part[:CUT_BYTES] for pair in dead.arrived.fields.items() for part in pair]
    return [*fields, "entry", dead.arrived.place, "reason", dead.reason]
