"""How the stream was decided: counts for each topic, of all that passed and of what passed lately.

Only what is not rejected is written; rejected is what is left of the documents that passed. Those are counted once for
all topics, since most requests name none; documents that were put to a topic by name are counted by the topic itself.

    ever     passed − since + named                  documents; `since` had passed when the topic was made
    lately   the same over the last RECENT_BUCKETS buckets of BUCKET_SIZE documents of the stream
    newest   the same over as many, or, of a topic that has not seen twice as many, over the newer half

    as_now   `lately`, but only since the topic's settings last had it decide otherwise: what was decided by other
             cut-offs says nothing of a goal. For that the counts as they stood then are kept, as `anew`

A topic keeps a ring of SLOTS buckets, each "bucket named accepted abstained", so its size is bounded and nothing has to
be cleared. A batch goes into one bucket as a whole. A document counts when it is new to the memory, so once however
often it is sent. A process that is killed, or loses the store, between remembering a batch and counting it leaves that
batch uncounted, or counted as rejected; it has not been acknowledged either.

Beside the topics' own counts there are sums over all of them, ever, for those who watch the service: the topics' counts
go when a topic is deleted, and to add up a hundred thousand takes a second.

One that repeats another (store/signatures.py) counts where it is news: in topics that are younger than the other, or
decide it otherwise.

What is not rejected is also queued for review (see feedback/review.py), unless a rule decided. A write waits for the
disk, so all of a batch goes to the store together.
"""

import math
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from models.goals.volume import StreamCounts
from service.store.counts import count_cmds, count_topic_cmd
from service.store.topics import Step, Store
from service.topics.published import PublishedModel
from service.topics.registry import Registry
from service.topics.results import Classified, Kept
from service.topics.retrain_policy import LastRetrain

BUCKET_SIZE, SLOTS, RECENT_BUCKETS = 1000, 100, 10
POSITION_TTL_S = 0.5  # so long a process relies on what it last heard of how many have passed


@dataclass(frozen=True, slots=True)
class TopicCounts:
    ever: StreamCounts
    lately: StreamCounts
    newest: StreamCounts  # as against what came before
    as_now: StreamCounts
    retrained: LastRetrain | None = None  # by itself, see retrain_policy.py


class TopicCounters:
    def __init__(self, store: Store, registry: Registry, kept: int) -> None:
        self._store = store
        self._registry = registry
        self._kept = kept  # most documents in a queue
        self._passed, self._heard_s = 0, -math.inf

    async def count_cmds(self, classified: Classified, new: Collection[str], named: Sequence[str] | None) -> list[Step]:
        """What counts those of the documents that are new, each once; the answers are for `heard`."""
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
        everybody, put = (len(places), 0) if named is None else (0, len(places))
        passed = await self._position() + everybody
        counts: list[Step] = []
        decided = {"named": put, "accept": 0, "abstain": 0}
        some = classified.kept.keys() | set().union(*repeats.values()) if named is None else named
        for topic in dict.fromkeys(some):
            news = {place for place, topics in repeats.items() if topic in topics}  # as if it had been put by name
            kept = [one for one in classified.kept.get(topic, ()) if one.place in places or one.place in news]
            for one in kept:
                decided[one.decision] += 1
            served = self._registry.topics.get(topic)
            if served and (kept or put or news):
                before, by_name = passed - everybody, put + len(news)
                counts.append(self._count_cmd(served, kept, classified.ids, before, passed, by_name))
        return [*count_cmds(everybody, decided), *counts]

    def note_replies(self, answers: Sequence[Any]) -> None:
        """How many have passed is the first that the store says."""
        self._passed, self._heard_s = int(answers[0]), time.monotonic()

    async def _position(self) -> int:
        """How many documents have passed, as far as this process has heard: its own are known, and those of others are
        asked for if they may be many. It only says which bucket is the newest."""
        if time.monotonic() - self._heard_s > POSITION_TTL_S:
            self._passed, self._heard_s = await self._store.counts.passed(), time.monotonic()
        return self._passed

    async def reset_window(self, served: PublishedModel) -> None:
        """The topic decides otherwise from now on."""
        await self._store.counts.reset_window(served.topic, served.born, await self._store.counts.passed())

    async def load(self, topics: Sequence[str]) -> list[TopicCounts]:
        passed, rows = await self._store.counts.load(topics)
        return [counts_of(row, passed) for row in rows]

    def _count_cmd(
        self, served: PublishedModel, kept: Sequence[Kept], ids: Sequence[str], before: int, passed: int, named: int
    ) -> Step:
        bucket = _bucket(passed)
        accepted = [one for one in kept if one.decision == "accept"]
        abstained = [one for one in kept if one.decision == "abstain"]
        likely = [ids[one.place] for one in accepted if not one.by_rule][-self._kept :]
        uncertain = [ids[one.place] for one in abstained if not one.by_rule][-self._kept :]
        return count_topic_cmd(
            served.topic,
            served.born,
            passed=before,
            bucket=bucket,
            slot=bucket % SLOTS,
            named=named,
            accepted=len(accepted),
            abstained=len(abstained),
            likely=likely,
            uncertain=uncertain,
            kept=self._kept,
        )


def counts_of(stored: Mapping[bytes, bytes], passed: int) -> TopicCounts:
    def total(name: bytes) -> int:
        return int(stored.get(name, 0))

    since = int(stored.get(b"since", passed))
    buckets = [[int(n) for n in row.split()] for slot, row in stored.items() if slot.isdigit()]

    def over(last: int) -> StreamCounts:
        """The last so many buckets."""
        oldest = _bucket(passed) - last + 1
        recent = [row for row in buckets if row[0] >= oldest]
        named, accepted, abstained = (sum(row[i] for row in recent) for i in (1, 2, 3))
        return _passed(passed - max(since, oldest * BUCKET_SIZE) + named, accepted, abstained)

    half = max(1, (_bucket(passed) - _bucket(since)) // 2)
    lately, totals = over(RECENT_BUCKETS), [total(name) for name in (b"named", b"accepted", b"abstained")]
    then, *before = (int(n) for n in stored.get(b"anew", b"%d 0 0 0" % since).split())
    named, accepted, abstained = (now - was for now, was in zip(totals, before, strict=True))
    anew = _passed(passed - max(since, then) + named, accepted, abstained)
    return TopicCounts(
        _passed(passed - since + totals[0], totals[1], totals[2]),
        lately,
        over(min(RECENT_BUCKETS, half)),
        min(lately, anew, key=lambda some: some.documents),
        LastRetrain.of(stored[b"retrained"].decode()) if b"retrained" in stored else None,
    )


def stored_counts(ever: StreamCounts, lately: StreamCounts, passed: int) -> list[str | int]:
    """A tally that was counted elsewhere, as it is kept here, when so many have passed: what came before was named."""
    bucket = _bucket(passed)
    row = f"{bucket} {lately.documents} {lately.accepted} {lately.abstained}"
    counts: list[str | int] = ["named", ever.documents, "accepted", ever.accepted, "abstained", ever.abstained]
    return ["since", passed, *counts, bucket % SLOTS, row]


def _bucket(passed: int) -> int:
    return max(0, passed - 1) // BUCKET_SIZE


def _passed(documents: int, accepted: int, abstained: int) -> StreamCounts:
    # The oldest bucket may hold a batch that began before it.
    return StreamCounts(max(documents, accepted + abstained), accepted, abstained)
