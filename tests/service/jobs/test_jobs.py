"""Background jobs through the API, with a real job worker: what they answer, publish, refuse and leave alone."""

import gzip
import json
import random
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from service.clock import now_ms
from service.run.replay import replay
from service.store.jobs import JobStore
from service.store.redis.embedded import Embedded
from service.topics.published import Base
from tests.support.api import Api, running_api
from tests.support.job_workers import OVER, run_job, running_workers, submit, wait_for_state
from tests.support.readers import GRAIN_WORDS, OIL_WORDS, SHARED_WORDS
from tests.support.waiting import wait_until

MODULE = pytest.mark.asyncio(loop_scope="module")


def written(rng: random.Random, relevant: bool) -> str:
    topical, other = (OIL_WORDS, GRAIN_WORDS) if relevant else (GRAIN_WORDS, OIL_WORDS)
    words = rng.choices(topical, k=6) + rng.choices(other, k=2) + rng.choices(SHARED_WORDS, k=6)
    return " ".join(words + [f"w{rng.randrange(2000)}" for _ in range(20)])


def documents(n: int, seed: int, name: str = "d") -> list[dict[str, Any]]:
    rng = random.Random(seed)
    return [{"id": f"{name}{i}", "title": f"News {i}", "text": written(rng, i % 3 == 0)} for i in range(n)]


async def teach(api: Api, topic: str, n: int = 90, seed: int = 1) -> None:
    judged = [
        {"topic": topic, "document": document, "relevant": i % 3 == 0}
        for i, document in enumerate(documents(n, seed, f"{topic}-"))
    ]
    await api.ok("POST", "/feedback", {"judgements": judged})


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("archives")


@pytest.fixture(scope="module")
def url(emptied: Embedded) -> str:
    return emptied.url


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def idle(url: str, archives: Path) -> AsyncIterator[Api]:
    """With topics that have learned, and a stream, but without a job worker."""
    async with running_api(url, archives=archives) as api:
        for topic in ("crude", "grain"):
            await api.topic(topic)
            await teach(api, topic)
        await api.topic("young")
        await api.ok("POST", "/classify", {"documents": documents(120, 5, "stream-")})
        yield api


@pytest.fixture(scope="module")
def worker(url: str, idle: Api, archives: Path) -> Iterator[None]:
    with running_workers(url, archives=archives):
        yield


@pytest.fixture(scope="module")
def api(idle: Api, worker: None) -> Api:
    return idle


# -- without a worker --------------------------------------------------------------------------------------------------


@MODULE
async def test_a_job_waits_until_somebody_does_it_and_can_be_cancelled_before(idle: Api) -> None:
    job = await submit(idle, kind="retrain", method="svm")
    seen = await idle.ok("GET", f"/jobs/{job}")
    assert (seen["state"], seen["progress"], seen["started"], seen["result"]) == ("queued", 0, None, None)
    assert seen["request"]["publish"] == "if_better"
    cancelled = await idle.request("DELETE", f"/jobs/{job}")
    assert cancelled.status_code == 202
    assert cancelled.json()["state"] == "cancelled"
    assert (await idle.ok("DELETE", f"/jobs/{job}"))["finished"] == cancelled.json()["finished"]


