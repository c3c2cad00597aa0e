"""Documents that come by a stream rather than by HTTP, and who is at work on them.

    sluice:in              stream   documents to decide, added by anybody; each is deleted once it is decided
    sluice:dead            stream   what could not be decided, with the reason; bounded
    sluice:consumer:NAME   hash     what a consumer says of itself; expires when it falls silent

All consumers are one consumer group (see consumer_group.py), so that a document is decided at least once, whoever dies.
Nothing here drops an entry to make room: consumers take no more than they can hold, and the rest stays in the stream
for as long as the store has memory. Then it refuses further ones, and the producers hear of it.

As every entry is deleted when it is settled, what is in the stream is what is pending and what nobody has taken yet.
"""

import socket
from collections.abc import Mapping, Sequence
from os import getpid
from secrets import token_hex
from typing import Any, NamedTuple, Self

from service.store.connection import Connection, translated_errors
from service.store.consumer_group import Arrived, Group
from service.store.keys import DEAD, IN, consumer_key
from service.store.scripts import Arg, Script, Step

GROUP = "sluice"
SILENT_S = 30  # after which a consumer is not alive any more
LONGEST_DEAD, CUT = 1_000_000, 1000  # bytes of an entry that is kept whole among the dead; of each field otherwise

# How many entries there are, the oldest, and each consumer with how many it holds. Arguments: group.
LOOK = """
local length, found = redis.call('XLEN', KEYS[1]), {}
local consumers = redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])
for _, flat in ipairs(consumers) do
  local consumer = {}
  for i = 1, #flat, 2 do consumer[flat[i]] = flat[i + 1] end
  found[#found + 1] = {consumer.name, consumer.pending}
end
local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
return {length, oldest and oldest[1] or false, found}
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
    def read(cls, said: Mapping[bytes, bytes]) -> Self | None:
        if not said:
            return None
        started_ms, documents, dead, taken_over, per_s = (float(said[name.encode()]) for name in cls._fields)
        return cls(int(started_ms), int(documents), int(dead), int(taken_over), per_s)


class Holder(NamedTuple):
    """A consumer: how many entries it holds, and its figures, if it is alive."""

    name: str
    pending: int
    figures: ConsumerStats | None


class Look(NamedTuple):
    entries: int
    oldest_ms: int | None  # when it was added
    dead: int
    consumers: list[Holder]

    @property
    def pending(self) -> int:
        """Entries that somebody has taken."""
        return sum(one.pending for one in self.consumers)

    @property
    def lag(self) -> int:
        """Entries that nobody has taken yet."""
        return max(0, self.entries - self.pending)

    def lag_s(self, now_ms: int) -> float:
        """How long the oldest entry has been there."""
        return 0.0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms) / 1000


class Inbox:
    def __init__(self, connection: Connection) -> None:
        self.name = f"{socket.gethostname()}-{getpid()}-{token_hex(2)}"
        self.group = Group(connection, IN, GROUP, self.name)
        self._connection = connection
        self._redis = connection.redis

    # -- for consumers -------------------------------------------------------------------------------------------------

    async def wait(self) -> bool:
        """Whether there is anything in the stream; comes back soon, in any case."""
        with translated_errors():
            return bool(await self._redis.xread({IN: "0"}, count=1, block=self._connection.block_ms))

    def settled(self, places: Sequence[str], dead: Sequence[Dead], kept: int) -> list[Step]:
        """What says that these entries are done with: their results are durable, or they are among the dead."""
        steps: list[Step] = [("XADD", DEAD, "MAXLEN", "~", kept, "*", *_said(one)) for one in dead]
        return [*steps, self.group.settled(*places), ("XDEL", IN, *places)]

    async def run(self, steps: Sequence[Step]) -> list[Any]:
        return await self._connection.run(steps)

    async def report(self, figures: ConsumerStats) -> None:
        """Shows that this consumer is alive; consumers that have not been for long are forgotten. Refused by a store
        that is full."""
        await self._connection.ensure_room()
        steps = [self.group.heartbeat_cmd(), *self.said(figures), self.group.drop_idle_cmd(SILENT_S)]
        await self._connection.run(steps)

    def said(self, figures: ConsumerStats) -> list[Step]:
        """What tells of this consumer. A store that is full refuses it, and with it all that goes in one round trip."""
        flat = [part for pair in figures._asdict().items() for part in pair]
        name = consumer_key(self.name)
        return [("HSET", name, *flat), ("EXPIRE", name, SILENT_S)]

    # -- for those who look --------------------------------------------------------------------------------------------

    async def look(self) -> Look:
        dead, (entries, oldest, rows) = await self._connection.run([("XLEN", DEAD), Script(LOOK, [IN], [GROUP])])
        names = [name.decode() for name, _ in rows]
        said = await self._connection.run([("HGETALL", consumer_key(name)) for name in names])
        figures = [ConsumerStats.read(one) for one in said]
        consumers = [Holder(n, int(row[1]), f) for n, row, f in zip(names, rows, figures, strict=True)]
        return Look(int(entries), int(oldest.partition(b"-")[0]) if oldest else None, int(dead), consumers)


def _said(dead: Dead) -> list[Arg]:
    whole = dead.arrived.size <= LONGEST_DEAD
    fields: list[Arg] = [part if whole else part[:CUT] for pair in dead.arrived.fields.items() for part in pair]
    return [*fields, "entry", dead.arrived.place, "reason", dead.reason]
