"""Jobs as the store keeps them, and the queue that they form: what was requested, who works on it, and the result.

    queued → running → succeeded | failed | cancelled, and from running back to queued when a process died under it

The records are the queue: there is no second list of who does what that could disagree with them. A job worker claims
the oldest job that is queued, or whose worker has not renewed its lease (`lease_ms`), and writes a token (`claim`) into
the record. Whatever the worker or its child process writes later is accepted only while the record has that token. So a
worker that was paused or cut off, and comes back after another has taken over its job, changes nothing. Leases are
measured by the store's clock, because the clocks of several machines may differ. store/redis/keys.py describes the
keys.

Each step is one script that checks the state first, so that it does not matter which of two processes comes first, and
a step that is repeated after a lost reply does no harm.

Rejected: a stream with a consumer group, as sluice:in has. Its pending list would have to agree with the records, which
are needed anyway: users list jobs, cancel them, and ask how far they are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from service.schemas.jobs import State
from service.store.redis.connection import Connection
from service.store.redis.keys import ALL_JOBS, JOB, TAKEN_TOPICS, UNFINISHED_JOBS
from service.store.redis.scripts import NOW, Arg, Script

OVER: tuple[State, ...] = ("succeeded", "failed", "cancelled")
STATES: tuple[State, ...] = ("queued", "running", *OVER)

# Arguments: id, how many jobs are kept, how many may be unfinished, then the record. Returns whether it was accepted.
# The oldest finished jobs are deleted to make room.
SUBMIT = """
local job, all, unfinished = KEYS[1], KEYS[2], KEYS[3]
if redis.call('EXISTS', job) == 1 then return 1 end
local surplus, open = redis.call('ZCARD', all) + 1 - tonumber(ARGV[2]), 0
for _, id in ipairs(redis.call('ZRANGE', all, 0, -1)) do
  local old = 'sluice:{jobs}:job:' .. id
  local state = redis.call('HGET', old, 'state')
  if state == 'queued' or state == 'running' then
    open = open + 1
  elseif surplus > 0 then
    redis.call('DEL', old)
    redis.call('ZREM', all, id)
    surplus = surplus - 1
  end
end
if open >= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', job, unpack(ARGV, 4))
redis.call('ZADD', all, 0, ARGV[1])
redis.call('SADD', unfinished, ARGV[1])
return 1
"""

# Completes the set of unfinished jobs: earlier versions kept only some of them in it. Returns how many were missing.
ADOPT = """
local adopted = 0
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local state = redis.call('HGET', 'sluice:{jobs}:job:' .. id, 'state')
  if state == 'queued' or state == 'running' then adopted = adopted + redis.call('SADD', KEYS[2], id) end
end
return adopted
"""

# Arguments: token, the worker's time, milliseconds of the lease, how often a job may be tried. Returns the oldest job
# that nobody works on. Jobs that were cancelled, or tried too often, end here instead.
CLAIM = f"""
{NOW}
local token, clock, lease, tries = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local ids = redis.call('SMEMBERS', KEYS[1])
table.sort(ids)
for _, id in ipairs(ids) do
  local job = 'sluice:{{jobs}}:job:' .. id
  local state, cancel, leased = unpack(redis.call('HMGET', job, 'state', 'cancel', 'lease_ms'))
  if state ~= 'queued' and state ~= 'running' then
    redis.call('SREM', KEYS[1], id)
  elseif state == 'queued' or tonumber(leased or 0) <= now then
    if cancel then
      redis.call('HSET', job, 'state', 'cancelled', 'finished_ms', clock, 'message', 'Cancelled.')
    elseif redis.call('HINCRBY', job, 'tries', 1) > tries then
      redis.call('HSET', job, 'state', 'failed', 'finished_ms', clock,
        'message', 'Its process died ' .. tries .. ' times; there may be too little memory for it.')
    else
      redis.call('HSETNX', job, 'started_ms', clock)
      redis.call('HSET', job, 'state', 'running', 'claim', token, 'lease_ms', now + lease)
      return id
    end
  end
