"""Documents in the stream `sluice:in` are decided, each at least once, even if consumers die."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from redis import Redis

from service.errors import GroupGone
from service.flow.classify import Batch
from service.flow.consumer import (
    ALONE_AFTER,
    BATCH_BYTES,
    FIRST_BATCH,
    GIVE_UP_AFTER,
    MAX_BATCH,
    MAX_IN_FLIGHT,
    Consumer,
    ConsumerBatch,
)
from service.store.redis.connection import Connection
from service.store.redis.consumer_group import Arrived
from service.store.redis.keys import DEAD, IN
from service.store.stream.inbox import GROUP, ConsumerStats, Inbox
from tests.support.api import OIL, Api, running_api
from tests.support.consuming import (
    STREAM_SIZE,
    accepted_documents,
    add_entry,
    consuming,
    dead_letters,
    output_documents,
    wait_until_consumed,
)
from tests.support.streaming import classify, grain, oil
from tests.support.waiting import PATIENCE_S, wait_until


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, take_over_s=0.2, max_text_chars=10_000) as api:
        await api.topic()
        yield api


async def take_and_die(redis_url: str, times: int = 1) -> None:
    """Delivers all entries `times` times, each time to a consumer that never acknowledges them."""
    connection = Connection(redis_url, 1.0)
    for n in range(times):
        inbox = Inbox(connection)
        await inbox.group.open()
        assert await (inbox.group.claim_idle(MAX_BATCH, 0) if n else inbox.group.read_new(MAX_BATCH))
    await connection.close()


async def test_documents_are_decided_as_if_they_had_been_classified(api: Api, store: "Redis") -> None:
    documents = [*oil(30), *grain(30)]
    for document in documents[::2]:
        add_entry(store, document)
    for document in documents[1::2]:
        fields: dict[Any, Any] = {**document, "source": "wire", "metadata": '{"page": [1, 2]}'}
        store.xadd(IN, fields)
    async with consuming(api):
        await wait_until_consumed(store)
    results = await classify(api, documents, store=False)
    assert sorted(output_documents(store)) == sorted(r["document"] for r in results if r["decisions"])
    assert (await api.ok("GET", "/topics/crude"))["status"]["passed"]["documents"] == 60
    assert (await api.judge("o1", True))["status"] == "learned"  # it is remembered
    assert dead_letters(store) == []
    assert store.xpending(IN, GROUP)["pending"] == 0


async def test_what_was_added_before_the_first_consumer_came_is_decided_too(api: Api, store: "Redis") -> None:
    add_entry(store, OIL | {"id": "early"})
    assert (await api.ok("GET", "/flow"))["lag"] == 1
    async with consuming(api):
        await wait_until_consumed(store)
        add_entry(store, OIL | {"id": "late"})
        await wait_until_consumed(store)
    assert output_documents(store) == ["early", "late"]


async def test_what_cannot_be_read_is_dead_with_the_reason_and_holds_up_nobody(api: Api, store: "Redis") -> None:
    poison: list[tuple[dict[Any, Any], str]] = [
        ({"document": "{"}, "not valid JSON"),
        ({"document": '{"txt": "x"}'}, "/txt: There is no such field."),
        ({"document": '{"text": " "}'}, "the document is empty"),
        ({"title": "", "source": "no text"}, "the document is empty"),
        ({"text": b"\xff\xfe"}, "not UTF-8"),
        ({"text": "x", "metadata": "{"}, "metadata"),
        ({"text": "x" * 10_001}, "10,000 characters"),
        ({"text": "x" * 11_000_000}, "10,000,000 bytes"),
        ({"text": "x", "colour": "red"}, "/colour"),
        ({"document": '{"text": "x"}', "id": "i"}, "not both"),
    ]
    for n, (fields, _) in enumerate(poison):
        store.xadd(IN, fields)
        add_entry(store, OIL | {"id": f"good{n}"})
    async with consuming(api):
        await wait_until_consumed(store)
        (consumer,) = (await api.ok("GET", "/flow"))["consumers"]
    assert output_documents(store) == [f"good{n}" for n in range(len(poison))]
    with Redis.from_url(str(api.sluice.config.redis)) as raw:
        rows: Any = raw.xrange(DEAD)
    assert len(rows) == len(poison) == consumer["dead"]
    for (_, kept), (fields, reason) in zip(rows, poison, strict=True):
        assert reason.lower() in kept.pop(b"reason").decode().lower()
        assert kept.pop(b"entry")
        name, value = next(iter(fields.items()))
        whole = value if isinstance(value, bytes) else value.encode()
        assert kept[name.encode()] == (whole if len(whole) < 1_000_000 else whole[:1000])


async def test_what_somebody_took_and_did_not_decide_is_taken_over(api: Api, store: "Redis", redis_url: str) -> None:
    for document in accepted_documents(20):
        add_entry(store, document)
    await take_and_die(redis_url)
    flow = await api.ok("GET", "/flow")
    assert (flow["lag"], flow["pending"]) == (0, 20)
    assert [(consumer["alive"], consumer["pending"]) for consumer in flow["consumers"]] == [(False, 20)]
    async with consuming(api):
        await wait_until_consumed(store)
        flow = await api.ok("GET", "/flow")
    assert sorted(output_documents(store)) == sorted(document["id"] for document in accepted_documents(20))
    (alive,) = flow["consumers"]
    assert (alive["alive"], alive["taken_over"], alive["documents"]) == (True, 20, 20)
    assert flow | {"consumers": []} == {"lag": 0, "lag_s": 0.0, "pending": 0, "dead": 0, "consumers": []}


async def test_what_ended_everybody_who_took_it_is_given_up(api: Api, store: "Redis", redis_url: str) -> None:
    for document in accepted_documents(3):
        add_entry(store, document)
    await take_and_die(redis_url, GIVE_UP_AFTER)
    async with consuming(api):
        await wait_until_consumed(store)
    assert output_documents(store) == []
    assert all(f"Delivered {GIVE_UP_AFTER + 1} times" in letter["reason"] for letter in dead_letters(store))
    assert [json.loads(letter["document"])["id"] for letter in dead_letters(store)] == ["o0", "o1", "o2"]


async def test_what_ended_some_is_decided_by_itself(
    api: Api, store: "Redis", redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for document in accepted_documents(3):
        add_entry(store, document)
    await take_and_die(redis_url, ALONE_AFTER)
    batches: list[int] = []
    decide = Batch.decide

    async def counted(batch: Any) -> None:
        batches.append(len(batch._documents))
        await decide(batch)

    monkeypatch.setattr(Batch, "decide", counted)
    async with consuming(api):
        await wait_until_consumed(store)
        add_entry(store, OIL)
        await wait_until_consumed(store)
    assert batches == [1, 1, 1, 1]
    assert len(output_documents(store)) == 4


async def test_who_is_taken_together_with_one_that_ends_everybody_is_not_given_up_with_it(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = accepted_documents(9)
    for document in documents:
        add_entry(store, document)
    decide = Batch.decide

    async def deadly(batch: Batch) -> None:
        if any(document.id == "o4" for document in batch._documents):
            raise RuntimeError("the end")
        await decide(batch)

    monkeypatch.setattr(Batch, "decide", deadly)
    connection = Connection(str(api.sluice.config.redis), 1.0)
    for _ in range(GIVE_UP_AFTER):
        inbox = Inbox(connection)
        await inbox.group.open()
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(RuntimeError, match="the end"):
                await Consumer(api.sluice.classifier, inbox, 0).run(asyncio.Event())
    await connection.close()
    async with consuming(api):
        await wait_until_consumed(store)
    assert sorted(output_documents(store)) == [document["id"] for document in documents if document["id"] != "o4"]
    assert [json.loads(letter["document"])["id"] for letter in dead_letters(store)] == ["o4"]


async def test_a_consumer_takes_fewer_documents_when_they_are_long(api: Api, store: "Redis") -> None:
    async with consuming(api) as consumer:
        for document in accepted_documents(3 * MAX_BATCH):
            add_entry(store, document)
        await wait_until_consumed(store)
        assert consumer.batch_size == MAX_BATCH
        for n in range(10):
            store.xadd(IN, {"document": "x" * 1_000_000 + str(n)})
        await wait_until_consumed(store)
        assert consumer.batch_size == 1 < FIRST_BATCH


async def test_consumers_that_are_long_gone_are_forgotten_unless_they_hold_something(
    store: "Redis", redis_url: str
) -> None:
    connection = Connection(redis_url, 1.0)
    idle, holding, alive, waiting = (Inbox(connection) for _ in range(4))
    for inbox in (idle, holding, alive, waiting):
        await inbox.group.open()
    add_entry(store, OIL)
    assert len(await holding.group.read_new(1)) == 1
    await asyncio.sleep(0.5)
    await waiting.report(ConsumerStats(0))  # has nothing to do, but reports
    await alive.group.claim_idle(1, 60)
    await connection.run([alive.group.drop_idle_cmd(0.4)])
    names = {consumer["name"] for consumer in store.xinfo_consumers(IN, GROUP)}
    assert names == {holding.name, alive.name, waiting.name}
    await connection.close()


def test_a_consumer_that_nobody_needs_has_loaded_neither_kernels_nor_models() -> None:
    """Of the models only the module of their names, which imports nothing."""
    listed = "import service.run.consumer, sys; print(*(name for name in sys.modules if name.startswith('models')))"
    kernels = "print(*sorted({'numba', 'numpy', 'scipy'} & sys.modules.keys()))"
    ran = subprocess.run([sys.executable, "-c", f"{listed}; {kernels}"], capture_output=True, check=True, text=True)
    assert ran.stdout == "models models.core models.core.names\n\n"


async def test_the_next_documents_are_decided_while_the_store_is_at_work_on_others(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    for document in accepted_documents(2 * FIRST_BATCH):
        add_entry(store, document)
    run, decide, decided = Inbox.run, Batch.decide, 0

    async def counted(batch: Batch) -> None:
        nonlocal decided
        await decide(batch)
        decided += 1

    async def slow(inbox: Inbox, steps: Any) -> list[Any]:
        async def both() -> bool:
            return decided == 2

        await wait_until(both)
        return await run(inbox, steps)

    monkeypatch.setattr(Batch, "decide", counted)
    monkeypatch.setattr(Inbox, "run", slow)
    async with consuming(api):
        await wait_until_consumed(store)
    assert len(output_documents(store)) == 2 * FIRST_BATCH


def block_deciding(monkeypatch: pytest.MonkeyPatch) -> asyncio.Event:
    """Makes consumers wait for the event before they decide anything; they go on reading."""
    decide, go = Consumer._decide, asyncio.Event()

    async def blocked(consumer: Consumer, entries: Sequence[Arrived]) -> ConsumerBatch:
        await go.wait()
        return await decide(consumer, entries)

    monkeypatch.setattr(Consumer, "_decide", blocked)
    return go


async def wait_until_read_ahead(store: "Redis") -> None:
    async def more_than_the_first() -> bool:
        return int(store.xpending(IN, GROUP)["pending"]) > FIRST_BATCH

    await wait_until(more_than_the_first)


async def test_what_is_taken_ahead_of_long_documents_is_little(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long they are is known when they are taken, not only when they are decided."""
    config = api.sluice.config.model_copy(update={"take_over_s": 3600})
    monkeypatch.setattr(api.sluice.classifier, "config", config)
    for n in range(3 * FIRST_BATCH):
        add_entry(store, {"id": str(n), "text": "x" * (BATCH_BYTES // 2)})
    go = block_deciding(monkeypatch)
    async with consuming(api) as consumer:
        await wait_until_read_ahead(store)
        await asyncio.sleep(0.5)
        taken = store.xpending(IN, GROUP)["pending"]
        go.set()
        await wait_until_consumed(store)
        assert consumer.batch_size == 1
    assert taken <= FIRST_BATCH + MAX_IN_FLIGHT


async def test_what_one_consumer_lets_through_is_in_the_order_in_which_it_came(api: Api, store: "Redis") -> None:
    for document in accepted_documents(STREAM_SIZE):
        add_entry(store, document)
    async with consuming(api):
        await wait_until_consumed(store)
    assert output_documents(store) == [document["id"] for document in accepted_documents(STREAM_SIZE)]


async def test_a_consumer_that_is_told_to_stop_finishes_what_it_has_taken(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    for document in accepted_documents(STREAM_SIZE):
        add_entry(store, document)
    go = block_deciding(monkeypatch)
    async with consuming(api):
        await wait_until_read_ahead(store)
        asyncio.get_running_loop().call_soon(go.set)  # after the end of the block, which tells it to stop
    assert 0 < store.xlen(IN) < STREAM_SIZE - FIRST_BATCH
    assert store.xpending(IN, GROUP)["pending"] == 0
    assert len(output_documents(store)) == STREAM_SIZE - store.xlen(IN)


async def test_what_is_held_is_found_behind_what_somebody_deleted(store: "Redis", redis_url: str) -> None:
    connection = Connection(redis_url, 1.0)
    inbox = Inbox(connection)
    await inbox.group.open()
    for document in accepted_documents(20):
        add_entry(store, document)
    taken = await inbox.group.read_new(20)
    store.xdel(IN, *(entry.place for entry in taken[:16]))
    assert [entry.place for entry in await inbox.group.own_pending(8)] == [entry.place for entry in taken[16:]]
    assert await inbox.group.pending_count() == 4
    store.delete(IN)
    with pytest.raises(GroupGone):
        await inbox.group.own_pending(8)
    await connection.close()
