"""Thresholds set by hand stay, whatever is learned, until they are changed."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.refusals import NDJSON, refused
from tests.support.streaming import classify, grain, oil, status

FIXED = {"reject_below": 0.11, "accept_above": 0.22}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def cuts(api: Api, topic: str = "crude") -> dict[str, float]:
    now = await status(api, topic)
    return {name: now[name] for name in FIXED}


async def learn(api: Api, n: int, prefix: str) -> None:
    await classify(api, [*oil(n, f"{prefix}o"), *grain(n, f"{prefix}g")])
    judgements = [{"topic": "crude", "document": f"{prefix}o{i}", "relevant": True} for i in range(n)]
    judgements += [{"topic": "crude", "document": f"{prefix}g{i}", "relevant": False} for i in range(n)]
    await api.ok("POST", "/feedback", {"judgements": judgements})


async def test_two_cuts_stay_through_judgements_and_a_model_from_elsewhere_and_decide(api: Api) -> None:
    made = await api.topic(cuts=FIXED)
    assert made["cuts"] == FIXED
    assert await cuts(api) == FIXED
    await learn(api, 20, "a")
    assert await cuts(api) == FIXED
    for document in (OIL, GRAIN):
        decided = await api.decide(document)
        score = decided["score"]
        wanted = "reject" if score < 0.11 else "accept" if score > 0.22 else "abstain"
        assert decided["decision"] == wanted
    await api.ok("DELETE", "/topics/crude/judgements/ao3")
    assert await cuts(api) == FIXED
    file = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    await api.ok("PUT", "/topics/crude/model", file | {"reject_below": 0.5, "accept_above": 0.6})
    assert await cuts(api) == FIXED
    await learn(api, 5, "b")
    assert await cuts(api) == FIXED


async def test_without_them_the_topic_cuts_by_itself_again_and_a_version_brings_them_back(api: Api) -> None:
    await api.topic()
    await api.topic("other")
    own = await cuts(api)
    preview = await api.ok("POST", "/topics/crude/preview", {"cuts": FIXED})
    assert {name: preview["after"][name] for name in FIXED} == FIXED
    changed = await api.ok("PATCH", "/topics/crude", {"cuts": FIXED})
    assert {name: changed["status"][name] for name in FIXED} == FIXED
    freed = await api.ok("PATCH", "/topics/crude", {"cuts": None})
    assert "cuts" not in freed
    assert await cuts(api) == own
    await api.ok("POST", f"/topics/crude/versions/{changed['status']['version']}/restore")
    assert await cuts(api) == FIXED
    exported = (await api.get("/topics/crude/export")).content
    imported = await api.post("/topics/import", params={"id": "copy"}, content=exported, headers=NDJSON)
    assert imported.is_success, imported.text
    assert await cuts(api, "copy") == FIXED


async def test_a_band_stays_as_wide_and_follows_the_cut_of_the_topic(api: Api) -> None:
    await api.topic(cuts={"band": 0.05})
    await api.topic("free")
    places = []
    for round in range(3):
        await learn(api, 10, f"{round}-")
        now = await cuts(api)
        assert now["accept_above"] - now["reject_below"] == pytest.approx(0.1)
        places.append(now["accept_above"])
        preview = await api.ok("POST", "/topics/crude/preview", {"cuts": None, "goal": {}, "limit": 0})
        assert preview["after"]["accept_above"] == pytest.approx(now["accept_above"] - 0.05)
    assert len(set(places)) > 1


async def test_with_cuts_a_goal_is_watched_and_moves_nothing(api: Api) -> None:
    await api.topic(cuts=FIXED, goal={"min_precision": 0.8, "max_abstain": 0.3}, audit=1.0)
    await learn(api, 60, "a")
    assert await cuts(api) == FIXED
    goal = (await status(api))["goal"]
    assert goal["precision"]["judged"] > 0
    for goal_ in ({"max_error": 0.1}, {"maximise": "break_even"}):
        await api.ok("PATCH", "/topics/crude", {"goal": goal_})
        assert await cuts(api) == FIXED


async def test_a_committee_votes_at_the_scores_that_were_set(api: Api) -> None:
    await api.topic(learner={"kind": "committee", "params": {"k": 3, "combine": "vote"}}, cuts=FIXED)
    await learn(api, 12, "a")
    assert await cuts(api) == FIXED


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "Give either"),
        ({"band": -0.1}, "at least 0"),
        ({"band": 0.1, "accept_above": 0.2}, "Give either"),
        ({"accept_above": 0.2}, "Give both"),
        ({"reject_below": 0.3, "accept_above": 0.2}, "must not be above"),
        ({"reject_below": 0.1, "accept_above": "high"}, "number"),
    ],
)
async def test_cuts_that_make_no_sense_are_refused_and_nothing_changes(
    api: Api, given: dict[str, Any], says: str
) -> None:
    await api.topic()
    before = await cuts(api)
    problem = refused(await api.patch("/topics/crude", json={"cuts": given}), 422)
    assert says in str(problem), problem
    assert await cuts(api) == before
