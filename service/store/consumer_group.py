"""A consumer group on a stream: who was given what, until it is settled.

What somebody took and has not settled after a while is given to whoever asks for what was left behind. So nothing is
lost with a process that is killed; and since an entry says how often it has been given, what ends everybody who takes
it can be told from what was unlucky.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from service.store.connection import Connection, translated_errors
from service.store.scripts import Arg, Command, Script

# Makes stream and group unless they are there, and this consumer known. Arguments: group, consumer, where it begins.
OPEN = """
local made = redis.pcall('XGROUP', 'CREATE', KEYS[1], ARGV[1], ARGV[3], 'MKSTREAM')
if type(made) == 'table' and made.err and not string.find(made.err, 'BUSYGROUP') then return made end
redis.call('XGROUP', 'CREATECONSUMER', KEYS[1], ARGV[1], ARGV[2])
return 1
"""

# Forgets consumers that have been silent for long, unless they hold something: that would be forgotten with them. One
# that was only slow is known again as soon as it asks for something. Arguments: group, milliseconds.
RETIRE = """
local retired = 0
for _, flat in ipairs(redis.pcall('XINFO', 'CONSUMERS', KEYS[1], ARGV[1])) do
  local consumer = {}
  for i = 1, #flat, 2 do consumer[flat[i]] = flat[i + 1] end
  if consumer.pending == 0 and consumer.idle > tonumber(ARGV[2]) then
    retired = retired + 1
    redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], consumer.name)
  end
end
return retired
"""

# What this consumer has taken and not settled, oldest first, with how often each was given; what somebody deleted is
# settled. Arguments: group, consumer, most.
HELD = """
local found, rows = {}, {}
repeat
  rows = redis.pcall('XPENDING', KEYS[1], ARGV[1], '-', '+', ARGV[3], ARGV[2])
  if rows.err then return rows end
  for _, row in ipairs(rows) do
    local entry = redis.call('XRANGE', KEYS[1], row[1], row[1])[1]
    if entry then
      found[#found + 1] = {entry[1], entry[2], row[4]}
    else
      redis.call('XACK', KEYS[1], ARGV[1], row[1])
    end
  end
until #found > 0 or #rows == 0
return found
"""

# An entry is held by this consumer, otherwise than as if just taken. Arguments: those of XCLAIM.
CLAIM = "return #redis.call('XCLAIM', KEYS[1], unpack(ARGV))"


class Arrived(NamedTuple):
    """An entry, and how often it has been given to somebody."""

    place: str
    fields: Mapping[bytes, bytes]
    times: int = 1

    @property
    def size(self) -> int:
        return sum(len(name) + len(value) for name, value in self.fields.items())


class Group:
    def __init__(self, connection: Connection, stream: str, group: str, consumer: str) -> None:
        self._connection = connection
        self._redis = connection.redis
        self.stream, self.group, self.consumer = stream, group, consumer

    async def open(self, start: str = "0") -> None:
        """Stream and group are there, the group reading from that place on, and this consumer is known."""
        await self._connection.run([Script(OPEN, [self.stream], [self.group, self.consumer, start])])

    async def await_new(self, most: int) -> list[Arrived]:
        """Entries that nobody has taken yet, as soon as there are some; nothing if that takes too long."""
        with translated_errors():
            found = await self._redis.xreadgroup(
                self.group, self.consumer, {self.stream: ">"}, count=most, block=self._connection.block_ms
            )
        return _arrived(found)

    async def take_new(self, most: int) -> list[Arrived]:
        """Entries that nobody has taken yet, if there are some."""
        async with self._connection.asking():
            found = await self._redis.xreadgroup(self.group, self.consumer, {self.stream: ">"}, count=most)
        return _arrived(found)

    async def take_over(self, most: int, silent_s: float) -> list[Arrived]:
        """Entries that somebody took this long ago and has not settled."""
        async with self._connection.asking():
            idle_ms = int(1000 * silent_s)
            _, claimed, *_ = await self._redis.xautoclaim(
                self.stream, self.group, self.consumer, idle_ms, "0", count=most
            )
            rows = [(place, fields) for place, fields in claimed if place]  # without those that somebody deleted
            if not rows:
                return []
            first, last = rows[0][0], rows[-1][0]
            pending = await self._redis.xpending_range(self.stream, self.group, first, last, most, self.consumer)
        times = {one["message_id"]: int(one["times_delivered"]) for one in pending}
        return [Arrived(place.decode(), fields, times.get(place, 1)) for place, fields in rows]

    async def held(self, most: int) -> list[Arrived]:
        """Entries that this consumer took and has not settled."""
        (rows,) = await self._connection.run([Script(HELD, [self.stream], [self.group, self.consumer, most])])
        return [
            Arrived(place.decode(), dict(zip(flat[::2], flat[1::2], strict=True)), int(times))
            for place, flat, times in rows
        ]

    async def pending(self) -> int:
        """How many entries were taken and are not settled."""
        async with self._connection.asking():
            return int((await self._redis.xpending(self.stream, self.group))["pending"])

    def settled(self, *places: str) -> Command:
        """The command that says so."""
        return ("XACK", self.stream, self.group, *places)

    def postpone_cmd(self, place: str, silent_s: float) -> Script:
        """What gives an entry back, as if it had been taken this long ago."""
        return self._claim(place, "IDLE", int(1000 * silent_s))

    def requeue_cmd(self, place: str, silent_s: float) -> Script:
        """What has an entry taken once more, as if for the first time this long ago, though it was settled; 1 if it
        is there."""
        return self._claim(place, "IDLE", int(1000 * silent_s), "RETRYCOUNT", 0, "FORCE")

    def set_attempts_cmd(self, place: str, times: int) -> Script:
        """What has an entry that is held as if it had been given so many times."""
        return self._claim(place, "RETRYCOUNT", times)

    def heartbeat_cmd(self) -> Command:
        """The command that shows that this consumer is there, though it takes nothing: nobody is idle for so long."""
        return ("XAUTOCLAIM", self.stream, self.group, self.consumer, 1 << 40, "0", "COUNT", 1, "JUSTID")

    def drop_idle_cmd(self, silent_s: float) -> Script:
        """What forgets consumers that have been silent for so long and hold nothing."""
        return Script(RETIRE, [self.stream], [self.group, int(1000 * silent_s)])

    def _claim(self, place: str, *how: Arg) -> Script:
        return Script(CLAIM, [self.stream], [self.group, self.consumer, 0, place, *how, "JUSTID"])


def _arrived(found: Any) -> list[Arrived]:
    return [Arrived(place.decode(), fields) for _, rows in found or () for place, fields in rows]
