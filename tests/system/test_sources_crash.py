"""Feeds are polled while processes are killed at random moments: every story is decided, none twice and none lost.

    python -m tests.system.test_sources_crash STORIES KILLS

does the same at any size. A publisher adds stories to several feeds, which are sent slowly, so that polls are under way
when their process dies. One `sluice serve` with a store, a consumer and a housekeeper, and two further housekeepers
poll them, as fast as they can. At the end every story must be in the stream of what the topic let through, exactly
once.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from redis import Redis
from redis.exceptions import RedisError

from service.processes import APPLICATION, HOUSEKEEPING, command
from service.store.redis.embedded import socket_path
from service.store.redis.keys import DEAD, DUE_SOURCES, IN, SOURCE, out_key
from tests.support.processes import ServeProcess, children, end, environment
from tests.support.publisher import Page, Publisher, rss
from tests.support.waiting import PATIENCE_S, wait_until_sync

SEED = 19
STORIES, KILLS = 240, 8
FEEDS, HOUSEKEEPERS = 3, 2
TOPIC = "news"
SETTINGS: dict[str, Any] = {"sources_private": "true", "take_over_s": 1, "sweep_s": 3600, "log_level": "warning"}


class Outcome(NamedTuple):
    kills: Counter[str]
    polls: int
    stories: int


class Newsroom(threading.Thread):
    """Publishes stories on several feeds, each of which shows all of its own."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.published = 0
        self.ready = threading.Event()
        self.publisher = Publisher()
        self._loop = asyncio.new_event_loop()

    def run(self) -> None:
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        server = await asyncio.start_server(self.publisher.connected, "127.0.0.1", 0)
        self.publisher.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        for feed in range(FEEDS):
            self.publisher.pages[f"/{feed}"] = partial(self._page, feed)
        self.ready.set()
        await server.serve_forever()

    def asked_again(self, before: int) -> bool:
        return len(self.publisher.asked) > before

    def _page(self, feed: int, _: Mapping[str, str]) -> Page:
        body = rss(*(f"Story {n}" for n in range(feed, self.published, FEEDS)), text="A report.")
        return Page(body, drip=max(1000, len(body) // 4))


class Hurry(threading.Thread):
    """Makes every source due again as soon as nobody holds it."""

    def __init__(self, socket: Path) -> None:
        super().__init__(daemon=True)
        self._socket = socket
        self.over = False

    def run(self) -> None:
        while not self.over:
            with suppress(RedisError, OSError), Redis(unix_socket_path=str(self._socket), socket_timeout=2) as client:
                for feed in range(FEEDS):
                    if not client.hexists(f"{SOURCE}feed{feed}", "claim"):
                        client.zadd(DUE_SOURCES, {f"feed{feed}": 0}, xx=True)
            time.sleep(0.05)


@contextmanager
def housekeepers(serve: ServeProcess) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """Further ones, as on other machines."""
    env = environment(redis=f"unix://{socket_path(serve.data)}", **SETTINGS)
    started = [subprocess.Popen(command(HOUSEKEEPING), env=env) for _ in range(HOUSEKEEPERS)]
    try:
        yield started
    finally:
        for process in started:
            end(process)


def campaign(directory: Path, stories: int, kills: int) -> Outcome:
    chance = random.Random(SEED)
    newsroom = Newsroom()
    newsroom.start()
    assert newsroom.ready.wait(PATIENCE_S)
    options: dict[str, Any] = {"application": APPLICATION, "housekeeper": HOUSEKEEPING, "steady_s": 0, "consumers": 1}
    serve = ServeProcess(directory, **SETTINGS, **options)
    hurry = Hurry(socket_path(serve.data))
    try:
        with httpx.Client(base_url=serve.address, timeout=PATIENCE_S) as client:
            topic = {"id": TOPIC, "query": "story", "rules": {"accept_if": "title:story"}}
            client.post("/topics", json=topic).raise_for_status()
            for feed in range(FEEDS):
                source = {"id": f"feed{feed}", "kind": "feed", "url": newsroom.publisher.url(f"/{feed}")}
                client.post("/sources", json=source).raise_for_status()
        hurry.start()
        killed: Counter[str] = Counter()
        with housekeepers(serve) as others:
            for n in range(kills):
                asked = len(newsroom.publisher.asked)
                newsroom.published = stories * (n + 1) // kills
                wait_until_sync(partial(newsroom.asked_again, asked))  # a poll is under way
                time.sleep(chance.uniform(0, 0.6))
                killed[kill(serve, others, n, chance)] += 1
            titles = passed(serve, stories)
        assert titles == Counter({f"Story {n}": 1 for n in range(stories)})
        return Outcome(killed, len(newsroom.publisher.asked), len(titles))
    finally:
        hurry.over = True
        serve.end()


def kill(serve: ServeProcess, others: list["subprocess.Popen[bytes]"], n: int, chance: random.Random) -> str:
    """Kills a housekeeper, or every third time the store; returns which."""
    target = "valkey-server" if n % 3 == 2 else HOUSEKEEPING
    alive = [process for process in others if process.poll() is None]
    if target == HOUSEKEEPING and alive and chance.random() < 0.5:
        chance.choice(alive).kill()
        return f"another {target}"
    victims = wait_until_sync(
        lambda: [pid for pid, running in children(serve.process.pid).items() if target in running]
    )
    with suppress(ProcessLookupError):
        os.kill(chance.choice(victims), signal.SIGKILL)
    return target


def passed(serve: ServeProcess, stories: int) -> Counter[str]:
    """The titles of everything that was let through, once nothing is left to poll and to decide."""
    with Redis(unix_socket_path=str(socket_path(serve.data)), decode_responses=True) as client:
        wait_until_sync(lambda: client.xlen(out_key(TOPIC)) >= stories and client.xlen(IN) == 0, within_s=600)
        asked = [client.hget(f"{SOURCE}feed{feed}", "last_ms") for feed in range(FEEDS)]
        wait_until_sync(
            lambda: all(client.hget(f"{SOURCE}feed{feed}", "last_ms") != asked[feed] for feed in range(FEEDS))
        )  # once more, with nothing new to find
        wait_until_sync(lambda: client.xlen(IN) == 0)
        assert client.xlen(DEAD) == 0
        rows: Any = client.xrange(out_key(TOPIC))
    return Counter(fields["title"] for _, fields in rows)


@pytest.mark.timeout(1800)
def test_whatever_is_killed_every_story_is_decided_once(tmp_path: Path) -> None:
    outcome = campaign(tmp_path, STORIES, KILLS)
    print(outcome)
    assert outcome.kills.total() == KILLS
    assert outcome.stories == STORIES


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="sluice-") as directory:
        print(campaign(Path(directory), *map(int, sys.argv[1:])))
