"""Topics of which one may accept, through the API: never two accept, whichever topics a request names."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from service.config import Config
from service.jobs.backfill import backfill
from service.jobs.context import JobContext
from service.schemas.jobs import Backfill
from service.store.jobs import Claim
from tests.support.api import Api, running_api
from tests.support.readers import GRAIN_WORDS, OIL_WORDS
from tests.support.refusals import refused
from tests.support.streaming import classify, document, grain, oil

QUEUE = {"name": "queue", "rule": "at_most_one", "margin": 0.1}
TOPICS = ("crude", "grain")


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def trained(api: Api, group: dict[str, Any] | None) -> None:
    """Two topics that have probabilities, for which everything was shown."""
    await api.topic("crude", rules={"accept_if": "report"})
    await api.topic("grain", query="wheat maize harvest", rules={"accept_if": "report"})
    await classify(api, [*oil(14), *grain(14)])
    judgements = [
        {"topic": topic, "document": one["id"], "relevant": one["id"].startswith(topic[0].replace("c", "o"))}
        for topic in TOPICS
        for one in (*oil(14), *grain(14))
    ]
    await api.ok("POST", "/feedback", {"judgements": judgements})
    for topic in TOPICS:
        await api.ok("PATCH", f"/topics/{topic}", {"rules": None, "group": group})


def mixed(n: int) -> list[dict[str, Any]]:
    """Documents about one, the other, and both."""
    both = [document(f"m{i}", [*OIL_WORDS[:3], *GRAIN_WORDS[:3]]) for i in range(n)]
    return [*oil(n, "x"), *grain(n, "y"), *both]


async def decided(api: Api, documents: Sequence[Any], **options: Any) -> dict[str, dict[str, Any]]:
    """By document and topic, each verdict of the two topics."""
    results = await classify(api, documents, **{"include": "all", "store": False} | options)
    return {
        result["document"]: {each["topic"]: each for each in result["decisions"] if each["topic"] in TOPICS}
        for result in results
    }


def decisions(verdicts: dict[str, dict[str, Any]]) -> dict[str, dict[str, str]]:
    return {id: {topic: each["decision"] for topic, each in row.items()} for id, row in verdicts.items()}


async def test_at_most_one_accepts_and_it_is_the_likeliest(api: Api) -> None:
    await trained(api, None)
    alone = await decided(api, mixed(20))
    for topic in TOPICS:
        await api.ok("PATCH", f"/topics/{topic}", {"group": QUEUE})
    together = await decided(api, mixed(20))
    assert sum(list(row.values()).count("accept") > 1 for row in decisions(alone).values()) > 3
    overruled = 0
    for id, row in together.items():
        ours = [each["decision"] for each in row.values()]
        assert ours.count("accept") <= 1
        for topic, each in row.items():
            own = alone[id][topic]
            assert (each["score"], each["probability"]) == (own["score"], own["probability"])
            assert each["decided_by"] == ("model" if each["decision"] == own["decision"] else "group")
            overruled += each["decided_by"] == "group"
        if "accept" in ours:
            best, other = sorted(row.values(), key=lambda each: -each["probability"])
            assert best["decision"] == "accept" or other["decision"] == "accept"
            if alone[id][best["topic"]]["decision"] != "reject":
                assert best["decision"] == "accept"
    assert overruled > 3


async def test_the_same_is_decided_whichever_topics_are_asked_and_by_whatever_way(api: Api) -> None:
    await trained(api, QUEUE)
    documents = mixed(8)
    together = decisions(await decided(api, documents))
    for topic in TOPICS:
        named = decisions(await decided(api, documents, topics=[topic]))
        assert named == {id: {topic: row[topic]} for id, row in together.items()}
    unnamed = decisions(await decided(api, documents, include=None))
    assert unnamed == {id: {t: d for t, d in row.items() if d != "reject"} for id, row in together.items()}
    explained = await decided(api, documents, explain=True)
    assert decisions(explained) == together
    assert all(each["flip"] is None for row in explained.values() for each in row.values() if by_group(each))
    await classify(api, documents)
    for topic in TOPICS:
        passed = (await api.ok("GET", f"/topics/{topic}/accepted", params={"limit": 500}))["items"]
        delivered = {one["document"]: one["decision"] for one in passed if one["document"][0] in "xym"}
        assert delivered == {id: row[topic] for id, row in together.items() if row[topic] != "reject"}
    judged = await api.judge("m0", False, "grain")
    events = await api.sluice.learning.read("grain", lambda state: state.resolved.judged["m0"])
    assert (judged["status"], events.delivered) == ("learned", together["m0"]["grain"])


def by_group(verdict: dict[str, Any]) -> bool:
    return bool(verdict["decided_by"] == "group")


async def test_a_backfill_of_one_topic_decides_it_with_the_others_of_its_group(api: Api) -> None:
    await trained(api, QUEUE)
    documents = mixed(8)
    together = decisions(await decided(api, documents))
    await classify(api, documents)
    sluice = api.sluice
    context = JobContext(
        Claim("j", "t"), Config(redis="redis://unused"), sluice.store, sluice.store.jobs, sluice.epochs, sluice.learning
    )
    result = await backfill(context, Backfill(kind="backfill", topics=["grain"], review=False))
    (row,) = result.topics
    expected = [each["grain"] for each in together.values()]
    earlier = decisions(await decided(api, [*oil(14), *grain(14)]))
    expected += [each["grain"] for each in earlier.values()]
    assert (row.topic, row.accepted, row.abstained) == ("grain", expected.count("accept"), expected.count("abstain"))


async def test_exactly_one_accepts_or_both_abstain_once_both_have_probabilities(api: Api) -> None:
    one = {"name": "desk", "rule": "exactly_one", "margin": 0.05}
    await api.topic("crude", group=one)
    await api.topic("grain", query="wheat maize harvest", group=one)
    before = decisions(await decided(api, [{"id": "n", "text": "cup final tonight"}]))
    assert before == {"n": {"crude": "reject", "grain": "reject"}}  # nothing to compare by
    for topic in TOPICS:
        await api.ok("DELETE", f"/topics/{topic}")
    await trained(api, one)
    verdicts = await decided(api, [*mixed(10), {"id": "n", "text": "cup final tonight"}])
    for made in decisions(verdicts).values():
        assert sorted(made.values()) in (["accept", "reject"], ["abstain", "abstain"])
    for row in verdicts.values():
        second, best = sorted(row.values(), key=lambda each: each["probability"])
        assert (best["decision"] == "accept") == (best["probability"] - second["probability"] > 0.05)


async def test_a_topic_that_leaves_or_is_deleted_frees_the_other(api: Api) -> None:
    await trained(api, None)
    alone = decisions(await decided(api, mixed(10)))
    for topic in TOPICS:
        await api.ok("PATCH", f"/topics/{topic}", {"group": QUEUE})
    assert (await api.ok("GET", "/topics/grain"))["group"] == QUEUE
    assert decisions(await decided(api, mixed(10))) != alone
    assert "group" not in await api.ok("PATCH", "/topics/grain", {"group": None})
    assert decisions(await decided(api, mixed(10))) == alone
    await api.ok("PATCH", "/topics/grain", {"group": QUEUE})
    await api.ok("DELETE", "/topics/grain")
    assert decisions(await decided(api, mixed(10))) == {id: {"crude": row["crude"]} for id, row in alone.items()}


async def test_a_preview_decides_with_the_group_as_the_change_would(api: Api) -> None:
    await trained(api, None)
    await classify(api, mixed(20))
    await api.ok("PATCH", "/topics/crude", {"group": QUEUE})
    before = decisions(await decided(api, mixed(20)))
    asked = {"group": QUEUE, "limit": 500}
    outcome = await api.ok("POST", "/topics/grain/preview", asked)
    await api.ok("PATCH", "/topics/grain", {"group": QUEUE})
    after = decisions(await decided(api, mixed(20)))
    examples = {each["document"]: (each["before"], each["after"]) for each in outcome["examples"]}
    moved = {id: (before[id]["grain"], after[id]["grain"]) for id in after if before[id]["grain"] != after[id]["grain"]}
    assert len(moved) > 3
    assert {id: change for id, change in examples.items() if id[0] in "xym"} == moved
    stays = await api.ok("POST", "/topics/grain/preview", {"limit": 500})
    assert stays["examples"] == []
    accepted = [after[id]["grain"] for id in after].count("accept")
    assert stays["unjudged"]["after"]["accepted"] == accepted == outcome["unjudged"]["after"]["accepted"]


async def test_groups_that_overlap_are_refused_in_words(api: Api) -> None:
    await api.topic("crude", group=QUEUE)
    detail = "Topic 'crude' is in this group as at_most_one with margin 0.1; give the same, or choose another group."
    for other in ({"rule": "exactly_one"}, {"margin": 0.2}):
        body = {"id": "grain", "query": "wheat", "group": QUEUE | other}
        problem = refused(await api.post("/topics", json=body), 422)
        assert problem["errors"] == [{"pointer": "/group", "detail": detail}]
    await api.topic("grain", query="wheat", group={"name": "other", "rule": "exactly_one"})
    refused(await api.patch("/topics/grain", json={"group": QUEUE | {"margin": 0.3}}), 422)
    refused(await api.post("/topics/grain/preview", json={"group": QUEUE | {"margin": 0.3}}), 422)
    await api.ok("PATCH", "/topics/crude", {"group": QUEUE | {"margin": 0.3}})  # alone in it, so it may
    file = (await api.get("/topics/crude/export")).content
    await api.ok("PATCH", "/topics/crude", {"group": QUEUE})
    answer = await api.post(
        "/topics/import", content=file, params={"id": "new"}, headers={"content-type": "application/x-ndjson"}
    )
    refused(answer, 422)
    for wrong in (
        "queue",
        ["queue", "other"],
        {"name": "A queue"},
        {"name": "q", "rule": "two"},
        {"name": "q", "margin": 2},
    ):
        refused(await api.patch("/topics/grain", json={"group": wrong}), 422)


async def test_what_the_user_rules_is_not_overruled(api: Api) -> None:
    await trained(api, QUEUE)
    await api.ok("PATCH", "/topics/grain", {"rules": {"accept_if": "barley"}})
    text = f"{' '.join(OIL_WORDS)} barley"
    row = (await decided(api, [{"id": "r", "text": text}]))["r"]
    assert [(row[topic]["decision"], row[topic]["decided_by"]) for topic in TOPICS] == [
        ("reject", "group"),
        ("accept", "accept_if"),
    ]
    await api.ok("PATCH", "/topics/grain", {"rules": {"reject_if": "barley"}})
    row = (await decided(api, [{"id": "r", "text": text}]))["r"]
    assert (row["crude"]["decision"], row["grain"]["decided_by"]) == ("accept", "reject_if")


async def test_a_copy_is_decided_with_the_group_too(api: Api) -> None:
    await trained(api, QUEUE)
    originals = mixed(6)
    copies = [one | {"id": f"{one['id']}-copy"} for one in originals]
    first = decisions(await decided(api, originals, store=True))
    again = await classify(api, copies, include="all")
    for result in again:
        id = result["document"].removesuffix("-copy")
        assert result["duplicate_of"] == id
        assert {each["topic"]: each["decision"] for each in result["decisions"]} == first[id]
