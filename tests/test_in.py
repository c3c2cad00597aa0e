"""Documents that come by the stream `sluice:in` are decided, each at least once, whatever happens to who took them."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from service.connection import Connection, GroupGone, Step
from service.consuming import ALONE, BATCH, FIRST, GIVEN_UP, Consumer
from service.embedded import Embedded
from service.errors import StoreUnavailable
from service.group import Arrived, Group
from service.inbox import DEAD, GROUP, IN, Figures, Inbox
from service.passage import Passage
from tests.serving import OIL, Api, serving
from tests.streaming import grain, oil, passes
from tests.waiting import soon

OUT = "sluice:out:crude"
MANY = 8 * BATCH  # fewer than a topic's stream keeps


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with serving(redis_url, take_over_s=0.2, max_text_chars=10_000) as api:
        await api.topic()
        yield api


@pytest.fixture
def store(embedded: Embedded) -> Iterator["Redis"]:
    with Redis.from_url(embedded.url, decode_responses=True) as client:
        yield client


@asynccontextmanager
async def consuming(api: Api, full: "Redis | None" = None) -> AsyncIterator[Consumer]:
    """A consumer at work, in this process, until the end of the block; with a store that is `full` from then on."""
    connection, stopping = Connection(str(api.sluice.config.redis), 1.0), asyncio.Event()
    inbox = Inbox(connection)
    await inbox.group.open()
    if full:
        full.config_set("maxmemory", 1)
    consumer = Consumer(api.sluice, inbox, 0)
    working = asyncio.create_task(consumer.run(stopping))
    try:
        yield consumer
    finally:
        stopping.set()
        try:
            await working
        finally:
            await connection.close()


async def settled(store: "Redis") -> None:
    async def empty() -> bool:
        return store.xlen(IN) == 0

    await soon(empty)


def add(store: "Redis", document: dict[str, Any]) -> None:
    store.xadd(IN, {"document": json.dumps(document)})


def let_through(store: "Redis") -> list[str]:
    rows: Any = store.xrange(OUT)
    return [fields["document"] for _, fields in rows]


def dead(store: "Redis") -> list[dict[str, str]]:
    rows: Any = store.xrange(DEAD)
    return [fields for _, fields in rows]


def accepted(n: int) -> list[dict[str, Any]]:
    """Documents that the topic is sure of."""
    return [OIL | {"id": f"o{i}"} for i in range(n)]


async def take_and_die(redis_url: str, times: int = 1) -> None:
    """Somebody takes whatever is there, as often as that, and is never heard of again."""
    connection = Connection(redis_url, 1.0)
    for n in range(times):
        inbox = Inbox(connection)
        await inbox.group.open()
        assert await (inbox.group.take_over(BATCH, 0) if n else inbox.group.take_new(BATCH))
    await connection.close()


async def test_documents_are_decided_as_if_they_had_been_classified(api: Api, store: "Redis") -> None:
    documents = [*oil(30), *grain(30)]
    for document in documents[::2]:
        add(store, document)
    for document in documents[1::2]:
        fields: dict[Any, Any] = {**document, "source": "wire", "metadata": '{"page": [1, 2]}'}
        store.xadd(IN, fields)
    async with consuming(api):
        await settled(store)
    results = await passes(api, documents, store=False)
    assert sorted(let_through(store)) == sorted(r["document"] for r in results if r["decisions"])
    assert (await api.ok("GET", "/topics/crude"))["status"]["passed"]["documents"] == 60
    assert (await api.judge("o1", True))["status"] == "learned"  # it is remembered
    assert dead(store) == []
    assert store.xpending(IN, GROUP)["pending"] == 0


async def test_what_was_added_before_the_first_consumer_came_is_decided_too(api: Api, store: "Redis") -> None:
    add(store, OIL | {"id": "early"})
    assert (await api.ok("GET", "/flow"))["lag"] == 1
    async with consuming(api):
        await settled(store)
        add(store, OIL | {"id": "late"})
        await settled(store)
    assert let_through(store) == ["early", "late"]


async def test_what_cannot_be_read_is_dead_with_the_reason_and_holds_up_nobody(api: Api, store: "Redis") -> None:
    poison: list[tuple[dict[Any, Any], str]] = [
        ({"document": "{"}, "not valid JSON"),
        ({"document": '{"txt": "x"}'}, "/txt: There is no such field."),
        ({"document": '{"text": " "}'}, "the document is empty"),
        ({"title": "no text"}, "/text"),
        ({"text": b"\xff\xfe"}, "not UTF-8"),
        ({"text": "x", "metadata": "{"}, "metadata"),
        ({"text": "x" * 10_001}, "10,000 characters"),
        ({"text": "x" * 11_000_000}, "10,000,000 bytes"),
        ({"text": "x", "colour": "red"}, "/colour"),
    ]
    for n, (fields, _) in enumerate(poison):
        store.xadd(IN, fields)
        add(store, OIL | {"id": f"good{n}"})
    async with consuming(api):
        await settled(store)
        (said,) = (await api.ok("GET", "/flow"))["consumers"]
    assert let_through(store) == [f"good{n}" for n in range(len(poison))]
    with Redis.from_url(str(api.sluice.config.redis)) as raw:
        found: Any = raw.xrange(DEAD)
    assert len(found) == len(poison) == said["dead"]
    for (_, kept), (fields, reason) in zip(found, poison, strict=True):
        assert reason.lower() in kept.pop(b"reason").decode().lower()
        assert kept.pop(b"entry")
        name, value = next(iter(fields.items()))
        whole = value if isinstance(value, bytes) else value.encode()
        assert kept[name.encode()] == (whole if len(whole) < 1_000_000 else whole[:1000])


async def test_what_somebody_took_and_did_not_decide_is_taken_over(api: Api, store: "Redis", redis_url: str) -> None:
    for document in accepted(20):
        add(store, document)
    await take_and_die(redis_url)
    flow = await api.ok("GET", "/flow")
    assert (flow["lag"], flow["pending"]) == (0, 20)
    assert [(one["alive"], one["pending"]) for one in flow["consumers"]] == [(False, 20)]
    async with consuming(api):
        await settled(store)
        flow = await api.ok("GET", "/flow")
    assert sorted(let_through(store)) == sorted(one["id"] for one in accepted(20))
    (alive,) = flow["consumers"]
    assert (alive["alive"], alive["taken_over"], alive["documents"]) == (True, 20, 20)
    assert flow | {"consumers": []} == {"lag": 0, "lag_s": 0.0, "pending": 0, "dead": 0, "consumers": []}


async def test_what_ended_everybody_who_took_it_is_given_up(api: Api, store: "Redis", redis_url: str) -> None:
    for document in accepted(3):
        add(store, document)
    await take_and_die(redis_url, GIVEN_UP)
    async with consuming(api):
        await settled(store)
    assert let_through(store) == []
    assert all(f"Taken {GIVEN_UP + 1} times" in one["reason"] for one in dead(store))
    assert [json.loads(one["document"])["id"] for one in dead(store)] == ["o0", "o1", "o2"]


async def test_what_ended_some_is_decided_by_itself(
    api: Api, store: "Redis", redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for document in accepted(3):
        add(store, document)
    await take_and_die(redis_url, ALONE)
    batches: list[int] = []
    begin = Passage.begin

    async def counted(passage: Any) -> list[Step]:
        batches.append(len(passage._documents))
        return await begin(passage)

    monkeypatch.setattr(Passage, "begin", counted)
    async with consuming(api):
        await settled(store)
        add(store, OIL)
        await settled(store)
    assert batches == [1, 1, 1, 1]
    assert len(let_through(store)) == 4


async def test_a_consumer_takes_fewer_documents_when_they_are_long(api: Api, store: "Redis") -> None:
    async with consuming(api) as consumer:
        for document in accepted(3 * BATCH):
            add(store, document)
        await settled(store)
        assert consumer.most == BATCH
        for n in range(10):
            store.xadd(IN, {"document": "x" * 1_000_000 + str(n)})
        await settled(store)
        assert consumer.most == 1 < FIRST


async def test_a_stream_that_is_deleted_is_made_anew(api: Api, store: "Redis") -> None:
    async with consuming(api):
        add(store, OIL | {"id": "one"})
        await settled(store)
        store.delete(IN)
        add(store, OIL | {"id": "two"})
        await settled(store)
    assert let_through(store) == ["one", "two"]


async def test_a_store_that_cannot_write_leaves_documents_where_they_are(api: Api, store: "Redis") -> None:
    """The store is full: nothing new is taken, nothing is dropped, nobody is blamed; then there is room again."""
    for document in accepted(10 * FIRST):
        add(store, document)
    try:
        async with consuming(api, full=store):
            await asyncio.sleep(1)
            assert store.xlen(IN) == 10 * FIRST
            assert store.xpending(IN, GROUP)["pending"] <= 2 * FIRST
            assert let_through(store) == []
            store.config_set("maxmemory", 0)
            await settled(store)
    finally:
        store.config_set("maxmemory", 0)
    assert len(let_through(store)) == 10 * FIRST
    assert dead(store) == []


async def test_consumers_that_are_long_gone_are_forgotten_unless_they_hold_something(
    store: "Redis", redis_url: str
) -> None:
    connection = Connection(redis_url, 1.0)
    idle, holding, alive, waiting = (Inbox(connection) for _ in range(4))
    for inbox in (idle, holding, alive, waiting):
        await inbox.group.open()
    add(store, OIL)
    assert len(await holding.group.take_new(1)) == 1
    await asyncio.sleep(0.5)
    await waiting.report(Figures(0))  # has nothing to do, and says so
    await alive.group.take_over(1, 60)
    await connection.run([alive.group.retired(0.4)])
    names = {one["name"] for one in store.xinfo_consumers(IN, GROUP)}
    assert names == {holding.name, alive.name, waiting.name}
    await connection.close()


def test_a_consumer_that_nobody_needs_has_loaded_neither_kernels_nor_models() -> None:
    loaded = "import service.consumer, sys; print(*sorted({'models', 'numba', 'numpy', 'scipy'} & sys.modules.keys()))"
    assert subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True).stdout == b"\n"


async def test_what_a_consumer_took_without_hearing_of_it_is_decided_at_once_afterwards(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store did all that a round trip asked for, and its answer was lost; nobody else takes it over."""
    monkeypatch.setattr(api.sluice, "config", api.sluice.config.model_copy(update={"take_over_s": 3600}))
    for document in accepted(3 * FIRST):
        add(store, document)
    run, rounds = Inbox.run, 0

    async def unheard(inbox: Inbox, steps: Any) -> list[Any]:
        nonlocal rounds
        rounds += 1
        answers = await run(inbox, steps)
        if rounds % 4 == 1:
            raise StoreUnavailable("The answer is lost.")
        return answers

    monkeypatch.setattr(Inbox, "run", unheard)
    async with consuming(api):
        await settled(store)
    assert sorted(let_through(store)) == sorted(one["id"] for one in accepted(3 * FIRST))
    assert (await api.ok("GET", "/topics/crude"))["status"]["passed"]["documents"] <= 3 * FIRST
    assert store.xpending(IN, GROUP)["pending"] == 0
    assert rounds > 2


