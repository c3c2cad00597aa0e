"""Sources as the store keeps them: what was asked for, how the last polls went, which items have been seen, and when
each is due.

    waiting → claimed → waiting, and from claimed back to waiting when the process that polls it died

A source that is not paused stands in the queue `due`, by the time of its next poll. Claiming it writes a token into its
record and moves it behind its lease, which the process renews while it polls; so if that process dies, the source is
due again when the lease ends. What it commits is accepted only with its token, and whole: the items that it has passed
on, the validators that spare the next request, the counts and the time of the next poll are written in one script.

Documents are appended to `sluice:in` *before* the commit. If a process dies in between, its successor passes the same
items on again, under the same ids, and a document that is decided twice does no harm (see stream/outbox.py): so none is
lost, and none goes on twice. (One script cannot do both, since the stream is in another slot of a cluster.)

Leases and times of polls are by the store's clock, because the clocks of several machines may differ.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from service.store.redis.connection import Connection
from service.store.redis.keys import ADDRESSES, ALL_SOURCES, DUE_SOURCES, SEEN, SOURCE, SOURCE_TOTALS
from service.store.redis.scripts import NOW, Arg, Script, flat

# Arguments: id, address, how many sources there may be, whether it is paused, then the record. A source that reads the
# same address is named in the answer.
CREATE = f"""
{NOW}
local all, addresses, due, source = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local same = redis.call('HGET', addresses, ARGV[2])
if same then return 'same:' .. same end
if redis.call('EXISTS', source) == 1 then return 'taken' end
if redis.call('ZCARD', all) >= tonumber(ARGV[3]) then return 'full' end
redis.call('HSET', source, unpack(ARGV, 5))
redis.call('HSET', addresses, ARGV[2], ARGV[1])
redis.call('ZADD', all, 0, ARGV[1])
if ARGV[4] == '0' then redis.call('ZADD', due, now, ARGV[1]) end
return 'created'
"""

# Arguments: id. Returns whether there was one.
DELETE = """
local all, addresses, due, source, seen = unpack(KEYS)
local address = redis.call('HGET', source, 'url')
if not address then return 0 end
redis.call('DEL', source, seen)
redis.call('ZREM', all, ARGV[1])
redis.call('ZREM', due, ARGV[1])
redis.call('HDEL', addresses, address)
return 1
"""

# Changes the record. Arguments: id, milliseconds until the next poll, or nothing to leave it, then fields.
CHANGE = f"""
{NOW}
local due, source = KEYS[1], KEYS[2]
if redis.call('EXISTS', source) == 0 then return 0 end
redis.call('HSET', source, unpack(ARGV, 3))
if redis.call('HGET', source, 'paused') == '1' then
  redis.call('ZREM', due, ARGV[1])
elseif ARGV[2] ~= '' then
  redis.call('ZADD', due, now + ARGV[2], ARGV[1])
end
return 1
"""

# Claims the source that has been due for longest. Arguments: token, milliseconds of the lease. Returns its id.
CLAIM_DUE = f"""
{NOW}
local due = KEYS[1]
for _, id in ipairs(redis.call('ZRANGE', due, '-inf', now, 'BYSCORE', 'LIMIT', 0, 100)) do
  local source = 'sluice:{{sources}}:source:' .. id
  local leased = tonumber(redis.call('HGET', source, 'lease_ms') or 0)
  if redis.call('EXISTS', source) == 0 then
    redis.call('ZREM', due, id)
  elseif leased > now then
    redis.call('ZADD', due, leased, id)
  else
    redis.call('HSET', source, 'claim', ARGV[1], 'lease_ms', now + ARGV[2])
    redis.call('ZADD', due, now + ARGV[2], id)
    return id
  end
end
return false
"""

# Claims one source, due or not. Arguments: id, token, milliseconds of the lease.
CLAIM = f"""
{NOW}
local due, source = KEYS[1], KEYS[2]
if redis.call('EXISTS', source) == 0 then return 'gone' end
if tonumber(redis.call('HGET', source, 'lease_ms') or 0) > now then return 'busy' end
redis.call('HSET', source, 'claim', ARGV[2], 'lease_ms', now + ARGV[3])
redis.call('ZADD', due, 'XX', now + ARGV[3], ARGV[1])
return 'claimed'
"""

# Arguments: id, token, milliseconds of the lease. Returns whether the claim is still held.
RENEW = f"""
{NOW}
local due, source = KEYS[1], KEYS[2]
if redis.call('HGET', source, 'claim') ~= ARGV[2] then return 0 end
redis.call('HSET', source, 'lease_ms', now + ARGV[3])
redis.call('ZADD', due, 'XX', now + ARGV[3], ARGV[1])
return 1
"""

# Ends a poll. Arguments: id, token, milliseconds until the next poll, documents, 1 if it failed, then three lists after
# their lengths: fields of the record, items to note, items to forget. Returns 0 if the claim is lost.
COMMIT = f"""
{NOW}
local due, source, seen, totals = unpack(KEYS)
if redis.call('HGET', source, 'claim') ~= ARGV[2] then return 0 end
local at = 6
local function each(key, command)
  local last = at + ARGV[at]
  for from = at + 1, last, 1000 do redis.call(command, key, unpack(ARGV, from, math.min(from + 999, last))) end
  at = last + 1
