"""A search finds what is remembered, by words, source, time, and what a topic decided; page by page, and right after it
came."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.refusals import pointers, refused
from tests.support.streaming import classify, grain, oil

ABOUT = {
    "source": "wire",
    "published": "2026-11-18T02:00:00Z",
    "url": "https://example.org/1",
    "author": "A. Writer",
    "language": "en",
}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, documents_kept=1600) as api:
        await api.topic()
        yield api


async def search(api: Api, **params: Any) -> list[dict[str, Any]]:
    page = await api.ok("GET", "/documents", params=params)
    assert page["complete"]
    return list(page["items"])


async def ids(api: Api, **params: Any) -> list[str]:
    return [item["document"] for item in await search(api, **params)]


async def test_what_came_a_moment_ago_is_found_with_all_that_was_said_of_it(api: Api) -> None:
    await classify(api, [{"id": "d"} | OIL | ABOUT, {"id": "e"} | GRAIN])
    (item,) = await search(api, q="crude barrels")
    assert {name: item[name] for name in ("document", "title", *ABOUT)} == {
        "document": "d",
        "title": OIL["title"],
    } | ABOUT
    await classify(api, [{"id": "f", "title": "Barrels of crude"}])
    assert await ids(api, q="crude barrels") == ["f", "d"]


async def test_words_are_marked_where_they_stand(api: Api) -> None:
    text = "<b>Crude</b> \x02 oil & “öl” \U0001f6e2 crude"
    await classify(api, [{"id": "d", "title": "Crude <i>oil</i>", "text": text + " word" * 200 + " end."}])
    (item,) = await search(api, q="crude ol*")
    marked = {part: [item[part][a:b] for a, b in item["matches"][part]] for part in ("title", "snippet")}
    assert marked == {"title": ["Crude"], "snippet": ["Crude", "öl", "crude"]}
    assert item["title"] == "Crude <i>oil</i>"
    assert item["snippet"].endswith("…")
    (item,) = await search(api, q="end")
    assert item["snippet"].startswith("…")
    (item,) = await search(api)
    assert (item["matches"], item["score"]) == ({"title": [], "snippet": []}, None)
    assert item["snippet"].startswith("<b>Crude</b>")
    assert len(item["snippet"]) == 301


async def test_the_newest_come_first_or_what_fits_best(api: Api) -> None:
    await classify(api, [{"id": "best", "title": "Crude oil", "text": "Crude oil."}])
    await classify(api, [{"id": "long", "text": "crude " + "other words " * 50}])
    await classify(api, [{"id": "none", "text": "wheat"}])
    assert await ids(api, q="crude") == ["long", "best"]
    assert await ids(api, q="crude", sort="best") == ["best", "long"]
    best, long = await search(api, q="crude", sort="best")
    assert best["score"] > long["score"]
    assert await ids(api) == await ids(api, sort="best") == ["none", "long", "best"]


@pytest.mark.parametrize("params", [{}, {"q": "report"}, {"q": "report", "sort": "best"}, {"topic": "crude"}])
async def test_pages_have_everything_once(api: Api, params: dict[str, str]) -> None:
    await classify(api, [*oil(15), *grain(15)])
    whole = await ids(api, limit=1000, **params)
    assert len(whole) > 5
    paged: list[str] = []
    cursor = None
    while True:
        page = await api.ok("GET", "/documents", params=params | {"limit": 4} | ({"cursor": cursor} if cursor else {}))
        paged += [item["document"] for item in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert paged == whole


async def test_a_page_ends_where_much_was_looked_through(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await classify(api, oil(30))
    await classify(api, grain(600))
    monkeypatch.setattr("service.documents.search.CHUNK", 100)
    monkeypatch.setattr("service.documents.search.MAX_SCANNED", 300)
    expected = {item["document"] for item in (await api.ok("GET", "/topics/crude/accepted?limit=1000"))["items"]}
    found: list[str] = []
    cursor, pages = None, 0
    while pages == 0 or cursor:
        params = {"topic": "crude", "limit": "1000"} | ({"cursor": cursor} if cursor else {})
        page = await api.ok("GET", "/documents", params=params)
        found += [item["document"] for item in page["items"]]
        cursor, pages = page["next"], pages + 1
    assert pages == 3
    assert len(found) == len(set(found))
    assert set(found) == expected


async def test_a_search_for_decisions_finds_what_was_delivered(api: Api) -> None:
    results = await classify(api, [*oil(20), *grain(20)], include="all")
    by_decision: dict[str, set[str]] = {"accept": set(), "abstain": set(), "reject": set()}
    for result in results:
        by_decision[result["decisions"][0]["decision"]].add(result["document"])
    assert by_decision["accept"]
    assert by_decision["reject"]
    await api.ok("PATCH", "/topics/crude", {"rules": {"reject_if": "report", "accept_if": None}})
    for decision, documents in by_decision.items():
        items = await search(api, topic="crude", decision=decision)
        assert {item["document"] for item in items} == documents
        assert {item["decision"] for item in items} <= {decision}
    assert set(await ids(api, topic="crude")) == by_decision["accept"] | by_decision["abstain"]
    some = min(by_decision["reject"])
    assert await ids(api, topic="crude", decision="reject", q=f'"{some}"') == [some]
    await api.judge(some, True)
    (item,) = await search(api, topic="crude", decision="reject", q=f'"{some}"')
    assert item["relevant"] is True
    await api.ok("POST", "/feedback", {"topic": "crude", "document": some, "relevant": 3})
    assert [item["relevant"] for item in await search(api, topic="crude", decision="reject", q=f'"{some}"')] == [True]
    await api.judge(some, False)
    assert [item["relevant"] for item in await search(api, topic="crude", decision="reject", q=f'"{some}"')] == [False]
    await api.topic("later")
    assert await ids(api, topic="later", decision="reject") == []


async def test_a_search_can_be_for_a_source_and_a_time(api: Api) -> None:
    await classify(api, [{"id": "a", "text": "oil", "source": "wire"}, {"id": "b", "text": "oil", "source": "blog"}])
    assert await ids(api, q="oil", source="wire") == ["a"]
    (at,) = {item["at"] for item in await search(api)}
    assert set(await ids(api, since=at)) == {"a", "b"}
    assert await ids(api, until=at) == []
    assert await ids(api, since="2099-01-01T00:00:00") == []
    assert set(await ids(api, since="2020-01-01", until="2099-01-01")) == {"a", "b"}


async def test_a_document_that_comes_again_with_another_text_is_found_by_that(api: Api) -> None:
    await classify(api, [{"id": "d", "text": "crude oil"}, {"id": "e", "text": "wheat"}])
    assert await ids(api, q="crude") == ["d"]
    await classify(api, [{"id": "d", "text": "sunflower"}])
    assert (await ids(api, q="crude"), await ids(api, q="sunflower")) == ([], ["d"])
    assert len(await ids(api)) == 2


async def test_what_is_forgotten_is_not_found(api: Api) -> None:
    await classify(api, [{"id": "d", "text": "unforgettable"}])
    assert await ids(api, q="unforgettable") == ["d"]
    for n in range(10):
        await classify(api, oil(250, f"batch{n}-"))
    while not (page := await api.ok("GET", "/documents", params={"q": "unforgettable"}))["complete"]:
        pass
    assert page["items"] == []
    assert len(await ids(api, limit=1000, q="report")) == 1000


async def test_what_is_only_scored_is_not_found(api: Api) -> None:
    await classify(api, [{"id": "d"} | OIL], store=False)
    assert await search(api) == []


@pytest.mark.parametrize(
    ("params", "pointer"),
    [
        ({"q": '"crude'}, "?q"),
        ({"q": "-"}, "?q"),
        ({"q": "x" * 1001}, "?q"),
        ({"q": "a\0b"}, "?q"),
        ({"decision": "accept"}, "?decision"),
        ({"decision": "maybe"}, "?decision"),
        ({"topic": "Not a topic"}, "?topic"),
        ({"since": "yesterday"}, "?since"),
        ({"sort": "worst"}, "?sort"),
        ({"cursor": "x"}, "?cursor"),
        ({"limit": "0"}, "?limit"),
        ({"query": "oil"}, "?query"),
    ],
)
async def test_a_search_that_makes_no_sense_is_refused(api: Api, params: dict[str, str], pointer: str) -> None:
    assert pointers(refused(await api.get("/documents", params=params), 422)) == [pointer]


async def test_a_topic_that_is_not_there_is_not_found(api: Api) -> None:
    assert (await api.get("/documents", params={"topic": "nowhere"})).status_code == 404
