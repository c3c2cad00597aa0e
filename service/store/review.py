"""What waits for a judgement: queues of documents that were not rejected, and documents that are not to be offered.

Documents are queued as they are counted (see counts.py), or by a backfill, which counts nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from service.errors import NotFound
from service.store.redis.connection import Connection
from service.store.redis.keys import topic_key
from service.store.redis.scripts import Script, topic_script

# Queues the arguments from `first` to `last`, which are in order of arrival. `order` is the number of documents that
# the topic has counted, which only grows. `kept` is the maximum length of a queue.
QUEUE_FUNCTION = """
local function queue(key, first, last)
  local pairs = {}
  for at = first, last do
    pairs[#pairs + 1] = order + at - #ARGV
    pairs[#pairs + 1] = ARGV[at]
  end
  for from = 1, #pairs, 1000 do
    redis.call('ZADD', key, 'NX', unpack(pairs, from, math.min(from + 999, #pairs)))
  end
  if last >= first then redis.call('ZREMRANGEBYRANK', key, 0, -kept - 1) end
end
"""

# Queues documents without counting them. Arguments: born, maximum length of a queue, the number of likely documents,
# then the likely documents and the uncertain ones.
QUEUE = f"""
local topic, tally, likely, uncertain = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return 0 end
local kept, order = tonumber(ARGV[2]), 0
for _, count in ipairs(redis.call('HMGET', tally, 'named', 'accepted', 'abstained')) do
  order = order + (count or 0)
end
{QUEUE_FUNCTION}
local middle = 3 + tonumber(ARGV[3])
queue(likely, 4, middle)
queue(uncertain, middle + 1, #ARGV)
return 1
"""

# The documents in these queues, newest first. Arguments: born.
QUEUED = """
if redis.call('HGET', KEYS[1], 'born') ~= ARGV[1] then return false end
local queues = {}
for i = 2, #KEYS do queues[i - 1] = redis.call('ZREVRANGE', KEYS[i], 0, -1) end
return queues
"""

# Removes a document from the queues for good. Arguments: born, document, time, how many skipped documents are kept.
SKIP = """
local topic, skipped, likely, uncertain = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
redis.call('ZADD', skipped, 'NX', ARGV[3], ARGV[2])
redis.call('ZREMRANGEBYRANK', skipped, 0, -tonumber(ARGV[4]) - 1)
redis.call('ZREM', likely, ARGV[2])
redis.call('ZREM', uncertain, ARGV[2])
return 1
"""


class Queued(NamedTuple):
    """Documents, newest first."""

    likely: list[str]
    uncertain: list[str]
    skipped: list[str]


class ReviewStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def queued(self, topic: str, born: str) -> Queued:
        parts = ("topic", "likely", "uncertain", "skipped")
        (queues,) = await self._connection.run([topic_script(QUEUED, topic, parts, born)])
        if not queues:
            raise NotFound.topic_gone(topic)
        return Queued(*([document.decode() for document in queue] for queue in queues))

    async def queue(self, offers: Sequence["Offered"], kept: int) -> None:
        """Queues documents that were decided by a backfill, at most `kept` in a queue."""
        await self._connection.run([_queue_cmd(offer, kept) for offer in offers])

    async def skip(self, topic: str, born: str, document: str, *, at_ms: int, kept: int) -> None:
        """Makes sure that the document is not offered again; the newest `kept` skipped documents are remembered."""
        parts = ("topic", "skipped", "likely", "uncertain")
        (done,) = await self._connection.run([topic_script(SKIP, topic, parts, born, document, at_ms, kept)])
        if not done:
            raise NotFound.topic_gone(topic)

    async def skipped(self, topic: str) -> list[tuple[str, int]]:
        """Documents that are not to be offered again, and since when."""
        async with self._connection.acquire():
            rows = await self._connection.redis.zrange(topic_key(topic, "skipped"), 0, -1, withscores=True)
        return [(document.decode(), int(at_ms)) for document, at_ms in rows]


class Offered(NamedTuple):
    """Documents for the queues of a topic, oldest first."""

    topic: str
    born: str
    likely: Sequence[str]
    uncertain: Sequence[str]


def _queue_cmd(offer: Offered, kept: int) -> Script:
    documents = (*offer.likely, *offer.uncertain)
    parts = ("topic", "tally", "likely", "uncertain")
    return topic_script(QUEUE, offer.topic, parts, offer.born, kept, len(offer.likely), *documents)
