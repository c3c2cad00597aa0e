"""A Redis Cluster as the store: it does what one server does, and goes on while nodes die and slots move."""

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.cluster import RedisCluster
from redis.exceptions import RedisError

from service.config import Config
from service.errors import StoreUnavailable
from service.processes import APPLICATION, CONSUMER, HOUSEKEEPING
from service.run.replay import replay_all
from service.store.redis.connection import Connection
from service.store.redis.errors import FULL
from service.store.redis.keys import DEAD, IN, out_key, topic_key
from service.store.stream.inbox import GROUP
from service.store.stream.outbox import entry_id
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.consuming import (
    accepted_documents,
    add_entry,
    consuming,
    dead_letters,
    output_documents,
    wait_until_consumed,
)
from tests.support.job_workers import run_job, running_workers
from tests.support.processes import ServeProcess, children
from tests.support.readers import JudgingClient
from tests.support.redis_cluster import PRIMARIES, KillableCluster, Node, running_cluster
from tests.support.streaming import grain, oil
from tests.support.waiting import PATIENCE_S, wait_until, wait_until_sync

TOPICS = ["crude", *(f"t{n}" for n in range(11))]
DOCUMENTS, KILLS = 1000, 4


@pytest.fixture(scope="module")
def all_nodes() -> Iterator[KillableCluster]:
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(all_nodes: KillableCluster) -> KillableCluster:
    all_nodes.flush()
    return all_nodes


@pytest.fixture
def client(cluster: KillableCluster) -> Iterator[Any]:
    with connected(cluster) as client:
        yield client


@pytest.fixture
async def api(cluster: KillableCluster) -> AsyncIterator[Api]:
    async with running_api(cluster.url, take_over_s=0.2, store_timeout_s=2) as api:
        yield api


def connected(cluster: KillableCluster) -> RedisCluster:
    return RedisCluster(host="127.0.0.1", port=cluster.up[0].port, decode_responses=True)


async def retried(api: Api, method: str, path: str, body: Any = None) -> Any:
    """Sends a request again while the response is 503, and returns the JSON of its success."""

    async def succeeded() -> Any:
        response = await api.request(method, path, json=body)
        assert response.is_success or response.status_code == 503, response.text
        return response.json() if response.is_success else None

    return await wait_until(succeeded)


async def verified(cluster: KillableCluster) -> dict[str, str]:
    """By topic, whether its model equals a replay of its log."""
    outcomes = await replay_all(cluster.url, Config(redis=cluster.url), verify=True)
    return {outcome.topic: outcome.outcome for outcome in outcomes}


# -- addresses ---------------------------------------------------------------------------------------------------------


async def read_from(url: str) -> None:
    """Reads keys of several slots."""
    connection = Connection(url, PATIENCE_S)
    try:
        for name in "abcdefgh":
            await connection.run([("GET", name)])
    finally:
        await connection.close()


async def test_a_node_that_is_taken_for_a_server_and_the_reverse_are_told_apart(
    cluster: KillableCluster, tmp_path: Path
) -> None:
    with pytest.raises(StoreUnavailable, match=r"is a node of a Redis Cluster: write redis\+cluster://"):
        await read_from(f"redis://127.0.0.1:{cluster.nodes[0].port}")
    alone = Node(tmp_path)
    alone.start("--cluster-enabled", "no")
    try:
        wait_until_sync(alone.client.ping)
        with pytest.raises(
            StoreUnavailable, match="not a node of a Redis Cluster: its address must begin with redis://"
        ):
            await read_from(f"redis+cluster://127.0.0.1:{alone.port}")
    finally:
        alone.kill()


# -- as one server -----------------------------------------------------------------------------------------------------


