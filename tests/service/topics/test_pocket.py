"""The pocket through the public contract: set, switched off, tried, and left as it was in topics that are older."""

import pytest

from service.topics.settings import TopicSettings
from service.topics.state import spec_of
from tests.support.api import Api, running_api
from tests.support.readers import GRAIN_WORDS, OIL_WORDS


async def taught(api: Api, topic: str, **settings: object) -> str:
    """Judges thirty documents about oil or grain; returns the digest."""
    await api.topic(topic, **settings)
    for i in range(30):
        words = OIL_WORDS if i % 2 == 0 else GRAIN_WORDS
        text = " ".join([words[i % len(words)], words[(3 * i + 1) % len(words)], OIL_WORDS[i % 5], f"word{i}"])
        await api.judge({"id": f"d{i}", "text": text}, i % 2 == 0, topic)
    export = await api.ok("GET", f"/topics/{topic}/model", params={"format": "export"})
    return str(export["terms"])


async def test_a_topic_has_a_pocket_that_can_be_set_switched_off_and_reset(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await api.topic("oil")
        assert (await api.ok("GET", "/topics/oil"))["pocket"] == {"every": 10, "by": "both"}
        off = await api.ok("PATCH", "/topics/oil", {"pocket": {"every": None}})
        assert off["pocket"] == {"every": None, "by": "both"}
        assert (await api.ok("PATCH", "/topics/oil", {"pocket": None}))["pocket"] == {"every": 10, "by": "both"}
        spec = spec_of(await api.sluice.learning.read("oil", lambda state: state.resolved))
        assert (spec.pocket.every, spec.pocket.by) == (10, "both")


async def test_changing_it_gives_the_model_that_it_would_have_given_from_the_start(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        first = await taught(api, "newest", learner={"kind": "eg"}, pocket={"every": None})
        other = await taught(api, "pocketed", learner={"kind": "eg"})
        await api.ok("PATCH", "/topics/pocketed", {"pocket": {"every": None}})
        export = await api.ok("GET", "/topics/pocketed/model", params={"format": "export"})
        assert str(export["terms"]) == first
        await api.ok("PATCH", "/topics/pocketed", {"pocket": None})
        export = await api.ok("GET", "/topics/pocketed/model", params={"format": "export"})
        assert str(export["terms"]) == other


@pytest.mark.parametrize(
    "pocket", [{"every": 0}, {"every": 1001}, {"by": "luck"}, {"size": 3}, {"every": 2.5}], ids=str
)
async def test_what_is_no_pocket_is_refused(shared: Api, pocket: dict[str, object]) -> None:
    response = await shared.request("POST", "/topics", json={"id": "refused", "pocket": pocket})
    assert response.status_code == 422
    assert response.json()["errors"][0]["pointer"].startswith("/pocket/")


async def test_another_pocket_can_be_tried_before_it_is_set(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await taught(api, "oil", learner={"kind": "auto"})
        outcome = await api.ok("POST", "/topics/oil/preview", {"pocket": {"every": 5, "by": "held_out"}})
        assert outcome["judged"]["after"]


def test_an_older_topic_is_shown_with_the_pocket_it_has() -> None:
    assert TopicSettings(created_ms=1).pocket.by == "learned"
