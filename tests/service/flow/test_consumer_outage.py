"""No document of the stream `sluice:in` is lost while the store is full, refuses, is emptied, or its reply is lost."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from service.errors import StoreUnavailable
from service.flow.classify import Batch
from service.flow.consumer import FIRST_BATCH, MAX_BATCH, MAX_IN_FLIGHT, Consumer
from service.store.redis.connection import Connection
from service.store.redis.consumer_group import Arrived, ConsumerGroup
from service.store.redis.keys import IN
from service.store.stream.inbox import GROUP, ConsumerStats, Inbox
from service.store.topics import Step
from tests.support.api import OIL, Api, running_api
from tests.support.consuming import (
    OUT,
    STREAM_SIZE,
    accepted_documents,
    add_entry,
    consuming,
    dead_letters,
    output_documents,
    wait_until_consumed,
)
from tests.support.streaming import grain, oil
from tests.support.waiting import PATIENCE_S, wait_until


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, take_over_s=0.2, max_text_chars=10_000) as api:
        await api.topic()
        yield api


async def test_a_stream_that_is_deleted_is_made_anew(api: Api, store: "Redis") -> None:
    async with consuming(api):
        add_entry(store, OIL | {"id": "one"})
        await wait_until_consumed(store)
        store.delete(IN)
        add_entry(store, OIL | {"id": "two"})
        await wait_until_consumed(store)
    assert output_documents(store) == ["one", "two"]


async def test_a_store_that_cannot_write_leaves_documents_where_they_are(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is full: nothing new is read, nothing is dropped, nothing becomes a dead letter; then there is room."""
    for document in accepted_documents(STREAM_SIZE):
        add_entry(store, document)
    report_cmds, tries = Inbox.report_cmds, 0

    def counted(inbox: Inbox, stats: ConsumerStats) -> list[Step]:
        nonlocal tries
        tries += 1
        return report_cmds(inbox, stats)

    monkeypatch.setattr(Inbox, "report_cmds", counted)
    try:
        async with consuming(api, full=store):
            await asyncio.sleep(1)
            assert 1 <= tries <= 4  # after .1, .3 and .7 seconds
            assert store.xlen(IN) == STREAM_SIZE
            assert (
                store.xpending(IN, GROUP)["pending"] <= MAX_IN_FLIGHT * MAX_BATCH < STREAM_SIZE
            )  # before the first was refused
            assert output_documents(store) == []
            store.config_set("maxmemory", 0)
            await wait_until_consumed(store)
    finally:
        store.config_set("maxmemory", 0)
    assert len(output_documents(store)) == STREAM_SIZE
    assert dead_letters(store) == []


async def test_consumers_do_not_take_from_each_other_what_a_full_store_keeps_them_from_deciding(
    api: Api, store: "Redis"
) -> None:
    """They did, again and again, until its delivery count made the document a dead letter."""
    await ConsumerGroup(api.sluice.store.connection, IN, GROUP, "killed").open()
    add_entry(store, OIL | {"id": "one"})
    store.xreadgroup(GROUP, "killed", {IN: ">"})
    try:
        async with consuming(api, full=store):
            await asyncio.sleep(2)  # of which it could be taken over every .2 seconds
            (pending,) = store.xpending_range(IN, GROUP, "-", "+", 2)
            assert pending["times_delivered"] == 1
            store.config_set("maxmemory", 0)
            await wait_until_consumed(store)
    finally:
        store.config_set("maxmemory", 0)
    assert output_documents(store) == ["one"]


