"""How the stream was decided: each topic's counts of all documents that passed, and of recent ones.

Only accepted and abstained documents are counted; the rest of those that passed were rejected. Documents that pass are
counted once for all topics, since most requests name none; a topic itself counts those sent to it by name.

    ever     passed − since + named                  documents; `since` had passed when the topic was created
    lately   the same over the last RECENT_BUCKETS buckets of BUCKET_SIZE documents of the stream
    newest   the same over as many, or, of a topic that has not seen twice as many, over the newer half

    as_now   `lately`, but only since the topic's settings last changed its decisions: what was decided by other
             thresholds says nothing about a goal. The counts as they were at that moment are stored as `anew`

A topic keeps a ring of SLOTS buckets, each "bucket named accepted abstained", so its size is bounded and nothing has to
be cleared. A batch goes into one bucket as a whole. A document counts when it is not remembered yet, so once however
often it is sent. A process that dies, or loses the store, between remembering a batch and counting it leaves that batch
uncounted, or counted as rejected; it has not been acknowledged either.

Besides, there are totals over all topics and all time, for monitoring: a topic's counts are deleted with it, and adding
up a hundred thousand topics takes a second.

A document that repeats another (decisions/repeats.py) counts only in topics that were created after the other arrived,
or decide the two differently.

What is not rejected is also queued for review (see feedback/review.py), unless a rule decided. A write waits for the
disk, so all writes of a batch are sent to the store together.
"""

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from typing import Any

from models.goals.reporting.volume import StreamCounts
from service.store.counts import count_cmds, count_topic_cmd
from service.store.topics import Step, Store
from service.topics.decisions.registry import Registry
from service.topics.decisions.results import Classified, Kept
from service.topics.published import PublishedModel
from service.topics.retrain_policy import LastRetrain

BUCKET_SIZE, SLOTS, RECENT_BUCKETS = 1000, 100, 10
POSITION_TTL_S = 0.5  # how long a process relies on the number of documents that it last read from the store


@dataclass(frozen=True, slots=True)
class TopicCounts:
    ever: StreamCounts
    lately: StreamCounts
    newest: StreamCounts  # to be compared with those before
    as_now: StreamCounts
    retrained: LastRetrain | None = None  # by policy, see retrain_policy.py


class TopicCounters:
    def __init__(self, store: Store, registry: Registry, max_queued: int) -> None:
        self._store = store
        self._registry = registry
        self._max_queued = max_queued  # documents in a queue for review
        self._passed, self._read_s = 0, -math.inf

    async def count_cmds(self, classified: Classified, new: Collection[str], named: Sequence[str] | None) -> list[Step]:
        """Commands that count the documents that are new, each once; pass their replies to `note_replies`."""
        first: dict[str, int] = {}
        for place, document in enumerate(classified.ids):
            if document in new:
                first.setdefault(document, place)
        if not first:
            return []
        repeats = {
            place: classified.repeats[place].counts_in for place in first.values() if place in classified.repeats
        }
        places = set(first.values()) - repeats.keys()
        for_all, by_name = (len(places), 0) if named is None else (0, len(places))
        before = await self._position()
        passed = before + for_all
        topic_cmds: list[Step] = []
        totals = {"named": by_name, "accept": 0, "abstain": 0}
        topics = classified.kept.keys() | set().union(*repeats.values()) if named is None else named
        for topic in dict.fromkeys(topics):
            copies = {place for place, counts_in in repeats.items() if topic in counts_in}  # count as if sent by name
            kept = [hit for hit in classified.kept.get(topic, ()) if hit.place in places or hit.place in copies]
            for hit in kept:
                totals[hit.decision] += 1
            model = self._registry.topics.get(topic)
            if model and (kept or by_name or copies):
                named_here = by_name + len(copies)
                topic_cmds.append(self._count_cmd(model, kept, classified.ids, before, passed, named_here))
        return [*count_cmds(for_all, totals), *topic_cmds]

    def note_replies(self, replies: Sequence[Any]) -> None:
        """Notes how many documents have passed, which is the first of the replies."""
        self._passed, self._read_s = int(replies[0]), time.monotonic()

    async def _position(self) -> int:
        """How many documents have passed, read from the store if the number may be out of date. It need not be exact:
        it only determines the newest bucket."""
        if time.monotonic() - self._read_s > POSITION_TTL_S:
            self._passed, self._read_s = await self._store.counts.passed(), time.monotonic()
        return self._passed

    async def reset_window(self, model: PublishedModel) -> None:
        """Starts `as_now` over, because the topic decides differently from now on."""
        await self._store.counts.reset_window(model.topic, model.born, await self._store.counts.passed())

    async def load(self, topics: Sequence[str]) -> list[TopicCounts]:
        passed, rows = await self._store.counts.load(topics)
        return [counts_of(row, passed) for row in rows]

    def _count_cmd(
        self, model: PublishedModel, kept: Sequence[Kept], ids: Sequence[str], before: int, passed: int, named: int
    ) -> Step:
        bucket = bucket_of(passed)
        accepted = [hit for hit in kept if hit.decision == "accept"]
        abstained = [hit for hit in kept if hit.decision == "abstain"]
        likely = [ids[hit.place] for hit in accepted if not hit.by_rule][-self._max_queued :]
        uncertain = [ids[hit.place] for hit in abstained if not hit.by_rule][-self._max_queued :]
        return count_topic_cmd(
            model.topic,
            model.born,
            passed=before,
            bucket=bucket,
            slot=bucket % SLOTS,
            named=named,
            accepted=len(accepted),
            abstained=len(abstained),
            likely=likely,
            uncertain=uncertain,
            kept=self._max_queued,
        )


