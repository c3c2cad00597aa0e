"""Whatever is not a log can be lost: a replay computes it again, to the bit, and finds and names damage."""

import asyncio
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from service import processes
from service.config import Config
from service.run.replay import replay
from service.store.redis.embedded import Embedded
from service.store.topics import Store
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.readers import JudgingClient
from tests.support.waiting import PATIENCE_S, wait_until

TOPICS = {"crude": "wh", "grain": "eg", "ships": "winnow", "trade": "perceptron"}


def run(*options: str) -> subprocess.CompletedProcess[str]:
    command = processes.command(processes.REPLAY, *options)
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def outcomes(ran: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Topic by topic; the last line is the sum."""
    return {line.split()[2]: line.split()[0] for line in ran.stdout.splitlines()[:-1]}


async def fill(api: Api) -> None:
    """Uses a service: topics, documents, judgements of every kind, an import, a restored version."""
    for topic, kind in TOPICS.items():
        await api.topic(topic, learner={"kind": kind})
    reader = JudgingClient("ann", list(TOPICS), seed=20)
    await api.ok("POST", "/classify", {"documents": [reader.document() for _ in range(40)]})
    await wait_until(lambda: published_epoch(api))
    for _ in range(150):
        await reader.step(api)
    assert not reader.failed
    await api.ok("PATCH", "/topics/grain", {"query": "wheat harvest", "name": "Grain"})
    exported = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    await api.ok("PUT", "/topics/ships/model", exported)
    await api.ok("POST", "/topics/trade/versions/5/restore")
    another = JudgingClient("bob", list(TOPICS), seed=20)
    for _ in range(50):
        await another.step(api)


async def published_epoch(api: Api) -> bool:
    return api.sluice.epochs.current.number > 0


def stored(url: str) -> dict[str, Any]:
    """All that is derived from the logs, without the tokens and figures that are not."""
    with Redis.from_url(url) as client:
        return {
            topic: (
                client.hmget(f"sluice:{{{topic}}}:topic", ["seq", "floor"]),
                client.hgetall(f"sluice:{{{topic}}}:judged"),
                client.hmget(f"sluice:{{{topic}}}:model", ["version", "blob", "digest"]),
                client.xrevrange(f"sluice:{{{topic}}}:versions", count=1)[0],
            )
            for topic in map(bytes.decode, client.zrange("sluice:topics", 0, -1))
        }


def lose_what_is_derived(url: str) -> None:
    kept = ("}:log", "{background}:", "sluice:documents:")
    with Redis.from_url(url) as client:
        for key in client.scan_iter():
            if not any(part in key.decode() for part in kept):
                client.delete(key)


@pytest.fixture(scope="module")
def contents(embedded: Embedded) -> dict[bytes, bytes]:
    """All keys and values of a store that has been in use."""

    async def use() -> None:
        async with running_api(embedded.url) as api:
            await fill(api)

    with Redis.from_url(embedded.url) as client:
        client.flushall()
        asyncio.run(use())
        return {key: client.dump(key) for key in client.scan_iter()}


@pytest.fixture
def filled(redis_url: str, contents: dict[bytes, bytes]) -> str:
    """The address of a store that has been in use, but is no longer."""
    with Redis.from_url(redis_url) as client:
        for key, value in contents.items():
            client.restore(key, 0, value)
    return redis_url


async def test_all_that_is_not_a_log_is_rebuilt_from_the_logs(filled: str) -> None:
    async with running_api(filled) as api:
        versions = {t: (await api.ok("GET", f"/topics/{t}/versions"))["items"] for t in TOPICS}
        judged = {t: (await api.ok("GET", f"/topics/{t}/judgements"))["items"] for t in TOPICS}
    before = stored(filled)
    assert set(before) == set(TOPICS)
    lose_what_is_derived(filled)
    ran = run("--redis", filled)
    assert (ran.returncode, outcomes(ran)) == (0, dict.fromkeys(TOPICS, "rebuilt"))
    assert stored(filled) == before
    async with running_api(filled) as api:
        assert {topic["id"] for topic in (await api.ok("GET", "/topics"))["items"]} == set(TOPICS)
        for topic in TOPICS:
            assert (await api.ok("GET", f"/topics/{topic}/judgements"))["items"] == judged[topic]
            first = judged[topic][0]
            assert (await api.judge(first["document"], first["relevant"], topic))["status"] == "known"
            assert (await api.judge(first["document"], not first["relevant"], topic))["status"] == "corrected"
            # Every version of before is there, with its time and cause; versions that were never published, too.
            again = (await api.ok("GET", f"/topics/{topic}/versions", params={"limit": 1000}))["items"]
            known = {v["version"]: (v["created"], v["cause"], v["learner"]) for v in again}
            for version in versions[topic]:
                assert known[version["version"]] == (version["created"], version["cause"], version["learner"])
            assert [v["version"] for v in again] == sorted(known, reverse=True)


async def test_as_many_versions_come_back_as_are_kept(filled: str) -> None:
    lose_what_is_derived(filled)
    store = Store(filled, PATIENCE_S)
    for topic in TOPICS:
        await replay(store, topic, Config(versions_kept=7), verify=False)
        assert len(await store.versions.records(topic, 0, 1000)) == 7
    await store.close()


async def test_rebuilding_what_is_not_lost_changes_nothing(filled: str) -> None:
    before = stored(filled)
    store = Store(filled, PATIENCE_S)
    for topic in TOPICS:
        assert (await replay(store, topic, Config(), verify=False)).outcome == "rebuilt"
    await store.close()
    assert stored(filled) == before


async def test_verifying_finds_every_model_equal_and_says_how_many(filled: str) -> None:
    ran = run("--redis", filled, "--verify")
    assert ran.returncode == 0
    assert outcomes(ran) == dict.fromkeys(TOPICS, "equal")
    assert ran.stdout.splitlines()[-1] == "Replayed 4 topics and found 0 problems."
    assert ran.stderr == ""


async def test_verifying_names_a_topic_whose_model_was_tampered_with(filled: str) -> None:
    with Redis.from_url(filled) as client:
        blob = bytearray(client.hget("sluice:{crude}:model", "blob"))
        blob[-1] ^= 1
        client.hset("sluice:{crude}:model", "blob", bytes(blob))
        client.hset("sluice:{grain}:model", "digest", "0" * 32)
        client.delete("sluice:{ships}:model")
    tampered = stored(filled)
    ran = run("--redis", filled, "--verify")
    expected = {"crude": "different", "grain": "different", "ships": "missing", "trade": "equal"}
    assert (ran.returncode, outcomes(ran)) == (1, expected)
    assert ran.stdout.splitlines()[-1] == "Replayed 4 topics and found 3 problems."
    assert stored(filled) == tampered  # it only looks
    assert run("--redis", filled).returncode == 0
    assert run("--redis", filled, "--verify").returncode == 0


async def test_a_model_behind_its_log_is_said_to_be_but_is_no_damage(filled: str) -> None:
    """As after the death of a process between appending and publishing."""
    store = Store(filled, PATIENCE_S)
    (head,) = await store.heads(["crude"])
    assert head
    _, events = await store.logs.load("crude")
    judged = next(event for event in events if event.kind == "judged")
    await store.logs.append("crude", head.born, [replace(judged, document="late")])
    ran = run("--redis", filled, "--verify")
    assert (ran.returncode, outcomes(ran)["crude"]) == (0, "behind")
    async with running_api(filled):
        await wait_until(lambda: verified(store, "crude"))
    await store.close()


async def verified(store: Store, topic: str) -> bool:
    return (await replay(store, topic, Config(), verify=True)).outcome == "equal"


async def test_one_log_that_cannot_be_read_does_not_hide_the_others(filled: str) -> None:
    with Redis.from_url(filled) as client:
        client.xadd("sluice:{crude}:log", {"kind": "judged", "at_ms": 1, "document": "x", "bag": "nonsense"}, "9999-0")
    ran = run("--redis", filled, "--verify")
    assert (ran.returncode, outcomes(ran)) == (1, dict.fromkeys(TOPICS, "equal") | {"crude": "broken"})


async def test_it_works_on_a_data_directory_with_or_without_a_service(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Embedded(data) as embedded:
        async with running_api(embedded.url) as api:
            await api.topic()
            await api.judge(OIL, True)
            assert outcomes(run("--data", str(data), "--verify")) == {"crude": "equal"}
            assert (await api.judge(GRAIN, False))["status"] == "learned"
    assert outcomes(run("--data", str(data), "--verify")) == {"crude": "equal"}


async def test_a_directory_without_a_store_is_refused_with_a_sentence(tmp_path: Path) -> None:
    ran = run("--data", str(tmp_path / "nothing"))
    assert ran.returncode == 1
    assert ran.stderr.startswith("sluice: There is no store in")
    assert not (tmp_path / "nothing").exists()
