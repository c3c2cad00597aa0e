"""What is offered for judgement: worth it, never twice, and honest about when it is enough."""

import asyncio
from collections.abc import AsyncIterator
from itertools import compress
from typing import Any

import pytest
from redis import Redis

from models.goals.audit import drawn
from service.store.stream.documents import unpack
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.live import live
from tests.support.refusals import refused, send
from tests.support.streaming import classify, document, grain, oil, status
from tests.support.waiting import PATIENCE_S, wait_until

RECALL = {"min_recall": 0.9, "max_abstain": 0.15}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        await api.topic()
        yield api


async def review(api: Api, topic: str = "crude", **params: Any) -> Any:
    return await api.ok("GET", f"/topics/{topic}/review", params=params)


async def offered(api: Api, topic: str = "crude", limit: int = 100) -> list[str]:
    return [item["document"] for item in (await review(api, topic, limit=limit))["items"]]


async def test_what_is_accepted_or_abstained_from_is_offered_with_what_it_says(api: Api) -> None:
    results = await classify(api, [*oil(7), *grain(7)])  # too few for a new epoch, under which words weigh differently
    decisions = {r["document"]: d for r in results for d in r["decisions"]}
    assert decisions
    page = await review(api, limit=100)
    assert page["next"] is None
    assert {item["document"] for item in page["items"]} == set(decisions)
    reasons = {"accept": "likely", "abstain": "uncertain"}
    for item in page["items"]:
        verdict = decisions[item["document"]]
        assert (item["decision"], item["score"]) == (verdict["decision"], pytest.approx(verdict["score"], abs=1e-5))
        assert item["reason"] == reasons[verdict["decision"]]
        assert item["title"] == f"Report {item['document']}"
        assert item["snippet"]


async def test_an_offer_says_where_a_document_comes_from(api: Api) -> None:
    about = {"source": "wire", "published": "today", "url": "https://example.org/1", "author": "A", "language": "en"}
    plain, whole = oil(2)
    await classify(api, [plain, whole | about])
    offers = {item["document"]: item for item in (await review(api))["items"]}
    assert {name: offers[whole["id"]][name] for name in about} == about
    assert {offers[plain["id"]][name] for name in about} == {None}
    assert offers[plain["id"]]["at"] <= offers[whole["id"]]["at"]


async def test_while_little_is_known_the_likeliest_come_first(api: Api) -> None:
    await classify(api, [*oil(20), *grain(20)])
    items = (await review(api, limit=100))["items"]
    likely = [item["score"] for item in items if item["reason"] == "likely"]
    assert [item["reason"] for item in items[: len(likely)]] == ["likely"] * len(likely)
    assert likely == sorted(likely, reverse=True)


async def test_later_those_nearest_to_a_threshold_come_first(api: Api) -> None:
    await classify(api, [*oil(60), *grain(60)])
    for i in range(12):
        await api.judge(f"o{i}", True)
        await api.judge(f"g{i}", False)
    now = await status(api)
    items = [item for item in (await review(api, limit=100))["items"] if item["reason"] != "audit"]
    near = [min(abs(i["score"] - now["reject_below"]), abs(i["score"] - now["accept_above"])) for i in items]
    assert len(items) > 10
    assert near == sorted(near)


async def test_what_was_judged_or_skipped_is_never_offered_again(api: Api) -> None:
    await classify(api, oil(12))
    seen: list[str] = []
    while items := (await review(api, limit=3))["items"]:
        document = items[0]["document"]
        assert document not in seen
        seen.append(document)
        if len(seen) % 2:
            await api.judge(document, True)
        else:
            skipped = await api.ok("POST", "/topics/crude/review/skip", {"document": document})
            assert skipped == {"topic": "crude", "document": document, "status": "skipped"}
            assert await api.ok("POST", "/topics/crude/review/skip", {"document": document}) == skipped
    assert len(seen) >= 6


async def test_near_duplicates_are_offered_once(api: Api) -> None:
    one = document("one", oil(1)[0]["text"].split())
    copies = [one | {"id": f"copy{i}", "title": f"Copy {i}"} for i in range(5)]
    await classify(api, [*copies, *oil(5)])
    first = [name for name in await offered(api) if name.startswith("copy")]
    assert len(first) == 1
    await api.judge(first[0], True)
    assert not [name for name in await offered(api) if name.startswith("copy")]


