"""Terms that are pinned or banned, through the service: set, shown, learned under, tried, restored, moved, replayed."""

import json
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from models.text.analysis import Analysis
from service.config import Config
from service.errors import BadInput
from service.run.replay import replay
from service.schemas import Pins
from service.store.redis.embedded import Embedded
from service.topics import settings
from service.topics.settings import TopicSettings
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.job_workers import run_job, running_workers
from tests.support.refusals import pointers, refused
from tests.support.streaming import grain, oil
from tests.support.waiting import wait_until

TERMS = {"pin": ["OPEC", "brent"], "ban": ["Reuters"]}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Embedded]:
    """A second server's store."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as directory, Embedded(Path(directory)) as server:
        yield server


async def weights(api: Api, topic: str = "crude") -> dict[str, float]:
    exported = await api.ok("GET", f"/topics/{topic}/model", params={"format": "export"})
    weights: dict[str, float] = exported["terms"]
    return weights


async def judged(api: Api) -> None:
    """Relevant are documents that Reuters sent; irrelevant such that speak of opec."""
    for document in oil(12):
        await api.judge(document | {"text": document["text"].replace("opec", "") + " reuters"}, True)
    for document in grain(12):
        await api.judge(document | {"text": document["text"] + " opec opec"}, False)


async def test_terms_are_shown_as_they_were_given_and_can_be_taken_back(api: Api) -> None:
    made = await api.topic(terms=TERMS)
    assert made["terms"] == TERMS
    assert (await api.ok("GET", "/topics/crude"))["terms"] == TERMS
    assert (await api.ok("PATCH", "/topics/crude", {"terms": {"ban": ["said"]}}))["terms"] == {
        "pin": [],
        "ban": ["said"],
    }
    assert (await api.ok("PATCH", "/topics/crude", {"name": "Oil"}))["terms"]["ban"] == ["said"]
    assert (await api.ok("PATCH", "/topics/crude", {"terms": None}))["terms"] == {"pin": [], "ban": []}


async def test_pins_alone_make_a_topic_that_works_at_once(api: Api) -> None:
    await api.topic(query="", terms={"pin": ["opec", "crude"]})
    verdicts = [await api.decide(document, explain=True) for document in (OIL, GRAIN)]
    assert [verdict["decision"] for verdict in verdicts] == ["accept", "reject"]
    assert {"term": "OPEC", "pinned": True}.items() <= verdicts[0]["explanation"][0].items()
    assert verdicts[1]["flip"]["with"]


async def test_whatever_is_judged_a_pin_speaks_for_the_topic_and_a_ban_is_silent(api: Api) -> None:
    await api.topic(query="crude oil")
    await judged(api)
    plain = await weights(api)
    assert plain["opec"] < 0 < plain["reuters"]
    await api.ok("PATCH", "/topics/crude", {"terms": TERMS})
    weight = await weights(api)
    assert weight["opec"] == weight["brent"] == pytest.approx(0.7)
    assert "reuters" not in weight
    shown = await api.ok("GET", "/topics/crude/model")
    assert {term["term"] for term in shown["terms"]["for"] if term.get("pinned")} == {"opec", "brent"}
    assert all("pinned" not in term for term in shown["terms"]["against"])
    text = {"text": "reuters says opec met the minister"}
    explained = (await api.decide(text, explain=True))["explanation"]
    assert {term["term"]: term.get("pinned") for term in explained if term["term"] in ("opec", "reuters")} == {
        "opec": True
    }
    await api.ok("PATCH", "/topics/crude", {"terms": None})
    assert await weights(api) == plain


@pytest.mark.parametrize(
    "learner",
    [{"kind": "eg", "params": {"d": 20}}, {"kind": "winnow", "params": {"variant": "positive"}}, {"kind": "committee"}],
)
async def test_what_is_explained_of_other_learners_adds_up_and_names_no_banned_term(api: Api, learner: Any) -> None:
    await api.topic(learner=learner, terms=TERMS)
    await judged(api)
    verdict = await api.decide({"text": "reuters says opec cut the output of crude oil"}, explain=True)
    assert "reuters" not in {term["term"] for term in verdict["explanation"]}
    assert sum(term["contribution"] for term in verdict["explanation"]) == pytest.approx(verdict["score"], abs=1e-5)
    shown = (await api.ok("GET", "/topics/crude/model"))["terms"]
    assert "reuters" not in {term["term"] for term in [*shown["for"], *shown["against"]]}


async def test_a_restored_version_has_the_terms_it_had(api: Api) -> None:
    await api.topic(terms=TERMS)
    await judged(api)
    before, version = await weights(api), (await api.ok("GET", "/topics/crude"))["status"]["version"]
    await api.ok("PATCH", "/topics/crude", {"terms": {"pin": ["wheat"]}})
    assert await weights(api) != before
    restored = await api.ok("POST", f"/topics/crude/versions/{version}/restore")
    assert (restored["terms"], await weights(api)) == (TERMS, before)


async def test_a_retrained_model_and_what_is_learned_after_it_are_under_the_terms(api: Api, redis_url: str) -> None:
    await api.topic(query="crude oil", terms=TERMS)
    await judged(api)
    with running_workers(redis_url):
        (result,) = (await run_job(api, kind="retrain", topics=["crude"], method="svm", publish="always"))["result"][
            "topics"
        ]
    assert result["published"]

    async def arrived() -> bool:
        return bool((await api.ok("GET", "/topics/crude"))["status"]["version"] == result["version"])

    await wait_until(arrived)
    for _ in range(2):
        weight = await weights(api)
        assert "reuters" not in weight
        assert weight["opec"] == weight["brent"] > 0
        await api.judge({"id": "after", "text": "opec opec wheat"}, False)
    assert (await replay(api.sluice.store, "crude", Config(), verify=True)).outcome == "equal"


async def test_the_log_says_it_all(api: Api, elsewhere: Embedded) -> None:
    """A replay gives the stored model to the bit; a file taken elsewhere decides the same, and is itself the same."""
    await api.topic(terms=TERMS)
    await judged(api)
    await api.ok("PATCH", "/topics/crude", {"terms": {"pin": ["tanker"], "ban": ["opec"]}})
    await api.judge(OIL | {"id": "later"}, True)
    assert (await replay(api.sluice.store, "crude", Config(), verify=True)).outcome == "equal"
    file = (await api.get("/topics/crude/export")).content
    with Redis.from_url(elsewhere.url) as client:
        client.flushall()
    async with running_api(elsewhere.url) as there:
        response = await there.post("/topics/import", content=file, headers={"content-type": "application/x-ndjson"})
        assert response.json() == await api.ok("GET", "/topics/crude")
        assert await weights(there) == await weights(api)
        assert (await there.get("/topics/crude/export")).content == file


async def test_nothing_is_written_of_terms_where_there_are_none(api: Api) -> None:
    """Neither in a log, nor in a file, nor in what a digest is of: what was written before is read and is the same."""
    await api.topic()
    await judged(api)
    lines = [json.loads(line) for line in (await api.get("/topics/crude/export")).content.splitlines()]
    written = [line["settings"] for line in lines if line.get("settings")]
    assert written
    assert all(not {"terms", "read"} & set(fields) for fields in written)
    old = TopicSettings.model_validate(written[0])
    assert (old.terms, old.pinned_terms.pin, old.pinned_terms.ban) == (Pins(), (), ())
    assert not {"terms", "read"} & set(old.model_dump(mode="json"))
    with pytest.raises(ValueError, match="canonical form of its terms is missing"):
        TopicSettings.model_validate(written[0] | {"terms": {"pin": ["opec"]}})


async def test_the_same_word_twice_is_once_and_case_does_not_matter(api: Api) -> None:
    await api.topic(terms={"pin": ["OPEC", "opec", "Opec"]})
    assert (await weights(api))["opec"] == pytest.approx(0.7)


REFUSED: list[tuple[Any, str]] = [
    ({"pin": ["opec"], "ban": ["gas", "OPEC"]}, "/terms/ban/1"),
    ({"pin": [""]}, "/terms/pin/0"),
    ({"ban": ["oil", "--"]}, "/terms/ban/1"),
    ({"pin": ["crude oil"]}, "/terms/pin/0"),
    ({"pin": ["U.S."]}, "/terms/pin/0"),
    ({"ban": ["a\0b"]}, "/terms/ban/0"),
    ({"ban": ["x" * 401]}, "/terms/ban/0"),
    ({"pin": [f"w{n}" for n in range(51)]}, "/terms/pin"),
    ({"pin": "opec"}, "/terms/pin"),
    ({"pins": ["opec"]}, "/terms/pins"),
]


async def test_what_cannot_be_pinned_or_banned_is_refused(api: Api) -> None:
    await api.topic()
    for terms, where in REFUSED:
        for method, path in (("POST", "/topics"), ("PATCH", "/topics/crude"), ("POST", "/topics/crude/preview")):
            body = {"terms": terms} | ({"id": "other"} if path == "/topics" else {})
            assert pointers(refused(await api.request(method, path, json=body), 422)) == [where]
    assert (await api.ok("GET", "/topics/crude"))["terms"] == {"pin": [], "ban": []}


def test_a_term_is_what_the_deployment_takes_for_one() -> None:
    pairs, stems = Analysis(bigrams=True), Analysis(stemmer="english")
    assert settings.read_terms(Pins(pin=["Crude-Oil"], ban=["oil"]), pairs).pin == ["crude oil"]
    assert settings.read_terms(Pins(pin=["connections", "connected"]), stems).pin == ["connect"]
    assert settings.read_terms(Pins(ban=["Café"]), Analysis()).ban == ["cafe\u0301"]
    for wrong, analysis in ((["the crude oil"], pairs), (["the"], Analysis(stop_words=frozenset({"the"})))):
        with pytest.raises(BadInput):
            settings.read_terms(Pins(pin=wrong), analysis)
