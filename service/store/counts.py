"""Counts of how the stream was decided, of each topic and over all topics (see topics/counts.py)."""

from collections.abc import Mapping, Sequence
from typing import Any

from service.store.redis.connection import Connection
from service.store.redis.keys import DECIDED, GOALS, PASSED, topic_key
from service.store.redis.scripts import BATCH_SIZE, Script, Step, topic_script
from service.store.review import QUEUE_FUNCTION

# Counts new documents, and queues for review those that were not rejected. A slot of the tally is reused when its
# bucket is an older one. Arguments: born, how many documents had passed before, bucket, slot, maximum length of a
# queue; counts of documents sent to this topic by name, of accepted, of abstained; the number of likely documents, then
# the likely documents and the uncertain ones.
COUNT = f"""
local topic, tally, likely, uncertain = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return 0 end
local since, bucket, slot, kept = tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5])
redis.call('HSETNX', tally, 'since', since)
local order = 0  -- of arrival in the queues: a number that only grows
for i, name in ipairs({{'named', 'accepted', 'abstained'}}) do
  order = order + redis.call('HINCRBY', tally, name, ARGV[5 + i])
end
local b, n, a, u = string.match(redis.call('HGET', tally, slot) or '', '^(%d+) (%d+) (%d+) (%d+)$')
if not b or tonumber(b) < bucket then b, n, a, u = bucket, 0, 0, 0 end
if tonumber(b) == bucket then
  redis.call('HSET', tally, slot, string.format('%d %d %d %d', bucket, n + ARGV[6], a + ARGV[7], u + ARGV[8]))
end
{QUEUE_FUNCTION}
local middle = 9 + tonumber(ARGV[9])
queue(likely, 10, middle)
queue(uncertain, middle + 1, #ARGV)
return 1
"""

# Records the current counts, because the topic decides differently from now on. Arguments: born, how many documents
# have passed.
RESET_WINDOW = """
local topic, tally = KEYS[1], KEYS[2]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return 0 end
local counts = redis.call('HMGET', tally, 'named', 'accepted', 'abstained')
for i = 1, 3 do counts[i] = counts[i] or 0 end
redis.call('HSET', tally, 'anew', ARGV[2] .. ' ' .. table.concat(counts, ' '))
return 1
"""

# Records a retraining that was submitted by policy. Arguments: born, the record expected there (empty for none), the
# record that replaces it.
MARK_RETRAINED = """
local topic, tally = KEYS[1], KEYS[2]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return 0 end
if (redis.call('HGET', tally, 'retrained') or '') ~= ARGV[2] then return 0 end
if ARGV[3] == '' then redis.call('HDEL', tally, 'retrained') else redis.call('HSET', tally, 'retrained', ARGV[3]) end
return 1
"""


class CountStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._redis = connection.redis

    async def passed(self) -> int:
        """How many documents have been sent to all topics."""
        async with self._connection.acquire():
            return int(await self._redis.get(PASSED) or 0)

    async def totals(self) -> tuple[int, dict[str, int]]:
        """How many documents have been sent to all topics, and counts of decisions."""
        passed, decided = await self._connection.run([("GET", PASSED), ("HGETALL", DECIDED)])
        return int(passed or 0), _numbers(decided)

    async def load(self, topics: Sequence[str]) -> tuple[int, list[dict[bytes, bytes]]]:
        """How many documents have passed, and the tally of each topic."""
        replies: list[Any] = []
        async with self._connection.acquire():
            for start in range(0, max(1, len(topics)), BATCH_SIZE):
                pipe = self._redis.pipeline(transaction=False)
                for topic in topics[start : start + BATCH_SIZE]:
                    pipe.hgetall(topic_key(topic, "tally"))
                pipe.get(PASSED)
                *rows, passed = await pipe.execute()
                replies += rows
        return int(passed or 0), replies

    async def reset_window(self, topic: str, born: str, passed: int) -> None:
        """Records that the topic decides differently from now on; `passed` documents have passed by now."""
        await self._connection.run([topic_script(RESET_WINDOW, topic, ("topic", "tally"), born, passed)])

    async def mark_retrained(self, topic: str, born: str, *, expected: str, note: str) -> bool:
        """Replaces the record of the last retraining; False if it is not the expected one. Empty means no record."""
        call = topic_script(MARK_RETRAINED, topic, ("topic", "tally"), born, expected, note)
        (marked,) = await self._connection.run([call])
        return bool(marked)

    async def save_goals(self, states: Mapping[str, int], kept_s: int) -> None:
        """Saves, for a while, how many goals are in each state."""
        flat = [part for pair in states.items() for part in pair]
        await self._connection.run([("DEL", GOALS), ("HSET", GOALS, *flat), ("EXPIRE", GOALS, kept_s)])

    async def load_goals(self) -> dict[str, int]:
        async with self._connection.acquire():
            return _numbers(await self._redis.hgetall(GOALS))


def count_cmds(documents: int, decided: Mapping[str, int]) -> list[Step]:
    """Commands that count documents that were sent to all topics, and the decisions on all documents. The first reply
    is how many documents have passed by now."""
    return [("INCRBY", PASSED, documents), *(("HINCRBY", DECIDED, name, n) for name, n in decided.items() if n)]


def count_topic_cmd(
    topic: str,
    born: str,
    *,
    passed: int,
    bucket: int,
    slot: int,
    named: int,
    accepted: int,
    abstained: int,
    likely: Sequence[str],
    uncertain: Sequence[str],
    kept: int,
) -> Script:
    """Command that counts documents for one topic, and queues some for review, at most `kept` in a queue. `passed` is
    how many documents had passed before."""
    counts = (passed, bucket, slot, kept, named, accepted, abstained)
    parts = ("topic", "tally", "likely", "uncertain")
    return topic_script(COUNT, topic, parts, born, *counts, len(likely), *likely, *uncertain)


def _numbers(stored: Mapping[bytes, bytes]) -> dict[str, int]:
    return {name.decode(): int(n) for name, n in stored.items()}
