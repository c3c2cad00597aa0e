"""A consumer group on a stream, as one consumer sees it.

An entry that was delivered to a consumer is pending until it is acknowledged. What a consumer has not acknowledged
after a while may be claimed by another, so nothing is lost with a process that is killed. Redis counts how often an
entry was delivered, which distinguishes an entry that kills every consumer from one that happened to be there.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from service.store.redis.connection import Connection
from service.store.redis.errors import translated_errors
from service.store.redis.scripts import Arg, Command, Script, entry_fields

# Creates the stream, the group and this consumer unless they exist. Arguments: group, consumer, the group's start.
OPEN = """
local created = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], ARGV[3], 'MKSTREAM')
if type(created) == 'table' and created.err and not string.find(created.err, 'BUSYGROUP') then return created end
redis.call('XGROUP', 'CREATECONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
"""

# Deletes consumers that have been idle for long, unless they have pending entries, which would be deleted with them. A
# consumer that was only slow is created again by its next read. Arguments: group, milliseconds.
DROP_IDLE = """
local dropped = 0
for _, flat in ipairs(redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local consumer = {}
  for i = 1, #flat, 2 do consumer[flat[i]] = flat[i + 1] end
  if consumer.pending == 0 and consumer.idle > tonumber(ARGV[2]) then
    dropped = dropped + 1
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
  end
end
return dropped
"""

# This consumer's pending entries, oldest first, with their delivery counts. Entries that somebody deleted are
# acknowledged. Arguments: group, consumer, maximum number of entries.
OWN_PENDING = """
local entries, rows = {}, {}
repeat
  rows = redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[3], ARGV[2])
  if rows.err then return rows end
  for _, row in ipairs(rows) do
    local entry = redis.call('XRANGE', KEYS[1], row[1], row[1])[1]
    if entry then
      entries[#entries + 1] = {entry[1], entry[2], row[4]}
    else
      redis.call('XACK', KEYS[1], ARGV[1], row[1])
    end
  end
until #entries > 0 or #rows == 0
return entries
"""

# Claims an entry, and replies 1 if it exists. Arguments: those of XCLAIM.
CLAIM = "return #redis.call('XCLAIM', KEYS[1], unpack(ARGV))"


class Arrived(NamedTuple):
    """An entry, its place in the stream (the id that Redis gave it), and how often it has been delivered."""

    place: str
    fields: Mapping[bytes, bytes]
    deliveries: int = 1

    @property
    def size(self) -> int:
        return sum(len(name) + len(value) for name, value in self.fields.items())


class ConsumerGroup:
    def __init__(self, connection: Connection, stream: str, group: str, consumer: str) -> None:
        self._connection = connection
        self._redis = connection.redis
        self.stream, self.group, self.consumer = stream, group, consumer

    async def open(self, start: str = "0") -> None:
        """Creates the stream, the group and this consumer unless they exist; a new group reads from `start` on."""
        await self._connection.run([Script(OPEN, [self.stream], [self.group, self.consumer, start])])

    async def wait_new(self, limit: int) -> list[Arrived]:
        """Entries that were never delivered, as soon as there are any; nothing if that takes too long."""
        with translated_errors():
            rows = await self._redis.xreadgroup(
                self.group, self.consumer, {self.stream: ">"}, count=limit, block=self._connection.block_ms
            )
        return _arrived(rows)

    async def read_new(self, limit: int) -> list[Arrived]:
        """Entries that were never delivered, without waiting."""
        async with self._connection.acquire():
            rows = await self._redis.xreadgroup(self.group, self.consumer, {self.stream: ">"}, count=limit)
        return _arrived(rows)

    async def claim_idle(self, limit: int, idle_s: float) -> list[Arrived]:
        """Claims entries of any consumer that have been idle for that long."""
        async with self._connection.acquire():
            idle_ms = int(1000 * idle_s)
            _, claimed, *_ = await self._redis.xautoclaim(
                self.stream, self.group, self.consumer, idle_ms, "0", count=limit
            )
            rows = [(place, fields) for place, fields in claimed if place]  # without those that somebody deleted
            if not rows:
                return []
            first, last = rows[0][0], rows[-1][0]
            pending = await self._redis.xpending_range(self.stream, self.group, first, last, limit, self.consumer)
        deliveries = {row["message_id"]: int(row["times_delivered"]) for row in pending}
        return [Arrived(place.decode(), fields, deliveries.get(place, 1)) for place, fields in rows]

    async def own_pending(self, limit: int) -> list[Arrived]:
        """Entries that are pending for this consumer."""
        call = Script(OWN_PENDING, [self.stream], [self.group, self.consumer, limit])
        (rows,) = await self._connection.run([call])
        return [Arrived(place.decode(), entry_fields(fields), int(count)) for place, fields, count in rows]

    async def pending_count(self) -> int:
        """How many entries are pending, for any consumer."""
        async with self._connection.acquire():
            return int((await self._redis.xpending(self.stream, self.group))["pending"])

    def ack_cmd(self, *places: str) -> Command:
        """Command that acknowledges the entries."""
        return ("XACK", self.stream, self.group, *places)

    def postpone_cmd(self, place: str, idle_s: float) -> Script:
        """Command that sets the idle time of a pending entry, and so when it can be claimed."""
        return self._claim_cmd(place, "IDLE", int(1000 * idle_s))

    def requeue_cmd(self, place: str, idle_s: float) -> Script:
        """Command that puts an acknowledged entry back into the pending list, with delivery count 0 and the given idle
        time. Replies 1 if the entry still exists."""
        return self._claim_cmd(place, "IDLE", int(1000 * idle_s), "RETRYCOUNT", 0, "FORCE")

    def set_deliveries_cmd(self, place: str, count: int) -> Script:
        """Command that sets the delivery count of a pending entry."""
        return self._claim_cmd(place, "RETRYCOUNT", count)

    def heartbeat_cmd(self) -> Command:
        """Command that resets this consumer's idle time: a claim of entries that are idle for longer than any can
        be."""
        return ("XAUTOCLAIM", self.stream, self.group, self.consumer, 1 << 40, "0", "COUNT", 1, "JUSTID")

    def drop_idle_cmd(self, idle_s: float) -> Script:
        """Command that deletes consumers that have been idle for that long and have nothing pending."""
        return Script(DROP_IDLE, [self.stream], [self.group, int(1000 * idle_s)])

    def _claim_cmd(self, place: str, *options: Arg) -> Script:
        return Script(CLAIM, [self.stream], [self.group, self.consumer, 0, place, *options, "JUSTID"])


def _arrived(rows: Any) -> list[Arrived]:
    return [Arrived(place.decode(), fields) for _, entries in rows or () for place, fields in entries]
