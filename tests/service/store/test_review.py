"""The queues of documents that wait for a judgement: newest first, bounded, and of this incarnation of a topic."""

import pytest

from service.errors import NotFound
from service.store.counts import count_topic_cmd
from service.store.events import Event
from service.store.review import Offered, Queued
from service.store.topics import Store

FIRST = Event("created", 1, 0, settings="{}", features=b"q")


async def test_documents_are_queued_without_being_counted_in_the_place_of_what_was_counted_last(
    redis_store: Store,
) -> None:
    await redis_store.create("t", "one", FIRST)
    counts = {"passed": 0, "bucket": 0, "slot": 0, "named": 0, "accepted": 3, "abstained": 1}
    await redis_store.run(
        [count_topic_cmd("t", "one", **counts, likely=["a", "b", "c"], uncertain=["u"], kept=9)]  # 4 are counted
    )
    before = await redis_store.counts.load(["t"])
    await redis_store.review.queue([Offered("t", "one", ["a", "x"], ["v"])], kept=9)
    assert await redis_store.review.queued("t", "one") == Queued(["x", "c", "b", "a"], ["v", "u"], [])
    assert await redis_store.counts.load(["t"]) == before
    await redis_store.review.queue([Offered("t", "one", ["y", "z"], [])], kept=2)
    assert len((await redis_store.review.queued("t", "one")).likely) == 2


async def test_nothing_is_queued_or_skipped_for_a_topic_that_is_gone(redis_store: Store) -> None:
    await redis_store.create("t", "two", FIRST)
    await redis_store.review.queue([Offered("t", "one", ["a"], ["u"])], kept=9)
    assert await redis_store.review.queued("t", "two") == Queued([], [], [])
    with pytest.raises(NotFound):
        await redis_store.review.skip("t", "one", "a", at_ms=1, kept=9)
    with pytest.raises(NotFound):
        await redis_store.review.queued("t", "one")


async def test_a_skipped_document_leaves_the_queues_and_the_newest_are_remembered(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    await redis_store.review.queue([Offered("t", "one", ["a", "b"], ["u"])], kept=9)
    for at_ms, document in enumerate(("a", "u", "b"), 1):
        await redis_store.review.skip("t", "one", document, at_ms=at_ms, kept=2)
    assert await redis_store.review.queued("t", "one") == Queued([], [], ["b", "u"])
    assert await redis_store.review.skipped("t") == [("u", 2), ("b", 3)]
