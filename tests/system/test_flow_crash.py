"""Documents flow through `sluice:in` while processes are killed at random moments: every one is decided, none is lost.

    python -m tests.system.test_flow_crash DOCUMENTS KILLS

does the same at any size. One `sluice serve` with two consumers, an API process, a housekeeper and its embedded store;
a producer adds documents, and adds again what was not acknowledged. At the end every document must be in the stream of
what the topic let through, under the same id if it is there twice; none is a dead letter, and none is left pending.
"""

import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from redis import Redis
from redis.exceptions import RedisError

from service.processes import API, APPLICATION, CONSUMER, HOUSEKEEPING
from service.store.redis.embedded import socket_path
from service.store.redis.keys import DEAD, IN, out_key
from service.store.stream.inbox import GROUP
from service.store.stream.outbox import entry_id
from tests.support.processes import ServeProcess, children
from tests.support.waiting import PATIENCE_S, wait_until_sync

SEED = 20
DOCUMENTS, KILLS = 3000, 22
BATCH_SIZE = 50  # documents that are added together
# What is killed; mostly the store, which is back in a tenth of a second: others take seconds to start.
TARGETS = [*["valkey-server"] * 6, *[CONSUMER] * 3, API, HOUSEKEEPING]
MAX_DELAY_S = 0.2  # from when documents are being decided until the next kill
TOPIC = "news"


class CrashRun(NamedTuple):
    kills: Counter[str]
    repeated: int  # entries with an id that was there before
    took_s: float


class Producer(threading.Thread):
    """Adds documents until there are as many as `wanted`, however often the store is killed."""

    def __init__(self, socket: Path, documents: int) -> None:
        super().__init__(daemon=True)
        self._socket = socket
        self._documents = documents
        self.added = self.wanted = 0

    def run(self) -> None:
        while self.added < self._documents:
            try:
                with Redis(unix_socket_path=str(self._socket), socket_timeout=2) as client:
                    self._add(client)
            except (RedisError, OSError):
                time.sleep(0.05)  # what was not acknowledged is added again

    def _add(self, client: "Redis") -> None:
        while self.added < self._documents:
            upto = min(self.wanted, self.added + BATCH_SIZE)
            if upto == self.added:
                time.sleep(0.01)
                continue
            pipe = client.pipeline(transaction=False)
            for n in range(self.added, upto):
                pipe.xadd(IN, {"id": f"d{n}", "title": f"Report {n}", "text": f"Number {n} of {self._documents}."})
            pipe.execute()
            self.added = upto


def campaign(directory: Path, documents: int, kills: int) -> CrashRun:
    chance = random.Random(SEED)
    plan = (TARGETS * (kills // len(TARGETS) + 1))[:kills]
    chance.shuffle(plan)
    settings: dict[str, Any] = {"consumers": 2, "take_over_s": 1, "documents_kept": 2 * documents}
    settings |= {"application": APPLICATION, "housekeeper": HOUSEKEEPING, "steady_s": 0, "out_kept": 2 * documents}
    serve = ServeProcess(directory, **settings)
    try:
        topic = {"id": TOPIC, "query": "report", "rules": {"accept_if": "title:report"}}
        httpx.post(f"{serve.address}/topics", json=topic, timeout=PATIENCE_S).raise_for_status()
        began = time.monotonic()
        producer = Producer(socket_path(serve.data), documents)
        producer.start()
        killed: Counter[str] = Counter()
        for n, target in enumerate(plan):
            more = decided(serve) + 1
            producer.wanted = documents * (n + 1) // kills
            wait_until_sync(partial(decided, serve, at_least=more))  # there is work to interrupt
            time.sleep(chance.uniform(0, MAX_DELAY_S))
            killed[target] += kill(serve, target, chance)
        producer.join(600)
        entries = drained(serve, documents)
        return CrashRun(killed, len(entries) - documents, time.monotonic() - began)
    finally:
        serve.end()


def decided(serve: ServeProcess, at_least: int = 0) -> int:
    """How many documents have been let through, or 0 if fewer than `at_least`."""
    with Redis(unix_socket_path=str(socket_path(serve.data))) as client:
        length = int(wait_until_sync(lambda: client.xlen(out_key(TOPIC)) + 1)) - 1
    return length if length >= at_least else 0


def kill(serve: ServeProcess, target: str, chance: random.Random) -> int:
    """Kills a process of that kind as soon as there is one, and returns how many that were."""
    victims = wait_until_sync(
        lambda: [pid for pid, command in children(serve.process.pid).items() if target in command]
    )
    with suppress(ProcessLookupError):
        os.kill(chance.choice(victims), signal.SIGKILL)
        return 1
    return 0


def drained(serve: ServeProcess, documents: int) -> list[str]:
    """The ids of everything that was let through, once nothing is left to decide."""
    with Redis(unix_socket_path=str(socket_path(serve.data)), decode_responses=True) as client:
        wait_until_sync(lambda: client.xlen(IN) == 0, within_s=600)
        rows: Any = client.xrange(out_key(TOPIC))
        assert client.xpending(IN, GROUP)["pending"] == 0
        assert client.xlen(DEAD) == 0
    ids = {fields["document"]: fields["id"] for _, fields in rows}
    assert ids == {f"d{n}": entry_id(TOPIC, f"d{n}") for n in range(documents)}
    return [fields["id"] for _, fields in rows]


@pytest.mark.timeout(1200)
def test_whatever_is_killed_every_document_is_decided(tmp_path: Path) -> None:
    outcome = campaign(tmp_path, DOCUMENTS, KILLS)
    print(outcome)
    assert outcome.kills.total() >= 20
    assert outcome.kills.keys() == set(TARGETS)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sluice-") as directory:
        print(campaign(Path(directory), *map(int, sys.argv[1:])))
