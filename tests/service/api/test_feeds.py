"""Feeds are what feed readers expect: valid, the same when nothing has changed, and inert whatever is in them."""

from collections.abc import AsyncIterator
from typing import Any
from xml.etree.ElementTree import Element

import pytest

from tests.service.api.feed_checks import ATOM, XML_LANG, check_atom, check_json_feed
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.refusals import pointers, refused
from tests.support.streaming import classify, grain, oil

HOSTILE = "<script>alert(1)</script> ]]> <![CDATA[ &amp; &#0; \x01\x0b\ud7ff\ufffe\U0001f6e2 --> \u202e oil crude OPEC"


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        await api.topic(name="Crude <oil>")
        yield api


async def atom(api: Api, path: str = "/topics/crude/feed.atom", **params: Any) -> Element:
    answer = await api.get(path, params=params)
    assert answer.headers["content-type"] == "application/atom+xml"
    return check_atom(answer.content)


async def json_feed(api: Api, path: str = "/topics/crude/feed.json", **params: Any) -> Any:
    answer = await api.get(path, params=params)
    assert answer.headers["content-type"] == "application/feed+json"
    return check_json_feed(answer.content)


def titles(feed: Element) -> list[str | None]:
    return [entry.findtext(f"{ATOM}title") for entry in feed.findall(f"{ATOM}entry")]


async def test_a_topic_that_has_accepted_nothing_has_an_empty_feed(api: Api) -> None:
    feed = await atom(api)
    assert feed.findtext(f"{ATOM}title") == "Crude <oil>"
    assert feed.findtext(f"{ATOM}updated") == (await api.ok("GET", "/topics/crude"))["created"].replace("Z", "+00:00")
    assert (await json_feed(api))["items"] == []


async def test_an_entry_has_the_text_and_a_link_to_the_original(api: Api) -> None:
    about = {
        "url": "https://müller.example/öl?q=a b".replace(" ", "+") + "#{x}",
        "author": "A. Writer",
        "language": "en",
        "published": "Wed, 18 Nov 2026 02:00:00 +0100",
    }
    await classify(api, [{"id": "d"} | OIL | about])
    feed = await atom(api)
    (entry,) = feed.findall(f"{ATOM}entry")
    assert [entry.findtext(f"{ATOM}{name}") for name in ("title", "content")] == [OIL["title"], OIL["text"]]
    (link,) = entry.findall(f"{ATOM}link")
    assert link.get("href") == "https://m%C3%BCller.example/%C3%B6l?q=a+b#%7Bx%7D"
    assert entry.findtext(f"{ATOM}author/{ATOM}name") == "A. Writer"
    assert entry.get(XML_LANG) == "en"
    assert entry.findtext(f"{ATOM}published") == "2026-11-18T01:00:00+00:00"
    assert feed.findtext(f"{ATOM}updated") == entry.findtext(f"{ATOM}updated")
    (item,) = (await json_feed(api))["items"]
    assert item == {
        "id": entry.findtext(f"{ATOM}id"),
        "url": link.get("href"),
        "title": OIL["title"],
        "content_text": OIL["text"],
        "date_published": "2026-11-18T01:00:00Z",
        "date_modified": item["date_modified"],
        "authors": [{"name": "A. Writer"}],
        "language": "en",
        "tags": ["accept"],
    }


@pytest.mark.parametrize(
    "published", ["yesterday", "2026-11-18", "2026-11-18T02:00:00", "", "0001-01-01T00:00:00+14:00"]
)
async def test_a_date_that_is_no_time_with_a_zone_is_left_out(api: Api, published: str) -> None:
    await classify(api, [{"id": "d", "published": published} | OIL])
    (entry,) = (await atom(api)).findall(f"{ATOM}entry")
    assert entry.find(f"{ATOM}published") is None


