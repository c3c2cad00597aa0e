"""Automatic retraining: when it is due, and why; submitted once, and only where a policy says so."""

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest
from redis import Redis

from models.core.vectors import Linear
from models.goals.evidence import Evidence
from models.online.model import Model
from service.config import Config
from service.jobs import jobs
from service.run.housekeeping import keep_house
from service.schemas import Policy
from service.topics.published import PublishedModel
from service.topics.retrain_policy import LastRetrain, policy_of, retrain_due
from service.topics.settings import TopicSettings
from tests.service.jobs.test_jobs import teach
from tests.support.api import Api, running_api

HOUR = 3_600_000
NOON = 20_000 * 24 * HOUR + 12 * HOUR
NOTHING = Linear("tfidf", np.empty(0, np.uint64), np.empty(0, np.float32), 0.0)


def published(version: int, relevant: int = 30, worse_for: int = 0, retrain: Policy | None = None) -> PublishedModel:
    model = Model(NOTHING, 0.0, 0.0, evidence=Evidence(worse_for=worse_for))
    return PublishedModel("crude", "b", version, 0, TopicSettings(created_ms=0, retrain=retrain), model, relevant, 60)


@pytest.mark.parametrize(
    ("policy", "version", "worse_for", "last", "due"),
    [
        ({"after": 100}, 99, 0, None, False),
        ({"after": 100}, 100, 0, None, True),
        ({"after": 100}, 250, 0, LastRetrain(151, 0, "j"), False),
        ({"after": 100}, 250, 0, LastRetrain(150, 0, "j"), True),
        ({"on_drift": True}, 250, 0, None, False),
        ({"on_drift": True}, 250, 20, None, True),
        ({"on_drift": True}, 250, 20, LastRetrain(230, 0, "j"), True),
        ({"on_drift": True}, 250, 20, LastRetrain(231, 0, "j"), False),  # it was retrained after it had become worse
        ({"nightly": True}, 250, 0, LastRetrain(240, NOON - 10 * HOUR, "j"), True),
        ({"nightly": True}, 250, 0, LastRetrain(240, NOON - 8 * HOUR, "j"), False),
        ({"nightly": True}, 250, 0, LastRetrain(250, NOON - 30 * HOUR, "j"), False),  # nothing is new
    ],
)
def test_what_is_due_and_what_is_not(
    policy: dict[str, Any], version: int, worse_for: int, last: LastRetrain | None, due: bool
) -> None:
    outcome = retrain_due(Policy(method="svm", **policy), published(version, worse_for=worse_for), last, NOON)
    assert outcome.due is due
    assert outcome.detail.endswith(".")


def test_a_topic_with_too_little_is_never_due_and_says_why() -> None:
    outcome = retrain_due(Policy(method="svm", after=10), published(500, relevant=9), None, NOON)
    assert outcome == (False, "Too little to learn from: 10 relevant documents are needed, and 9 were judged.")


def test_what_comes_next_is_said() -> None:
    policy = Policy(method="svm", after=100, on_drift=True, nightly=True)
    assert retrain_due(policy, published(250), LastRetrain(200, NOON, "01ab"), NOON).detail == (
        "Retrained at version 200 (job 01ab); again after 50 more judgements or when it becomes worse "
        "or at 3:00 UTC if there are new judgements."
    )


def test_a_topic_has_its_own_policy_or_that_of_the_settings_or_none() -> None:
    assert policy_of(published(1), Config()) is None
    everywhere = Config(retrain_method="svm", retrain_after=50)
    policy = policy_of(published(1), everywhere)
    assert policy
    assert (policy.method, policy.after, policy.on_drift, policy.nightly) == ("svm", 50, True, False)
    own = Policy(method="rocchio", nightly=True)
    assert policy_of(published(1, retrain=own), everywhere) == own
    assert policy_of(published(1, retrain=Policy(method=None)), everywhere) is None
    assert policy_of(published(1, retrain=Policy(method="svm")), Config()) is None  # a method, but no occasion


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def test_housekeeping_submits_what_is_due_once(api: Api) -> None:
    await api.topic("crude", retrain={"method": "svm", "params": {"C": 2.0}, "after": 40})
    await api.topic("calm")
    for topic in ("crude", "calm"):
        await teach(api, topic, 60)
    assert (await api.ok("GET", "/topics/crude"))["status"]["retraining"]["due"] is True
    assert (await api.ok("GET", "/topics/calm"))["status"]["retraining"] is None
    for _ in range(3):
        await keep_house(api.sluice)
    (job,) = (await api.ok("GET", "/jobs"))["items"]
    assert job["request"] == {
        "kind": "retrain",
        "topics": ["crude"],
        "method": "svm",
        "params": {"C": 2.0},
        "publish": "if_better",
        "joint": True,
        "publish_to": None,
        "workers": None,
    }
    retrain_due = (await api.ok("GET", "/topics/crude"))["status"]["retraining"]
    assert retrain_due["due"] is False
    assert f"job {job['id']}" in retrain_due["detail"]
    await teach(api, "crude", 100, seed=2)
    await keep_house(api.sluice)
    assert len((await api.ok("GET", "/jobs"))["items"]) == 2


