"""Epochs of the background: what the stream as a whole looked like, now and earlier (see topics/background.py).

Logs name the epoch under which their documents were weighed, so an epoch is kept for as long as any log names it. An
epoch may name a projection (topics/projections.py), which is kept for as long as any epoch names it. It is written by
the script that writes the first epoch with its name, and deleted by the one that deletes the last: so there is never an
epoch without its projection, whatever process dies, and no projection that nothing names.
"""

from collections.abc import Collection
from typing import NamedTuple, cast

from models.core.names import TAG_BITS
from service.store.redis.connection import Connection
from service.store.redis.keys import CURRENT_EPOCH, EPOCHS, LENT_EPOCHS, PROJECTED_EPOCHS, PROJECTIONS
from service.store.redis.scripts import Arg, Script

# Publishes the next epoch unless another process was faster. Arguments: expected number, number, blob, then the number
# of the projection that it names (0: none), and its blob, empty if an epoch before has named it.
ADVANCE = """
local current, epochs, projected, projections = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if (redis.call('GET', current) or '0') ~= ARGV[1] then return 0 end
redis.call('SET', current, ARGV[2])
redis.call('HSET', epochs, ARGV[2], ARGV[3])
if ARGV[4] ~= '0' then redis.call('HSET', projected, ARGV[2], ARGV[4]) end
if ARGV[5] ~= '' then redis.call('HSETNX', projections, ARGV[4], ARGV[5]) end
return 1
"""

# Adds an epoch of another server, which counts as being as old as the epoch in force here. If none is in force here
# yet, the one that was in force there becomes current. A projection that is here already stays; one whose tag another
# projection has is refused. Arguments: number, blob, the epoch that was in force there, projection or 0, its blob.
LEND = f"""
local current, epochs, lent, projected, projections = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
if ARGV[4] ~= '0' then
  for _, number in ipairs(redis.call('HKEYS', projections)) do
    if number ~= ARGV[4] and (tonumber(number) - tonumber(ARGV[4])) % {1 << TAG_BITS} == 0 then return 0 end
  end
  redis.call('HSETNX', projections, ARGV[4], ARGV[5])
  redis.call('HSET', projected, ARGV[1], ARGV[4])
end
redis.call('HSET', epochs, ARGV[1], ARGV[2])
if redis.call('HEXISTS', epochs, ARGV[3]) == 1 then redis.call('SETNX', current, ARGV[3]) end
redis.call('HSET', lent, ARGV[1], redis.call('GET', current) or '0')
return 1
"""

# Deletes old epochs that no log names, and then projections that no epoch names. Arguments: the lowest number that is
# not old, then the named ones.
FORGET = """
local epochs, lent, projected, projections = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local named, forgotten = {}, {}
for at = 2, #ARGV do named[ARGV[at]] = true end
for _, number in ipairs(redis.call('HKEYS', epochs)) do
  local age = redis.call('HGET', lent, number) or number
  if not named[number] and tonumber(age) < tonumber(ARGV[1]) then forgotten[#forgotten + 1] = number end
end
for _, number in ipairs(forgotten) do
  redis.call('HDEL', epochs, number)
  redis.call('HDEL', lent, number)
  redis.call('HDEL', projected, number)
end
local used = {}
for _, number in ipairs(redis.call('HVALS', projected)) do used[number] = true end
for _, number in ipairs(redis.call('HKEYS', projections)) do
  if not used[number] then redis.call('HDEL', projections, number) end
end
return #forgotten
"""


class StoredProjection(NamedTuple):
    """The projection that an epoch names: its number, and its bytes, or none if they are stored already."""

    number: int
    blob: bytes = b""


class EpochStore:
    def __init__(self, connection: Connection) -> None:
        self._redis = connection.redis
        self._acquire = connection.acquire
        self._run = connection.run

    async def current(self) -> int:
        """The number of the newest epoch; 0 if there is none."""
        async with self._acquire():
            return int(await self._redis.get(CURRENT_EPOCH) or 0)

    async def load(self, number: int) -> bytes | None:
        async with self._acquire():
            return cast(bytes | None, await self._redis.hget(EPOCHS, str(number)))

    async def numbers(self) -> list[int]:
        async with self._acquire():
            return sorted(int(number) for number in await self._redis.hkeys(EPOCHS))

    async def load_projection(self, number: int) -> bytes | None:
        async with self._acquire():
            return cast(bytes | None, await self._redis.hget(PROJECTIONS, str(number)))

    async def projections(self) -> list[int]:
        """The numbers of the projections that are stored."""
        async with self._acquire():
            return sorted(int(number) for number in await self._redis.hkeys(PROJECTIONS))

    async def projected(self) -> dict[int, int]:
        """The numbers of the projections that epochs name, by epoch."""
        async with self._acquire():
            return {int(epoch): int(number) for epoch, number in (await self._redis.hgetall(PROJECTED_EPOCHS)).items()}

    async def advance(
        self, expected: int, number: int, blob: bytes, projection: StoredProjection | None = None
    ) -> bool:
        """Publishes the epoch that follows `expected`; False if another process has."""
        args: list[Arg] = [expected, number, blob, *(projection or StoredProjection(0))]
        keys = [CURRENT_EPOCH, EPOCHS, PROJECTED_EPOCHS, PROJECTIONS]
        (advanced,) = await self._run([Script(ADVANCE, keys, args)])
        return bool(advanced)

    async def lend(self, number: int, blob: bytes, current: int, projection: StoredProjection | None = None) -> bool:
        """Adds an epoch of another server. If none is in force here yet, the one that was `current` on that server is,
        as soon as it has been added. False if another projection that is here has the same number."""
        args: list[Arg] = [number, blob, current, *(projection or StoredProjection(0))]
        keys = [CURRENT_EPOCH, EPOCHS, LENT_EPOCHS, PROJECTED_EPOCHS, PROJECTIONS]
        (added,) = await self._run([Script(LEND, keys, args)])
        return bool(added)

    async def lent(self) -> dict[int, int]:
        """Our epochs that were in force when those of other servers were added, by those."""
        async with self._acquire():
            return {int(number): int(then) for number, then in (await self._redis.hgetall(LENT_EPOCHS)).items()}

    async def forget(self, before: int, named: Collection[int]) -> None:
        """Deletes the epochs before that number that are not named, and the projections that only they name."""
        keys = [EPOCHS, LENT_EPOCHS, PROJECTED_EPOCHS, PROJECTIONS]
        await self._run([Script(FORGET, keys, [before, *named])])
