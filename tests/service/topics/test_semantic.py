"""Topics that go by meaning: what they find, what they show of it, and that they stay what their logs say."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import Redis

from models.core.latent import FIRST_LATENT
from service.run.housekeeping import MAX_MOVED, keep_house
from service.run.replay import replay
from service.topics.background import KEPT_EPOCHS
from service.topics.published import Base
from tests.support.api import Api, running_api
from tests.support.job_workers import run_job, running_workers
from tests.support.projected import SUBJECTS, count_stream, document, stream
from tests.support.waiting import wait_until

OIL = [document("judged", "oil", n, [0]) for n in range(4)]
OTHERS = [document("judged", subject, n) for n, subject in enumerate(("grain", "metal", "money"), 10)]
BANNED = OIL[0]["text"].split()[0]
# In words that no judged document has.
UNSEEN, UNRELATED = document("new", "oil", 1, [1]), document("new", "grain", 1, [1])


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def begun(api: Api) -> None:
    """Some epochs pass: a topic from the beginning of a stream would be refreshed at once, projection or not."""
    for n in range(8):
        await count_stream(api.sluice, f"early{n}", 30)


async def projected(api: Api, name: str = "s", n: int = 600) -> None:
    """A stream passes that is long enough for a projection, and the housekeeper makes it."""
    await count_stream(api.sluice, name, n)
    await keep_house(api.sluice)


async def taught(api: Api, topic: str = "oil", **fields: Any) -> Any:
    await api.topic(topic, query=" ".join(SUBJECTS["oil"][0][:2]), **fields)
    for relevant, documents in ((True, OIL), (False, OTHERS)):
        for each in documents:
            await api.judge(each, relevant, topic)
    return api.sluice.registry.get(topic)


async def outcome(api: Api, topic: str = "oil") -> str:
    return (await replay(api.sluice.store, topic, api.sluice.config, verify=True)).outcome


async def score(api: Api, asked: dict[str, Any], topic: str = "oil") -> float:
    return float((await api.decide(asked, topic))["score"])


async def digest(api: Api, topic: str = "oil") -> str:
    return str((await api.ok("GET", f"/topics/{topic}/versions"))["items"][0]["digest"])


async def test_a_topic_finds_what_is_said_in_other_words(api: Api) -> None:
    await begun(api)
    await taught(api)
    await taught(api, "words", semantic=False)
    assert await score(api, UNSEEN) == await score(api, UNSEEN, "words")
    assert await score(api, UNSEEN) < await score(api, OIL[0]) / 2
    before = await digest(api, "words")
    await projected(api)
    assert api.sluice.registry.get("oil").model.linear.view == "semantic"
    assert api.sluice.registry.get("words").model.linear.view == "tfidf"
    assert await score(api, UNSEEN) > await score(api, UNRELATED)
    assert await score(api, UNSEEN) > await score(api, UNSEEN, "words")
    assert await digest(api, "words") == before
    assert [await outcome(api, topic) for topic in ("oil", "words")] == ["equal", "equal"]


async def test_a_query_alone_ranks_by_meaning(api: Api) -> None:
    await projected(api)
    for topic, semantic in (("oil", True), ("words", False)):
        await api.topic(topic, query=" ".join(SUBJECTS["oil"][0][:8]), semantic=semantic)
    assert await score(api, UNSEEN) > await score(api, UNRELATED)
    assert await score(api, UNSEEN, "words") == await score(api, UNRELATED, "words")


async def test_it_can_be_switched_per_topic_and_tried_before(api: Api) -> None:
    await projected(api)
    await taught(api)
    with_meaning = await score(api, UNSEEN)
    preview = await api.ok("POST", "/topics/oil/preview", {"semantic": False})
    assert preview["judged"]["documents"] == len(OIL) + len(OTHERS)
    assert (await api.ok("PATCH", "/topics/oil", {"semantic": False}))["semantic"] is False
    assert api.sluice.registry.get("oil").projection is None
    assert await score(api, UNSEEN) < with_meaning
    assert (await api.ok("PATCH", "/topics/oil", {"semantic": None}))["semantic"] is True
    assert await score(api, UNSEEN) == with_meaning
    assert await outcome(api) == "equal"


async def test_a_topic_that_bans_terms_goes_by_words_alone(api: Api) -> None:
    """The projection is one for all topics, and contains what a single one bans."""
    await projected(api)
    await taught(api, terms={"ban": [BANNED]})
    assert api.sluice.registry.get("oil").projection is None
    explained = await api.decide(OIL[0], "oil", explain=True)
    assert BANNED in OIL[0]["text"].split()
    assert BANNED not in [part["term"] for part in explained["explanation"]]
    assert await outcome(api) == "equal"


@pytest.mark.parametrize("learner", ["wh", "pa", "perceptron", "auto", "committee"])
async def test_reasons_are_words_and_add_up(api: Api, learner: str) -> None:
    await projected(api)
    await taught(api, learner={"kind": learner})
    for asked in (UNSEEN, UNRELATED, OIL[0], {"text": "nothing that anybody knows"}, {"text": f"{BANNED} {BANNED}"}):
        explained = await api.decide(asked, "oil", explain=True)
        parts = explained["explanation"]
        assert sum(part["contribution"] for part in parts) == pytest.approx(explained["score"], abs=1e-4)
        assert {part["term"] for part in parts} <= {*asked["text"].split(), "(bias)", "(every other word)"}


async def test_a_flip_changes_the_decision(api: Api) -> None:
    await projected(api)
    await taught(api)
    flipped = 0
    for asked in (UNSEEN, UNRELATED, *OIL, *OTHERS, *stream("asked", 12)):
        explained = await api.decide(asked, "oil", explain=True)
        if not (flip := explained["flip"]):
            continue
        words = [word for word in asked["text"].split() if word not in flip["without"]] + flip["with"]
        assert (await api.decide({"text": " ".join(words)}, "oil"))["decision"] == flip["decision"]
        assert flip["decision"] != explained["decision"]
        flipped += 1
    assert flipped > 2


async def test_what_is_shown_of_a_model_are_words(api: Api) -> None:
    await projected(api)
    published = await taught(api)
    assert (published.model.linear.features >= FIRST_LATENT).any()
    shown = await api.ok("GET", "/topics/oil/model")
    assert shown["weights"] == int((published.model.linear.features < FIRST_LATENT).sum())
    assert all(term["term"] for terms in shown["terms"].values() for term in terms)


async def test_a_model_leaves_as_one_of_words_that_scores_much_alike(api: Api) -> None:
    await projected(api)
    await taught(api)
    file = await api.ok("GET", "/topics/oil/model", params={"format": "export"})
    assert file["view"] == "tfidf"
    await api.topic("copy", semantic=False)
    await api.ok("PUT", "/topics/copy/model", file)
    for asked in (*OIL, *OTHERS, UNSEEN, UNRELATED):
        assert await score(api, asked, "copy") == pytest.approx(await score(api, asked), abs=0.12)
    assert await score(api, UNSEEN, "copy") > await score(api, UNRELATED, "copy")
    refused = await api.put("/topics/copy/model", json=file | {"view": "semantic"})
    assert refused.status_code == 422


async def test_an_imported_model_of_words_goes_on_under_a_projection(api: Api) -> None:
    await taught(api)
    file = await api.ok("GET", "/topics/oil/model", params={"format": "export"})
    await projected(api)
    await api.topic("copy")
    await api.ok("PUT", "/topics/copy/model", file)
    for each in OIL:
        await api.judge(each, True, "copy")
    assert api.sluice.registry.get("copy").model.linear.view == "semantic"
    assert await outcome(api, "copy") == "equal"


async def test_processes_decide_alike_whoever_has_loaded_what(api: Api, redis_url: str) -> None:
    await taught(api)
    await projected(api)
    asked = [UNSEEN, UNRELATED, *OIL, *OTHERS]
    body = {"documents": asked, "topics": ["oil"], "store": False, "explain": True}
    async with running_api(redis_url) as other:
        assert await other.ok("POST", "/classify", body) == await api.ok("POST", "/classify", body)
        await other.judge(document("later", "oil", 1), True, "oil")

        async def follows() -> bool:
            return api.sluice.registry.get("oil").version == other.sluice.registry.get("oil").version

        await wait_until(follows)
        assert await other.ok("POST", "/classify", body) == await api.ok("POST", "/classify", body)
        assert await digest(api) == await digest(other)


async def test_the_next_projection_takes_all_topics_along(api: Api) -> None:
    await taught(api)
    await projected(api)
    first = api.sluice.registry.get("oil").projection
    await projected(api, "more", 700)
    second = api.sluice.registry.get("oil").projection
    assert first
    assert second
    assert first.tag != second.tag
    assert await score(api, UNSEEN) > await score(api, UNRELATED)
    assert await outcome(api) == "equal"
    assert api.sluice.registry.snapshot().projections == {second.tag}


async def test_topics_are_moved_some_at_a_time_and_all_in_the_end(api: Api) -> None:
    await begun(api)
    topics = [f"t{n}" for n in range(MAX_MOVED + 5)]
    for topic in topics:
        await api.topic(topic, query=" ".join(SUBJECTS["oil"][0][:2]))

    def moved() -> int:
        return sum(api.sluice.registry.get(topic).projection is not None for topic in topics)

    await projected(api)
    assert moved() == MAX_MOVED
    body = {"documents": [UNSEEN], "topics": topics, "store": False}  # of both kinds
    assert len((await api.ok("POST", "/classify", body))["results"][0]["decisions"]) == len(topics)
    await keep_house(api.sluice)
    assert moved() == len(topics)
    versions = [api.sluice.registry.get(topic).version for topic in topics]
    await keep_house(api.sluice)
    assert [api.sluice.registry.get(topic).version for topic in topics] == versions


async def test_a_restored_version_is_under_the_projection_of_its_time(api: Api) -> None:
    await taught(api)
    await projected(api)
    version, before = api.sluice.registry.get("oil").version, await score(api, UNSEEN)
    first = api.sluice.registry.get("oil").projection
    await projected(api, "more", 700)
    assert await score(api, UNSEEN) != before
    await api.ok("POST", f"/topics/oil/versions/{version}/restore")
    restored = api.sluice.registry.get("oil").projection
    assert first
    assert restored
    assert restored.tag == first.tag
    await api.ok("POST", f"/topics/oil/versions/{version - 1}/restore")
    assert api.sluice.registry.get("oil").projection is None
    assert await outcome(api) == "equal"


async def test_projections_that_nothing_needs_are_forgotten(api: Api) -> None:
    await taught(api)
    await projected(api)
    await projected(api, "more", 700)
    first, second = await api.sluice.store.epochs.projections()
    for n in range(KEPT_EPOCHS):
        await count_stream(api.sluice, f"later{n}", 20)
    await keep_house(api.sluice)
    await keep_house(api.sluice)
    left = set(await api.sluice.store.epochs.projections())
    assert left == set((await api.sluice.store.epochs.projected()).values())
    assert first not in left
    assert second in left
    assert await outcome(api) == "equal"


async def test_a_model_whose_projection_is_lost_is_folded_without(api: Api, redis_url: str) -> None:
    """By the next process that starts. Its housekeeper then makes another one."""
    await taught(api)
    await projected(api)
    with Redis.from_url(redis_url) as client:
        client.delete("sluice:{background}:projections")
    async with running_api(redis_url) as other:
        assert (await other.decide(UNSEEN, "oil"))["version"] == api.sluice.registry.get("oil").version
        assert other.sluice.registry.get("oil").projection is None
        assert await outcome(other) == "equal"
        await keep_house(other.sluice)
        assert other.sluice.registry.get("oil").projection is not None
        assert await outcome(other) == "equal"


async def test_where_it_is_switched_off_topics_go_back_to_words(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await taught(api)
        words = await score(api, UNRELATED)
        await projected(api)
        assert await score(api, UNRELATED) != words
    async with running_api(redis_url, semantic=False) as api:
        await keep_house(api.sluice)
        assert api.sluice.registry.get("oil").projection is None
        assert api.sluice.epochs.current.named is None
        assert await outcome(api) == "equal"


async def test_review_known_items_and_jobs_go_by_it_too(api: Api, redis_url: str) -> None:
    await taught(api)
    await projected(api)
    await api.ok("POST", "/classify", {"documents": [UNSEEN, UNRELATED, *stream("pass", 40)]})
    expected = await score(api, UNSEEN)
    await api.ok("POST", "/topics/oil/known", {"documents": [UNSEEN, UNRELATED]})
    known = {item["document"]: item["score"] for item in (await api.ok("GET", "/topics/oil/known"))["items"]}
    assert known[UNSEEN["id"]] == pytest.approx(expected, abs=1e-4)
    offered = {item["document"]: item["score"] for item in (await api.ok("GET", "/topics/oil/review"))["items"]}
    for id, offered_score in offered.items():
        texts = {each["id"]: each for each in (UNSEEN, UNRELATED, *stream("pass", 40))}
        assert offered_score == pytest.approx(await score(api, texts[id]), abs=1e-4)
    assert offered
    with running_workers(redis_url):
        backfilled = (await run_job(api, kind="backfill", topics=["oil"]))["result"]
        best = {hit["document"]: hit["score"] for topic in backfilled["topics"] for hit in topic["best"]}
        assert best
        for id, best_score in best.items():
            if id in offered:
                assert best_score == pytest.approx(offered[id], abs=1e-4)
        for n in range(20):
            subject = "oil" if n % 2 else "metal"
            await api.judge(document("taught", subject, n), n % 2 == 1, "oil")
        compared = (await run_job(api, kind="compare", topic="oil", methods=[{"method": "svm"}]))["result"]
        assert {row["method"] for row in compared["table"]} == {"served", "svm"}
        retrained = await run_job(api, kind="retrain", topics=["oil"], method="svm", publish="always")
        assert retrained["result"]["published"] == 1
    version = retrained["result"]["topics"][0]["version"]

    async def serves_it() -> bool:
        return bool(api.sluice.registry.get("oil").version >= version)

    await wait_until(serves_it)
    await api.judge(document("after", "oil", 1), True, "oil")
    assert await outcome(api) == "equal"
    shown = await api.ok("GET", "/topics/oil/model")
    assert sum(term["term"] is None for terms in shown["terms"].values() for term in terms) < 5
    base = await api.sluice.learning.read("oil", lambda state: state.resolved.base)
    assert base
    assert Base.from_bytes(base.model).model.linear.view == "semantic"
    # Under another projection the latent weights of the fit do not count any more, so it is fitted again.
    await projected(api, "more", 700)
    queued = [job for job in (await api.ok("GET", "/jobs"))["items"] if job["state"] == "queued"]
    assert [(job["request"]["method"], job["request"]["topics"]) for job in queued] == [("svm", ["oil"])]
    assert await outcome(api) == "equal"