async def replies_of(api: Api) -> list[Any]:
    """The replies to all kinds of requests, with topics on all nodes, but for times."""
    for topic in TOPICS:
        await api.topic(topic)
    documents = [OIL | {"id": "o"}, GRAIN | {"id": "g"}, {"id": "f", "text": "The cup final was played in the rain."}]
    replies = [await api.ok("POST", "/classify", {"documents": documents, "include": "all", "explain": True})]
    for topic in TOPICS:
        replies += [
            await api.judge("o", True, topic),
            await api.judge("g", True, topic),
            await api.judge("g", False, topic),
        ]
    replies.append(await api.ok("DELETE", "/topics/t3/judgements/g"))
    replies.append((await api.ok("POST", "/topics/t4/versions/2/restore"))["status"])
    replies.append(await api.ok("POST", "/classify", {"documents": [OIL], "include": "all"}))
    for topic in TOPICS:
        page = await api.ok("GET", f"/topics/{topic}/accepted")
        replies.append([{**item, "at": None} for item in page["items"]])
    await api.ok("DELETE", "/topics/t5")
    replies.append([topic["id"] for topic in (await api.ok("GET", "/topics"))["items"]])
    return replies


async def test_a_cluster_answers_what_one_server_does(cluster: KillableCluster, api: Api, redis_url: str) -> None:
    assert {cluster.holder(topic_key(topic, "log")).port for topic in TOPICS} == {
        node.port for node in cluster.primaries()
    }
    async with running_api(redis_url) as alone:
        assert await replies_of(api) == await replies_of(alone)
    assert await verified(cluster) == dict.fromkeys(set(TOPICS) - {"t5"}, "equal")
    assert (await api.ok("GET", "/readyz"))["topics"] == len(TOPICS) - 1
    shown = (await api.get("/metrics")).text
    used = sum(int(node.client.info("memory")["used_memory"]) for node in cluster.primaries())
    (line,) = [line for line in shown.splitlines() if line.startswith("sluice_store_memory_bytes ")]
    assert used / 2 < float(line.split()[1]) < 2 * used


async def test_what_one_process_learns_the_others_hear_of_and_listeners_are_told(
    cluster: KillableCluster, api: Api
) -> None:
    await api.topic()
    await api.topic("grain", query="wheat maize harvest")
    async with running_api(cluster.url, sweep_s=3600) as other:
        async with (
            api.sluice.subscribers.subscribe("crude", None) as crude,
            api.sluice.subscribers.subscribe("grain", None) as harvest,
        ):
            for listener in (crude, harvest):
                await anext(listener)
            await other.ok("POST", "/classify", {"documents": [OIL | {"id": "o"}, GRAIN | {"id": "g"}]})
            assert b'"document":"o"' in await next_event(crude)
            assert b'"document":"g"' in await next_event(harvest)
        await api.judge("o", True)

        async def in_sync() -> bool:
            return other.sluice.registry.topics["crude"].version == 2

        await wait_until(in_sync)  # by a message: with this setting, no sweep would find it in time


async def next_event(events: AsyncIterator[bytes]) -> bytes:
    """The next event that is not a heartbeat."""
    async for event in events:
        if event.strip(b":\n"):
            return event
    raise AssertionError("the stream has ended")


async def test_jobs_are_done(cluster: KillableCluster, api: Api) -> None:
    await api.topic()
    for relevant, documents in ((True, oil(30)), (False, grain(30))):
        judgements = [{"topic": "crude", "document": document, "relevant": relevant} for document in documents]
        await api.ok("POST", "/feedback", {"judgements": judgements})
    with running_workers(cluster.url):
        job = await run_job(api, kind="retrain", topics=["crude"], method="rocchio", publish="always")
    (result,) = job["result"]["topics"]
    assert result["published"]
    newest = (await api.ok("GET", "/topics/crude/versions"))["items"][0]
    assert (newest["version"], newest["cause"]) == (result["version"], "retrain")


