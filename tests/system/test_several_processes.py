"""Four API processes on one store are the same service, whichever gets a request."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from typing import Any

import pytest

from service.config import Config
from service.run.replay import replay
from service.store.redis.embedded import Embedded
from service.store.topics import Store
from tests.support.api import GRAIN, OIL, QUERY, Api, running_api
from tests.support.live import Live, live
from tests.support.readers import JudgingClient, compare, judgements
from tests.support.waiting import PATIENCE_S, wait_until

PROCESSES = 4
SEED = 20


@pytest.fixture(scope="module")
def processes(emptied: Embedded) -> Iterator[list[Live]]:
    with ExitStack() as stack, ThreadPoolExecutor(PROCESSES) as pool:
        starting = [live(emptied.url) for _ in range(PROCESSES)]
        yield list(pool.map(stack.enter_context, starting))


@pytest.fixture
async def apis(processes: list[Live]) -> AsyncIterator[list[Api]]:
    """A client of each process."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Api(base_url=each.address, timeout=PATIENCE_S)) for each in processes]


async def version(api: Api, topic: str) -> int:
    """The version that this process decides with at this moment."""
    return int((await api.decide(OIL, topic))["version"])


async def exported(api: Api, topic: str) -> Any:
    return await api.ok("GET", f"/topics/{topic}/model", params={"format": "export"})


@pytest.mark.parametrize("kind", ["wh", "eg"])
async def test_judgements_through_all_end_in_one_model_bitwise_equal_to_a_replay(
    apis: list[Api], embedded: Embedded, kind: str
) -> None:
    topic = f"hot-{kind}"
    await apis[0].topic(topic, learner={"kind": kind})
    readers = [JudgingClient(f"{kind}{n}", [topic], SEED) for n in range(2 * PROCESSES)]

    async def judge(n: int, reader: JudgingClient) -> None:
        for step in range(40):
            await reader.step(apis[n % PROCESSES])
            if n == 0 and step % 10 == 5:  # somebody changes the topic itself, in the middle of it
                await apis[step % PROCESSES].ok("PATCH", f"/topics/{topic}", {"query": f"{QUERY} {step}"})

    await asyncio.gather(*(judge(n, reader) for n, reader in enumerate(readers)))
    assert not any(reader.failed for reader in readers)
    newest = max([await version(api, topic) for api in apis])

    async def all_serve_it() -> bool:
        return all([await version(api, topic) == newest for api in apis])

    await wait_until(all_serve_it)
    for api in apis:
        compare(readers, topic, await judgements(api, topic))
    models = [await exported(api, topic) for api in apis]
    assert all(model == models[0] for model in models)

    async def all_decide_alike() -> bool:
        """Once all have loaded the newest background, by whose frequencies they weigh the words of a document."""
        decisions = [await api.decide(GRAIN, topic, explain=True) for api in apis]
        return all(decision == decisions[0] for decision in decisions)

    await wait_until(all_decide_alike)
    store = Store(embedded.url, PATIENCE_S)
    assert (await replay(store, topic, Config(), verify=True)).outcome == "equal"
    await store.close()


async def test_a_judgement_through_one_is_announced_to_the_others(embedded: Embedded) -> None:
    """There are no sweeps here. How soon all serve a judgement, `scripts/bench wait` measures."""
    async with running_api(embedded.url, sweep_s=3600) as first, running_api(embedded.url, sweep_s=3600) as second:
        await first.topic("quick")
        for n in range(20):
            judge, follow = (first, second) if n % 2 else (second, first)
            text = f"{OIL['text']} {n}"
            learned = await judge.judge({"id": f"q{n}", "text": text}, n % 3 == 0, "quick")
            assert await version(judge, "quick") == learned["version"]

            async def in_sync(api: Api = follow, wanted: int = learned["version"]) -> bool:
                return await version(api, "quick") >= wanted

            await wait_until(in_sync)


async def test_a_topic_made_or_deleted_through_one_is_there_or_gone_for_all(apis: list[Api]) -> None:
    await apis[0].topic("brief")
    for api in apis:
        assert (await api.decide(OIL, "brief"))["decision"] == "accept"
    await apis[1].ok("DELETE", "/topics/brief")

    async def gone() -> bool:
        return all([(await api.get("/topics/brief")).status_code == 404 for api in apis])

    await wait_until(gone)
    made = await apis[2].topic("brief", query="wheat harvest")
    for api in apis:
        assert (await api.ok("GET", "/topics/brief"))["query"] == "wheat harvest"
        assert (await api.judge(GRAIN, True, "brief"))["status"] in ("learned", "known")
    assert made["status"]["version"] == 1


async def test_making_and_deleting_one_topic_from_everywhere_leaves_a_topic_that_is_listed(apis: list[Api]) -> None:
    """Deleting strikes a topic off the list as its last step; one made in between must not be struck off with it."""

    async def quarrel(api: Api) -> None:
        for _ in range(15):
            await api.request("POST", "/topics", json={"id": "quarrel", "query": QUERY})
            await api.request("DELETE", "/topics/quarrel")
        await api.request("POST", "/topics", json={"id": "quarrel", "query": QUERY})

    await asyncio.gather(*(quarrel(api) for api in apis))
    if (await apis[0].get("/topics/quarrel")).is_error:
        await apis[0].topic("quarrel")

    async def listed(api: Api) -> bool:
        return "quarrel" in [topic["id"] for topic in (await api.ok("GET", "/topics"))["items"]]

    async def by_all() -> bool:
        return all([await listed(api) for api in apis])

    await wait_until(by_all)


async def test_a_process_that_dies_half_way_leaves_its_work_to_the_others(apis: list[Api], embedded: Embedded) -> None:
    """A log that is ahead of its model: a process appended to it, and died before it published."""
    await apis[0].topic("orphan")
    await apis[0].judge(OIL | {"id": "first"}, True, "orphan")
    store = Store(embedded.url, PATIENCE_S)
    head, events = await store.logs.load("orphan")
    judged = next(event for event in events if event.kind == "judged")
    ((status, second),) = await store.logs.append("orphan", head.born, [replace(judged, document="second")])
    assert status == "learned"

    async def folded() -> bool:
        return all([await version(api, "orphan") == second.seq for api in apis])

    await wait_until(folded)
    assert (await replay(store, "orphan", Config(), verify=True)).outcome == "equal"
    await store.close()
