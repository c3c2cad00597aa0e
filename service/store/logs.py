"""The logs of topics, read and appended to."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from service.errors import NotFound
from service.store.events import Event, Head
from service.store.redis.connection import Connection
from service.store.redis.keys import topic_key
from service.store.redis.scripts import BATCH_SIZE, Arg, Step, entry_fields, entry_number, flat, topic_script

# The head of a log and its next events. Arguments: first id, maximum number of events.
READ = """
local head = redis.call('HMGET', KEYS[1], 'born', 'seq', 'floor')
if not head[1] then return false end
return {head[1], head[2], head[3], redis.call('XRANGE', KEYS[2], ARGV[1], '+', 'COUNT', ARGV[2])}
"""

# Appends judgements and withdrawals, any number in one go (one fsync). A judgement with the label that is in force
# changes nothing, nor does one that says "relevant" of a document with a grade (labels are "0", "1", and "1:2" with a
# grade). One that is new goes into the log with the number of documents that the topic has accepted so far.
# Arguments: born, count, then for each: "judge", document, label, number of fields, field, value, … or "withdraw",
# document, "", number of fields, …
APPEND = """
local topic, log, judged, tally = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
local answers, at, accepted = {}, 3, tonumber(redis.call('HGET', tally, 'accepted') or 0)
for n = 1, tonumber(ARGV[2]) do
  local op, document, label, width = ARGV[at], ARGV[at + 1], ARGV[at + 2], tonumber(ARGV[at + 3])
  local standing = redis.call('HGET', judged, document)
  local status
  if op == 'judge' then
    local same = standing and string.sub(standing, 1, 1) == string.sub(label, 1, 1)
    status = (not standing and 'learned') or (not same and 'corrected')
      or ((standing == label or #label == 1) and 'known') or 'regraded'
  else
    status = standing and 'withdrawn' or 'absent'
  end
  local seq = tonumber(redis.call('HGET', topic, 'seq'))
  if status ~= 'known' and status ~= 'absent' then
    seq = redis.call('HINCRBY', topic, 'seq', 1)
    local fields = {unpack(ARGV, at + 4, at + 3 + width)}
    if status == 'learned' and accepted > 0 then fields[width + 1], fields[width + 2] = 'after', accepted end
    if status == 'regraded' then fields[width + 1], fields[width + 2] = 'regrades', 1 end
    redis.call('XADD', log, seq .. '-0', unpack(fields))
    if op == 'judge' then redis.call('HSET', judged, document, label) else redis.call('HDEL', judged, document) end
  end
  answers[n] = {status, seq, status == 'learned' and accepted or 0}
  at = at + 4 + width
end
return answers
"""

# Appends one event that may change everything (new settings, restore, publish, compaction), unless another process was
# faster: compares `seq`, appends, and replaces the judgements in force if new ones are given. Versions from before the
# floor can no longer be restored and are not listed. Arguments: born, expected seq, floor, "1" to replace judgements,
# then three lists, each after its length: event fields, document and label pairs, ids of events that are no longer
# needed.
AMEND = """
local topic, log, judged, versions = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
if redis.call('HGET', topic, 'born') ~= ARGV[1] then return false end
if redis.call('HGET', topic, 'seq') ~= ARGV[2] then return 0 end
local at = 5
local function counted()
  local first, last = at + 1, at + tonumber(ARGV[at])
  at = last + 1
  return first, last
end
local seq = redis.call('HINCRBY', topic, 'seq', 1)
redis.call('HSET', topic, 'floor', ARGV[3])
redis.call('XADD', log, seq .. '-0', unpack(ARGV, counted()))
local first, last = counted()
if ARGV[4] == '1' then
  redis.call('DEL', judged)
  for from = first, last, 1000 do redis.call('HSET', judged, unpack(ARGV, from, math.min(from + 999, last))) end
end
first, last = counted()
for from = first, last, 1000 do redis.call('XDEL', log, unpack(ARGV, from, math.min(from + 999, last))) end
redis.call('XTRIM', versions, 'MINID', ARGV[3] .. '-0')
return seq
"""


class LogStore:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._redis = connection.redis

    async def load(self, topic: str, after: int = 0) -> tuple[Head, list[Event]]:
        """The head of the topic's log and its events after the given one."""
        events: list[Event] = []
        first: Head | None = None  # as it was when the first batch was read
        while True:
            last = events[-1].seq if events else after
            start = f"({last}-0" if last else "-"
            (row,) = await self._connection.run([topic_script(READ, topic, ("topic", "log"), start, BATCH_SIZE)])
            if not row:
                raise NotFound.topic(topic)
            born, seq, floor, entries = row
            head = Head(born.decode(), int(seq), int(floor))
            if first and (head.born, head.floor) != (first.born, first.floor):
                events, first = [], None  # compacted, or another topic, since the last batch: begin again
                continue
            first = head
            events += [Event.from_fields(entry_number(id), entry_fields(fields)) for id, fields in entries]
            if len(entries) < BATCH_SIZE:
                return head, events

    async def append(self, topic: str, born: str, events: Sequence[Event]) -> list[tuple[str, Event]]:
        """Appends judgements and withdrawals, all or none. Returns for each its status, and the event as the log has
        it: with its number, or that of the last event if it changes nothing. Another grade is a correction."""
        args: list[Arg] = [born, len(events)]
        for event in events:
            fields = flat(event.to_fields())
            op = "judge" if event.kind == "judged" else "withdraw"
            args += [op, event.document, event.label, len(fields), *fields]
        replies = await self._call(APPEND, topic, ("topic", "log", "judged", "tally"), *args)
        if replies is None:
            raise NotFound.topic_gone(topic)
        appended = []
        for event, (status, seq, after) in zip(events, replies, strict=True):
            regrades = status == b"regraded"
            event = replace(event, seq=int(seq), after=int(after), regrades=regrades)
            appended.append(("corrected" if regrades else status.decode(), event))
        return appended

    async def amend(
        self,
        topic: str,
        head: Head,
        event: Event,
        *,
        floor: int | None = None,
        judged: Mapping[str, str] | None = None,
        obsolete: Sequence[int] = (),
    ) -> int | None:
        """Appends an event that changes more than a judgement, if the log still ends at `head`. Returns its number, or
        None if the log has grown."""
        labels = [part for document, label in (judged or {}).items() for part in (document, label)]
        args: list[Arg] = [head.born, head.seq, head.floor if floor is None else floor, int(judged is not None)]
        for counted in (flat(event.to_fields()), labels, [f"{seq}-0" for seq in obsolete]):
            args += [len(counted), *counted]
        seq = await self._call(AMEND, topic, ("topic", "log", "judged", "versions"), *args)
        if seq is None:
            raise NotFound.topic_gone(topic)
        return int(seq) or None

    async def judged(self, document: str, topics: Sequence[str]) -> list[str]:
        """Those of the topics in which the document has a judgement in force."""
        steps: list[Step] = [("HEXISTS", topic_key(topic, "judged"), document) for topic in topics]
        replies = await self._connection.run(steps)
        return [topic for topic, found in zip(topics, replies, strict=True) if found]

    async def labels(self, topic: str, documents: Sequence[str]) -> dict[str, bool]:
        """The judgements in force of those of the documents that have one."""
        if not documents:
            return {}
        (labels,) = await self._connection.run([("HMGET", topic_key(topic, "judged"), *documents)])
        pairs = zip(documents, labels, strict=True)
        return {document: label.startswith(b"1") for document, label in pairs if label is not None}

    async def topics(self) -> AsyncIterator[str]:
        """Every topic that has a log, listed or not."""
        async with self._connection.acquire():
            async for name in self._redis.scan_iter(match=topic_key("*", "log"), count=BATCH_SIZE):
                yield name.decode().removeprefix("sluice:{").removesuffix("}:log")

    async def load_bare(self, topic: str) -> list[Event]:
        """The topic's events, even if the head of its log is lost."""
        events: list[Event] = []
        while True:
            after = f"({events[-1].seq}-0" if events else "-"
            async with self._connection.acquire():
                rows = await self._redis.xrange(topic_key(topic, "log"), after, "+", count=BATCH_SIZE)
            events += [Event.from_fields(entry_number(id), fields) for id, fields in rows]
            if len(rows) < BATCH_SIZE:
                return events

    async def _call(self, script: str, topic: str, parts: Sequence[str], *args: Arg) -> Any:
        (reply,) = await self._connection.run([topic_script(script, topic, parts, *args)])
        return reply
