"""How a process notices what others have published, what they left undone, and what the store has lost."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from redis import Redis
from structlog.testing import capture_logs

from service.errors import StoreUnavailable
from service.run.replay import replay
from service.store import codec
from service.store.stream.signatures import SignatureLog
from service.topics import sync
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.waiting import wait_until

MODEL = "sluice:{crude}:model"


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, sweep_s=0.1) as api:
        await api.topic()
        await api.judge(OIL | {"id": "oil"}, True)
        yield api


async def outcome(api: Api) -> str:
    return (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome


async def is_equal(api: Api) -> bool:
    return await outcome(api) == "equal"


async def test_a_log_ahead_of_its_model_is_folded(api: Api) -> None:
    """A process has appended and died."""
    store = api.sluice.store
    head, events = await store.logs.load("crude")
    await store.logs.append("crude", head.born, [replace(events[-1], document="other")])
    assert await outcome(api) == "behind"
    await wait_until(lambda: is_equal(api))
    assert (await api.decide(OIL))["version"] == 3


async def test_a_model_that_is_lost_is_published_again(api: Api, redis_url: str) -> None:
    with Redis.from_url(redis_url) as client:
        client.delete(MODEL)
    await wait_until(lambda: is_equal(api))


async def test_a_model_that_cannot_be_read_is_folded_again(api: Api, redis_url: str) -> None:
    """By the next process that starts; the one that published it keeps serving it."""
    with Redis.from_url(redis_url) as client:
        client.hset(MODEL, "blob", b"SLM0 of another version of Sluice")
    assert await outcome(api) == "different"
    async with running_api(redis_url) as other:
        assert (await other.decide(OIL))["version"] == 2
    assert await outcome(api) == "equal"


async def test_a_model_with_something_that_this_version_does_not_know_is_folded_again(api: Api, redis_url: str) -> None:
    with Redis.from_url(redis_url) as client:
        blob = client.hget(MODEL, "blob")
        assert isinstance(blob, bytes)
        meta, arrays = codec.unpack(codec.MODEL, blob)
        meta["evidence"]["tomorrow"] = 1
        client.hset(MODEL, "blob", codec.pack(codec.MODEL, meta, arrays))
    async with running_api(redis_url) as other:
        assert (await other.decide(OIL))["version"] == 2


async def test_a_deleted_topic_is_not_served_again_by_whoever_was_just_loading_it(api: Api) -> None:
    """A process that read the model before the deletion puts it afterwards; the name can be used again at once."""
    late = api.sluice.registry.topics["crude"]
    await api.ok("DELETE", "/topics/crude")
    api.sluice.registry.put(late)
    assert "crude" not in api.sluice.registry.topics
    await api.topic()
    assert api.sluice.registry.topics["crude"].born != late.born


async def test_a_store_that_is_lost_while_a_process_starts_is_a_warning_and_no_bug(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(repeats: SignatureLog) -> None:
        raise StoreUnavailable("The store is lost.")

    monkeypatch.setattr(SignatureLog, "catch_up", lost)
    with capture_logs() as logged:
        async with running_api(redis_url):
            pass
    assert [(line["log_level"], line["detail"]) for line in logged] == [("warning", "The store is lost.")]


async def test_topics_that_went_while_nobody_listened_are_not_served_on_however_many_there_are(
    api: Api, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sync, "CHUNK_SIZE", 2)
    for n in range(5):
        await api.topic(f"t{n}")
    with Redis.from_url(redis_url) as client:
        for gone in ("crude", "t1", "t4"):
            client.zrem("sluice:topics", gone)
            client.delete(*client.keys(f"sluice:{{{gone}}}:*"), f"sluice:{{{gone}}}")

    async def forgotten() -> bool:
        return set(api.sluice.registry.topics) == {"t0", "t2", "t3"}

    await wait_until(forgotten)


async def test_a_topic_missing_in_the_list_is_listed_again(api: Api, redis_url: str) -> None:
    with Redis.from_url(redis_url) as client:
        client.zrem("sluice:topics", "crude")

    async def listed() -> bool:
        return await api.sluice.store.topics() == ["crude"]

    await wait_until(listed)


async def test_a_store_that_lost_the_end_of_a_log_is_believed(api: Api, redis_url: str) -> None:
    """A user's own Redis may sync once a second and lose what came after when its machine dies. What is lost is lost;
    but nobody may go on from judgements that no log has, and what is judged afterwards is learned."""
    with Redis.from_url(redis_url) as client:
        before = {key: client.dump(key) for key in client.scan_iter()}
        for i in range(5):
            await api.judge(GRAIN | {"id": f"lost{i}"}, False)
        assert (await api.decide(OIL))["version"] == 7
        for key, value in before.items():
            client.restore(key, 0, value, replace=True)

    async def believed() -> bool:
        body = {"documents": [OIL], "topics": ["crude"], "store": False}
        response = await api.post("/classify", json=body)  # 404 for a moment: what no log has is not served any more
        return response.is_success and response.json()["results"][0]["decisions"][0]["version"] == 2

    await wait_until(believed)
    assert (await api.judge(GRAIN | {"id": "new"}, False))["version"] == 3
    listed = (await api.ok("GET", "/topics/crude/judgements"))["items"]
    assert [judgement["document"] for judgement in listed] == ["new", "oil"]
    assert await outcome(api) == "equal"


async def test_a_deleted_topic_is_gone_even_if_nobody_was_told(api: Api, redis_url: str) -> None:
    with Redis.from_url(redis_url) as client:
        client.delete(*client.scan_iter("sluice:{crude}:*"))

    async def gone() -> bool:
        return (await api.get("/topics/crude")).status_code == 404

    await wait_until(gone)


async def test_what_was_put_is_merged_by_the_next_sweep(api: Api, redis_url: str) -> None:
    """Once this took 512 puts, and where topics are few the bank stayed in pieces."""
    async with running_api(redis_url, sweep_s=3600) as other:
        assert not other.sluice.registry.wants_merging
        await other.judge(GRAIN, False)
        assert other.sluice.registry.wants_merging

    async def merged() -> bool:
        return not api.sluice.registry.wants_merging

    await wait_until(merged)
