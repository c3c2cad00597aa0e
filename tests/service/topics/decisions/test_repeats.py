"""What a stream repeats is decided alike, counted once and offered once, whichever process meets it."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import Redis

from models.goals.audit import drawn
from service.store.redis.keys import NOTED, SIGNATURES
from tests.support.api import OIL, Api, running_api
from tests.support.streaming import classify, grain, oil, status

WORDS = [f"word{i}" for i in range(60)]


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        await api.topic()
        yield api


def retold(document: dict[str, Any], id: str, more: str = "corrected") -> dict[str, Any]:
    return document | {"id": id, "text": f"{document['text']} {more}"}


async def test_a_story_told_again_names_the_first_and_counts_once(api: Api) -> None:
    (first,) = oil(1)
    (before,) = await classify(api, [first])
    (after,) = await classify(api, [retold(first, "again")])
    assert "duplicate_of" not in before
    assert after == before | {"document": "again", "duplicate_of": first["id"]}
    assert (await status(api))["passed"]["documents"] == 1
    (third,) = await classify(api, [retold(first, "third", "corrected twice")])
    assert third["duplicate_of"] == first["id"]


async def test_in_one_batch_likewise(api: Api) -> None:
    documents = oil(20)
    copies = [retold(document, f"{document['id']}-again") for document in documents]
    results = await classify(api, [*documents, *copies])
    assert [result.get("duplicate_of") for result in results] == [None] * 20 + [
        document["id"] for document in documents
    ]
    for first, again in zip(results[:20], results[20:], strict=True):
        assert again["decisions"] == first["decisions"]
    assert (await status(api))["passed"]["documents"] == 20


async def test_a_document_sent_again_repeats_nobody(api: Api) -> None:
    (first,) = oil(1)
    assert await classify(api, [first]) == await classify(api, [first])
    copy = retold(first, "copy")
    assert (await classify(api, [copy]))[0]["duplicate_of"] == (await classify(api, [copy]))[0]["duplicate_of"] == "o0"
    unlike = {"id": "copy", "text": "nothing of the kind"}
    assert "duplicate_of" not in (await classify(api, [unlike]))[0]


async def test_scoring_alone_asks_and_tells_nobody(api: Api) -> None:
    (first,) = oil(1)
    await classify(api, [first])
    (result,) = await classify(api, [retold(first, "again")], store=False)
    assert "duplicate_of" not in result


async def test_a_word_more_does_not_tip_it_over_a_threshold(api: Api) -> None:
    """Documents of many scores, each told again with a word of the query more, which raises it."""
    documents = [
        {
            "id": f"d{i}",
            "text": " ".join([*(f"{word}of{i}" for word in WORDS[:25]), "crude " * (i % 7), "oil " * (i % 5)]),
        }
        for i in range(35)
    ]
    copies = [retold(document, f"{document['id']}-again", "price") for document in documents]
    firsts = await classify(api, documents, topics=["crude"])
    alone = await classify(api, copies, topics=["crude"], store=False)
    again = await classify(api, copies, topics=["crude"])
    tipped = 0
    for was, by_itself, now in zip(firsts, alone, again, strict=True):
        if "duplicate_of" not in now:
            continue
        before, raised, decision = (result["decisions"][0]["decision"] for result in (was, by_itself, now))
        opposite = {before, raised} == {"accept", "reject"}
        assert decision == (raised if opposite else before)
        tipped += raised != before and not opposite
    assert tipped > 0


async def test_the_one_word_that_a_topic_looks_for_is_not_overlooked(api: Api) -> None:
    await api.topic("alarm", query="failed")
    usual = " ".join(WORDS)
    await classify(api, [{"id": f"done{i}", "text": f"{usual} backup done"} for i in range(3)])
    (result,) = await classify(api, [{"id": "failed", "text": f"{usual} backup failed failed"}], topics=["alarm"])
    alone = await api.decide({"text": f"{usual} backup failed failed"}, "alarm")
    assert result["duplicate_of"] == "done0"
    assert result["decisions"][0]["decision"] == alone["decision"] == "accept"
    passed = (await status(api, "alarm"))["passed"]
    assert (passed["documents"], passed["accepted"], passed["rejected"]) == (2, 1, 1)
    assert (await status(api))["passed"]["documents"] == 1
    (offered,) = (await api.ok("GET", "/topics/alarm/review"))["items"]
    assert offered["document"] == "failed"


async def test_it_is_news_to_a_topic_that_is_younger_than_the_first(api: Api) -> None:
    documents = oil(20)
    await classify(api, documents)
    await asyncio.sleep(0.002)  # topics and documents are dated in milliseconds
    await api.topic("younger")
    copies = [retold(document, f"{document['id']}-again") for document in documents]
    results = await classify(api, copies)
    assert all("duplicate_of" in result for result in results)
    accepted = sum(
        d["topic"] == "younger" and d["decision"] == "accept" for result in results for d in result["decisions"]
    )
    passed = (await status(api, "younger"))["passed"]
    assert (passed["documents"], passed["accepted"]) == (20, accepted)
    assert len((await api.ok("GET", "/topics/younger/review?limit=50"))["items"]) >= accepted > 0
    assert (await status(api))["passed"]["documents"] == 20
    await classify(api, copies)
    assert (await status(api, "younger"))["passed"] == passed


async def test_a_first_that_has_another_text_by_now_decides_nothing(api: Api) -> None:
    first = {"id": "first", **OIL}
    await classify(api, [first])
    await classify(api, [{"id": "first", "text": " ".join(WORDS)}])
    (again,) = await classify(api, [retold(first, "again")], topics=["crude"])
    assert "duplicate_of" not in again
    assert again["decisions"][0]["decision"] == "accept"


async def test_a_rule_speaks_for_itself(api: Api) -> None:
    await api.topic("ruled", rules={"accept_if": "corrected", "reject_if": None})
    (first,) = grain(1)
    await classify(api, [first])
    (result,) = await classify(api, [retold(first, "again")], topics=["ruled"])
    assert (result["duplicate_of"], result["decisions"][0]["decided_by"]) == (first["id"], "accept_if")
    (plain,) = await classify(api, [retold(first, "third", "more")], topics=["ruled"])
    assert plain["decisions"][0]["decided_by"] == "model"


async def test_explained_by_the_words_that_decided(api: Api) -> None:
    first = {"id": "first", **OIL}
    await classify(api, [first])
    (again,) = await classify(api, [retold(first, "again", "barrel")], explain=True)
    (decision,) = again["decisions"]
    assert "barrel" not in {term["term"] for term in decision["explanation"]}
    assert sum(term["contribution"] for term in decision["explanation"]) == pytest.approx(decision["score"], abs=1e-4)


async def test_offered_once(api: Api) -> None:
    documents = oil(5)
    copies = [retold(document, f"{document['id']}-{n}", f"correction {n}") for n in range(3) for document in documents]
    await classify(api, [*documents, *copies])
    offered = (await api.ok("GET", "/topics/crude/review?limit=50"))["items"]
    assert sorted(offer["document"] for offer in offered) == sorted(document["id"] for document in documents)


async def test_drawn_for_audit_together(api: Api, redis_url: str) -> None:
    """Each story is told six times, and rejected. It counts once, so it must be drawn with the chance of one document:
    were each copy drawn by itself, .74 of them would be, with a rate of .2, and each find would stand for five."""
    await api.topic("audited", audit=0.2)
    stories = grain(100)
    copies = [[retold(story, f"{story['id']}-{n}", f"correction {n}") for n in range(5)] for story in stories]
    results = await classify(
        api, [*stories, *(copy for retellings in copies for copy in retellings)], topics=["audited"]
    )
    assert sum("duplicate_of" in result for result in results) >= 480
    passed = (await status(api, "audited"))["passed"]
    assert passed["documents"] <= 120
    first = {result["document"]: result.get("duplicate_of", result["document"]) for result in results}
    rejected = {result["document"] for result in results if result["decisions"][0]["decision"] == "reject"}
    ids = [story["id"] for story in stories]
    drawn_alone = {story for story, is_drawn in zip(ids, drawn("audited", ids, 0.2), strict=True) if is_drawn}
    offers = [offer["document"] for offer in (await api.ok("GET", "/topics/audited/review?limit=100"))["items"]]
    audits = [offer for offer in offers if offer in rejected]
    assert {first[audit] for audit in audits} & set(ids) <= drawn_alone
    assert len(audits) == len({first[audit] for audit in audits})
    # Another process judges the copies: it has to hear of them first.
    async with running_api(redis_url) as other:
        for story in stories:
            copy = f"{story['id']}-3"
            if first[copy] == story["id"] and copy in rejected:
                await other.judge(copy, False, "audited")
    _, events = await api.sluice.store.logs.load("audited")
    judged = {event.document: event.chance for event in events if event.kind == "judged"}
    assert {first[copy] for copy in judged} & drawn_alone
    assert len(judged) > 20
    assert judged == {copy: 0.2 if first[copy] in drawn_alone else 0.0 for copy in judged}


async def test_let_through_with_the_name_of_the_first(api: Api) -> None:
    first = {"id": "first", **OIL}
    await classify(api, [first, retold(first, "again")])
    passed = (await api.ok("GET", "/topics/crude/accepted"))["items"]
    assert [(result["document"], result["duplicate_of"]) for result in passed] == [("again", "first"), ("first", None)]


async def test_processes_agree_and_one_that_comes_later_knows(api: Api, redis_url: str) -> None:
    async with running_api(redis_url) as other:
        both = [api, other]
        documents = oil(60)
        batches = [[documents[i], retold(documents[i - 30], f"again{i}")] for i in range(30, 60)]
        await classify(api, documents[:30])
        results = await asyncio.gather(*(classify(both[i % 2], batch) for i, batch in enumerate(batches)))
        assert [pair[1]["duplicate_of"] for pair in results] == [document["id"] for document in documents[:30]]
    async with running_api(redis_url) as late:
        (result,) = await classify(late, [retold(documents[0], "late")])
        assert result["duplicate_of"] == documents[0]["id"]


async def test_one_that_begins_when_the_first_is_long_gone_agrees_with_those_that_knew_it(redis_url: str) -> None:
    """The block of 50 in which the first came has left the log; a repetition of it is there."""
    async with running_api(redis_url, documents_kept=100) as old:
        await old.topic()
        (first,) = oil(1, "first")
        for batch in ([first], oil(50), [retold(first, "second")], oil(60, "p"), oil(15, "q")):
            await classify(old, batch)
        async with running_api(redis_url, documents_kept=100) as young:
            for n in range(4):
                by = [
                    (await classify(process, [retold(first, f"{n}-{i}")]))[0] for i, process in enumerate((old, young))
                ]
                assert [result.get("duplicate_of") for result in by] == ["second", "second"]


async def test_an_emptied_store_is_begun_anew(api: Api, redis_url: str) -> None:
    first, second = oil(2)
    await classify(api, [first, second])
    with Redis.from_url(redis_url) as client:
        client.delete(NOTED, SIGNATURES)
    assert "duplicate_of" not in (await classify(api, [retold(first, "again")]))[0]
    assert (await classify(api, [retold(first, "third")]))[0]["duplicate_of"] == "again"


async def test_as_many_are_kept_as_documents_are(redis_url: str) -> None:
    async with running_api(redis_url, documents_kept=50) as api:
        await api.topic()
        (first, *others) = oil(400)
        await classify(api, [first])
        for document in others:
            await classify(api, [document])
        with Redis.from_url(redis_url) as client:
            assert client.xlen(SIGNATURES) < 300
        assert "duplicate_of" not in (await classify(api, [retold(first, "again")]))[0]


async def test_a_store_that_was_emptied_after_very_many_documents_begins_anew(redis_url: str) -> None:
    """The process had read so far ahead that it would skip the whole of the new log."""
    async with running_api(redis_url, documents_kept=20) as api:
        await api.topic()
        for start in range(0, 200, 50):
            await classify(api, grain(50, f"old{start}-"))
        with Redis.from_url(redis_url) as client:
            client.delete(NOTED, SIGNATURES)
        first, again = OIL | {"id": "first"}, retold(OIL, "again")
        async with asyncio.timeout(10):
            results = await classify(api, [first]) + await classify(api, [again])
        assert [result.get("duplicate_of") for result in results] == [None, "first"]