end
return false
"""

# Arguments: token, milliseconds of the lease. Returns whether the worker still has the job and should continue.
RENEW = f"""
{NOW}
local state, claim, cancel = unpack(redis.call('HMGET', KEYS[1], 'state', 'claim', 'cancel'))
if state ~= 'running' or claim ~= ARGV[1] then return 'lost' end
redis.call('HSET', KEYS[1], 'lease_ms', now + tonumber(ARGV[2]))
return cancel and 'cancelled' or 'held'
"""

# Arguments: token, then fields of the record. Returns 1 if the claim was still held and the fields were written.
UPDATE = """
local state, claim = unpack(redis.call('HMGET', KEYS[1], 'state', 'claim'))
if state ~= 'running' or claim ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
"""

# Arguments: id, time. A queued job ends at once; a running one is marked, for its worker to see.
CANCEL = """
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return false end
if state == 'queued' then
  redis.call('HSET', KEYS[1], 'state', 'cancelled', 'finished_ms', ARGV[2], 'message', 'Cancelled.')
  redis.call('SREM', KEYS[2], ARGV[1])
elseif state == 'running' then
  redis.call('HSET', KEYS[1], 'cancel', 1, 'message', 'Being cancelled.')
end
return state
"""

# Reserves a topic, so that one job at a time retrains it. Arguments: topic, job. Returns the job that has the topic:
# this one, if the topic was free, or if the other job is over or its worker died. (Otherwise the last worker alive
# might wait for a job that waits for a worker.)
TAKE = f"""
{NOW}
local holder = redis.call('HGET', KEYS[1], ARGV[1])
if holder and holder ~= ARGV[2] then
  local state, leased = unpack(redis.call('HMGET', 'sluice:{{jobs}}:job:' .. holder, 'state', 'lease_ms'))
  if state == 'queued' or (state == 'running' and tonumber(leased or 0) > now) then return holder end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return ARGV[2]
"""

RELEASE = """
if redis.call('HGET', KEYS[1], ARGV[1]) == ARGV[2] then redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1
"""

# How many jobs are in each state, flat.
COUNT = """
local counts, flat = {}, {}
for _, id in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  local state = redis.call('HGET', 'sluice:{jobs}:job:' .. id, 'state')
  if state then counts[state] = (counts[state] or 0) + 1 end
