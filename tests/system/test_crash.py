"""Processes are killed at random moments while readers judge: nothing that was acknowledged is ever lost.

One `sluice serve` with two API processes, a housekeeper and its embedded store. In every round the readers judge,
something is killed with SIGKILL, and when the service is ready again (by itself, but for a killed supervisor) we check
that every acknowledged judgement stands, every topic is there, and each published model is, bit for bit, the fold of
its log.
"""

import asyncio
import os
import random
import re
import signal
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import httpx

from service.config import Config
from service.processes import API, APPLICATION, HOUSEKEEPING
from service.run.replay import ReplayOutcome, replay
from service.store.redis.embedded import socket_path
from service.store.topics import Store
from tests.support.processes import ServeProcess, children
from tests.support.readers import JudgingClient, TopicChurn, compare, judgements, list_all
from tests.support.waiting import PATIENCE_S, wait_until, wait_until_sync

SEED = 20
READERS = 5
TOPICS = {"crude": "wh", "grain": "eg", "ships": "winnow", "trade": "perceptron"}
# What is killed, and how often.
PLAN = {"store": 35, "store twice": 4, "api": 4, "api and store": 5, "housekeeper": 2, "supervisor": 1, "everything": 1}
MIN_JUDGEMENTS = 3  # acknowledged in a round before something is killed


class Service:
    """The service under attack."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._serve = self._start()

    def _start(self) -> ServeProcess:
        # A kill is no lasting reason to fail, so what was killed starts again without a growing delay.
        return ServeProcess(
            self._directory, "--workers", "2", application=APPLICATION, housekeeper=HOUSEKEEPING, steady_s=0
        )

    @property
    def address(self) -> str:
        return self._serve.address

    @property
    def store_url(self) -> str:
        return f"unix://{socket_path(self._serve.data)}"

    def apis(self) -> list[int]:
        """The API processes that serve already."""
        started = re.findall(r"Started server process \[(\d+)\]", self._serve.errors.read_text())
        return [pid for pid in self._running(API) if str(pid) in started]

    def kill(self, target: str, chance: random.Random) -> None:
        one_api = chance.sample(self.apis() or self._running(API), 1)
        victims = {
            "store": self._running("valkey-server"),
            "store twice": self._running("valkey-server"),
            "api": one_api,
            "api and store": [*one_api, *self._running("valkey-server")],
            "housekeeper": self._running(HOUSEKEEPING),
            "supervisor": [self._serve.process.pid],
            "everything": [self._serve.process.pid, *self._running("")],
        }[target]
        for pid in victims:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self._serve.process.pid in victims:
            self._serve.process.wait()
            self._serve = self._start()

    def end(self) -> None:
        self._serve.end()

    def _running(self, what: str) -> list[int]:
        return [pid for pid, command in children(self._serve.process.pid).items() if what in command]


async def test_whatever_is_killed_no_acknowledged_judgement_is_lost(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    plan = [target for target, times in PLAN.items() for _ in range(times)]
    chance.shuffle(plan)
    rounds = len(plan)
    readers = [JudgingClient(f"r{n}", list(TOPICS), SEED) for n in range(READERS)]
    maker = TopicChurn()
    service = Service(tmp_path)
    try:
        await make_topics(service)
        while plan:
            await attack(service, plan.pop(next_possible(plan, service)), maker, readers, chance)
            await check(service, maker, readers)
    finally:
        service.end()
    acknowledged, failed = total(readers), sum(reader.failed for reader in readers)
    print(f"{rounds} rounds: {acknowledged} judgements acknowledged, {failed} failed; {maker.made} topics made")
    assert rounds >= 50
    assert acknowledged >= MIN_JUDGEMENTS * rounds
    assert failed >= rounds  # they were at it when something died


async def make_topics(service: Service) -> None:
    async with httpx.AsyncClient(base_url=service.address, timeout=PATIENCE_S) as client:
        for topic, learner in TOPICS.items():
            body = {"id": topic, "query": f"{topic} price", "learner": {"kind": learner}}
            (await client.post("/topics", json=body)).raise_for_status()


def next_possible(plan: list[str], service: Service) -> int:
    """The place in the plan of the first target that leaves an API process to judge through, or 0.

    An API process takes seconds to start; meanwhile the store can be killed many times.
    """
    waiting = len(service.apis()) < 2
    possible = (at for at, target in enumerate(plan) if not (waiting and "api" in target))
    return next(possible, 0)


def total(readers: Sequence[JudgingClient]) -> int:
    return sum(reader.acknowledged for reader in readers)


async def attack(
    service: Service, target: str, maker: TopicChurn, readers: Sequence[JudgingClient], chance: random.Random
) -> None:
    """Kills the target while people work, lets them go on for a moment, and waits until the service is ready again."""
    people: list[JudgingClient | TopicChurn] = [maker, *readers]
    stopping = asyncio.Event()
    enough = total(readers) + MIN_JUDGEMENTS

    async def at_work() -> bool:
        return total(readers) >= enough

    async with httpx.AsyncClient(base_url=service.address, timeout=10) as client:
        tasks = [asyncio.create_task(each.work(client, stopping)) for each in people]
        await wait_until(at_work)
        await asyncio.sleep(chance.uniform(0, 0.3))
        await asyncio.to_thread(service.kill, target, chance)
        if target == "store twice":
            await asyncio.sleep(chance.uniform(0.05, 0.3))
            await asyncio.to_thread(service.kill, target, chance)
        await asyncio.sleep(chance.uniform(0, 0.3))
        stopping.set()
        await asyncio.gather(*tasks)
    ready = await asyncio.to_thread(lambda: f"{service.address}/readyz")
    await asyncio.to_thread(wait_until_sync, lambda: httpx.get(ready, timeout=10).is_success)


async def check(service: Service, maker: TopicChurn, readers: list[JudgingClient]) -> None:
    topics, judged = await wait_until(lambda: read(service))
    maker.compare(topics)
    assert {topic for topic in topics if not topic.startswith("made-")} == set(TOPICS)
    for topic in TOPICS:
        compare(readers, topic, judged[topic])
    store = Store(service.store_url, PATIENCE_S)
    try:
        for topic in TOPICS:
            # A log may be ahead of its model; the second sweep folds it, and they come every 2 s.
            replayed = await wait_until(partial(caught_up, store, topic), every_s=0.2)
            assert replayed.outcome == "equal", topic
    finally:
        await store.close()


async def caught_up(store: Store, topic: str) -> ReplayOutcome | None:
    replayed = await replay(store, topic, Config(), verify=True)
    return None if replayed.outcome == "behind" else replayed


async def read(service: Service) -> tuple[set[str], dict[str, dict[str, bool]]] | None:
    """All topics, and by topic the judgements of ours; None if the request went to a process that was just killed."""
    try:
        async with httpx.AsyncClient(base_url=service.address, timeout=10) as client:
            topics = {topic["id"] for topic in await list_all(client, "/topics")}
            return topics, {topic: await judgements(client, topic) for topic in TOPICS}
    except (httpx.TransportError, httpx.HTTPStatusError):
        return None