async def test_that_nothing_is_wrongly_rejected_is_not_enough(api: Api) -> None:
    await classify(api, grain(60))
    for i in range(40):
        await api.judge(f"g{i}", False)
    page = await review(api)
    assert not page["enough"]
    assert "only 0 are about accepted documents" in page["detail"]


async def test_what_is_judged_late_was_decided_when_it_passed(api: Api) -> None:
    """By then the topic has learned to accept it; but nobody was ever shown it, and recall must know."""
    await api.topic("late", query="crude oil", audit=1.0)
    await classify(api, grain(40))
    await api.ok("POST", "/classify", {"documents": [grain(41)[40] | {"id": "named"}], "topics": ["late"]})
    for i in range(12):
        before = await api.judge(f"g{i}", True, topic="late")
    assert before["before"]["decision"] == "accept"
    await api.judge("named", True, topic="late")
    await classify(api, [grain(40)[30]])  # once more, and now it is let through
    await api.judge("g30", True, topic="late")
    judged = await api.sluice.learning.read("late", lambda state: dict(state.resolved.judged))
    assert [(one.delivered, one.origin) for name, one in judged.items() if name != "named"] == [
        ("reject", "audit")
    ] * 13
    assert judged["named"].first.decision == "accept"
    assert judged["named"].delivered == "accept"  # what was put to it by name may not have been put to others
    waiting = [item for item in (await review(api, "late", limit=100))["items"] if item["reason"] == "audit"]
    assert {item["decision"] for item in waiting} == {"accept"}  # drawn and rejected then, whatever it would be now


async def test_what_a_rule_decided_is_what_was_delivered_also_of_documents_put_to_topics_by_name(api: Api) -> None:
    await api.topic("ruled", query="crude oil", rules={"accept_if": "report", "reject_if": "refinery"}, audit=1.0)
    documents = [*grain(5), *oil(5)]
    for batch, named in ((documents[::2], {}), (documents[1::2], {"topics": ["ruled"]})):
        await api.ok("POST", "/classify", {"documents": batch} | named)
    decisions = {one["id"]: "reject" if "refinery" in one["text"] else "accept" for one in documents}
    assert set(decisions.values()) == {"accept", "reject"}
    for name in decisions:
        await api.judge(name, False, topic="ruled")
    judged = await api.sluice.learning.read("ruled", lambda state: dict(state.resolved.judged))
    assert {name: one.delivered for name, one in judged.items()} == decisions
    await classify(api, [{"id": "unjudged", "text": "refinery strike in rotterdam"}])
    offers = (await review(api, "ruled", limit=100))["items"]
    assert ("unjudged", "audit") in [(item["document"], item["reason"]) for item in offers]


async def test_near_duplicates_of_what_was_judged_are_not_offered_after_a_model_came_from_elsewhere_either(
    api: Api,
) -> None:
    text = " ".join(f"crude oil word{n}" for n in range(30))
    await api.judge({"id": "first", "text": text}, True)
    exported = await api.ok("GET", "/topics/crude/model?format=export")
    await api.ok("PUT", "/topics/crude/model", exported)
    await api.ok("POST", "/classify", {"documents": [{"id": "copy", "text": text + " again"}]})
    assert "copy" not in await offered(api)


async def test_near_duplicates_of_what_was_skipped_are_not_offered(api: Api) -> None:
    one = document("one", oil(1)[0]["text"].split())
    await classify(api, [one | {"id": f"copy{i}"} for i in range(3)])
    (first,) = await offered(api)
    await api.ok("POST", "/topics/crude/review/skip", {"document": first})
    assert await offered(api) == []


async def test_what_a_rule_decides_is_not_offered(api: Api) -> None:
    await api.ok("PATCH", "/topics/crude", {"rules": {"accept_if": "harvest OR wheat", "reject_if": "opec"}})
    documents = [*oil(20), *grain(20)]
    await classify(api, documents)
    ruled = {d["id"] for d in documents if {"harvest", "wheat", "opec"} & set(d["text"].split())}
    assert ruled
    assert ruled.isdisjoint(await offered(api))


async def test_forgotten_documents_drop_out(redis_url: str) -> None:
    async with running_api(redis_url, documents_kept=16) as api:
        await api.topic()
        await classify(api, oil(10))
        assert await offered(api)
        await classify(api, grain(400))
        assert not [name for name in await offered(api) if name.startswith("o")]


