"""A store that is frozen, absent or full: a 503 that says when to come back, and nothing lost or done twice.

How soon it comes, `scripts/bench wait` measures. The timeouts here are long, yet far too short for requests that would
wait one behind the other.
"""

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis

from service.errors import StoreUnavailable
from service.run.replay import replay
from service.store.redis.embedded import Embedded
from service.store.topics import Store
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.waiting import wait_until

REPEATS = 10  # of each request, at the same time
STORE_S = 3.0  # long enough for a store that works on a busy machine
PATIENCE_S = 60.0  # for all requests together; one behind the other, they would wait for minutes
NDJSON = {"content-type": "application/x-ndjson"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Embedded]:
    with Embedded(tmp_path / "data") as server:
        yield server


@pytest.fixture
async def api(server: Embedded) -> AsyncIterator[Api]:
    async with running_api(server.url, store_timeout_s=STORE_S) as api:
        await api.topic()
        await api.topic("doomed")
        await api.ok("POST", "/classify", {"documents": [OIL | {"id": "remembered"}]})
        await api.judge(OIL | {"id": "oil"}, True)
        await api.judge(GRAIN | {"id": "grain"}, False)
        yield api


@contextmanager
def frozen(server: Embedded) -> Iterator[None]:
    assert server.server is not None
    os.kill(server.server.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server.server.pid, signal.SIGCONT)


def kill(server: Embedded) -> None:
    assert server.server is not None
    server.server.kill()
    server.server.wait()


def requests(model: Any) -> dict[str, tuple[str, str, Any]]:
    """A request to every endpoint that cannot answer without its store."""
    judgement = {"topic": "crude", "document": GRAIN | {"id": "new"}, "relevant": True}
    return {
        "create": ("POST", "/topics", {"id": "another", "query": "wheat"}),
        "find": ("GET", "/topics/unknown", None),
        "list": ("GET", "/topics", None),
        "change": ("PATCH", "/topics/crude", {"name": "Oil"}),
        "delete": ("DELETE", "/topics/doomed", None),
        "classify": ("POST", "/classify", {"documents": [OIL]}),
        "judge": ("POST", "/feedback", judgement),
        "judge by id": ("POST", "/feedback", {"topic": "crude", "document": "remembered", "relevant": True}),
        "judge several": ("POST", "/feedback", {"judgements": [judgement, judgement]}),
        "withdraw": ("DELETE", "/topics/crude/judgements/oil", None),
        "judgements": ("GET", "/topics/crude/judgements", None),
        "review": ("GET", "/topics/crude/review", None),
        "accepted": ("GET", "/topics/crude/accepted", None),
        "flow": ("GET", "/flow", None),
        "routes": ("GET", "/topics/crude/routes", None),
        "route": ("PUT", "/topics/crude/routes", {"routes": []}),
        "listen": ("GET", "/topics/crude/stream", None),
        "skip": ("POST", "/topics/crude/review/skip", {"document": "remembered"}),
        "know": ("POST", "/topics/crude/known", {"documents": [OIL]}),
        "known": ("GET", "/topics/crude/known", None),
        "forget known": ("DELETE", "/topics/crude/known/oil", None),
        "recall": ("GET", "/recall", None),
        "metrics": ("GET", "/topics/crude/metrics", None),
        "preview": ("POST", "/topics/crude/preview", {"query": "wheat"}),
        "versions": ("GET", "/topics/crude/versions", None),
        "restore": ("POST", "/topics/crude/versions/1/restore", None),
        "model": ("GET", "/topics/crude/model", None),
        "import": ("PUT", "/topics/crude/model", model),
        "ready": ("GET", "/readyz", None),
    }


async def everything_is_refused(api: Api, model: Any) -> None:
    """Every endpoint refuses each of several requests at once; what needs no store goes on."""

    async def ask(name: str, method: str, path: str, body: Any) -> tuple[str, httpx.Response]:
        return name, await api.request(method, path, json=body)

    pending = [ask(name, *request) for name, request in requests(model).items() for _ in range(REPEATS)]
    async with asyncio.timeout(PATIENCE_S):
        answers = await asyncio.gather(*pending)
    for name, answer in answers:
        assert answer.status_code == 503, f"{name}: {answer.status_code} {answer.text}"
        assert answer.headers["content-type"] == "application/problem+json", name
        assert int(answer.headers["retry-after"]) >= 1, name
    assert (await api.ok("GET", "/healthz"))["status"] == "ok"
    assert (await api.decide(OIL))["decision"] == "accept"
    assert (await api.ok("GET", "/topics/crude"))["id"] == "crude"


async def log_of(api: Api, topic: str = "crude") -> list[tuple[str, str]]:
    _, events = await api.sluice.store.logs.load(topic)
    return [(event.kind, event.document) for event in events]


async def ready(api: Api) -> bool:
    return (await api.get("/readyz")).is_success


async def test_a_frozen_store_is_a_503_and_nothing_is_done_twice(api: Api, server: Embedded) -> None:
    """What was sent to a frozen store may still be done when it wakes up: then once, however often it was sent."""
    model = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    with frozen(server):
        await everything_is_refused(api, model)
    await wait_until(lambda: ready(api))
    assert (await api.judge(GRAIN | {"id": "new"}, True))["status"] in ("learned", "known")
    await api.ok("PATCH", "/topics/crude", {"name": "Oil"})
    log = await log_of(api)
    assert len(log) == len(set(log)), log
    assert ("judged", "new") in log
    listed = (await api.ok("GET", "/topics/crude/judgements"))["items"]
    counts = (await api.ok("GET", "/topics/crude"))["status"]["judged"]
    assert sum(counts.values()) == len(listed) == len({judgement["document"] for judgement in listed})


