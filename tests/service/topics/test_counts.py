"""How the stream was decided is counted once for each document, whichever topics are named, and survives everything."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from models.goals.reporting.volume import StreamCounts, check_volume
from service.errors import NotFound
from service.run.replay import replay
from service.store.counts import count_topic_cmd
from service.topics.counts import BUCKET_SIZE, RECENT_BUCKETS, SLOTS, counts_of
from tests.support.api import Api, running_api
from tests.support.live import live
from tests.support.streaming import classify, grain, oil, status
from tests.support.waiting import PATIENCE_S


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        await api.topic()
        yield api


def decided(results: Any, topic: str = "crude") -> dict[str, int]:
    """Counts the decisions of a response."""
    made = [d["decision"] for result in results for d in result["decisions"] if d["topic"] == topic]
    counts = {"documents": len(results), "accepted": made.count("accept"), "abstained": made.count("abstain")}
    return counts | {"rejected": len(results) - counts["accepted"] - counts["abstained"]}


async def passed(api: Api, topic: str = "crude") -> dict[str, int]:
    counts = (await status(api, topic))["passed"]
    assert counts.pop("lately") == counts
    return dict(counts)


async def test_what_was_answered_is_what_is_counted(api: Api) -> None:
    counts = decided(await classify(api, [*oil(30), *grain(70)]))
    assert 0 < counts["accepted"] < 100
    assert await passed(api) == counts
    (listed,) = (await api.ok("GET", "/topics"))["items"]
    assert listed["status"] == await status(api)


async def test_a_document_sent_twice_counts_once(api: Api) -> None:
    documents = [*oil(10), *grain(10)]
    counts = decided(await classify(api, documents))
    await classify(api, documents)
    await classify(api, [documents[0], documents[0]])
    assert await passed(api) == counts
    unnamed = {"text": "crude oil from OPEC, in barrels"}
    await classify(api, [unnamed, unnamed])
    assert (await passed(api))["documents"] == counts["documents"] + 1


async def test_what_is_not_stored_is_not_counted(api: Api) -> None:
    await classify(api, oil(10), store=False)
    assert await passed(api) == {"documents": 0, "accepted": 0, "abstained": 0, "rejected": 0}


async def test_a_topic_counts_from_when_it_was_made(api: Api) -> None:
    await classify(api, oil(10))
    await api.topic("late")
    assert (await passed(api, "late"))["documents"] == 0
    counts = decided(await classify(api, oil(5, "later")), "late")
    assert await passed(api, "late") == counts


async def test_documents_put_to_a_topic_by_name_count_for_it_alone(api: Api) -> None:
    await api.topic("other")
    counts = decided(await classify(api, [*oil(5), *grain(5)], topics=["crude"]))
    assert await passed(api) == counts
    assert (await passed(api, "other"))["documents"] == 0
    await classify(api, oil(3, "all"))
    assert (await passed(api))["documents"] == 13
    assert (await passed(api, "other"))["documents"] == 3


async def test_what_a_rule_decides_is_counted_as_it_was_answered(api: Api) -> None:
    await api.ok("PATCH", "/topics/crude", {"rules": {"accept_if": "harvest", "reject_if": "opec"}})
    counts = decided(await classify(api, [*oil(20), *grain(20)]))
    assert await passed(api) == counts


async def test_several_at_once_count_everything(api: Api) -> None:
    batches = [oil(20, f"b{n}-") for n in range(10)]
    results = await asyncio.gather(*(classify(api, batch) for batch in batches))
    assert await passed(api) == decided([decision for result in results for decision in result])


async def test_counts_outlive_the_process_and_a_replay(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await api.topic()
        counts = decided(await classify(api, [*oil(10), *grain(10)]))
    with live(redis_url) as server:
        async with Api(base_url=server.address, timeout=PATIENCE_S) as other:
            assert await passed(other) == counts
    async with running_api(redis_url) as api:
        await replay(api.sluice.store, "crude", api.sluice.config, verify=False)
        assert await passed(api) == counts


async def test_a_deleted_topic_leaves_no_key_behind(api: Api, redis_url: str) -> None:
    await api.ok("PATCH", "/topics/crude", {"goal": {"min_recall": 0.9}, "audit": 1.0})
    results = await classify(api, [*oil(20), *grain(20)])
    await api.judge(results[0]["document"], True)
    await api.ok("POST", "/topics/crude/review/skip", {"document": "o3"})
    await api.ok("POST", "/topics/crude/known", {"documents": ["o4"]})
    with Redis.from_url(redis_url) as client:
        assert len(client.keys("sluice:{crude}:*")) >= 8
        published = api.sluice.registry.get("crude")
        await api.ok("DELETE", "/topics/crude")
        assert client.keys("sluice:{crude}:*") == []
        # A process that does not know of the deletion yet counts nothing, nor for another topic of that name.
        counts = {"passed": 0, "bucket": 0, "slot": 0, "named": 1, "accepted": 1, "abstained": 0}
        late = count_topic_cmd("crude", published.born, **counts, likely=["o1"], uncertain=[], kept=9)
        assert await api.sluice.store.run([late]) == [0]
        with pytest.raises(NotFound):
            await api.sluice.review.skip(published, "o1")
        with pytest.raises(NotFound):
            await api.sluice.known.add(published, ["o1"])
        assert client.keys("sluice:{crude}:*") == []


@given(st.lists(st.tuples(st.integers(1, 3000), st.integers(0, 100), st.integers(0, 100)), max_size=40))
def test_lately_is_the_newest_buckets_and_ever_is_everything(batches: list[tuple[int, int, int]]) -> None:
    """A ring of slots, written as the script does it, against a plain list."""
    position, stored = 0, {b"since": b"0"}
    ring: dict[int, list[int]] = {}
    totals = [0, 0]
    for size, accepted, abstained in batches:
        accepted, abstained = min(size, accepted), min(size - min(size, accepted), abstained)
        position += size
        bucket = (position - 1) // BUCKET_SIZE
        was = ring.get(bucket % SLOTS, [bucket, 0, 0, 0])
        ring[bucket % SLOTS] = (
            [bucket, 0, accepted, abstained] if was[0] != bucket else [bucket, 0, was[2] + accepted, was[3] + abstained]
        )
        totals = [totals[0] + accepted, totals[1] + abstained]
    stored |= {str(slot).encode(): " ".join(map(str, row)).encode() for slot, row in ring.items()}
    stored |= {b"accepted": b"%d" % totals[0], b"abstained": b"%d" % totals[1]}
    counts = counts_of(stored, position)
    assert (counts.ever.documents, counts.ever.accepted, counts.ever.abstained) == (position, *totals)
    assert counts.lately.rejected >= 0
    assert (
        counts.lately.documents <= max(RECENT_BUCKETS * BUCKET_SIZE, sum(totals))
        or position <= RECENT_BUCKETS * BUCKET_SIZE
    )
    if position <= RECENT_BUCKETS * BUCKET_SIZE:
        assert counts.lately == counts.ever
    if position > 2 * RECENT_BUCKETS * BUCKET_SIZE:
        assert counts.newest == counts.lately


def test_a_young_topic_can_fall_silent_too() -> None:
    """Its newer half against the older, before there are ten thousand documents to compare with."""
    stored = {b"since": b"0", b"accepted": b"30", b"abstained": b"8", b"0": b"0 0 20 5", b"1": b"1 0 10 3"}
    counts = counts_of(stored, 4700)
    assert counts.lately == counts.ever
    assert (counts.newest.documents, counts.newest.accepted, counts.newest.abstained) == (1700, 0, 0)
    before = StreamCounts(4700 - 1700, 30, 8)
    assert check_volume([before, counts.newest]).silent