@MODULE
@pytest.mark.parametrize(
    ("request_body", "status", "pointer"),
    [
        ({"kind": "retrain", "method": "magic"}, 422, "/method"),
        ({"kind": "retrain", "method": "svm", "params": {"C": -1}}, 422, "/params"),
        ({"kind": "retrain", "method": "boosting", "params": {"rounds": 3}}, 422, "/params"),
        ({"kind": "retrain", "method": "svm", "publish": "perhaps"}, 422, "/publish"),
        ({"kind": "retrain", "method": "svm", "topics": []}, 422, "/topics"),
        ({"kind": "retrain", "method": "svm", "topics": ["nowhere"]}, 404, None),
        ({"kind": "compare", "topic": "crude", "methods": [{"method": "x"}]}, 422, "/methods/0/method"),
        ({"kind": "backfill", "archive": "../secret"}, 422, "/archive"),
        ({"kind": "backfill", "archive": "absent.ndjson"}, 422, "/archive"),
        ({"kind": "dance", "method": "svm"}, 422, "/kind"),
        ({"kind": "dance"}, 422, "/kind"),
        ({}, 422, "/kind"),
    ],
)
async def test_what_could_only_fail_later_is_refused_at_once(
    idle: Api, request_body: dict[str, Any], status: int, pointer: str | None
) -> None:
    answer = await idle.post("/jobs", json=request_body)
    assert answer.status_code == status, answer.text
    if pointer is not None:
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


@MODULE
async def test_jobs_are_listed_newest_first_by_page_and_by_what_they_are(idle: Api) -> None:
    jobs = [await submit(idle, kind="compare", topic=topic) for topic in ("crude", "grain", "crude")]
    for job in jobs:
        await idle.ok("DELETE", f"/jobs/{job}")

    async def listed(**params: Any) -> list[str]:
        found, cursor = [], None
        while True:
            page = await idle.ok("GET", "/jobs", params=params | ({"cursor": cursor} if cursor else {}))
            found += [job["id"] for job in page["items"]]
            if not (cursor := page["next"]):
                return found

    everything = await listed(limit=2)
    assert everything[:3] == jobs[::-1]
    assert sorted(everything, reverse=True) == everything
    assert set(await listed(topic="crude")) >= {jobs[0], jobs[2]}
    assert jobs[1] not in await listed(topic="crude")
    assert await listed(kind="backfill") == []
    assert set(await listed(state="cancelled", kind="compare")) == set(jobs)
    assert (await idle.get("/jobs/00000000000000000000")).status_code == 404
    assert (await idle.get("/jobs/none")).status_code == 404


@MODULE
async def test_only_so_many_jobs_are_remembered_and_none_that_is_not_over_is_forgotten(idle: Api) -> None:
    store = JobStore(idle.sluice.store.connection)
    ids = [f"{n:020x}" for n in range(6)]  # older than all others, so the first to go
    for n, id in enumerate(ids):
        assert await store.submit(id, "compare", "{}", n, kept=1000, open=1000)
    for id in ids[1:]:
        await store.cancel(id, now_ms())
    kept = len(await store.ids())
    assert await store.submit("f" * 20, "compare", "{}", now_ms(), kept=kept - 2, open=1000)
    left = await store.ids()
    assert [id in left for id in ids] == [True, False, False, False, True, True]
    assert not await store.submit("e" * 20, "compare", "{}", now_ms(), kept=1000, open=2)
    for id in (ids[0], "f" * 20):
        await store.cancel(id, now_ms())


@MODULE
async def test_one_job_has_a_topic_at_a_time_until_it_is_over(idle: Api) -> None:
    store = JobStore(idle.sluice.store.connection)
    one, other = [await submit(idle, kind="retrain", topics=["crude"], method="svm") for _ in range(2)]
    assert [await store.take("crude", one), await store.take("crude", one), await store.take("grain", other)] == [
        one,
        one,
        other,
    ]
    assert await store.take("crude", other) == one
    await store.release("crude", other)  # which does not have it
    assert await store.take("crude", other) == one
    await idle.ok("DELETE", f"/jobs/{one}")
    assert await store.take("crude", other) == other
    await store.release("crude", other)
    await idle.ok("DELETE", f"/jobs/{other}")


# -- retraining --------------------------------------------------------------------------------------------------------