async def test_what_a_consumer_took_without_hearing_of_it_is_decided_at_once_afterwards(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store ran all commands of a round trip, and its reply was lost; no other consumer claims the entries."""
    config = api.sluice.config.model_copy(update={"take_over_s": 3600})
    monkeypatch.setattr(api.sluice.classifier, "config", config)
    for document in accepted_documents(3 * FIRST_BATCH):
        add_entry(store, document)
    run, rounds = Inbox.run, 0

    async def lose_reply(inbox: Inbox, steps: Any) -> list[Any]:
        nonlocal rounds
        rounds += 1
        replies = await run(inbox, steps)
        if rounds % 4 == 1:
            raise StoreUnavailable("The reply is lost.")
        return replies

    monkeypatch.setattr(Inbox, "run", lose_reply)
    async with consuming(api):
        await wait_until_consumed(store)
    assert sorted(output_documents(store)) == sorted(document["id"] for document in accepted_documents(3 * FIRST_BATCH))
    assert (await api.ok("GET", "/topics/crude"))["status"]["passed"]["documents"] <= 3 * FIRST_BATCH
    assert store.xpending(IN, GROUP)["pending"] == 0
    assert rounds > 2


async def test_a_store_that_is_lost_after_the_round_trip_leaves_nobody_deciding(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first documents cannot be answered: those that are decided meanwhile are not waited for. All are taken up
    again later."""
    for document in accepted_documents(STREAM_SIZE):
        add_entry(store, document)
    decide, deciding, stopping = Batch.decide, 0, asyncio.Event()

    async def three() -> bool:
        return deciding == 3

    async def lost(batch: Batch, replies: Any) -> list[Any]:
        await wait_until(three)
        stopping.set()
        raise StoreUnavailable("The store is lost.")

    async def endless(batch: Batch) -> None:
        nonlocal deciding
        deciding += 1
        if deciding == 3:
            await asyncio.Event().wait()
        await decide(batch)

    monkeypatch.setattr(Batch, "write_cmds", lost)
    monkeypatch.setattr(Batch, "decide", endless)
    connection = Connection(str(api.sluice.config.redis), 1.0)
    inbox = Inbox(connection)
    await inbox.group.open()
    async with asyncio.timeout(PATIENCE_S):
        await Consumer(api.sluice.classifier, inbox, 0).run(stopping)
    assert deciding == 3
    assert not [task for task in asyncio.all_tasks() if "Consumer" in repr(task)]
    await connection.close()
    monkeypatch.undo()
    async with consuming(api):
        await wait_until_consumed(store)
    assert len(output_documents(store)) == STREAM_SIZE


async def test_a_batch_whose_scripts_the_store_does_not_know_any_more_is_written_whole(
    api: Api, store: "Redis"
) -> None:
    for document in accepted_documents(STREAM_SIZE):
        add_entry(store, document)
    async with consuming(api):
        while store.xlen(IN):
            store.script_flush()
            await asyncio.sleep(0.01)
        await wait_until_consumed(store)
    assert len(output_documents(store)) == STREAM_SIZE


async def test_nothing_is_settled_that_could_not_be_let_through(api: Api, store: "Redis") -> None:
    """Somebody has put something else where a topic's stream should be: that is loud, and no document is lost by it."""
    for document in accepted_documents(FIRST_BATCH):
        add_entry(store, document)
    store.set(OUT, "mine")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        async with consuming(api):
            await asyncio.sleep(1)
    assert store.xlen(IN) == FIRST_BATCH
    store.delete(OUT)
    async with consuming(api):
        await wait_until_consumed(store)
    assert sorted(output_documents(store)) == sorted(document["id"] for document in accepted_documents(FIRST_BATCH))


async def test_a_batch_that_is_decided_is_written_though_the_next_cannot_be_taken(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [*oil(300), *grain(300)]
    for document in documents:
        add_entry(store, document)
    take, times = ConsumerGroup.read_new, 0

    async def refused(group: ConsumerGroup, most: int) -> list[Arrived]:
        nonlocal times
        times += 1
        if times % 2:
            raise StoreUnavailable("Too many requests wait for the store; try again.")
        return await take(group, most)

    monkeypatch.setattr(ConsumerGroup, "read_new", refused)
    async with consuming(api):
        await wait_until_consumed(store)
    assert times > 1
    assert (await api.ok("GET", "/topics/crude"))["status"]["passed"]["documents"] == len(documents)