def _flood(i: int) -> dict[str, Any]:
    return {"id": f"flood{i}", "text": " ".join([OIL["text"], *(f"flood{i}x{n}" for n in range(8))])}


async def test_queues_are_bounded_and_a_flood_of_the_accepted_does_not_push_out_the_uncertain(redis_url: str) -> None:
    async with running_api(redis_url, review_kept=5) as api:
        await api.topic()
        results = await classify(api, [*oil(100), *grain(100)], topics=["crude"])
        uncertain = [r["document"] for r in results if r["decisions"][0]["decision"] == "abstain"]
        assert uncertain
        await classify(api, [_flood(i) for i in range(50)], topics=["crude"])
        with Redis.from_url(redis_url) as client:
            likely = [document.decode() for document in client.zrange("sluice:{crude}:likely", 0, -1)]
            kept = [document.decode() for document in client.zrange("sluice:{crude}:uncertain", 0, -1)]
        assert likely == [f"flood{i}" for i in range(45, 50)]
        assert kept == uncertain[-5:]


# -- audits ------------------------------------------------------------------------------------------------------------


async def offered_audits(api: Api, topic: str = "crude") -> list[str]:
    items = (await review(api, topic, limit=100))["items"]
    return [item["document"] for item in items if item["reason"] == "audit"]


async def test_rejected_documents_are_drawn_for_audit_unless_the_user_wants_none(api: Api) -> None:
    await api.topic("sure", goal=RECALL, audit=0.25)
    await api.topic("deaf", goal={"min_precision": 0.9}, audit=0)
    documents = grain(200)
    await classify(api, documents)
    items = (await review(api, "sure", limit=100))["items"]
    audits = {item["document"] for item in items if item["reason"] == "audit"}
    ids = [one["id"] for one in documents]
    lots = {one for one, is_drawn in zip(ids, drawn("sure", ids, 0.25), strict=True) if is_drawn}
    assert audits
    assert audits <= lots
    assert all(item["decision"] == "reject" for item in items if item["reason"] == "audit")
    by_default = await offered_audits(api)
    assert by_default
    assert set(by_default) <= set(compress(ids, drawn("crude", ids, 0.01)))
    assert not await offered_audits(api, "deaf")


async def test_another_rate_is_for_what_comes_from_then_on(api: Api) -> None:
    """What came while one in ten was drawn has been spoken for; drawn again at one in two it would count twice. What
    came before anything was drawn has not."""

    async def change(rate: float | None) -> None:
        await asyncio.sleep(0.002)  # documents and changes are dated in milliseconds
        await api.ok("PATCH", "/topics/late", {"audit": rate})
        await asyncio.sleep(0.002)

    async def drawn_of(documents: list[Any]) -> list[float]:
        published = await api.sluice.topics.find("late")
        blobs = await api.sluice.store.documents.load([one["id"] for one in documents])
        came = [unpack(blob).came_ms for blob in blobs if blob]
        asked = zip(documents, came, strict=True)
        return [chance for one, at in asked if (chance := api.sluice.goals.chance(published, one["id"], at))]

    await api.topic("late", query="crude oil", audit=0)
    parts = [grain(600, f"{name}-") for name in "abcd"]
    await classify(api, parts[0])
    for part, rate in zip(parts[1:], (0.1, 0.5, 0.2), strict=True):
        await change(rate)
        await classify(api, part)
    for part, rate in zip(parts, (0.1, 0.1, 0.5, 0.2), strict=True):
        chances = await drawn_of(part)
        assert set(chances) == {rate}
        assert sum(1 / chance for chance in chances) == pytest.approx(600, rel=0.35)
    published = await api.sluice.topics.find("late")
    assert [then.rate for then in published.settings.drawn] == [0.1, 0.5]
    audits = [item["document"] for item in (await review(api, "late", limit=100))["items"] if item["reason"] == "audit"]
    assert audits
    for audit in audits:
        await api.judge(audit, False, "late")
    _, events = await api.sluice.store.logs.load("late")
    rates = dict(zip("abcd", (0.1, 0.1, 0.5, 0.2), strict=True))
    assert all(event.chance == rates[event.document[0]] for event in events if event.kind == "judged")
    await api.ok("POST", "/topics/late/versions/1/restore")
    assert (await api.sluice.topics.find("late")).settings.drawn == published.settings.drawn
    await change(0.0)
    assert not await drawn_of(parts[0])
    assert "drawn" not in await api.ok("GET", "/topics/late")


