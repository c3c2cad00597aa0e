"""What if: other settings tried on what was judged and on what passed, and nothing is changed by it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.feedback import goal_cost
from tests.support.api import Api, running_api
from tests.support.refusals import refused
from tests.support.streaming import classify, grain, oil
from tests.support.waiting import wait_until


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def judged_stream(api: Api, **fields: Any) -> None:
    """Forty documents judged, of two kinds, and sixty that only passed; no other epoch comes meanwhile."""
    await api.topic(**fields)
    await classify(api, [*oil(20), *grain(20), *oil(30, "p"), *grain(30, "q")])

    async def published() -> int:
        return api.sluice.epochs.current.number

    await wait_until(published)
    judgements = [{"topic": "crude", "document": one["id"], "relevant": True} for one in oil(20)]
    judgements += [{"topic": "crude", "document": one["id"], "relevant": False} for one in grain(20)]
    await api.ok("POST", "/feedback", {"judgements": judgements})


async def preview(api: Api, **settings: Any) -> Any:
    return await api.ok("POST", "/topics/crude/preview", settings)


CHANGES = [
    {"goal": {"min_precision": 0.6, "max_abstain": 0.3}},
    {"learner": {"kind": "winnow", "params": {}}},
    {"query": "wheat maize harvest"},
    {"rules": {"accept_if": "wheat", "reject_if": "tanker"}},
    {"audit": 0.5},
    {"terms": {"pin": ["tanker", "silo"], "ban": ["opec"]}},
    {"query": None, "learner": {"kind": "auto", "params": {}}, "goal": {"min_recall": 0.9}},
    {},
]


@pytest.mark.parametrize("change", CHANGES)
async def test_a_preview_changes_nothing_and_tells_what_the_change_would_give(api: Api, change: dict[str, Any]) -> None:
    await judged_stream(api)
    topic, versions = await api.ok("GET", "/topics/crude"), await api.ok("GET", "/topics/crude/versions")
    digest = await api.sluice.store.versions.load_digest("crude")
    outcome = await preview(api, **change)
    assert await api.ok("GET", "/topics/crude") == topic
    assert await api.ok("GET", "/topics/crude/versions") == versions
    assert await api.sluice.store.versions.load_digest("crude") == digest
    assert outcome["version"] == topic["status"]["version"]
    assert outcome["before"] == topic["status"]
    changed = await api.ok("PATCH", "/topics/crude", change)
    for threshold in ("reject_below", "accept_above"):
        assert outcome["after"][threshold] == changed["status"][threshold]
    assert (outcome["after"]["goal"] or {}) == (changed["status"]["goal"] or {})


async def test_both_ways_are_counted_on_the_same_documents(api: Api) -> None:
    await judged_stream(api)
    outcome = await preview(api, query="wheat maize harvest", learner={"kind": "rocchio", "params": {}}, limit=500)
    assert (outcome["judged"]["documents"], outcome["unjudged"]["documents"]) == (40, 60)
    for part in (outcome["judged"], outcome["unjudged"]):
        for side in ("before", "after"):
            assert sum(part[side][name] for name in ("accepted", "abstained", "rejected")) == part["documents"]
            for decision, name in (("accept", "accepted"), ("abstain", "abstained"), ("reject", "rejected")):
                moved = [move["documents"] for move in part["moves"] if move[side] == decision]
                assert sum(moved) == part[side][name]
    assert outcome["judged"]["before"]["recall"] > 0.9
    assert outcome["unjudged"]["before"]["recall"] is None
    moved = [move for part in (outcome["judged"], outcome["unjudged"]) for move in part["moves"]]
    assert len(outcome["examples"]) == sum(move["documents"] for move in moved if move["before"] != move["after"])


async def test_nothing_moves_when_nothing_is_changed(api: Api) -> None:
    await judged_stream(api)
    outcome = await preview(api)
    assert outcome["examples"] == []
    assert outcome["before"] == outcome["after"]
    assert outcome["judged"]["before"] == outcome["judged"]["after"]
    assert outcome["unjudged"]["before"] == outcome["unjudged"]["after"]


async def test_rules_are_tried_with_examples_of_what_they_would_move(api: Api) -> None:
    await judged_stream(api)
    outcome = await preview(api, rules={"reject_if": "title:report", "accept_if": None}, limit=5)
    assert outcome["unjudged"]["after"]["rejected"] == 60
    assert outcome["judged"]["after"]["rejected"] == 40
    assert outcome["judged"]["after"]["recall"] == 0
    assert len(outcome["examples"]) == 5
    for example in outcome["examples"]:
        assert (example["after"], example["relevant"]) == ("reject", None)
        assert example["before"] != "reject"
        assert example["title"].startswith("Report")
        assert example["score"] == example["score_after"]  # the model is the same
    assert (await preview(api, rules={"reject_if": "title:report"}, limit=0))["examples"] == []


async def test_a_goal_that_asks_for_more_is_shown_with_its_status(api: Api) -> None:
    await judged_stream(api)
    outcome = await preview(api, goal={"min_precision": 0.99, "mode": "strict"})
    assert outcome["before"]["goal"] is None
    assert outcome["after"]["goal"]["state"] == "learning"
    assert outcome["after"]["goal"]["precision"]["detail"]
    assert outcome["judged"]["after"]["accepted"] == 0
    by_estimate = await preview(api, goal={"min_precision": 0.99})
    assert by_estimate["judged"]["after"]["accepted"] > 0
    assert "0.99 is not certain yet" in by_estimate["after"]["goal"]["detail"]


async def test_audits_are_previewed_as_the_share_that_would_be_drawn(api: Api) -> None:
    await judged_stream(api)
    assert (await preview(api, audit=0.25))["audit"] == {"before": 0.01, "after": 0.25}


async def test_a_topic_without_documents_or_judgements_can_be_tried(api: Api) -> None:
    await api.topic()
    outcome = await preview(api, query="wheat")
    assert (outcome["judged"]["documents"], outcome["unjudged"]["documents"], outcome["examples"]) == (0, 0, [])
    assert outcome["judged"]["before"]["precision"] is None


async def test_a_judged_document_that_is_forgotten_is_compared_by_the_models(redis_url: str) -> None:
    async with running_api(redis_url, documents_kept=16) as api:
        await api.topic()
        for one, other in zip(oil(10), grain(10), strict=True):
            await api.judge(one, True)
            await api.judge(other, False)
        await classify(api, oil(40, "p"))
        outcome = await preview(api, learner={"kind": "perceptron", "params": {}}, rules={"reject_if": "title:report"})
        assert outcome["judged"]["documents"] == 20
        assert outcome["judged"]["after"]["rejected"] < 20
        assert 0 < outcome["unjudged"]["documents"] == outcome["unjudged"]["after"]["rejected"] <= 16


async def test_settings_that_cannot_be_are_refused_as_a_change_would_be(api: Api) -> None:
    await api.topic()
    for bad in (
        {"learner": {"kind": "oracle", "params": {}}},
        {"learner": {"kind": "wh", "params": {"eta": -1}}},
        {"rules": {"accept_if": "(oil"}},
        {"goal": {"min_precision": 2}},
        {"audit": -1},
        {"speed": 1},
    ):
        path = "/topics/crude"
        tried, changed = [await api.request(m, p, json=bad) for m, p in (("POST", f"{path}/preview"), ("PATCH", path))]
        assert tried.status_code == changed.status_code == 422
        assert tried.json()["errors"] == changed.json()["errors"]
    refused(await api.request("POST", "/topics/crude/preview", json={"name": "Oil"}), 422)
    refused(await api.request("POST", "/topics/crude/preview", json={"limit": 501}), 422)
    refused(await api.request("POST", "/topics/none/preview", json={}), 404)


# -- what a goal costs, when it is set ---------------------------------------------------------------------------------


async def test_a_goal_that_costs_says_so_when_it_is_set_and_is_set_all_the_same(api: Api) -> None:
    await judged_stream(api, audit=0)
    strict = {"min_precision": 0.99, "mode": "strict"}
    tried = await preview(api, goal=strict)
    counts = [[tried[part][when] for part in ("judged", "unjudged")] for when in ("before", "after")]
    before, after = ([sum(each[name] for each in both) for name in ("accepted", "abstained")] for both in counts)
    assert before[0] > after[0] == 0
    changed = await api.ok("PATCH", "/topics/crude", {"goal": strict, "name": "Oil"})
    assert (changed["goal"], changed["name"]) == (strict, "Oil")
    assert changed["warnings"] == [
        f"With this goal, of the last 100 documents 0 would be accepted instead of {before[0]}, and {after[1]} left to "
        f"you instead of {before[1]}."
    ]
    assert "warnings" not in await api.ok("GET", "/topics/crude")
    changes: list[dict[str, Any]] = [{"goal": strict}, {"name": "Crude"}, {"goal": {}}, {"goal": None}]
    for change in changes:
        assert "warnings" not in await api.ok("PATCH", "/topics/crude", change)


async def test_a_new_topic_says_what_its_goal_costs_on_what_came_before_it(api: Api) -> None:
    await api.topic("first")
    await classify(api, [*oil(20), *grain(20)])
    strict = await api.topic("strict", goal={"min_precision": 0.9, "mode": "strict"})
    (warning,) = strict["warnings"]
    assert warning.startswith("With this goal, of the last 40 documents 0 would be accepted instead of ")
    for topic, goal in (("best", {"min_precision": 0.9}), ("free", {})):
        assert "warnings" not in await api.topic(topic, goal=goal)


async def test_what_a_goal_costs_never_stops_a_change(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    await judged_stream(api)
    monkeypatch.setattr(goal_cost, "MAX_S", 0.0)
    changed = await api.ok("PATCH", "/topics/crude", {"goal": {"min_precision": 0.99}})
    assert changed["warnings"] == ["It takes too long to work out what this goal costs; a preview shows it."]
    assert changed["goal"] == {"min_precision": 0.99, "mode": "best"}