async def test_the_newest_come_first_and_only_what_was_accepted(api: Api) -> None:
    results = await classify(api, [*oil(12), *grain(12)])
    decided = {each["document"]: each["decisions"][0]["decision"] for each in results if each["decisions"]}
    page = (await api.ok("GET", "/topics/crude/accepted"))["items"]
    accepted = [item["title"] for item in page if item["decision"] == "accept"]
    assert accepted
    assert "abstain" in decided.values()
    assert titles(await atom(api)) == accepted
    assert titles(await atom(api, limit=2)) == accepted[:2]
    both = await atom(api, unsure="true")
    assert titles(both) == [item["title"] for item in page]
    assert {category.get("term") for category in both.iter(f"{ATOM}category")} == {"accept", "abstain"}


async def test_hostile_texts_are_text(api: Api) -> None:
    hostile = {"id": "d", "title": HOSTILE, "text": HOSTILE, "author": HOSTILE, "source": HOSTILE}
    await classify(api, [hostile, {"id": "title", "title": HOSTILE + " again"}])
    await api.ok("PATCH", "/topics/crude", {"name": HOSTILE})
    feed = await atom(api)
    shown = HOSTILE.replace("\x01", "").replace("\x0b", "").replace("\ufffe", "")
    assert titles(feed) == [f"{shown} again", shown]
    assert feed.findtext(f"{ATOM}title") == shown
    assert {element.tag for element in feed.iter() if element.tag.startswith(ATOM)} == {
        element.tag for element in feed.iter()
    }
    assert [item["title"] for item in (await json_feed(api))["items"]] == [f"{HOSTILE} again", HOSTILE]


async def test_a_reader_that_has_the_feed_is_not_sent_it_again(api: Api) -> None:
    await classify(api, [{"id": "d"} | OIL])
    for path in ("/topics/crude/feed.atom", "/topics/crude/feed.json", "/documents.atom?q=opec", "/documents.json"):
        first = await api.get(path)
        etag = first.headers["etag"]
        for known in (etag, f"W/{etag}", f'"other", {etag}', "*"):
            again = await api.get(path, headers={"If-None-Match": known})
            assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", etag)
        assert (await api.get(path, headers={"If-None-Match": '"other"'})).content == first.content
    etag = (await api.get("/topics/crude/feed.atom")).headers["etag"]
    await classify(api, [{"id": "e", "title": "OPEC", "text": "Crude oil output and the price of barrels."}])
    answer = await api.get("/topics/crude/feed.atom", headers={"If-None-Match": etag})
    assert answer.status_code == 200
    assert len(check_atom(answer.content).findall(f"{ATOM}entry")) == 2


async def test_a_document_that_is_decided_again_stays_one_entry(api: Api) -> None:
    await classify(api, [{"id": "d"} | OIL])
    (before,) = (await json_feed(api))["items"]
    await api.ok("PATCH", "/topics/crude", {"rules": {"accept_if": None, "reject_if": "opec"}})
    await classify(api, [{"id": "d"} | OIL])
    await api.ok("PATCH", "/topics/crude", {"rules": {"accept_if": None, "reject_if": None}})
    await classify(api, [{"id": "d"} | OIL])
    assert [item["id"] for item in (await json_feed(api, unsure="true"))["items"]] == [before["id"]]


async def test_a_search_is_a_feed_too(api: Api) -> None:
    await classify(api, [{"id": "d", "url": "https://example.org/1"} | OIL, {"id": "e"} | GRAIN])
    feed = await atom(api, "/documents.atom", q="opec -football", topic="crude")
    assert titles(feed) == [OIL["title"]]
    assert feed.findtext(f"{ATOM}title") == "opec -football"
    (item,) = (await json_feed(api, "/documents.json", q="harvest"))["items"]
    assert item["title"] == GRAIN["title"]
    assert feed.findtext(f"{ATOM}id") != (await atom(api, "/documents.atom")).findtext(f"{ATOM}id")
    assert pointers(refused(await api.get("/documents.atom", params={"q": '"'}), 422)) == ["?q"]
    assert pointers(refused(await api.get("/documents.atom", params={"qq": "x"}), 422)) == ["?qq"]
    assert (await api.get("/documents.json", params={"topic": "nowhere"})).status_code == 404
