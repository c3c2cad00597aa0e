"""Boosting several topics in one job, by workers of every kind: the same model, or a sentence and nothing lost."""

import socket
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from distributed import LocalCluster

from service.run.replay import replay
from service.store.redis.embedded import Embedded
from service.topics.published import Base
from tests.service.jobs.test_jobs import teach
from tests.support.api import Api, running_api
from tests.support.job_workers import OVER, run_job, running_workers, submit, wait_for_state

MODULE = pytest.mark.asyncio(loop_scope="module")
PARAMS = {"S": 20}


@pytest.fixture(scope="module")
def url(emptied: Embedded) -> str:
    return emptied.url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(url: str) -> AsyncIterator[Api]:
    async with running_api(url) as api:
        for seed, topic in enumerate(("crude", "grain", "metal")):
            await api.topic(topic)
            await teach(api, topic, seed=seed + 1)
        await api.topic("young")
        with running_workers(url):
            yield api


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=2, threads_per_worker=1, **here) as cluster:
        yield str(cluster.scheduler_address)


async def base_of(api: Api, topic: str) -> Base:
    stored = await api.sluice.learning.read(topic, lambda state: state.resolved.base)
    assert stored
    return Base.from_bytes(stored.model)


async def boosted(api: Api, **fields: Any) -> dict[str, tuple[bytes, bytes, float]]:
    """The models that a job publishes, from the same judgements each time."""
    topics = ["crude", "grain", "metal"]
    before = {topic: (await api.ok("GET", f"/topics/{topic}"))["status"]["version"] for topic in topics}
    asked = {"method": "boosting", "params": PARAMS, "topics": topics, "publish": "always"} | fields
    job = await run_job(api, kind="retrain", **asked)
    assert job["result"]["published"] == 3, job
    models = {}
    for topic in topics:
        linear = (await base_of(api, topic)).model.linear
        models[topic] = linear.features.tobytes(), linear.weights.tobytes(), linear.bias
        await api.ok("POST", f"/topics/{topic}/versions/{before[topic]}/restore")
    return models


@MODULE
async def test_topics_are_fitted_together_and_compared_and_published_each_by_itself(api: Api) -> None:
    asked = {"method": "boosting", "params": PARAMS, "topics": ["crude", "young", "grain"], "publish": "always"}
    job = await run_job(api, kind="retrain", **asked)
    assert job["message"].startswith("Done: 2 of 3 topics published. young: Too little to learn from")
    crude, young, grain = job["result"]["topics"]
    assert [one["topic"] for one in (crude, young, grain)] == ["crude", "young", "grain"]
    for one in (crude, grain):
        assert one["published"]
        assert one["gain"]["low"] <= one["gain"]["estimate"] <= one["gain"]["high"]
        assert one["candidate"]["sap"] > 0.5
        base = await base_of(api, one["topic"])
        assert base.recipe
        assert base.recipe.topics == ["crude", "grain"]
        assert (await replay(api.sluice.store, one["topic"], api.sluice.config, verify=True)).outcome == "equal"
    pivots = [set((await base_of(api, topic)).model.linear.features.tolist()) for topic in ("crude", "grain")]
    assert len(pivots[0] & pivots[1]) > 0.8 * len(pivots[0] | pivots[1])  # one list of pivots for both


@MODULE
async def test_any_workers_give_the_same_models_bit_for_bit(api: Api, cluster: str) -> None:
    one = await boosted(api)
    assert await boosted(api, workers=2) == one
    assert await boosted(api, workers=cluster) == one
    assert await boosted(api, joint=False) != one


@MODULE
async def test_a_cluster_that_does_not_answer_fails_the_job_with_a_sentence_and_nothing_is_lost(api: Api) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    before = await api.ok("GET", "/topics/crude/model")
    asked = {"method": "boosting", "topics": ["crude", "grain"], "publish": "always"}
    job = await wait_for_state(
        api, await submit(api, kind="retrain", workers=f"tcp://127.0.0.1:{port}", **asked), *OVER
    )
    assert job["state"] == "failed"
    assert job["message"] == f"The Dask cluster at tcp://127.0.0.1:{port} does not answer. Nothing was fitted."
    assert await api.ok("GET", "/topics/crude/model") == before
    await run_job(api, kind="retrain", params=PARAMS, **asked)


@MODULE
@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"workers": 0}, "/workers"),
        ({"workers": 1.5}, "/workers"),
        ({"workers": True}, "/workers"),
        ({"workers": "two"}, "/workers"),
        ({"workers": "tcp://example.org:8786"}, "/workers"),
        ({"method": "svm", "workers": 2}, "/workers"),
        ({"publish_to": ["metal"]}, "/publish_to"),
    ],
)
async def test_workers_that_cannot_be_had_are_refused_at_once(api: Api, fields: dict[str, Any], pointer: str) -> None:
    asked = {"kind": "retrain", "method": "boosting", "topics": ["crude", "grain"]} | fields
    answer = await api.post("/jobs", json=asked)
    assert answer.status_code == 422, answer.text
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@MODULE
async def test_a_corrected_label_fits_the_topics_together_again_and_publishes_the_one(api: Api) -> None:
    for topic in ("left", "right"):
        await api.topic(topic)
        await teach(api, topic, seed=9)
    asked = {"method": "boosting", "params": PARAMS, "topics": ["left", "right"], "publish": "always"}
    await run_job(api, kind="retrain", **asked)
    other = (await api.ok("GET", "/topics/right"))["status"]["version"]
    assert (await api.judge("left-0", False, topic="left"))["status"] == "corrected"
    (job, *_) = (await api.ok("GET", "/jobs", params={"topic": "left"}))["items"]
    done = await wait_for_state(api, job["id"], *OVER)
    assert [one["published"] for one in done["result"]["topics"]] == [True, False]
    assert (await api.ok("GET", "/topics/right"))["status"]["version"] == other
    fitted = await base_of(api, "left")
    await run_job(api, kind="retrain", **asked)
    assert np.array_equal((await base_of(api, "left")).model.linear.weights, fitted.model.linear.weights)


@MODULE
async def test_a_topic_that_bans_terms_is_fitted_alone(api: Api) -> None:
    await api.topic("banning", terms={"pin": [], "ban": ["opec"]})
    await teach(api, "banning", seed=3)
    asked = {"method": "boosting", "params": PARAMS, "topics": ["banning", "crude", "grain"], "publish": "always"}
    await run_job(api, kind="retrain", **asked)
    base = await base_of(api, "banning")
    assert base.recipe
    assert not base.recipe.topics