async def test_audits_are_a_fixed_share_while_there_is_something_else(api: Api) -> None:
    await api.ok("PATCH", "/topics/crude", {"audit": 0.5})
    await classify(api, [*oil(60), *grain(200)])
    reasons = [item["reason"] for item in (await review(api, limit=40))["items"]]
    assert [place for place, reason in enumerate(reasons, 1) if reason == "audit"] == list(range(4, 41, 4))


async def test_documents_from_before_a_topic_are_neither_offered_nor_evidence(api: Api) -> None:
    """They count in nobody's tally, so audits of them would measure another stream. Sent again, they are still old."""
    old = {"id": "old", **GRAIN}
    await api.ok("POST", "/classify", {"documents": [old]})
    await asyncio.sleep(0.002)
    await api.topic("late", audit=1.0)
    await api.ok(
        "POST",
        "/classify",
        {"documents": [old, {"id": "new", "text": "The home side won the cup final after extra time."}]},
    )
    assert await offered(api, "late") == ["new"]
    await api.judge("old", False, "late")
    await api.judge("new", False, "late")
    judged = await api.sluice.learning.read("late", lambda state: dict(state.resolved.judged))
    assert [judged[document].origin for document in ("old", "new")] == ["given", "audit"]


@pytest.mark.parametrize(
    ("fields", "audits"),
    [
        ({}, True),
        ({"goal": {"min_precision": 0.9, "max_abstain": 0.1}}, True),
        ({"goal": {"min_recall": 0.9}}, True),
        ({"goal": {"max_error": 0.1}}, True),
        ({"audit": 0.0}, False),
        ({"goal": {"max_error": 0.1}, "audit": 0.0}, False),
        ({"audit": 0.7}, True),
    ],
)
async def test_a_topic_audits_unless_its_user_says_otherwise(
    redis_url: str, fields: dict[str, Any], audits: bool
) -> None:
    async with running_api(redis_url, audit_rate=0.5) as api:
        made = await api.topic(**fields)
        assert made["audit"] == fields.get("audit")
        await classify(api, grain(40))
        reasons = [item["reason"] for item in (await review(api, limit=100))["items"]]
        assert ("audit" in reasons) == audits
        if fields.get("audit") is not None:
            assert (await api.ok("PATCH", "/topics/crude", {"audit": None}))["audit"] is None


async def test_a_judgement_says_how_it_came_about(api: Api) -> None:
    """Brought along, shown, drawn or picked: what each is evidence of differs."""
    await api.ok("PATCH", "/topics/crude", {"goal": RECALL, "audit": 0.5})
    shown, whole = "shown", OIL | {"id": "whole"}
    plain = grain(40)
    results = await classify(api, [*plain, OIL | {"id": shown}, whole], topics=["crude"])
    rejected = [r["document"] for r in results if r["decisions"][0]["decision"] == "reject"]
    lots = drawn("crude", rejected, 0.5)
    audit = next(d for d, is_drawn in zip(rejected, lots, strict=True) if is_drawn)
    found = next(d for d, is_drawn in zip(rejected, lots, strict=True) if not is_drawn)
    brought = document("brought", ["oil", "crude", "opec", "barrel", "quota"])
    given = [(audit, False), (found, False), (shown, True), (whole, True), (brought, True)]
    judgements = [{"topic": "crude", "document": one, "relevant": relevant} for one, relevant in given]
    await api.ok("POST", "/feedback", {"judgements": judgements})
    _, events = await api.sluice.store.logs.load("crude")
    logged = {event.document: (event.passed, event.chance) for event in events if event.kind == "judged"}
    assert logged["brought"] == (False, 0.0)
    assert logged[audit] == (True, 0.5)
    assert logged[found] == (True, 0.0)
    assert logged[shown][0]
    assert logged[whole["id"]][0]
    standing = await api.sluice.learning.read("crude", lambda state: dict(state.resolved.judged))
    origins = {name: standing[name].origin for name in ("brought", audit, found, shown)}
    assert origins == {"brought": "given", audit: "audit", found: "found", shown: "shown"}