async def test_routes_carry_on_to_a_stream_of_another_node(
    cluster: KillableCluster, api: Api, client: Any, tmp_path: Path
) -> None:
    others = [f"elsewhere{n}" for n in range(20)]
    elsewhere = next(name for name in others if cluster.holder(name) is not cluster.holder(out_key("crude")))
    await api.topic()
    await api.ok("PUT", "/topics/crude/routes", {"routes": [{"to": "stream", "key": elsewhere, "on": ["accept"]}]})
    serve = ServeProcess(
        tmp_path, "--redis", cluster.url, application=APPLICATION, housekeeper=HOUSEKEEPING, consumers=1
    )
    try:
        add_entry(client, OIL | {"id": "o"})
        wait_until_sync(lambda: client.xlen(elsewhere))
        assert [fields["document"] for _, fields in client.xrange(elsewhere)] == ["o"]
    finally:
        serve.end()


# -- trouble -----------------------------------------------------------------------------------------------------------


async def test_nothing_is_taken_over_while_any_node_is_full(cluster: KillableCluster, api: Api, client: Any) -> None:
    """Else a document that is decided again and again, because nothing can be written, would seem to kill consumers."""
    await api.topic()
    for document in accepted_documents(5):
        add_entry(client, document)
    full = next(node for node in cluster.primaries() if node is not cluster.holder(IN))
    full.client.config_set("maxmemory", 1)
    try:
        async with consuming(api), consuming(api):
            await asyncio.sleep(2)  # in which they could be taken over ten times
            with suppress(RedisError):
                assert all(row["times_delivered"] == 1 for row in client.xpending_range(IN, GROUP, "-", "+", 10))
            with pytest.raises(StoreUnavailable, match=FULL):
                await api.sluice.store.connection.ensure_room()
            full.client.config_set("maxmemory", 0)
            await wait_until_consumed(client)
    finally:
        full.client.config_set("maxmemory", 0)
    assert sorted(output_documents(client)) == sorted(document["id"] for document in accepted_documents(5))
    assert dead_letters(client) == []


async def test_slots_that_move_while_it_works_are_followed(cluster: KillableCluster, api: Api) -> None:
    await api.topic()
    reader = JudgingClient("ann", ["crude"], seed=20)
    names = [topic_key("crude", "log"), out_key("crude"), "sluice:topics", IN, "sluice:{repeats}:noted"]

    async def move_about() -> None:
        chance = random.Random(20)
        for name in 3 * names:
            to = chance.choice([node for node in cluster.primaries() if node is not cluster.holder(name)])
            await asyncio.to_thread(cluster.move, name, to)

    task, judged = asyncio.create_task(move_about()), 0
    while not task.done():  # also when it has failed
        document = reader.document()
        await retried(api, "POST", "/classify", {"documents": [document]})
        body = {"topic": "crude", "document": document["id"], "relevant": judged % 2 == 0}
        await retried(api, "POST", "/feedback", body)
        judged += 1
    await task
    counts = (await api.ok("GET", "/topics/crude"))["status"]["judged"]
    assert counts["relevant"] + counts["irrelevant"] == judged
    assert await verified(cluster) == {"crude": "equal"}


@pytest.mark.parametrize("frozen", [False, True], ids=["killed", "frozen"])
async def test_a_replica_takes_over_with_all_that_was_acknowledged(
    cluster: KillableCluster, api: Api, frozen: bool
) -> None:
    await api.topic()
    for n in range(5):
        await api.judge(OIL | {"id": f"d{n}", "text": f"{OIL['text']} {n}"}, True)
    victim, judgement = (
        cluster.holder(topic_key("crude", "log")),
        {"topic": "crude", "document": GRAIN, "relevant": False},
    )
    if frozen:
        victim.freeze()
    else:
        victim.kill()
    try:
        refused = await api.post("/feedback", json=judgement)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert (await retried(api, "POST", "/feedback", judgement))["status"] == "learned"
        assert cluster.holder(topic_key("crude", "log")) is not victim
        counts = (await retried(api, "GET", "/topics/crude"))["status"]["judged"]
        assert counts == {"relevant": 5, "irrelevant": 1}
    finally:
        if frozen:
            victim.thaw()
        else:
            victim.start()
        wait_until_sync(cluster.whole)
    assert await verified(cluster) == {"crude": "equal"}