async def test_a_consumer_that_is_told_to_stop_finishes_what_it_has_taken(api: Api, store: "Redis") -> None:
    for document in accepted(MANY):
        add(store, document)
    async with consuming(api):

        async def some() -> bool:
            return len(let_through(store)) > BATCH

        await soon(some)
    assert 0 < store.xlen(IN) < MANY
    assert store.xpending(IN, GROUP)["pending"] == 0
    assert len(let_through(store)) == MANY - store.xlen(IN)


async def test_a_batch_whose_scripts_the_store_does_not_know_any_more_is_written_whole(
    api: Api, store: "Redis"
) -> None:
    for document in accepted(MANY):
        add(store, document)
    async with consuming(api):
        while store.xlen(IN):
            store.script_flush()
            await asyncio.sleep(0.01)
        await settled(store)
    assert len(let_through(store)) == MANY


async def test_nothing_is_settled_that_could_not_be_let_through(api: Api, store: "Redis") -> None:
    """Somebody has put something else where a topic's stream should be: that is loud, and no document is lost by it."""
    for document in accepted(FIRST):
        add(store, document)
    store.set(OUT, "mine")
    with pytest.raises(ResponseError, match="WRONGTYPE"):
        async with consuming(api):
            await asyncio.sleep(1)
    assert store.xlen(IN) == FIRST
    store.delete(OUT)
    async with consuming(api):
        await settled(store)
    assert sorted(let_through(store)) == sorted(one["id"] for one in accepted(FIRST))


