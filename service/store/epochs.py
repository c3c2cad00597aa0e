"""Epochs of the background as the store remembers them: what the stream as a whole looked like, now and earlier.

    sluice:{background}:current    string   number of the newest
    sluice:{background}:epochs     hash     number -> blob (see topics/background.py)
    sluice:{background}:lent       hash     number of one that came with a topic -> the one then in force here

Logs name the epoch under which their documents were weighed, so one is kept for as long as any log names it.
"""

from collections.abc import Collection
from typing import cast

from service.store.connection import Connection
from service.store.keys import CURRENT_EPOCH, EPOCHS, LENT_EPOCHS
from service.store.scripts import Script

# Publishes the next background epoch if nobody was faster. Arguments: expected number, number, blob.
ADVANCE = """
local current, epochs = KEYS[1], KEYS[2]
if (redis.call('GET', current) or '0') ~= ARGV[1] then return 0 end
redis.call('SET', current, ARGV[2])
redis.call('HSET', epochs, ARGV[2], ARGV[3])
return 1
"""

# Takes over an epoch of another server, which counts as old as the one that is in force here. Where none is yet, the
# one that was in force there is. Arguments: number, blob, the one that was in force there.
LEND = """
local current, epochs, lent = KEYS[1], KEYS[2], KEYS[3]
redis.call('HSET', epochs, ARGV[1], ARGV[2])
if redis.call('HEXISTS', epochs, ARGV[3]) == 1 then redis.call('SETNX', current, ARGV[3]) end
redis.call('HSET', lent, ARGV[1], redis.call('GET', current) or '0')
return 1
"""

# Forgets the epochs that are old and that nobody names. Arguments: the least number that is not old, then those named.
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
        self._asking = connection.asking
        self._run = connection.run

    async def current(self) -> int:
        async with self._asking():
            return int(await self._redis.get(CURRENT_EPOCH) or 0)

    async def load(self, number: int) -> bytes | None:
        async with self._asking():
            return cast(bytes | None, await self._redis.hget(EPOCHS, str(number)))

    async def numbers(self) -> list[int]:
        async with self._asking():
            return sorted(int(number) for number in await self._redis.hkeys(EPOCHS))

    async def advance(self, expected: int, number: int, blob: bytes) -> bool:
        """Publishes the epoch that follows `expected`; False if somebody else has."""
        (advanced,) = await self._run([Script(ADVANCE, [CURRENT_EPOCH, EPOCHS], [expected, number, blob])])
        return bool(advanced)

    async def lend(self, number: int, blob: bytes, current: int) -> None:
        """Takes over an epoch of another server; where none is in force yet, the one that was there is (if it came)."""
        await self._run([Script(LEND, [CURRENT_EPOCH, EPOCHS, LENT_EPOCHS], [number, blob, current])])

    async def lent(self) -> dict[int, int]:
        """Of each epoch that came from elsewhere, the one of ours that was in force then."""
        async with self._asking():
            return {int(number): int(then) for number, then in (await self._redis.hgetall(LENT_EPOCHS)).items()}

    async def forget(self, before: int, named: Collection[int]) -> None:
        """Forgets those that came before that number and that nobody names."""
        await self._run([Script(FORGET, [EPOCHS, LENT_EPOCHS], [before, *named])])
