"""Sources, from their address to what topics let through: nothing twice, nothing lost, and nobody pestered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import pytest
from redis import Redis

from service.config import Config
from service.sources.polling import Polling
from service.store.redis.keys import IN
from service.store.topics import Store
from service.tasks import cancel_all
from tests.support.api import Api, running_api
from tests.support.consuming import consuming, output_documents, wait_until_consumed
from tests.support.publisher import Page, Publisher, conditional, feed_page, in_turn, publishing, rss
from tests.support.waiting import wait_until

SETTINGS: dict[str, Any] = {"sources_private": True, "sources_timeout_s": 60}
OIL = ("OPEC crude oil output", "Crude oil barrels price", "OPEC output price of crude")


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, **SETTINGS) as api:
        yield api


@pytest.fixture
async def publisher() -> AsyncIterator[Publisher]:
    async with publishing() as publisher:
        publisher.pages["/feed"] = feed_page(*OIL)
        yield publisher


@asynccontextmanager
async def polling(api: Api) -> AsyncIterator[None]:
    """Polls what is due, as a housekeeper does, until the end of the block."""
    store = Store(str(api.sluice.config.redis), 60.0)
    task = asyncio.create_task(Polling(store, api.sluice.config).run())
    try:
        yield
    finally:
        await cancel_all([task])
        await store.close()


async def add(api: Api, publisher: Publisher, path: str = "/feed", **fields: Any) -> Any:
    return await api.ok("POST", "/sources", {"id": "news", "kind": "feed", "url": publisher.url(path)} | fields)


async def poll(api: Api, id: str = "news") -> Any:
    return await api.ok("POST", f"/sources/{id}/poll")


async def status(api: Api, id: str = "news") -> Any:
    return (await api.ok("GET", f"/sources/{id}"))["status"]


def pause_s(status: Any) -> float:
    """From the last poll to the next."""
    last, following = (datetime.fromisoformat(status[name]) for name in ("last_poll", "next_poll"))
    return (following - last).total_seconds()


async def test_what_a_feed_offers_is_decided_once(api: Api, publisher: Publisher, store: "Redis") -> None:
    await api.topic(rules={"accept_if": "crude"})
    await add(api, publisher)
    polled = await poll(api)
    assert (polled["found"], polled["new"], polled["error"]) == (3, 3, None)
    assert {each["title"] for each in polled["documents"]} == set(OIL)
    assert [each["url"] for each in polled["documents"]] == [f"https://example.org/{n}" for n in (2, 1, 0)]
    async with consuming(api):
        await wait_until_consumed(store)
    assert sorted(output_documents(store)) == sorted(each["document"] for each in polled["documents"])
    again = await poll(api)
    assert (again["found"], again["new"]) == (0, 0)
    publisher.pages["/feed"] = feed_page("Brent crude", *OIL)
    assert [each["title"] for each in (await poll(api))["documents"]] == ["Brent crude"]
    (passed, *_) = (await api.ok("GET", "/topics/crude/accepted"))["items"]
    assert passed["source"] == "news"
    assert passed["metadata"]["feed"] == "News"
    assert passed["url"].startswith("https://example.org/")
    assert (await status(api))["documents"] == 4


async def test_what_is_polled_again_after_a_crash_is_output_once(
    api: Api, publisher: Publisher, store: "Redis"
) -> None:
    """The process died after the stories were appended, and before that was noted."""
    await api.topic(rules={"accept_if": "crude"})
    await add(api, publisher)
    assert (await poll(api))["new"] == 3
    store.delete("sluice:{sources}:seen:news")
    await api.sluice.store.sources.change("news", 0, {"print": "", "etag": "", "last_modified": ""})
    assert (await poll(api))["new"] == 3
    async with consuming(api):
        await wait_until_consumed(store)
    assert len(output_documents(store)) == 3


async def test_what_has_not_changed_is_neither_sent_nor_parsed(api: Api, publisher: Publisher) -> None:
    publisher.pages["/feed"] = conditional(rss(*OIL))
    await add(api, publisher)
    assert (await poll(api))["new"] == 3
    assert (await poll(api))["found"] == 0
    assert publisher.asked[1][1]["if-none-match"]
    publisher.pages["/feed"] = feed_page(*OIL)  # sent again, by a server that knows no validators, and still the same
    assert (await poll(api))["found"] == 0
    assert (await status(api))["state"] == "ok"


async def test_a_story_that_has_changed_is_passed_on_as_an_update(
    api: Api, publisher: Publisher, store: "Redis"
) -> None:
    publisher.pages["/feed"] = feed_page("1: OPEC to meet", "2: Wheat")
    await add(api, publisher)
    before = {each["title"]: each["document"] for each in (await poll(api))["documents"]}
    publisher.pages["/feed"] = feed_page("1: OPEC has met", "2: Wheat")
    (update,) = (await poll(api))["documents"]
    assert (update["document"], update["update"]) == (before["1: OPEC to meet"], True)
    rows: Any = store.xrange(IN)
    assert '"update":true' in rows[-1][1]["document"]


async def test_sources_are_polled_when_they_are_due(api: Api, publisher: Publisher) -> None:
    await add(api, publisher)
    async with polling(api), polling(api), polling(api):

        async def done() -> Any:
            found = await status(api)
            return found if found["state"] == "ok" else None

        found = await wait_until(done)
    assert (found["documents"], found["title"], len(publisher.asked)) == (3, "News", 1)
    assert 0.89 * 900 <= pause_s(found) <= 1.11 * 900


async def test_one_that_fails_is_asked_less_often_until_it_works(api: Api, publisher: Publisher) -> None:
    busy = Page(status=503, headers={"Retry-After": "7200"})
    publisher.pages["/feed"] = in_turn([Page(status=500), Page(b"<html>"), busy, feed_page(*OIL)])
    await add(api, publisher)
    sentences = ("answered 500", "web page", "answered 503")
    for failures, (sentence, least_s) in enumerate(zip(sentences, (810, 1620, 7200), strict=True), 1):
        assert sentence in (await poll(api))["error"]
        found = await status(api)
        assert (found["state"], found["failures"]) == ("failing", failures)
        assert sentence in found["last_error"]["reason"]
        assert least_s - 1 <= pause_s(found) <= max(7200, 1.23 * least_s) + 1
    assert (await api.ok("GET", "/sources", params={"state": "failing"}))["items"][0]["id"] == "news"
    assert (await poll(api))["new"] == 3
    found = await status(api)
    assert (found["state"], found["failures"]) == ("ok", 0)
    assert "503" in found["last_error"]["reason"]  # it can still be read


async def test_prometheus_is_told(api: Api, publisher: Publisher) -> None:
    await add(api, publisher)
    await add(api, publisher, "/none", id="none")
    await poll(api)
    await poll(api, "none")
    metrics = (await api.get("/metrics")).text
    for line in (
        'sluice_sources{state="ok"} 1.0',
        'sluice_sources{state="failing"} 1.0',
        'sluice_source_polls_total{result="succeeded"} 1.0',
        'sluice_source_polls_total{result="failed"} 1.0',
        "sluice_source_documents_total 3.0",
        "sluice_sources_late_seconds 0.0",
    ):
        assert f"\n{line}\n" in metrics


async def test_a_feed_that_is_gone_for_good_is_paused(api: Api, publisher: Publisher) -> None:
    publisher.pages["/feed"] = Page(status=410)
    await add(api, publisher)
    assert "gone for good" in (await poll(api))["error"]
    found = await status(api)
    assert (found["state"], found["next_poll"]) == ("paused", None)


async def test_a_source_is_paused_resumed_and_given_another_pace(api: Api, publisher: Publisher) -> None:
    made = await add(api, publisher, paused=True)
    assert (made["status"]["state"], made["status"]["next_poll"]) == ("paused", None)
    assert (await poll(api))["new"] == 3  # by hand it is polled all the same
    assert (await status(api))["state"] == "paused"
    resumed = await api.ok("PATCH", "/sources/news", {"paused": False, "every_s": 60})
    assert (resumed["every_s"], resumed["paused"], resumed["status"]["state"]) == (60, False, "ok")
    async with polling(api):

        async def again() -> bool:
            return len(publisher.asked) == 2

        await wait_until(again)

        async def committed() -> bool:
            return pause_s(await status(api)) > 0

        await wait_until(committed)
    assert 53 <= pause_s(await status(api)) <= 67
    slower = await api.ok("PATCH", "/sources/news", {"every_s": 7200})
    assert pause_s(slower["status"]) == pytest.approx(7200, abs=1)


async def test_a_deleted_source_leaves_nothing_behind(api: Api, publisher: Publisher, store: "Redis") -> None:
    before = set(store.keys("*"))
    await add(api, publisher)
    await poll(api)
    assert (await api.delete("/sources/news")).status_code == 204
    assert (await api.delete("/sources/news")).status_code == 404
    assert set(store.keys("*sources*")) - before == {"sluice:{sources}:totals"}


async def test_trying_stores_nothing(api: Api, publisher: Publisher, store: "Redis") -> None:
    before = set(store.keys("*"))
    tried = await api.ok("POST", "/sources/try", {"kind": "feed", "url": publisher.url("/feed")})
    assert (tried["title"], tried["found"], tried["error"]) == ("News", 3, None)
    assert [each["title"] for each in tried["documents"]] == list(OIL)
    failed = await api.ok("POST", "/sources/try", {"kind": "feed", "url": publisher.url("/none")})
    assert "answered 404" in failed["error"]
    assert set(store.keys("*")) == before


async def test_a_full_store_loses_nothing(redis_url: str, publisher: Publisher, store: "Redis") -> None:
    async with running_api(redis_url, **SETTINGS) as api:
        await add(api, publisher)
        store.config_set("maxmemory", 1)
        try:
            assert (await api.post("/sources/news/poll")).status_code == 503
        finally:
            store.config_set("maxmemory", 0)
        assert (await poll(api))["new"] == 3


async def test_two_do_not_poll_the_same_source(api: Api, publisher: Publisher) -> None:
    publisher.pages["/feed"] = Page(rss(*OIL), drip=40)
    await add(api, publisher)
    answers = await asyncio.gather(*(api.post("/sources/news/poll") for _ in range(5)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409, 409, 409]
    assert len(publisher.asked) == 1


async def test_ids_are_made_of_addresses(api: Api) -> None:
    async def made(url: str) -> str:
        source = await api.ok("POST", "/sources", {"kind": "feed", "url": url, "paused": True})
        return str(source["id"])

    assert await made("https://feeds.bbci.co.uk/news/world/rss.xml") == "bbci-news-world"
    assert await made("https://feeds.bbci.co.uk/news/world/atom.xml") == "bbci-news-world-2"
    assert await made("https://rss.com/") == "feed"


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"url": "http://127.0.0.1/feed"}, "SLUICE_SOURCES_PRIVATE=true"),
        ({"url": "http://[::1]/feed"}, "SLUICE_SOURCES_PRIVATE=true"),
        ({"url": "file:///etc/passwd"}, "https:// or http://"),
        ({"url": "https://me:you@example.org/"}, "must not have a user"),
        ({"every_s": 1}, "at least 10"),
        ({"kind": "fax"}, "This must be"),
        ({"id": "No Such Id"}, "An id has"),
    ],
)
async def test_a_source_that_cannot_be_is_refused(redis_url: str, fields: dict[str, Any], sentence: str) -> None:
    async with running_api(redis_url) as api:
        source = {"kind": "feed", "url": "https://example.org/feed"} | fields
        answer = await api.post("/sources", json=source)
        assert answer.status_code == 422
        assert sentence in answer.text
        if "every_s" not in fields and "id" not in fields:
            tried = await api.post("/sources/try", json=source)
            assert (tried.status_code, sentence in tried.text) == (422, True)


async def test_a_name_that_leads_inside_is_refused_when_it_is_polled(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await api.ok("POST", "/sources", {"id": "news", "kind": "feed", "url": "http://localhost:1/feed"})
        assert "not public" in (await poll(api))["error"]


async def test_an_id_an_address_and_room_are_needed(redis_url: str) -> None:
    async with running_api(redis_url, sources_kept=2) as api:
        source = {"id": "a", "kind": "feed", "url": "https://example.org/a", "paused": True}
        await api.ok("POST", "/sources", source)
        for change, sentence in (
            ({"id": "b"}, "The source 'a' reads this address already."),
            ({"url": "https://example.org/b"}, "There is a source 'a' already."),
        ):
            refused = await api.post("/sources", json=source | change)
            assert (refused.status_code, refused.json()["detail"]) == (409, sentence)
        await api.ok("POST", "/sources", source | {"id": "b", "url": "https://example.org/b"})
        refused = await api.post("/sources", json=source | {"id": "c", "url": "https://example.org/c"})
        assert "There are 2 sources already" in refused.json()["detail"]
        page = await api.ok("GET", "/sources", params={"limit": 1})
        rest = await api.ok("GET", "/sources", params={"limit": 1, "cursor": page["next"]})
        assert [each["id"] for each in page["items"] + rest["items"]] == ["a", "b"]
        assert rest["next"] is None


def test_the_settings_allow_a_poll_every_ten_seconds() -> None:
    assert Config(sources_every_s=10).sources_every_s == 10