@MODULE
async def test_a_retrained_topic_serves_the_new_model_and_goes_on_learning(api: Api) -> None:
    before = (await api.ok("GET", "/topics/crude"))["status"]
    job = await run_job(api, kind="retrain", topics=["crude"], method="svm", publish="always")
    (retrained,) = job["result"]["topics"]
    assert (retrained["relevant"], retrained["irrelevant"], retrained["published"]) == (30, 60, True)
    assert 0 < retrained["background"] < 90
    assert retrained["gain"]["low"] <= retrained["gain"]["estimate"] <= retrained["gain"]["high"]
    assert retrained["gain"]["estimate"] == pytest.approx(
        retrained["candidate"]["sap"] - retrained["served"]["sap"], abs=2e-4
    )
    assert retrained["version"] == before["version"] + 1
    newest = (await api.ok("GET", "/topics/crude/versions?limit=1"))["items"][0]
    assert (newest["version"], newest["cause"]) == (retrained["version"], "retrain")

    async def followed() -> bool:
        return bool((await api.ok("GET", "/topics/crude"))["status"]["version"] == retrained["version"])

    await wait_until(followed)
    assert (await api.ok("GET", "/topics/crude"))["status"]["judged"] == before["judged"]
    oil = {"text": "opec barrel refinery tanker crude output quota"}
    assert (await api.decide(oil))["decision"] == "accept"
    assert (await api.decide({"text": "wheat maize harvest drought farmer crop silo"}))["decision"] == "reject"
    first = (await api.decide(oil))["score"]
    learned = await api.judge({"id": "new", **oil}, False)
    assert learned["version"] == retrained["version"] + 1
    assert (await api.decide(oil))["score"] < first
    assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"


@MODULE
async def test_terms_of_a_retrained_model_have_words_also_if_nobody_judged_a_document_with_them(api: Api) -> None:
    await api.topic("named")
    zinc = [{"id": f"zinc{n}", "text": f"zinc smelter ore mine zincday{n}"} for n in range(40)]
    await api.ok("POST", "/classify", {"documents": zinc})
    await api.sluice.epochs.publish()
    await teach(api, "named")
    await run_job(api, kind="retrain", topics=["named"], method="svm", publish="always")

    async def strongest() -> list[str | None]:
        terms = (await api.ok("GET", "/topics/named/model"))["terms"]
        return [one["term"] for side in ("for", "against") for one in terms[side]]

    async def named() -> bool:
        return "zinc" in await strongest()

    await wait_until(named)
    assert None not in await strongest()


@MODULE
async def test_what_a_topic_lets_through_is_not_taken_to_be_irrelevant_before_it_is_judged(api: Api) -> None:
    """It was, and a model that had learned to reject it was found better, and published."""
    # Served by the vector that lets most of what is relevant through.
    await api.topic("partly", pocket={"every": 10, "by": "learned"})
    await teach(api, "partly")
    job = await run_job(api, kind="retrain", topics=["partly"], method="svm", publish="if_better")
    (retrained,) = job["result"]["topics"]
    assert 0 < retrained["background"] < 90  # of 120 documents that passed, a third is relevant, and nobody judged them
    assert retrained["served"]["sap"] > 0.95


@MODULE
async def test_another_query_or_learner_starts_again_also_over_a_retrained_model(api: Api) -> None:
    for topic in ("fitted", "never"):
        await api.topic(topic)
        await teach(api, topic)
    await run_job(api, kind="retrain", topics=["fitted"], method="svm", publish="always")

    async def served() -> str:
        return str((await api.ok("GET", "/topics/fitted/versions?limit=1"))["items"][0]["learner"])

    assert await served() == "svm"
    await api.ok("PATCH", "/topics/fitted", {"name": "the model stays"})
    oil = {"text": "opec barrel refinery"}
    assert (await api.decide(oil, "fitted"))["score"] != (await api.decide(oil, "never"))["score"]
    preview = await api.ok("POST", "/topics/fitted/preview", {"query": "zebra"})
    assert preview["judged"]["moves"] or preview["unjudged"]["moves"]
    for topic in ("fitted", "never"):
        await api.ok("PATCH", f"/topics/{topic}", {"query": "zebra giraffe"})
    assert (await api.decide(oil, "fitted"))["score"] == (await api.decide(oil, "never"))["score"]
    assert await served() == "wh"
    assert (await replay(api.sluice.store, "fitted", api.sluice.config, verify=True)).outcome == "equal"


