"""A goal that changes its state is announced: once for each change, wherever it was asked for, and by one process."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.flow.formats import message
from service.flow.subscribers import event
from service.run.housekeeping import save_goals
from service.store.stream.outbox import START, Placed, announce_cmd
from tests.support.api import Api, running_api
from tests.support.refusals import refused
from tests.support.streaming import classify, grain, oil
from tests.support.waiting import wait_until

GOAL = {"min_precision": 0.8}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def changes(api: Api, topic: str = "crude") -> list[Placed]:
    place, found = START, list[Placed]()
    while entries := await api.sluice.outbox.read_after(topic, place):
        place = entries[-1].place
        found += [entry for entry in entries if entry.is_goal]
    return found


async def met(api: Api) -> None:
    await api.topic(goal=GOAL, audit=0)
    await classify(api, [*oil(60), *grain(60)])
    judgements = [{"topic": "crude", "document": f"o{i}", "relevant": True} for i in range(60)]
    judgements += [{"topic": "crude", "document": f"g{i}", "relevant": False} for i in range(60)]
    await api.ok("POST", "/feedback", {"judgements": judgements})
    await wait_until(lambda: changes(api))


async def test_each_change_is_announced_once_and_only_changes_are(api: Api) -> None:
    await met(api)
    (first,) = await changes(api)
    change = first.goal_change("crude")
    assert (change.topic, change.before, change.state) == ("crude", "learning", "met")
    assert change.detail == (await api.ok("GET", "/topics/crude"))["status"]["goal"]["detail"]
    for _ in range(3):
        await asyncio.gather(*(save_goals(api.sluice) for _ in range(4)))
    assert len(await changes(api)) == 1
    await api.ok("PATCH", "/topics/crude", {"goal": {"min_precision": 0.8, "max_abstain": 0.0}})
    await save_goals(api.sluice)
    assert [each.goal_change("crude").state for each in await changes(api)] == ["met", "learning"]
    page = await api.ok("GET", "/topics/crude/accepted", params={"limit": 1000})
    assert {item["decision"] for item in page["items"]} <= {"accept", "abstain"}
    assert page["next"] is None


async def test_a_process_that_died_before_it_looked_is_made_up_for_by_housekeeping(
    redis_url: str, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api.sluice.judge, "_learned", lambda topic: None)
    await api.topic(goal=GOAL, audit=0)
    await classify(api, [*oil(60), *grain(60)])
    for i in range(60):
        await api.judge(f"o{i}", True)
    assert not await changes(api)
    async with running_api(redis_url) as other:
        await save_goals(other.sluice)
        await save_goals(api.sluice)
        assert len(await changes(other)) == 1


async def test_who_looks_at_an_older_model_or_older_counts_announces_nothing(api: Api) -> None:
    await api.topic(goal=GOAL)
    born = (await api.sluice.topics.find("crude")).born

    async def announce(state: str, version: int, documents: int, by: str = born) -> int:
        (done,) = await api.sluice.store.run([announce_cmd("crude", by, state, version, documents, "So.", 100)])
        return int(done)

    assert await announce("learning", 5, 100) == 0
    assert await announce("met", 7, 100) == 1
    assert await announce("met", 8, 200) == 0
    assert await announce("learning", 6, 300) == 0
    assert await announce("learning", 7, 99) == 0
    assert await announce("at_risk", 7, 100, by="another") == 0
    assert await announce("at_risk", 7, 101) == 1
    assert await announce("", 8, 300) == 0
    assert await announce("met", 8, 300) == 1
    states = [(each.entry.before, each.entry.state) for each in await changes(api)]
    assert states == [("learning", "met"), ("met", "at_risk"), ("learning", "met")]
    assert len({each.entry.id for each in await changes(api)}) == 3


async def test_listeners_and_receivers_are_told_in_their_own_form(api: Api) -> None:
    await met(api)
    (placed,) = await changes(api)
    lines = event("crude", placed).decode().splitlines()
    assert lines[:2] == [f"id: {placed.place}", "event: goal"]
    body: dict[str, Any] = json.loads(message("crude", placed))
    assert body["type"] == "sluice.goal"
    assert body["data"] == json.loads(lines[2].removeprefix("data: "))
    assert body["data"] | {"before": "learning", "state": "met", "topic": "crude"} == body["data"]
    routes = {"routes": [{"to": "stream", "key": "goals", "on": ["goal"]}]}
    assert (await api.ok("PUT", "/topics/crude/routes", routes))["items"][0]["on"] == ["goal"]
    wrong = {"routes": [{"to": "stream", "key": "goals", "on": ["reject"]}]}
    refused(await api.put("/topics/crude/routes", json=wrong), 422)
