"""Jobs as the store keeps them: what was asked, how far it has come, and what came of it.

    sluice:{jobs}:job:ID    hash   kind, request, state, progress, message, times, result, tries, cancel, checkpoint
    sluice:{jobs}:all       zset   ids of all jobs; an id begins with the time, so their order is that of submission
    sluice:{jobs}:waiting   set    submitted, and not yet handed to the queue
    sluice:{jobs}:taken     hash   topic -> the job that retrains it now

    queued → running → succeeded | failed | cancelled, and from running back to queued when a process died under it

A submission is one write: the record, and its id among the waiting. Handing it to the queue (see jobs/queue.py) comes
later and may be done twice, so there is no moment at which a crash loses a job. Every step below is one script that
looks at the state first, so whoever comes late changes nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service.schemas.jobs import State
from service.store.connection import Connection
from service.store.keys import ALL_JOBS, JOB, TAKEN_TOPICS, WAITING_JOBS
from service.store.scripts import Arg, Script

OVER: tuple[State, ...] = ("succeeded", "failed", "cancelled")
STATES: tuple[State, ...] = ("queued", "running", *OVER)

# Arguments: id, most that are kept, most that may be unfinished, then the record. Answers whether it was taken; the
# oldest that are over make room.
SUBMIT = """
local job, all, waiting = KEYS[1], KEYS[2], KEYS[3]
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
redis.call('SADD', waiting, ARGV[1])
return 1
"""

# A process begins with the job, perhaps again. Arguments: id, time, most tries. Answers whether it shall run.
BEGIN = """
local job, waiting, now = KEYS[1], KEYS[2], ARGV[2]
local state, cancel = unpack(redis.call('HMGET', job, 'state', 'cancel'))
if state ~= 'queued' and state ~= 'running' then return 0 end
if cancel then
  redis.call('HSET', job, 'state', 'cancelled', 'finished_ms', now, 'message', 'Cancelled.')
  return 0
end
if redis.call('HINCRBY', job, 'tries', 1) > tonumber(ARGV[3]) then
  redis.call('HSET', job, 'state', 'failed', 'finished_ms', now,
    'message', 'Its process died ' .. ARGV[3] .. ' times; there may be too little memory for it.')
  return 0
end
redis.call('HSETNX', job, 'started_ms', now)
redis.call('HSET', job, 'state', 'running')
redis.call('SREM', waiting, ARGV[1])
return 1
"""

# Arguments: then fields of the record. Answers whether the job shall go on.
TELL = """
local state, cancel = unpack(redis.call('HMGET', KEYS[1], 'state', 'cancel'))
if state ~= 'running' then return 0 end
if #ARGV > 0 then redis.call('HSET', KEYS[1], unpack(ARGV)) end
return cancel and 0 or 1
"""

# Arguments: the states it may be in, joined by commas; then fields of the record. Answers whether it was in one.
MOVE = """
local state = redis.call('HGET', KEYS[1], 'state')
if not state or not string.find(',' .. ARGV[1] .. ',', ',' .. state .. ',', 1, true) then return 0 end
redis.call('HSET', KEYS[1], unpack(ARGV, 2))
return 1
"""

# Arguments: time. One that waits is over at once; one that runs is told so.
CANCEL = """
local state = redis.call('HGET', KEYS[1], 'state')
if not state then return false end
if state == 'queued' then
  redis.call('HSET', KEYS[1], 'state', 'cancelled', 'finished_ms', ARGV[1], 'message', 'Cancelled.')
elseif state == 'running' then
  redis.call('HSET', KEYS[1], 'cancel', 1, 'message', 'Being cancelled.')
end
return state
"""

# One retraining a topic at a time. Arguments: topic, job. Answers the job that has it: this one, if it is free or the
# other is over.
TAKE = """
local holder = redis.call('HGET', KEYS[1], ARGV[1])
if holder and holder ~= ARGV[2] then
  local state = redis.call('HGET', 'sluice:{jobs}:job:' .. holder, 'state')
  if state == 'queued' or state == 'running' then return holder end
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
    checkpoint: str | None = None  # from where a job that can goes on, JSON

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
        """Keeps a new job for the queue; False if too many wait already."""
        record = ("kind", kind, "request", request, "state", "queued", "created_ms", now_ms)
        return bool(await self._eval(SUBMIT, [JOB + id, ALL_JOBS, WAITING_JOBS], id, kept, open, *record))

    async def begin(self, id: str, now_ms: int, tries: int) -> bool:
        return bool(await self._eval(BEGIN, [JOB + id, WAITING_JOBS], id, now_ms, tries))

    async def tell(self, id: str, **fields: str | float) -> bool:
        """Notes how far a running job is; whether it shall go on."""
        return bool(await self._eval(TELL, [JOB + id], *_flat(fields)))

    async def end(self, id: str, state: State, now_ms: int, **fields: str | float) -> bool:
        """The job is over, unless it was before."""
        return await self._move(id, "queued,running", state=state, finished_ms=now_ms, **fields)

    async def requeue(self, id: str, message: str) -> bool:
        """The job has to begin again."""
        return await self._move(id, "running", state="queued", message=message)

    async def cancel(self, id: str, now_ms: int) -> State | None:
        """In what state it was; None if there is no such job."""
        state = await self._eval(CANCEL, [JOB + id], now_ms)
        return None if state is None else _state(state.decode())

    async def take(self, topic: str, job: str) -> str:
        return str((await self._eval(TAKE, [TAKEN_TOPICS], topic, job)).decode())

    async def release(self, topic: str, job: str) -> None:
        await self._eval(RELEASE, [TAKEN_TOPICS], topic, job)

    async def waiting(self) -> list[str]:
        """Jobs that nobody has handed to the queue, the oldest first: ids are in the order of time."""
        async with self._connection.asking():
            return sorted(id.decode() for id in await self._connection.redis.smembers(WAITING_JOBS))

    async def handed(self, ids: Sequence[str]) -> None:
        async with self._connection.asking():
            await self._connection.redis.srem(WAITING_JOBS, *ids)

    async def ids(self, before: str = "", limit: int | None = None) -> list[str]:
        """Ids of jobs, newest first, from those older than the given one."""
        async with self._connection.asking():
            last, most = f"({before}" if before else "+", -1 if limit is None else limit
            rows = await self._connection.redis.zrevrangebylex(ALL_JOBS, last, "-", start=0, num=most)
        return [row.decode() for row in rows]

    async def states(self) -> dict[State, int]:
        """How many jobs are in each state."""
        flat = await self._eval(COUNT, [ALL_JOBS])
        return {_state(state.decode()): int(n) for state, n in zip(flat[::2], flat[1::2], strict=True)}

    async def read(self, ids: Sequence[str]) -> list[JobRecord | None]:
        async with self._connection.asking():
            pipe = self._connection.redis.pipeline(transaction=False)
            for id in ids:
                pipe.hgetall(JOB + id)
            rows = await pipe.execute()
        return [JobRecord.from_fields(id, row) if row else None for id, row in zip(ids, rows, strict=True)]

    async def _move(self, id: str, states: str, **fields: str | float) -> bool:
        return bool(await self._eval(MOVE, [JOB + id], states, *_flat(fields)))

    async def _eval(self, script: str, keys: Sequence[str], *args: Arg) -> Any:
        (answer,) = await self._connection.run([Script(script, keys, args)])
        return answer


def _flat(fields: Mapping[str, str | float]) -> list[Arg]:
    return [part for pair in fields.items() for part in pair]


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


def _state(text: str) -> State:
    return next(state for state in STATES if state == text)