async def test_a_batch_that_is_decided_is_written_though_the_next_cannot_be_taken(
    api: Api, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    documents = [*oil(300), *grain(300)]
    for document in documents:
        add(store, document)
    take, times = Group.take_new, 0

    async def refused(group: Group, most: int) -> list[Arrived]:
        nonlocal times
        times += 1
        if times % 2:
            raise StoreUnavailable("Too many requests wait for the store; try again.")
        return await take(group, most)

    monkeypatch.setattr(Group, "take_new", refused)
    async with consuming(api):
        await settled(store)
    assert times > 1
    assert (await api.ok("GET", "/topics/crude"))["status"]["passed"]["documents"] == len(documents)


async def test_what_is_held_is_found_behind_what_somebody_deleted(store: "Redis", redis_url: str) -> None:
    connection = Connection(redis_url, 1.0)
    inbox = Inbox(connection)
    await inbox.group.open()
    for document in accepted(20):
        add(store, document)
    taken = await inbox.group.take_new(20)
    store.xdel(IN, *(one.place for one in taken[:16]))
    assert [one.place for one in await inbox.group.held(8)] == [one.place for one in taken[16:]]
    assert await inbox.group.pending() == 4
    store.delete(IN)
    with pytest.raises(GroupGone):
        await inbox.group.held(8)
    await connection.close()