async def test_a_store_that_is_gone_is_a_503_and_is_found_again(api: Api, server: Embedded) -> None:
    model = await api.ok("GET", "/topics/crude/model", params={"format": "export"})
    before = await log_of(api)
    kill(server)
    await everything_is_refused(api, model)
    server.start()
    # A connection of before is replaced, not reported.
    answers = await asyncio.gather(*(api.get("/topics/crude/judgements") for _ in range(40)))
    assert {answer.status_code for answer in answers} == {200}
    assert await log_of(api) == before
    assert (await api.judge(GRAIN | {"id": "new"}, True))["status"] == "learned"


async def test_a_stream_that_meets_a_frozen_store_ends_and_says_why(api: Api, server: Embedded) -> None:
    """With the first lines, instead of waiting again for each of the others."""
    content = "\n".join(json.dumps(OIL | {"id": f"d{i}"}) for i in range(2000))
    with frozen(server):
        answer = await api.post("/classify", content=content, headers=NDJSON, params={"topics": ["crude"]})
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert [line["status"] for line in lines] == [503]


async def test_after_one_who_waited_in_vain_nobody_asks_until_the_store_answers(server: Embedded) -> None:
    """Else each of a queue of requests would wait as long as the first. One probe at a time finds it awake again."""
    store = Store(server.url)
    await store.ping()
    before = listings(server)
    with frozen(server):
        for _ in range(50):
            with pytest.raises(StoreUnavailable):
                await store.topics()
    assert listings(server) - before <= 1

    async def answered() -> bool:
        with suppress(StoreUnavailable):
            return await store.topics() == []
        return False

    await wait_until(answered)
    await store.close()


def listings(server: Embedded) -> int:
    """How often the store has listed its topics."""
    with Redis(unix_socket_path=str(server.socket)) as client:
        return sum(row["calls"] for name, row in client.info("commandstats").items() if "zrange" in name)


async def test_changes_are_heard_again_after_a_store_was_gone(api: Api, server: Embedded) -> None:
    """Another process goes on learning; the first gets to know by itself."""
    async with running_api(server.url) as other:
        kill(server)
        with pytest.raises(StoreUnavailable):
            await other.sluice.store.topics()
        server.start()
        await wait_until(lambda: ready(other))
        version = (await other.judge(OIL | {"id": "later"}, True))["version"]

        async def in_sync() -> bool:
            return bool((await api.decide(OIL))["version"] == version)

        await wait_until(in_sync)


async def test_a_full_store_is_a_503_and_works_again_when_there_is_room(api: Api, server: Embedded) -> None:
    """Nothing acknowledged is lost, what is refused is not half done, and deciding goes on."""
    acknowledged = {"oil": True, "grain": False}
    with Redis(unix_socket_path=str(server.socket)) as client:
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 300_000)
        refused = 0
        for i in range(2000):
            text = " ".join(f"w{i}x{k}" for k in range(300))
            answer = await api.post(
                "/feedback", json={"topic": "crude", "document": {"id": f"d{i}", "text": text}, "relevant": i % 2 == 0}
            )
            if answer.is_success:
                acknowledged[f"d{i}"] = i % 2 == 0
            else:
                assert answer.status_code == 503
                assert "full" in answer.json()["detail"]
                assert "retry-after" in answer.headers
                refused += 1
            if refused == 3:
                break
        assert len(acknowledged) > 3
        assert refused == 3
        client.config_set("maxmemory", 1)
        assert (await api.request("POST", "/topics", json={"id": "more"})).status_code == 503
        assert (await api.request("POST", "/classify", json={"documents": [OIL | {"id": "x"}]})).status_code == 503
        assert (await api.decide(OIL))["decision"] == "accept"
        client.config_set("maxmemory", 0)
    page = await api.ok("GET", "/topics/crude/judgements", params={"limit": 1000})
    listed = {judgement["document"]: judgement["relevant"] for judgement in page["items"]}
    assert acknowledged.items() <= listed.items()
    assert len(listed) <= len(acknowledged) + refused
    assert (await api.judge(GRAIN | {"id": "after"}, True))["status"] == "learned"
    assert {topic["id"] for topic in (await api.ok("GET", "/topics"))["items"]} == {"crude", "doomed"}
    replayed = [await replay(api.sluice.store, topic, api.sluice.config, verify=True) for topic in ("crude", "doomed")]
    assert [topic.outcome for topic in replayed] == ["equal", "equal"]


async def test_a_full_store_still_lets_go(api: Api, server: Embedded) -> None:
    """Deleting a topic needs no memory, and is the way out."""
    with Redis(unix_socket_path=str(server.socket)) as client:
        client.config_set("maxmemory", 1)
        assert (await api.request("DELETE", "/topics/doomed")).status_code == 204
        client.config_set("maxmemory", 0)
    assert [topic["id"] for topic in (await api.ok("GET", "/topics"))["items"]] == ["crude"]


async def test_a_process_that_had_no_time_to_listen_does_not_take_the_store_for_silent(server: Embedded) -> None:
    """On a busy machine a reply may lie unread until it is too late; the next request is not refused for that."""
    store = Store(server.url)
    await store.ping()
    with frozen(server):
        asking = asyncio.create_task(store.topics())
        await asyncio.sleep(0.3)
    be_busy(1.0)
    with suppress(StoreUnavailable):
        await asking
    assert await store.topics() == []
    await store.close()


def be_busy(seconds: float) -> None:
    time.sleep(seconds)
