"""However long a service runs, a topic's log, its versions and the remembered documents stay within their limits."""

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import Redis

from service.run.replay import replay
from service.store.stream.documents import PARTITIONS
from tests.support.api import Api, running_api

KEPT, VERSIONS, DOCUMENTS = 40, 12, 64
SLACK = KEPT // 10 + 1  # as in service/topics/learning.py


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, judgements_kept=KEPT, versions_kept=VERSIONS, documents_kept=DOCUMENTS) as api:
        await api.topic()
        yield api


def document(i: int) -> dict[str, Any]:
    words = ["oil", "crude", "opec"] if i % 3 == 0 else ["wheat", "maize", "rain"]
    return {"id": f"d{i}", "text": " ".join([*words, f"w{i}", f"v{i % 7}"])}


async def exported(api: Api) -> Any:
    return await api.ok("GET", "/topics/crude/model", params={"format": "export"})


async def standing(api: Api) -> dict[str, bool]:
    page = await api.ok("GET", "/topics/crude/judgements", params={"limit": 1000})
    return {judgement["document"]: judgement["relevant"] for judgement in page["items"]}


async def test_a_long_run_of_judgements_stays_within_the_limits(api: Api, redis_url: str) -> None:
    longest = 0
    with Redis.from_url(redis_url) as client:
        for i in range(6 * KEPT):
            await api.judge(document(i), i % 3 == 0)
            longest = max(longest, client.xlen("sluice:{crude}:log"))
            assert client.xlen("sluice:{crude}:versions") <= VERSIONS
            assert client.hlen("sluice:{crude}:judged") < KEPT + SLACK
    assert KEPT < longest <= KEPT + 2 * SLACK + VERSIONS + 4
    judged = await standing(api)
    assert KEPT <= len(judged) < KEPT + SLACK
    assert set(judged) == {f"d{i}" for i in range(6 * KEPT - len(judged), 6 * KEPT)}
    assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"


async def test_changing_ones_mind_for_ever_stays_within_the_limits(api: Api, redis_url: str) -> None:
    """Corrections and withdrawals are events too."""
    chance = random.Random(20)
    with Redis.from_url(redis_url) as client:
        for _ in range(8 * KEPT):
            i = chance.randrange(2 * KEPT)
            if chance.random() < 0.8:
                await api.judge(document(i), chance.random() < 0.5)
            else:
                await api.request("DELETE", f"/topics/crude/judgements/d{i}")
            assert client.xlen("sluice:{crude}:log") <= 2 * (KEPT + SLACK) + VERSIONS + SLACK
        assert client.hlen("sluice:{crude}:judged") == len(await standing(api))
    assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"


async def test_every_version_that_is_listed_can_be_restored_to_the_bit(api: Api) -> None:
    """Across compactions, too: what is forgotten was not forgotten then."""
    models: dict[int, Any] = {}
    for i in range(2 * KEPT + 3):
        await api.judge(document(i), i % 3 == 0)
        model = await exported(api)  # of the next version already, if the judgement was one too many
        models[(await api.ok("GET", "/topics/crude"))["status"]["version"]] = model
    listed = [v["version"] for v in (await api.ok("GET", "/topics/crude/versions"))["items"]]
    causes = {v["cause"] for v in (await api.ok("GET", "/topics/crude/versions"))["items"]}
    assert causes == {"feedback", "forget"}
    assert len(listed) > VERSIONS // 2
    for version in models.keys() & listed:
        restored = await api.ok("POST", f"/topics/crude/versions/{version}/restore")
        assert restored["status"]["version"] > max(models)
        assert await exported(api) == models[version]
        assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"
    refused = await api.request("POST", f"/topics/crude/versions/{min(models)}/restore")
    assert refused.status_code == 404


async def test_a_forgotten_judgement_can_be_made_again(api: Api) -> None:
    await api.judge(document(0), True)
    for i in range(1, 2 * KEPT):
        await api.judge(document(i), i % 3 == 0)
    assert "d0" not in await standing(api)
    gone = await api.request("POST", "/feedback", json={"topic": "crude", "document": "d0", "relevant": False})
    assert gone.status_code == 404
    assert (await api.request("DELETE", "/topics/crude/judgements/d0")).status_code == 404
    assert (await api.judge(document(0), False))["status"] == "learned"
    assert (await standing(api))["d0"] is False
    assert (await api.judge("d0", True))["status"] == "corrected"


async def test_a_base_outlives_the_judgements_before_it(api: Api) -> None:
    model = await exported(api)
    await api.ok("PUT", "/topics/crude/model", model)
    for i in range(3 * KEPT):
        await api.judge(document(i), i % 3 == 0)
    assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"
    _, events = await api.sluice.store.logs.load("crude")
    assert [event.kind for event in events].count("published") == 1


async def test_only_the_newest_documents_are_remembered(api: Api, redis_url: str) -> None:
    for start in range(0, 400, 20):
        await api.ok("POST", "/classify", {"documents": [document(i) for i in range(start, start + 20)]})
    with Redis.from_url(redis_url) as client:
        parts = [(f"sluice:documents:{{{p}}}", f"sluice:documents:{{{p}}}:order") for p in range(PARTITIONS)]
        assert all(client.hlen(documents) == client.llen(order) for documents, order in parts)
        assert DOCUMENTS // 2 < sum(client.hlen(documents) for documents, _ in parts) <= DOCUMENTS
    assert (await api.judge("d399", True))["status"] == "learned"
    forgotten = await api.request("POST", "/feedback", json={"topic": "crude", "document": "d0", "relevant": True})
    assert forgotten.status_code == 404