async def test_a_primary_that_hands_over_is_followed_at_once(cluster: KillableCluster, api: Api) -> None:
    """As for maintenance: it goes on as a replica, and redirects clients to the new primary."""
    await api.topic()
    before = cluster.holder(topic_key("crude", "log"))
    cluster.replica_of(before).client.execute_command("CLUSTER FAILOVER")
    wait_until_sync(lambda: cluster.whole() and cluster.holder(topic_key("crude", "log")) is not before)
    assert (await api.judge(OIL, True))["status"] == "learned"
    assert (await api.judge(GRAIN, False))["status"] == "learned"
    assert await verified(cluster) == {"crude": "equal"}


async def test_a_replica_that_dies_is_done_without(cluster: KillableCluster, api: Api) -> None:
    await api.topic()
    log, connection = topic_key("crude", "log"), api.sluice.store.connection
    assert await connection.primaries_with_replicas([("XLEN", log)])
    replica = cluster.replica_of(cluster.holder(log))
    replica.kill()
    try:
        n = 0

        async def done_without() -> bool:
            nonlocal n
            n += 1
            await api.judge({"id": f"d{n}", "text": f"Document {n}"}, True)
            return not await connection.primaries_with_replicas([("XLEN", log)])

        await wait_until(done_without)
    finally:
        replica.start()
        wait_until_sync(cluster.whole)


class Campaign:
    """Documents flow while primaries and consumers are killed; what was not acknowledged by a replica is sent again."""

    def __init__(self, cluster: KillableCluster, serve: ServeProcess) -> None:
        self._cluster, self._serve, self._chance = cluster, serve, random.Random(20)

    def add(self, numbers: range) -> None:
        def added() -> bool:
            with self._cluster.holder(IN).client.pipeline(transaction=False) as pipe:
                for n in numbers:
                    pipe.xadd(IN, {"id": f"d{n}", "title": f"Report {n}", "text": f"Number {n} of many."})
                return bool(pipe.wait(1, 1000).execute()[-1])

        wait_until_sync(added)

    def kill_a_primary(self) -> None:
        victim = self._chance.choice(self._cluster.primaries())
        victim.kill()
        wait_until_sync(lambda: len(self._cluster.primaries()) == PRIMARIES)
        victim.start()
        wait_until_sync(self._cluster.whole)

    def kill_a_consumer(self) -> None:
        processes = children(self._serve.process.pid)
        victims = [pid for pid, command in processes.items() if CONSUMER in command]
        with suppress(ProcessLookupError):
            os.kill(self._chance.choice(victims), signal.SIGKILL)


def test_whatever_is_killed_every_document_is_decided(cluster: KillableCluster, client: Any, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"consumers": 2, "take_over_s": 1, "store_timeout_s": 2, "steady_s": 0}
    serve = ServeProcess(
        tmp_path, "--redis", cluster.url, application=APPLICATION, housekeeper=HOUSEKEEPING, **settings
    )
    try:
        topic = {"id": "news", "query": "report", "rules": {"accept_if": "title:report"}}
        httpx.post(f"{serve.address}/topics", json=topic, timeout=PATIENCE_S).raise_for_status()
        campaign = Campaign(cluster, serve)
        for n in range(KILLS):
            campaign.add(range(n * DOCUMENTS // KILLS, (n + 1) * DOCUMENTS // KILLS))
            wait_until_sync(lambda: client.xlen(out_key("news")))
            campaign.kill_a_consumer() if n % 3 == 2 else campaign.kill_a_primary()
        wait_until_sync(lambda: client.xlen(IN) == 0)
        rows: Any = client.xrange(out_key("news"))
        assert {fields["document"]: fields["id"] for _, fields in rows} == {
            f"d{n}": entry_id("news", f"d{n}") for n in range(DOCUMENTS)
        }
        assert client.xlen(DEAD) == 0
        assert client.xpending(IN, GROUP)["pending"] == 0
    finally:
        serve.end()
