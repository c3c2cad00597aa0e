"""Keys that callers authenticate with, as the store keeps them: hashed, so that who reads the store cannot call."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from service.schemas.access import Scope
from service.store.redis.connection import Connection
from service.store.redis.keys import API_KEYS, API_KEYS_USED, rate_key
from service.store.redis.scripts import Script

# Adds the first key; 0 if there are keys already. Arguments: id, record.
ADD_FIRST = """
if redis.call('HLEN', KEYS[1]) > 0 then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
"""

# Deletes a key and what is known of its use; 0 if there is none.
REVOKE = """
redis.call('HDEL', KEYS[2], ARGV[1])
return redis.call('HDEL', KEYS[1], ARGV[1])
"""

# Takes one request out of the allowance of a key, by the generic cell rate algorithm: `due` is when the allowance would
# be whole again; each request moves it on by one interval; a request that would move it further than the burst ahead of
# now is refused. Arguments: interval and burst in microseconds. Returns the microseconds to wait, 0 if it may pass, and
# those until the allowance is whole. Time is the store's, which all processes share.
TAKE = """
local interval, burst = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local due = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now)
local wait = due + interval - burst - now
if wait > 0 then return {wait, due - now} end
redis.call('SET', KEYS[1], string.format('%.0f', due + interval), 'PX', math.ceil((due + interval - now) / 1000) + 1)
return {0, due + interval - now}
"""


@dataclass(frozen=True, slots=True)
class KeyRecord:
    id: str
    name: str
    scopes: tuple[Scope, ...]
    hash: str
    created_ms: int
    expires_ms: int | None = None
    requests_per_s: float | None = None

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: bytes) -> "KeyRecord":
        fields = json.loads(text)
        return cls(**fields | {"scopes": tuple(fields["scopes"])})


class ApiKeyStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def add(self, record: KeyRecord) -> None:
        await self._connection.run([("HSET", API_KEYS, record.id, record.to_json())])

    async def add_first(self, record: KeyRecord) -> bool:
        """Adds a key if there is none yet; of several processes that try, one succeeds."""
        (added,) = await self._connection.run([Script(ADD_FIRST, [API_KEYS], [record.id, record.to_json()])])
        return bool(added)

    async def load(self, id: str) -> KeyRecord | None:
        (record,) = await self._connection.run([("HGET", API_KEYS, id)])
        return KeyRecord.from_json(record) if record else None

    async def load_all(self) -> list[tuple[KeyRecord, int | None]]:
        """All keys, oldest first, and when each was last used."""
        async with self._connection.acquire():
            records = await self._connection.redis.hgetall(API_KEYS)
            used = await self._connection.redis.hgetall(API_KEYS_USED)
        keys = [(KeyRecord.from_json(record), int(used[id]) if id in used else None) for id, record in records.items()]
        return sorted(keys, key=lambda key: (key[0].created_ms, key[0].id))

    async def note_used(self, id: str, at_ms: int) -> None:
        await self._connection.run([("HSET", API_KEYS_USED, id, at_ms)])

    async def revoke(self, id: str) -> bool:
        """Deletes a key; False if there is none with this id."""
        (revoked,) = await self._connection.run([Script(REVOKE, [API_KEYS, API_KEYS_USED], [id])])
        return bool(revoked)

    async def take(self, id: str, per_s: float, burst_s: float) -> tuple[float, float]:
        """Takes one request out of a key's allowance. Returns the seconds to wait before it may be sent, 0 if it may be
        now, and the seconds until the allowance is whole again."""
        interval = 1e6 / per_s
        allowance: Sequence[int] = [round(interval), round(max(burst_s * 1e6, interval))]
        ((wait, whole),) = await self._connection.run([Script(TAKE, [rate_key(id)], allowance)])
        return int(wait) / 1e6, int(whole) / 1e6
