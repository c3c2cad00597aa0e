"""What a topic lets through is in its stream, once, with its decision and fields, however often a document comes."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import Redis

from service.store.stream import outbox
from tests.support.api import OIL, Api, running_api
from tests.support.refusals import NDJSON
from tests.support.streaming import classify, grain, oil

KEY = "sluice:out:crude"


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, out_kept=50) as api:
        await api.topic()
        yield api


def entries(store: "Redis", key: str = KEY) -> list[dict[str, str]]:
    rows: Any = store.xrange(key)
    return [fields for _, fields in rows]


def entry(document: str) -> outbox.Entry:
    return outbox.Entry(outbox.entry_id("crude", document), "accept", 1.0, 1, document, "", "text")


async def test_what_is_not_rejected_is_in_the_stream_with_all_that_was_said_of_it(api: Api, store: "Redis") -> None:
    documents = [*oil(10), *grain(10)]
    results = await classify(api, documents)
    decided = {r["document"]: d for r in results for d in r["decisions"]}
    assert 0 < len(decided) < 20
    appended = {entry.pop("document"): entry for entry in entries(store)}
    assert appended.keys() == decided.keys()
    for document in documents:
        if document["id"] in appended:
            decision = decided[document["id"]]
            assert appended[document["id"]] == {
                "id": outbox.entry_id("crude", document["id"]),
                "decision": decision["decision"],
                "score": str(decision["score"]),
                "version": str(decision["version"]),
                "title": document["title"],
                "text": document["text"],
                "duplicate_of": "",
            }


async def test_what_came_with_a_document_goes_on_with_it(api: Api, store: "Redis") -> None:
    about = {
        "source": "wire",
        "published": "2026-11-18T02:00:00Z",
        "url": "https://example.org/1?q=oil#top",
        "author": "A. Writer",
        "language": "en-GB",
        "metadata": {"url": "https://example.org/1", "n": [1]},
    }
    plain, whole = oil(2)
    await classify(api, [plain, whole | about])
    appended = {entry["document"]: entry for entry in entries(store)}
    assert not about.keys() & appended[plain["id"]].keys()
    said = about.keys() - {"metadata"}
    assert {name: appended[whole["id"]][name] for name in said} == {name: about[name] for name in said}
    assert json.loads(appended[whole["id"]]["metadata"]) == about["metadata"]
    page = {item["document"]: item for item in (await api.ok("GET", "/topics/crude/accepted"))["items"]}
    assert {name: page[whole["id"]][name] for name in about} == about
    assert {page[plain["id"]][name] for name in about} == {None}


async def test_nothing_is_in_the_stream_that_was_not_to_be_stored(api: Api, store: "Redis") -> None:
    await classify(api, oil(5), store=False)
    assert entries(store) == []


async def test_a_document_that_comes_again_is_there_once_until_it_is_decided_otherwise(
    api: Api, store: "Redis"
) -> None:
    (document,) = oil(1)
    for _ in range(3):
        await classify(api, [document, document])
    (first,) = entries(store)
    await api.ok("PATCH", "/topics/crude", {"rules": {"accept_if": "report", "reject_if": None}})
    others = [entry for entry in entries(store) if entry != first]
    await classify(api, [document])
    same = [entry for entry in entries(store) if entry["document"] == document["id"]]
    assert not others
    assert {entry["id"] for entry in same} == {first["id"]}
    assert len(same) == len({entry["decision"] for entry in same})


async def test_what_was_remembered_but_not_let_through_is_let_through_when_it_comes_again(
    api: Api, store: "Redis"
) -> None:
    """A process was killed in between; the decision was not answered, so the document is sent once more."""
    (document,) = oil(1)
    await classify(api, [document])
    store.delete(KEY, f"{{{KEY}}}:lately")
    await classify(api, [document])
    assert [entry["document"] for entry in entries(store)] == [document["id"]]


async def test_the_stream_and_what_makes_it_unique_are_bounded(api: Api, store: "Redis") -> None:
    for n in range(10):
        await classify(api, oil(40, f"batch{n}-"))
    assert 50 <= store.xlen(KEY) < 150  # nodes of the stream are dropped whole
    lately, before = (int(store.scard(f"{{{KEY}}}:{part}")) for part in ("lately", "before"))
    assert lately < 50 <= before < 100
    assert entries(store)[-1]["document"].startswith("batch9-")


async def test_what_comes_again_after_less_than_is_kept_is_not_appended_again(api: Api, store: "Redis") -> None:
    await classify(api, oil(30, "first-"))
    await classify(api, oil(30, "second-"))
    there = entries(store)
    assert len(there) > 50  # so that what came first is not among the latest any more
    await classify(api, [*oil(30, "first-"), *oil(30, "second-")])
    assert entries(store) == there


async def test_of_many_entries_at_once_each_is_appended_once(api: Api, store: "Redis") -> None:
    """More than one call of the script takes; some twice, in the same call and in two; and then all of them again."""
    born = (await api.sluice.topics.find("crude")).born
    entries = [entry(f"d{i % 9000}") for i in range(10_000)]
    entries[7] = entries[8]
    many = outbox.append_cmds("crude", born, entries, 20_000)
    run = api.sluice.store.connection.run
    assert sum(await run(many)) == 9000
    assert sum(await run(many)) == 0
    assert await run(outbox.append_cmds("crude", born, [entries[0]._replace(decision="abstain")], 20_000)) == [1]
    rows: Any = store.xrange(KEY)
    assert len(rows) == len({(fields["id"], fields["decision"]) for _, fields in rows}) == 9001


async def test_who_took_a_document_over_may_be_done_with_it_before_who_had_it_first(api: Api, store: "Redis") -> None:
    """One consumer has seen it before, to the other it is new; it is let through once."""
    born, run = (await api.sluice.topics.find("crude")).born, api.sluice.store.connection.run
    for late in (entry("d"), entry("e")._replace(decision="abstain")):
        assert await run(outbox.append_cmds("crude", born, [late], 9, again={late.document})) == [1]
        assert await run(outbox.append_cmds("crude", born, [late], 9)) == [0]
    rows: Any = store.xrange(KEY)
    assert [fields["document"] for _, fields in rows] == ["d", "e"]


async def test_a_deleted_topic_leaves_no_stream_and_nobody_writes_it_again(api: Api, store: "Redis") -> None:
    await classify(api, oil(5))
    born = api.sluice.registry.get("crude").born
    await api.ok("DELETE", "/topics/crude")
    late = outbox.append_cmds("crude", born, [entry("late")], 9)
    await api.sluice.store.connection.run(late)
    names: Any = store.keys("*out:crude*")
    assert names == [f"{{{KEY}}}:owner"]
    assert 0 < int(store.ttl(names[0])) <= outbox.GONE_S
    await api.topic()
    await api.sluice.store.connection.run(late)
    assert entries(store) == []
    await classify(api, oil(5))
    assert len(entries(store)) == 5
    assert store.ttl(names[0]) == -1


async def test_a_topic_that_is_replaced_by_a_file_begins_a_stream_of_its_own(api: Api, store: "Redis") -> None:
    await classify(api, [OIL | {"id": "before"}])
    file = (await api.get("/topics/crude/export")).content
    replaced = await api.post("/topics/import?replace=true", content=file, headers=NDJSON)
    assert replaced.is_success, replaced.text
    assert entries(store) == []
    await classify(api, [OIL | {"id": "after"}])
    assert [entry["document"] for entry in entries(store)] == ["after"]


async def test_pages_go_through_the_stream_newest_first(api: Api) -> None:
    accepted = [r["document"] for r in await classify(api, oil(25)) if r["decisions"]]
    listed: list[str] = []
    cursor: dict[str, str] = {}
    while True:
        page = await api.ok("GET", "/topics/crude/accepted", params={"limit": 10} | cursor)
        listed += [item["document"] for item in page["items"]]
        assert all(item["topic"] == "crude" and item["text"] for item in page["items"])
        if page["next"] is None:
            break
        cursor = {"cursor": page["next"]}
    assert listed == accepted[::-1]
    assert (await api.get("/topics/crude/accepted?cursor=x")).status_code == 422
    for first in ("0", "0-0"):
        assert await api.ok("GET", f"/topics/crude/accepted?cursor={first}") == {"items": [], "next": None}
    assert (await api.get("/topics/none/accepted")).status_code == 404