@MODULE
async def test_a_retraining_does_not_undo_a_query_that_came_meanwhile(api: Api) -> None:
    await api.topic("meanwhile")
    await teach(api, "meanwhile")
    learning = api.sluice.learning
    born, version = await learning.read("meanwhile", lambda topic: (topic.head.born, topic.resolved.version))
    base = Base((await api.sluice.topics.find("meanwhile")).model)
    await api.ok("PATCH", "/topics/meanwhile", {"query": "zebra"})
    assert await learning.publish_once("meanwhile", born, base, [], version, "late") == 0
    newest = (await api.ok("GET", "/topics/meanwhile/versions?limit=1"))["items"][0]
    assert (newest["version"], newest["cause"]) == (version + 1, "edit")
    assert await learning.publish_once("meanwhile", born, base, [], version + 1, "next") == version + 2


@MODULE
async def test_a_judgement_given_again_fits_nothing_anew(api: Api) -> None:
    """Also of a document that had a part in the fit as one that nobody had judged."""
    await api.topic("again")
    await teach(api, "again")
    await run_job(api, kind="retrain", topics=["again"], method="svm", publish="always")
    before = len((await api.ok("GET", "/jobs?topic=again"))["items"])
    base = await api.sluice.learning.read("again", lambda topic: topic.resolved.base)
    assert base
    unjudged = next(one for one in Base.from_bytes(base.model).fitted if one.startswith("stream-"))
    for _ in range(2):
        for document in (unjudged, "again-1"):
            await api.judge(document, False, topic="again")
    assert len((await api.ok("GET", "/jobs?topic=again"))["items"]) == before
    await api.judge("again-1", True, topic="again")
    assert len((await api.ok("GET", "/jobs?topic=again"))["items"]) == before + 1


@MODULE
async def test_the_standing_query_is_where_batch_rocchio_starts(api: Api) -> None:
    """α = 0, 1 and 1,000 gave the same model: the query was dropped."""
    await api.topic("asked", query="zebra opec")
    await teach(api, "asked")

    async def zebra(**params: object) -> float:
        asked = {"topics": ["asked"], "params": params, "publish": "always"}
        job = await run_job(api, kind="retrain", method="rocchio", **asked)
        version = job["result"]["topics"][0]["version"]

        async def served() -> bool:
            return bool((await api.ok("GET", "/topics/asked/model"))["version"] == version)

        await wait_until(served)
        return float((await api.decide({"text": "zebra"}, "asked"))["score"])

    scores = [await zebra(alpha=0), await zebra(alpha=1), await zebra(alpha=1000)]
    assert len(set(scores)) == 3
    assert scores[0] < scores[1]
    assert await zebra(alpha=1, start="none") == scores[0]


@MODULE
async def test_a_retraining_can_be_rolled_back(api: Api) -> None:
    await api.topic("back")
    await teach(api, "back")
    (before,) = (await api.ok("GET", "/topics/back/versions?limit=1"))["items"]
    job = await run_job(api, kind="retrain", topics=["back"], method="boosting", params={"S": 20}, publish="always")
    assert job["result"]["topics"][0]["version"] == before["version"] + 1
    await api.ok("POST", f"/topics/back/versions/{before['version']}/restore")
    model = await api.ok("GET", "/topics/back/model")
    assert model["version"] == before["version"] + 2
    assert (await replay(api.sluice.store, "back", api.sluice.config, verify=True)).outcome == "equal"