async def test_processes_offer_alike_and_a_killed_one_loses_nothing(redis_url: str) -> None:
    with live(redis_url, sweep_s=0.1) as one:
        async with Api(base_url=one.address, timeout=PATIENCE_S) as first:
            await first.topic(goal=RECALL, audit=0.3)
            await classify(first, [*oil(10), *grain(60)])
            await first.ok("POST", "/topics/crude/review/skip", {"document": "o1"})
            with live(redis_url, sweep_s=0.1) as other:
                async with Api(base_url=other.address, timeout=PATIENCE_S) as second:

                    async def alike() -> bool:
                        """Once both weigh words by the newest background."""
                        return bool(await review(first, limit=50) == await review(second, limit=50))

                    await wait_until(alike)
            was = await offered(first)
    with live(redis_url) as again:
        async with Api(base_url=again.address, timeout=PATIENCE_S) as third:
            assert sorted(await offered(third)) == sorted(was)
    assert "o1" not in was


# -- enough ------------------------------------------------------------------------------------------------------------


async def test_it_says_when_more_judgements_would_hardly_help(api: Api) -> None:
    assert not (page := await review(api))["enough"]
    assert page["detail"].startswith("There is nothing to judge right now. ")
    await classify(api, [*oil(40), *grain(40)])
    for i in range(40):
        await api.judge(f"o{i}", True)
        await api.judge(f"g{i}", False)
    page = await review(api)
    assert page["enough"], page["detail"]
    await api.ok("PATCH", "/topics/crude", {"goal": {"min_recall": 0.99}})
    page = await review(api)
    assert not page["enough"]
    detail = (await status(api))["goal"]["detail"]
    assert page["detail"] == f"There is nothing to judge right now. {detail}"


async def test_where_a_rule_decides_rightly_more_judgements_are_not_needed_whatever_the_model_thinks(api: Api) -> None:
    """The model rejects what the rule accepts, and every judgement says that the rule is right."""
    await api.topic("ruled", rules={"accept_if": "report", "reject_if": None}, query="unheard of")
    await api.ok("PATCH", "/topics/crude", {"rules": {"accept_if": "coup", "reject_if": None}})
    for topic, coups in (("crude", 40), ("ruled", 0)):
        await classify(api, [*oil(40), *grain(40)], topics=[topic])
        for i in range(40):
            await api.judge(f"o{i}", True, topic)
            await api.judge(f"g{i}", topic == "ruled", topic)
        for i in range(coups):
            await classify(api, [{"id": f"c{i}", "text": f"coup {' '.join(f'in{i}x{n}' for n in range(20))}"}])
            await api.judge(f"c{i}", i > 2, topic)
    page = await review(api)
    assert page["enough"], page["detail"]
    assert page["detail"].endswith(
        "all agree with the decisions; more would hardly help."
    )  # the newest that a rule decided were right
    page = await review(api, "ruled")
    assert not page["enough"]
    assert "0 decisions have been judged so far" in page["detail"]


async def test_where_rules_decide_wrongly_it_is_said_that_judgements_do_not_help(api: Api) -> None:
    await api.ok("PATCH", "/topics/crude", {"rules": {"accept_if": "report", "reject_if": None}})
    await classify(api, [*oil(20), *grain(4)])
    for i in range(20):
        await api.judge(f"o{i}", True)
    for i in range(4):
        await api.judge(f"g{i}", False)
    detail = (await review(api))["detail"]
    assert detail.endswith(" 4 of the newest 24 judgements where a rule decided disagree with it; change the rules.")


async def test_disagreement_says_that_judgements_help(api: Api) -> None:
    await classify(api, oil(40))
    for i in range(40):
        await api.judge(f"o{i}", False)
    page = await review(api)
    assert not page["enough"]


# -- refusals ----------------------------------------------------------------------------------------------------------


async def test_nonsense_is_refused(api: Api) -> None:
    for limit in ("0", "101", "x", "-1"):
        refused(await api.get("/topics/crude/review", params={"limit": limit}), 422)
    refused(await api.get("/topics/nowhere/review"), 404)
    refused(await send(api, "POST", "/topics/nowhere/review/skip", {"document": "d"}), 404)
    refused(await send(api, "POST", "/topics/crude/review/skip", {"document": "never seen"}), 404)
    for body in ({}, {"document": ""}, {"document": 1}, {"document": "d", "why": 1}, {"document": "\n"}):
        refused(await send(api, "POST", "/topics/crude/review/skip", body), 422)
    for audit in (-0.1, 1.1, "x", True):
        refused(await send(api, "PATCH", "/topics/crude", {"audit": audit}), 422)
