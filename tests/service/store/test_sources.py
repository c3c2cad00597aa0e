"""Sources in the store: one process polls each, and what it commits counts only while it has the claim."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from service.store.sources import Fields, SourceClaim, SourceStore
from service.store.topics import Store
from tests.support.waiting import wait_until

LONG_S, SHORT_S = 3600.0, 0.05
RECORD: Fields = {"kind": "feed", "every_s": 60, "paused": 0, "created_ms": 1}


@pytest.fixture
async def sources(redis_url: str) -> AsyncIterator[SourceStore]:
    store = Store(redis_url)
    yield store.sources
    await store.close()


async def create(sources: SourceStore, id: str, url: str = "", paused: int = 0, limit: int = 10) -> str:
    url = url or f"https://{id}.example/"
    created = await sources.create(id, url, limit, {**RECORD, "url": url, "paused": paused})
    return f"{created.outcome} {created.same}".strip()


async def test_an_id_and_an_address_are_taken_once(sources: SourceStore) -> None:
    assert await create(sources, "a") == "created"
    assert await create(sources, "a", "https://other.example/") == "taken"
    assert await create(sources, "b", "https://a.example/") == "same a"
    assert await create(sources, "b") == "created"
    assert await create(sources, "c", limit=2) == "full"
    assert await sources.delete("a")
    assert not await sources.delete("a")
    assert await create(sources, "c", "https://a.example/", limit=2) == "created"
    assert await sources.ids() == ["b", "c"]


async def test_of_many_that_ask_one_gets_the_source(sources: SourceStore) -> None:
    for n in range(3):
        await create(sources, f"s{n}")
    claims = await asyncio.gather(*(sources.claim_due(f"t{n}", LONG_S) for n in range(20)))
    assert sorted(claim.source for claim in claims if claim) == ["s0", "s1", "s2"]
    assert await sources.claim("s0", "late", LONG_S) == "busy"
    assert await sources.claim("none", "late", LONG_S) == "gone"


async def test_the_source_of_a_process_that_died_is_due_again_and_what_it_writes_is_refused(
    sources: SourceStore,
) -> None:
    await create(sources, "a")
    first = await sources.claim_due("first", SHORT_S)
    assert first
    second = await wait_until(lambda: sources.claim_due("second", LONG_S))
    assert second.source == "a"
    assert not await sources.renew(first, LONG_S)
    assert not await sources.commit(first, 60, {"title": "old"}, failed=False, documents=5, put={"k": "p:1"})
    assert await sources.load_seen("a") == {}
    assert await sources.renew(second, LONG_S)
    assert await sources.commit(second, 60, {"title": "new"}, failed=False, documents=1, put={"k": "p:1"})
    assert not await sources.commit(second, 60, {"title": "twice"}, failed=False, documents=1)
    (record,) = await sources.load(["a"])
    assert record
    assert (record.title, record.documents, record.state) == ("new", 1, "ok")
    assert await sources.load_seen("a") == {"k": "p:1"}
    totals = await sources.totals()
    assert (totals.polls, totals.documents, totals.late_s) == ({"succeeded": 1, "failed": 0}, 1, 0)


async def test_a_renewed_lease_keeps_others_away(sources: SourceStore) -> None:
    await create(sources, "a")
    claim = await sources.claim_due("mine", SHORT_S)
    assert claim
    assert await sources.renew(claim, LONG_S)
    await asyncio.sleep(2 * SHORT_S)
    assert await sources.claim_due("other", LONG_S) is None
    assert await sources.claim("a", "other", LONG_S) == "busy"


async def test_a_paused_source_is_due_to_nobody_but_can_be_claimed(sources: SourceStore) -> None:
    await create(sources, "a", paused=1)
    assert await sources.claim_due("t", LONG_S) is None
    assert await sources.claim("a", "t", SHORT_S) == "claimed"
    await asyncio.sleep(2 * SHORT_S)  # and the process died
    assert await sources.claim_due("t", LONG_S) is None
    assert await sources.change("a", 0, {"paused": 0})
    claim = await sources.claim_due("t", LONG_S)
    assert claim == SourceClaim("a", "t")
    assert await sources.change("a", None, {"paused": 1})  # while it is polled
    assert await sources.commit(claim, 0, {}, failed=False)
    assert await sources.claim_due("t", LONG_S) is None
    assert (await sources.totals()).states == {"waiting": 0, "ok": 0, "failing": 0, "paused": 1}


async def test_a_source_that_was_deleted_is_not_written_again(sources: SourceStore) -> None:
    await create(sources, "a")
    claim = await sources.claim_due("t", LONG_S)
    assert claim
    await sources.delete("a")
    assert not await sources.commit(claim, 0, {"title": "x"}, failed=False, put={"k": "p:1"})
    assert await sources.load(["a"]) == [None]
    assert await sources.load_seen("a") == {}
    assert await sources.claim_due("t", LONG_S) is None


async def test_thousands_of_items_are_noted_and_forgotten_at_once(sources: SourceStore) -> None:
    await create(sources, "a")
    items = {f"k{n}": "p:1" for n in range(5001)}
    for put, drop, left in ((items, [], items), ({}, list(items)[1:], {"k0": "p:1"})):
        await sources.change("a", 0, {"every_s": 60})
        claim = await sources.claim_due("t", LONG_S)
        assert claim
        assert await sources.commit(claim, 0, {"title": "x"}, failed=False, put=put, drop=drop)
        assert await sources.load_seen("a") == left