@MODULE
async def test_a_correction_of_what_a_model_was_fitted_on_has_it_fitted_again(api: Api) -> None:
    """At once it counts as one more judgement; in the end the model is what it would have been."""
    for topic in ("wrong", "right"):
        await api.topic(topic)
        await teach(api, topic, 60)
    await api.judge("right-0", False, topic="right")
    for topic in ("wrong", "right"):
        await run_job(api, kind="retrain", topics=[topic], method="centroid", publish="always")
    assert (await api.judge("wrong-0", False, topic="wrong"))["status"] == "corrected"
    (job, *_) = (await api.ok("GET", "/jobs", params={"topic": "wrong"}))["items"]
    assert (job["request"]["method"], job["request"]["publish"]) == ("centroid", "always")
    assert (await wait_for_state(api, job["id"], *OVER))["state"] == "succeeded"

    async def weights(topic: str) -> dict[str, float]:
        model = await api.ok("GET", f"/topics/{topic}/model", params={"format": "export"})
        return {word: weight for word, weight in model["terms"].items() if not word.startswith("w")}

    async def mended() -> bool:
        return await weights("wrong") == pytest.approx(await weights("right"), rel=1e-4)

    await wait_until(mended)


@MODULE
async def test_what_is_not_better_is_not_published_unless_it_is_wanted(api: Api) -> None:
    version = (await api.ok("GET", "/topics/grain"))["status"]["version"]
    for request_body in (
        {"method": "boosting", "params": {"S": 1, "rho": 0.99}, "publish": "if_better"},
        {"method": "svm", "publish": "never"},
    ):
        (retrained,) = (await run_job(api, kind="retrain", topics=["grain"], **request_body))["result"]["topics"]
        assert retrained["published"] is False
        assert retrained["version"] is None
        assert retrained["detail"].startswith(("Not published: SAP", "Not to be published: SAP"))
    assert (await api.ok("GET", "/topics/grain"))["status"]["version"] == version


@MODULE
async def test_all_topics_are_retrained_and_those_with_too_little_are_named(api: Api) -> None:
    job = await run_job(api, kind="retrain", method="rocchio", publish="never")
    result = job["result"]
    assert job["message"].startswith(f"Done: 0 of {result['total']} topics published. ")
    by_topic = {retrained["topic"]: retrained for retrained in result["topics"]}
    assert result["total"] == len(by_topic) >= 3
    assert "0 relevant documents" in by_topic["young"]["detail"]
    assert by_topic["young"]["candidate"] is None
    assert by_topic["grain"]["candidate"]["sap"] > 0.5


@MODULE
async def test_methods_are_compared_on_the_same_documents(api: Api) -> None:
    contenders = [{"method": "svm"}, {"method": "bayes"}, {"method": "wh", "params": {"passes": 2}}]
    result = (await run_job(api, kind="compare", topic="grain", methods=contenders))["result"]
    assert {row["method"] for row in result["table"]} == {"served", "svm", "bayes", "wh"}
    saps = [row["held_out"]["sap"] for row in result["table"]]
    assert saps == sorted(saps, reverse=True)
    assert [row["gain"] is None for row in result["table"]] == [row["method"] == "served" for row in result["table"]]
    assert (result["relevant"], result["irrelevant"]) == (30, 60)
    young = await wait_for_state(api, await submit(api, kind="compare", topic="young"), *OVER)
    assert young["state"] == "failed"
    assert "0 relevant documents" in young["message"]


@MODULE
async def test_a_running_job_says_how_far_it_is_and_is_cancelled_soon(api: Api) -> None:
    job = await submit(api, kind="retrain", topics=["grain"], method="wh", params={"draws": 1_000_000})
    running = await wait_for_state(api, job, "running")
    assert running["started"] is not None

    async def retraining() -> Any:
        seen = await api.ok("GET", f"/jobs/{job}")
        return seen if seen["message"] == "Retraining grain." else None

    assert 0 <= (await wait_until(retraining))["progress"] < 1
    await api.ok("DELETE", f"/jobs/{job}")
    assert (await wait_for_state(api, job, *OVER))["state"] == "cancelled"
    again = await run_job(api, kind="retrain", topics=["grain"], method="centroid", publish="never")
    assert again["result"]["topics"][0]["candidate"] is not None