end
for state, n in pairs(counts) do
  flat[#flat + 1] = state
  flat[#flat + 1] = n
end
return flat
"""


class Claim(NamedTuple):
    """A job, and the token of the worker that may write to its record."""

    job: str
    token: str


@dataclass(frozen=True, slots=True)
class JobRecord:
    id: str
    kind: str
    request: str  # JSON
    state: State
    created_ms: int
    progress: float = 0.0
    message: str = ""
    started_ms: int | None = None
    finished_ms: int | None = None
    result: str | None = None  # JSON
    checkpoint: str | None = None  # where an interrupted job continues, if it can; JSON

    @classmethod
    def from_fields(cls, id: str, stored: Mapping[bytes, bytes]) -> "JobRecord":
        text = {name.decode(): value.decode() for name, value in stored.items()}
        return cls(
            id=id,
            kind=text["kind"],
            request=text["request"],
            state=_state(text["state"]),
            created_ms=int(text["created_ms"]),
            progress=float(text.get("progress", 0)),
            message=text.get("message", ""),
            started_ms=_number(text.get("started_ms")),
            finished_ms=_number(text.get("finished_ms")),
            result=text.get("result"),
            checkpoint=text.get("checkpoint"),
        )


class JobStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def submit(self, id: str, kind: str, request: str, now_ms: int, kept: int, open: int) -> bool:
        """Queues a new job; False if too many are unfinished already."""
        record = ("kind", kind, "request", request, "state", "queued", "created_ms", now_ms)
        return bool(await self._eval(SUBMIT, [JOB + id, ALL_JOBS, UNFINISHED_JOBS], id, kept, open, *record))

    async def adopt(self) -> int:
        """Queues the unfinished jobs that an earlier version left elsewhere, and returns how many there were."""
        return int(await self._eval(ADOPT, [ALL_JOBS, UNFINISHED_JOBS]))

    async def claim(self, token: str, now_ms: int, lease_s: float, max_tries: int) -> Claim | None:
        """Claims the oldest job that nobody works on, for as long as the lease is renewed."""
        id = await self._eval(CLAIM, [UNFINISHED_JOBS], token, now_ms, int(1000 * lease_s), max_tries)
        return None if id is None else Claim(id.decode(), token)

    async def renew(self, claim: Claim, lease_s: float) -> Literal["held", "cancelled", "lost"]:
        """Extends the lease, unless the claim is lost: the job is over, or somebody else's."""
        answer = await self._eval(RENEW, [JOB + claim.job], claim.token, int(1000 * lease_s))
        return next(known for known in ("held", "cancelled", "lost") if known.encode() == answer)

    async def update(self, claim: Claim, **fields: str | float) -> bool:
        """Writes to the record of a job that runs; False if the claim is lost."""
        return bool(await self._eval(UPDATE, [JOB + claim.job], claim.token, *_flat(fields)))

    async def end(self, claim: Claim, state: State, now_ms: int, **fields: str | float) -> bool:
        """Ends the job; False if the claim is lost."""
        return await self.update(claim, state=state, finished_ms=now_ms, **fields)

    async def requeue(self, claim: Claim, message: str) -> bool:
        """Gives the job back, to be started again before all that were submitted later; False if the claim is lost."""
        return await self.update(claim, state="queued", message=message)

    async def cancel(self, id: str, now_ms: int) -> State | None:
        """Cancels a job and returns the state in which it was; None if there is no such job."""
        state = await self._eval(CANCEL, [JOB + id, UNFINISHED_JOBS], id, now_ms)
        return None if state is None else _state(state.decode())

    async def take(self, topic: str, job: str) -> str:
        """Reserves a topic for the job, unless another has it, and returns the job that has it."""
        return str((await self._eval(TAKE, [TAKEN_TOPICS], topic, job)).decode())

    async def release(self, topic: str, job: str) -> None:
        await self._eval(RELEASE, [TAKEN_TOPICS], topic, job)

    async def ids(self, before: str = "", limit: int | None = None) -> list[str]:
        """Returns ids of jobs, newest first, from those older than the given one on."""
        async with self._connection.acquire():
            last, most = f"({before}" if before else "+", -1 if limit is None else limit
            rows = await self._connection.redis.zrevrangebylex(ALL_JOBS, last, "-", start=0, num=most)
        return [row.decode() for row in rows]

    async def states(self) -> dict[State, int]:
        """Counts the jobs in each state."""
        flat = await self._eval(COUNT, [ALL_JOBS])
        return {_state(state.decode()): int(n) for state, n in zip(flat[::2], flat[1::2], strict=True)}

    async def load(self, ids: Sequence[str]) -> list[JobRecord | None]:
        async with self._connection.acquire():
            pipe = self._connection.redis.pipeline(transaction=False)
            for id in ids:
                pipe.hgetall(JOB + id)
            rows = await pipe.execute()
        return [JobRecord.from_fields(id, row) if row else None for id, row in zip(ids, rows, strict=True)]

    async def _eval(self, script: str, keys: Sequence[str], *args: Arg) -> Any:
        (answer,) = await self._connection.run([Script(script, keys, args)])
        return answer


def _flat(fields: Mapping[str, str | float]) -> list[Arg]:
    return [part for pair in fields.items() for part in pair]


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _state(text: str) -> State:
    return next(state for state in STATES if state == text)