async def test_its_own_publication_and_a_new_background_are_no_reason_to_retrain_again(api: Api) -> None:
    await api.topic("crude", retrain={"method": "svm", "nightly": True, "publish": "always"})
    await teach(api, "crude", 60)
    await keep_house(api.sluice)
    exported = await api.ok("GET", "/topics/crude/model?format=export")
    await api.ok("PUT", "/topics/crude/model", exported)
    store, (before,) = api.sluice.store, await api.sluice.counters.load(["crude"])
    assert before.retrained
    yesterday = before.retrained._replace(at_ms=before.retrained.at_ms - 48 * HOUR)
    born = (await api.sluice.topics.find("crude")).born
    mark = store.counts.mark_retrained
    assert await mark("crude", born, expected=before.retrained.to_text(), note=yesterday.to_text())
    assert (await api.ok("GET", "/topics/crude"))["status"]["retraining"]["due"] is True  # an event is new
    await keep_house(api.sluice)
    assert len((await api.ok("GET", "/jobs"))["items"]) == 1
    assert (await api.ok("GET", "/topics/crude"))["status"]["retraining"]["due"] is False
    await teach(api, "crude", 70, seed=2)
    (now,) = await api.sluice.counters.load(["crude"])
    assert now.retrained
    earlier = now.retrained._replace(at_ms=yesterday.at_ms)
    assert await mark("crude", born, expected=now.retrained.to_text(), note=earlier.to_text())
    await keep_house(api.sluice)
    assert len((await api.ok("GET", "/jobs"))["items"]) == 2


async def test_what_finds_no_room_among_the_jobs_is_due_again_later(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    for topic in ("crude", "grain"):
        await api.topic(topic, retrain={"method": "svm", "after": 40})
        await teach(api, topic, 60)
    monkeypatch.setattr(jobs, "MAX_UNFINISHED", 1)
    for _ in range(2):
        await keep_house(api.sluice)
    (job,) = (await api.ok("GET", "/jobs"))["items"]
    due = {topic["id"]: topic["status"]["retraining"]["due"] for topic in (await api.ok("GET", "/topics"))["items"]}
    assert due == {topic: [topic] != job["request"]["topics"] for topic in ("crude", "grain")}
    monkeypatch.setattr(jobs, "MAX_UNFINISHED", 10)
    await keep_house(api.sluice)
    assert len((await api.ok("GET", "/jobs"))["items"]) == 2


async def test_one_broken_topic_does_not_keep_the_others_from_being_retrained(api: Api, redis_url: str) -> None:
    for topic in ("broken", "whole"):
        await api.topic(topic, retrain={"method": "svm", "after": 40})
        await teach(api, topic, 60)
    with Redis.from_url(redis_url) as client:
        newest = client.xrevrange("sluice:{broken}:log", count=1)[0][1]
        client.xadd("sluice:{broken}:log", {**newest, b"document": b"other", b"bag": b"nonsense"}, id="62-0")
        client.hset("sluice:{broken}:topic", "seq", 62)
    api.sluice.learning.clear_cache()
    await keep_house(api.sluice)
    assert [job["request"]["topics"] for job in (await api.ok("GET", "/jobs"))["items"]] == [["whole"]]


async def test_judgements_that_are_forgotten_still_count(redis_url: str) -> None:
    async with running_api(redis_url, judgements_kept=50, versions_kept=20) as api:
        await api.topic("crude", retrain={"method": "svm", "after": 150})
        for seed in range(3):
            await teach(api, "crude", 60, seed=seed)
            for n in range(60):
                await api.judge({"id": f"{seed}-{n}", "text": f"crude opec w{seed} w{n}"}, n % 3 == 0)
        await keep_house(api.sluice)
        assert len((await api.ok("GET", "/jobs"))["items"]) == 1


async def test_a_policy_that_no_job_could_follow_is_refused(api: Api) -> None:
    await api.topic()
    for policy, pointer in (
        ({"method": "magic", "after": 50}, "/retrain/method"),
        ({"method": "svm", "params": {"C": 0}, "after": 50}, "/retrain/params"),
        ({"method": "svm", "after": 3}, "/retrain/after"),
    ):
        response = await api.patch("/topics/crude", json={"retrain": policy})
        assert response.status_code == 422
        assert response.json()["errors"][0]["pointer"] == pointer
    changed = await api.ok("PATCH", "/topics/crude", {"retrain": {"method": "svm", "nightly": True}})
    assert changed["retrain"]["nightly"] is True
    assert (await api.ok("PATCH", "/topics/crude", {"retrain": None}))["retrain"] is None
