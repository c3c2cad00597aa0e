"""A remembered document is shown as it was sent, with what was decided about it and who judged it, until it is
forgotten."""

from collections.abc import AsyncIterator
from urllib.parse import quote

import pytest

from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.streaming import classify, grain, oil

ABOUT = {
    "source": "wire",
    "published": "2026-11-18T02:00:00Z",
    "url": "https://example.org/1",
    "author": "A. Writer",
    "language": "en",
    "metadata": {"pages": [1, 2]},
}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, documents_kept=1600, out_kept=50) as api:
        await api.topic()
        yield api


async def test_it_is_as_it_was_sent(api: Api) -> None:
    await classify(api, [{"id": "d"} | OIL | ABOUT, {"id": "bare", "title": "OPEC"}])
    found = await api.ok("GET", "/documents/d")
    assert {name: found[name] for name in ("document", *OIL, *ABOUT)} == {"document": "d"} | OIL | ABOUT
    bare = await api.ok("GET", "/documents/bare")
    assert (bare["title"], bare["text"]) == ("OPEC", "")
    assert {bare[name] for name in (*ABOUT, "duplicate_of", "now")} == {None}


@pytest.mark.parametrize("name", ["a/b", "http://x.org/?q=1#x", "日本", "a b"])
async def test_any_id_can_be_asked_for(api: Api, name: str) -> None:
    await classify(api, [{"id": name} | OIL])
    assert (await api.ok("GET", f"/documents/{quote(name)}"))["document"] == name


async def test_decisions_are_those_that_were_delivered(api: Api) -> None:
    await api.topic("wheat", query="wheat maize harvest farmers")
    (result,) = await classify(api, [{"id": "d"} | OIL])
    (delivered,) = result["decisions"]
    await api.judge("d", False)
    await api.ok("PATCH", "/topics/crude", {"rules": {"reject_if": "opec", "accept_if": None}})
    found = await api.ok("GET", "/documents/d", params={"now": "true", "include": "all"})
    crude, wheat = found["decisions"]
    assert {name: crude[name] for name in ("topic", "decision", "score", "version")} == {
        name: delivered[name] for name in ("topic", "decision", "score", "version")
    }
    assert found["at"] <= crude["at"]
    assert (wheat["topic"], wheat["decision"], wheat["score"], wheat["at"]) == ("wheat", "reject", None, None)
    now, _ = found["now"]
    assert (now["decision"], now["decided_by"]) == ("reject", "reject_if")


async def test_rejections_are_left_out_unless_topics_are_named(api: Api) -> None:
    await api.topic("wheat", query="wheat maize harvest farmers")
    await classify(api, [{"id": "d"} | OIL])
    params = {"now": "true"}
    found = await api.ok("GET", "/documents/d", params=params)
    assert [each["topic"] for each in found["decisions"]] == [each["topic"] for each in found["now"]] == ["crude"]
    found = await api.ok("GET", "/documents/d", params=params | {"topics": "wheat"})
    assert [each["topic"] for each in found["decisions"]] == [each["topic"] for each in found["now"]] == ["wheat"]
    assert (await api.get("/documents/d", params={"topics": "nowhere"})).status_code == 404


async def test_a_topic_from_after_the_document_has_decided_nothing(api: Api) -> None:
    await classify(api, [{"id": "d"} | OIL])
    await api.topic("later")
    found = await api.ok("GET", "/documents/d", params={"now": "true", "include": "all"})
    assert [each["topic"] for each in found["decisions"]] == ["crude"]
    assert [each["topic"] for each in found["now"]] == ["crude", "later"]


async def test_a_document_for_named_topics_was_not_rejected_by_the_others(api: Api) -> None:
    await api.topic("wheat", query="wheat maize harvest farmers")
    await classify(api, [{"id": "d"} | OIL], topics=["crude"])
    found = await api.ok("GET", "/documents/d", params={"include": "all"})
    assert [each["topic"] for each in found["decisions"]] == ["crude"]


async def test_judgements_say_by_whom_and_when_and_what_they_correct(api: Api) -> None:
    await classify(api, [{"id": "d"} | OIL])
    await api.ok("POST", "/feedback", {"topic": "crude", "document": "d", "relevant": False, "by": "ann"})
    (judged,) = (await api.ok("GET", "/documents/d"))["judgements"]
    assert (judged["topic"], judged["relevant"], judged["by"], judged["corrects"]) == ("crude", False, "ann", None)
    await api.ok("POST", "/feedback", {"topic": "crude", "document": "d", "relevant": True, "by": "bob"})
    (judged,) = (await api.ok("GET", "/documents/d"))["judgements"]
    assert (judged["relevant"], judged["by"]) == (True, "bob")
    assert (judged["corrects"]["relevant"], judged["corrects"]["by"]) == (False, "ann")
    assert judged["corrects"]["at"] <= judged["at"]
    await api.judge("d", 2)
    (judged,) = (await api.ok("GET", "/documents/d"))["judgements"]
    assert (judged["relevant"], judged["grade"], judged["corrects"]["grade"]) == (True, 2, None)
    await api.ok("DELETE", "/topics/crude/judgements/d")
    assert (await api.ok("GET", "/documents/d"))["judgements"] == []


async def test_a_copy_names_its_original(api: Api) -> None:
    text = "OPEC ministers met in Vienna and agreed to cut crude oil output by two million barrels a day from May on. "
    await classify(api, [{"id": "first", "text": text * 3}])
    await classify(api, [{"id": "copy", "text": text * 3 + "Reuters"}])
    assert (await api.ok("GET", "/documents/copy"))["duplicate_of"] == "first"
    assert (await api.ok("GET", "/documents/first"))["duplicate_of"] is None


async def test_one_that_never_came_or_was_forgotten_is_not_found(api: Api) -> None:
    await classify(api, [{"id": "d"} | GRAIN])
    for n in range(10):
        await classify(api, oil(250, f"batch{n}-"))
    for name in ("d", "never"):
        answer = await api.get(f"/documents/{name}")
        assert (answer.status_code, answer.json()["detail"]) == (404, "This document is not remembered (any more).")


async def test_a_decision_is_known_while_the_score_is_forgotten(api: Api) -> None:
    await classify(api, [{"id": "d"} | OIL])
    await classify(api, oil(160))
    (crude,) = (await api.ok("GET", "/documents/d"))["decisions"]
    assert (crude["decision"], crude["score"]) == ("accept", None)


async def test_the_score_is_found_among_many_others(api: Api) -> None:
    documents = [*oil(20), *grain(20)]
    results = {each["document"]: each["decisions"] for each in await classify(api, documents)}
    for document, decisions in results.items():
        found = (await api.ok("GET", f"/documents/{document}"))["decisions"]
        assert [each["score"] for each in found] == [each["score"] for each in decisions]