# -- backfill ----------------------------------------------------------------------------------------------------------


@MODULE
async def test_a_new_topic_is_put_to_what_is_remembered_and_offers_it_for_review(api: Api) -> None:
    await api.topic("late", query="wheat maize harvest drought")
    assert (await api.ok("GET", "/topics/late/review"))["items"] == []
    result = (await run_job(api, kind="backfill", topics=["late"]))["result"]
    (found,) = result["topics"]
    assert result["documents"] >= 120
    assert found["accepted"] + found["abstained"] > 10
    assert [one["score"] for one in found["best"]] == sorted((one["score"] for one in found["best"]), reverse=True)
    offered = (await api.ok("GET", "/topics/late/review?limit=100"))["items"]
    assert {one["document"] for one in offered} >= {one["document"] for one in found["best"][:5]}
    assert (await api.ok("GET", "/topics/late"))["status"]["passed"]["documents"] == 0


@MODULE
@pytest.mark.parametrize("suffix", ["", ".gz"])
async def test_an_archive_is_decided_line_by_line(api: Api, archives: Path, suffix: str) -> None:
    lines = [json.dumps(document) for document in documents(300, 9, "a")]
    lines[10:10] = ["{not json", "", json.dumps({"text": 7}), json.dumps({"text": "x" * 1_000_001})]
    content = ("\n".join(lines) + "\n").encode()
    name = f"old.ndjson{suffix}"
    (archives / name).write_bytes(gzip.compress(content) if suffix else content)
    job = await run_job(api, kind="backfill", topics=["crude", "grain"], archive=name)
    result = job["result"]
    assert (result["documents"], result["refused"]) == (300, 3)
    assert result["decisions"] == f"{name}.{job['id']}.decisions.ndjson"
    written = [json.loads(line) for line in (archives / result["decisions"]).read_text().splitlines()]
    order = [int(row["document"][1:]) for row in written]
    assert order == sorted(set(order))
    for found in result["topics"]:
        decisions = [one["decision"] for row in written for one in row["decisions"] if one["topic"] == found["topic"]]
        assert (decisions.count("accept"), decisions.count("abstain")) == (found["accepted"], found["abstained"])
    sample = next(row for row in written if row["decisions"][0]["topic"] == "crude")
    text = next(d for d in documents(300, 9, "a") if d["id"] == sample["document"])
    assert (await api.decide(text))["score"] == sample["decisions"][0]["score"]


CRUDE = b'{"text": "crude oil"}\n'
NO_GZIP = "The archive is not a gzip file, or is incomplete."


@MODULE
@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("cut.ndjson.gz", gzip.compress(CRUDE * 100)[:-9], NO_GZIP),
        ("plain.ndjson.gz", CRUDE, NO_GZIP),
        (f"{'long' * 60}.ndjson", CRUDE, "no file written beside it: File name too long."),
    ],
    ids=["cut", "plain", "long"],
)
async def test_of_an_archive_that_cannot_be_read_or_written_beside_the_job_says_so(
    api: Api, archives: Path, name: str, content: bytes, message: str
) -> None:
    (archives / name).write_bytes(content)
    job = await wait_for_state(api, await submit(api, kind="backfill", topics=["crude"], archive=name), *OVER)
    assert job["state"] == "failed"
    assert message in job["message"]


@MODULE
async def test_an_archive_is_found_by_whatever_path_is_taken(api: Api, archives: Path) -> None:
    """A directory that is not there was left out when the job was submitted, but not when the file was opened."""
    (archives / "near.ndjson").write_bytes(CRUDE)
    job = await run_job(api, kind="backfill", topics=["crude"], archive="absent/../near.ndjson")
    assert job["result"]["documents"] == 1