end
redis.call('HDEL', source, 'claim', 'lease_ms')
redis.call('HINCRBY', source, 'documents', ARGV[4])
redis.call('HSET', source, 'last_ms', now, 'next_ms', now + ARGV[3])
if ARGV[5] == '1' then redis.call('HSET', source, 'error_ms', now) end
each(source, 'HSET')
each(seen, 'HSET')
each(seen, 'HDEL')
redis.call('HINCRBY', totals, 'documents', ARGV[4])
redis.call('HINCRBY', totals, ARGV[5] == '1' and 'failed' or 'succeeded', 1)
if redis.call('HGET', source, 'paused') == '1' then
  redis.call('ZREM', due, ARGV[1])
else
  redis.call('ZADD', due, now + ARGV[3], ARGV[1])
end
return 1
"""

# How many sources are in which state, and for how long the first one has been due, in milliseconds.
COUNT = f"""
{NOW}
local counts = {{paused = 0, failing = 0, waiting = 0, ok = 0}}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local row = redis.call('HMGET', 'sluice:{{sources}}:source:' .. id, 'paused', 'failures', 'last_ms')
  local state = row[1] == '1' and 'paused' or tonumber(row[2] or 0) > 0 and 'failing' or row[3] and 'ok' or 'waiting'
  counts[state] = counts[state] + 1
end
local first = redis.call('ZRANGE', KEYS[2], 0, 0, 'WITHSCORES')
local late = first[2] and math.max(0, now - tonumber(first[2])) or 0
return {{counts.waiting, counts.ok, counts.failing, counts.paused, math.floor(late)}}
"""

Fields = Mapping[str, str | int | float]  # of a record
State = Literal["waiting", "ok", "failing", "paused"]
STATES: tuple[State, ...] = ("waiting", "ok", "failing", "paused")
RESULTS = ("succeeded", "failed")


class SourceClaim(NamedTuple):
    source: str
    token: str


class Created(NamedTuple):
    outcome: str  # created, taken, same or full
    same: str = ""  # the source that reads this address already


class SourceTotals(NamedTuple):
    states: dict[State, int]
    late_s: float  # of the source that has been due for longest
    polls: dict[str, int]
    documents: int


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source: what was asked for, and how its polls went."""

    id: str
    kind: str
    url: str
    every_s: float
    paused: bool
    created_ms: int
    title: str
    etag: str
    last_modified: str
    print: str  # of the content, as it was read last
    format: str  # this and the next one: of a file
    position: str
    documents: int
    failures: int  # in a row
    last_ms: int | None
    next_ms: int | None
    error: str
    error_ms: int | None

    @classmethod
    def from_fields(cls, id: str, stored: Mapping[bytes, bytes]) -> Self:
        fields = {name.decode(): value.decode() for name, value in stored.items()}
        return cls(
            id=id,
            kind=fields["kind"],
            url=fields["url"],
            every_s=float(fields["every_s"]),
            paused=fields.get("paused") == "1",
            created_ms=int(fields["created_ms"]),
            title=fields.get("title", ""),
            etag=fields.get("etag", ""),
            last_modified=fields.get("last_modified", ""),
            print=fields.get("print", ""),
            format=fields.get("format", ""),
            position=fields.get("position", ""),
            documents=int(fields.get("documents", 0)),
            failures=int(fields.get("failures", 0)),
            last_ms=_number(fields.get("last_ms")),
            next_ms=_number(fields.get("next_ms")),
            error=fields.get("error", ""),
            error_ms=_number(fields.get("error_ms")),
        )

    @property
    def state(self) -> State:
        if self.paused:
            return "paused"
        return "failing" if self.failures else "waiting" if self.last_ms is None else "ok"


class SourceStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def create(self, id: str, url: str, limit: int, fields: Fields) -> Created:
        """Creates a source that is due at once, unless its id or its address is taken, or there are too many."""
        keys = [ALL_SOURCES, ADDRESSES, DUE_SOURCES, SOURCE + id]
        answer = (await self._eval(CREATE, keys, id, url, limit, fields["paused"], *flat(fields))).decode()
        outcome, _, same = answer.partition(":")
        return Created(outcome, same)

    async def delete(self, id: str) -> bool:
        """Deletes a source; False if there is none."""
        keys = [ALL_SOURCES, ADDRESSES, DUE_SOURCES, SOURCE + id, SEEN + id]
        return bool(await self._eval(DELETE, keys, id))

    async def change(self, id: str, due_ms: int | None, fields: Fields) -> bool:
        """Changes the record, and when the source is due if a time is given; False if there is no such source."""
        due = "" if due_ms is None else due_ms
        return bool(await self._eval(CHANGE, [DUE_SOURCES, SOURCE + id], id, due, *flat(fields)))

    async def ids(self, after: str = "", limit: int | None = None) -> list[str]:
        """Ids of sources in order, beginning after the given one."""
        async with self._connection.acquire():
            rows = await self._connection.redis.zrangebylex(
                ALL_SOURCES, f"({after}" if after else "-", "+", start=0, num=-1 if limit is None else limit
            )
        return [row.decode() for row in rows]

    async def load(self, ids: Sequence[str]) -> list[SourceRecord | None]:
        async with self._connection.acquire():
            pipe = self._connection.redis.pipeline(transaction=False)
            for id in ids:
                pipe.hgetall(SOURCE + id)
            rows = await pipe.execute()
        return [
            SourceRecord.from_fields(id, row) if b"kind" in row else None for id, row in zip(ids, rows, strict=True)
        ]

    async def totals(self) -> SourceTotals:
        *counts, late_ms = await self._eval(COUNT, [ALL_SOURCES, DUE_SOURCES])
        async with self._connection.acquire():
            stored = await self._connection.redis.hgetall(SOURCE_TOTALS)
        totals = {name.decode(): int(value) for name, value in stored.items()}
        polls = {result: totals.get(result, 0) for result in RESULTS}
        states = {state: int(count) for state, count in zip(STATES, counts, strict=True)}
        return SourceTotals(states, late_ms / 1000, polls, totals.get("documents", 0))

    # -- for those who poll --------------------------------------------------------------------------------------------

    async def claim_due(self, token: str, lease_s: float) -> SourceClaim | None:
        """Claims the source that has been due for longest; None if none is due."""
        id = await self._eval(CLAIM_DUE, [DUE_SOURCES], token, int(1000 * lease_s))
        return SourceClaim(id.decode(), token) if id else None

    async def claim(self, id: str, token: str, lease_s: float) -> Literal["claimed", "busy", "gone"]:
        """Claims a source, due or not, unless another process polls it."""
        answer = await self._eval(CLAIM, [DUE_SOURCES, SOURCE + id], id, token, int(1000 * lease_s))
        return next(known for known in ("claimed", "busy", "gone") if known.encode() == answer)

    async def renew(self, claim: SourceClaim, lease_s: float) -> bool:
        """Renews the lease; False if the claim is lost."""
        keys = [DUE_SOURCES, SOURCE + claim.source]
        return bool(await self._eval(RENEW, keys, claim.source, claim.token, int(1000 * lease_s)))

    async def load_seen(self, id: str) -> dict[str, str]:
        """The items that have been seen."""
        async with self._connection.acquire():
            stored = await self._connection.redis.hgetall(SEEN + id)
        return {key.decode(): value.decode() for key, value in stored.items()}

    async def commit(
        self,
        claim: SourceClaim,
        next_s: float,
        fields: Fields,
        *,
        failed: bool,
        documents: int = 0,
        put: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
    ) -> bool:
        """Ends a poll; False if the claim is lost."""
        args: list[Arg] = [claim.source, claim.token, int(1000 * next_s), documents, int(failed)]
        for part in (flat(fields), flat(put or {}), drop):
            args += [len(part), *part]
        keys = [DUE_SOURCES, SOURCE + claim.source, SEEN + claim.source, SOURCE_TOTALS]
        return bool(await self._eval(COMMIT, keys, *args))

    async def _eval(self, script: str, keys: Sequence[str], *args: Arg) -> Any:
        (answer,) = await self._connection.run([Script(script, keys, args)])
        return answer


def _number(text: str | None) -> int | None:
    return None if text is None else int(float(text))
