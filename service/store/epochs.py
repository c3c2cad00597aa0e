"""Epochs of the background: what the stream as a whole looked like, now and earlier (see topics/background.py).

Logs name the epoch under which their documents were weighed, so an epoch is kept for as long as any log names it.
"""

from collections.abc import Collection
from typing import cast

from service.store.redis.connection import Connection
from service.store.redis.keys import CURRENT_EPOCH, EPOCHS, LENT_EPOCHS
from service.store.redis.scripts import Script

# Publishes the next epoch unless another process was faster. Arguments: expected number, number, blob.
ADVANCE = """
local current, epochs = KEYS[1], KEYS[2]
if (redis.call('GET', current) or '0') ~= ARGV[1] then return 0 end
redis.call('SET', current, ARGV[2])
redis.call('HSET', epochs, ARGV[2], ARGV[3])
return 1
"""

# Adds an epoch of another server, which counts as being as old as the epoch in force here. If none is in force here
# yet, the one that was in force there becomes current. Arguments: number, blob, the epoch that was in force there.
LEND = """
local current, epochs, lent = KEYS[1], KEYS[2], KEYS[3]
redis.call('HSET', epochs, ARGV[1], ARGV[2])
if redis.call('HEXISTS', epochs, ARGV[3]) == 1 then redis.call('SETNX', current, ARGV[3]) end
redis.call('HSET', lent, ARGV[1], redis.call('GET', current) or '0')
return 1
"""

# Deletes old epochs that no log names. Arguments: the lowest number that is not old, then the named ones.
FORGET = """
local epochs, lent = KEYS[1], KEYS[2]
local named, forgotten = {}, {}
for at = 2, #ARGV do named[ARGV[at]] = true end
for _, number in ipairs(redis.call('HKEYS', epochs)) do
  local age = redis.call('HGET', lent, number) or number
  if not named[number] and tonumber(age) < tonumber(ARGV[1]) then forgotten[#forgotten + 1] = number end
end
for _, number in ipairs(forgotten) do
  redis.call('HDEL', epochs, number)
  redis.call('HDEL', lent, number)
end
return #forgotten
"""


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

    async def advance(self, expected: int, number: int, blob: bytes) -> bool:
        """Publishes the epoch that follows `expected`; False if another process has."""
        (advanced,) = await self._run([Script(ADVANCE, [CURRENT_EPOCH, EPOCHS], [expected, number, blob])])
        return bool(advanced)

    async def lend(self, number: int, blob: bytes, current: int) -> None:
        """Adds an epoch of another server. If none is in force here yet, the one that was `current` on that server is,
        as soon as it has been added."""
        await self._run([Script(LEND, [CURRENT_EPOCH, EPOCHS, LENT_EPOCHS], [number, blob, current])])

    async def lent(self) -> dict[int, int]:
        """For each epoch of another server, our epoch that was in force when it was added."""
        async with self._acquire():
            return {int(number): int(then) for number, then in (await self._redis.hgetall(LENT_EPOCHS)).items()}

    async def forget(self, before: int, named: Collection[int]) -> None:
        """Deletes the epochs before that number that are not named."""
        await self._run([Script(FORGET, [EPOCHS, LENT_EPOCHS], [before, *named])])