def counts_of(stored: Mapping[bytes, bytes], passed: int) -> TopicCounts:
    """A topic's counts from what the store keeps, if this many documents have passed."""

    def total(name: bytes) -> int:
        return int(stored.get(name, 0))

    since = int(stored.get(b"since", passed))
    buckets = [[int(n) for n in row.split()] for slot, row in stored.items() if slot.isdigit()]

    def over(last: int) -> StreamCounts:
        """The counts of the last `last` buckets."""
        oldest = bucket_of(passed) - last + 1
        recent = [row for row in buckets if row[0] >= oldest]
        named, accepted, abstained = (sum(row[i] for row in recent) for i in (1, 2, 3))
        return _passed(passed - max(since, oldest * BUCKET_SIZE) + named, accepted, abstained)

    half = max(1, (bucket_of(passed) - bucket_of(since)) // 2)
    lately, totals = over(RECENT_BUCKETS), [total(name) for name in (b"named", b"accepted", b"abstained")]
    reset_at, *before = (int(n) for n in stored.get(b"anew", b"%d 0 0 0" % since).split())
    named, accepted, abstained = (now - was for now, was in zip(totals, before, strict=True))
    since_reset = _passed(passed - max(since, reset_at) + named, accepted, abstained)
    return TopicCounts(
        _passed(passed - since + totals[0], totals[1], totals[2]),
        lately,
        over(min(RECENT_BUCKETS, half)),
        min(lately, since_reset, key=lambda counts: counts.documents),
        LastRetrain.of(stored[b"retrained"].decode()) if b"retrained" in stored else None,
    )


def stored_counts(
    ever: StreamCounts, lately: StreamCounts, as_now: StreamCounts | None, passed: int
) -> list[str | int]:
    """Imported counts as the store keeps them, if this many documents have passed here: as if all were sent by name."""
    bucket = bucket_of(passed)
    row = f"{bucket} {lately.documents} {lately.accepted} {lately.abstained}"
    counts: list[str | int] = ["named", ever.documents, "accepted", ever.accepted, "abstained", ever.abstained]
    if as_now is not None:
        before = (total - now for total, now in zip(astuple(ever), astuple(as_now), strict=True))
        counts += ["anew", " ".join(map(str, (passed, *before)))]
    return ["since", passed, *counts, bucket % SLOTS, row]


def bucket_of(passed: int) -> int:
    return max(0, passed - 1) // BUCKET_SIZE


def _passed(documents: int, accepted: int, abstained: int) -> StreamCounts:
    # The oldest bucket may hold a batch that began before it.
    return StreamCounts(max(documents, accepted + abstained), accepted, abstained)
