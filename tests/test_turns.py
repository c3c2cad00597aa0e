"""A large request does not hold up small ones: measured from outside, on a live process."""

import http.client
import json
import random
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest
from redis import Redis

from service.embedded import Embedded
from tests.live import Live, live

TOPICS = 100
DOCUMENTS = 1000
CHARS = 2000
MEASURED_S = 3.0
WAIT_S = 0.05  # what a small request may wait for a large one
JSON = {"content-type": "application/json"}

rng = random.Random(5)
WORDS = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(20_000)]
WEIGHTS = [1 / (rank + 2) for rank in range(len(WORDS))]  # as words are distributed, about


def text(chars: int) -> str:
    return " ".join(rng.choices(WORDS, WEIGHTS, k=chars // 5))[:chars]


@pytest.fixture(scope="module")
def server(embedded: Embedded) -> Iterator[Live]:
    with Redis.from_url(embedded.url) as client:
        client.flushall()
    with live(embedded.url) as server, httpx.Client(base_url=server.address, timeout=30) as client:
        for n in range(TOPICS):
            topic = {"id": f"t{n}", "query": " ".join(rng.choices(WORDS[200:], k=20))}
            assert client.post("/topics", json=topic).status_code == 201
        yield server


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> float:
    begun = time.perf_counter()
    connection.request(method, path, body, JSON if body else {})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content[:500]
    return time.perf_counter() - begun


@pytest.mark.parametrize(
    "options",
    [{}, {"explain": True}, {"include": "all", "store": False}],
    ids=["stored", "explained", "every decision"],
)
def test_a_batch_of_a_thousand_documents_does_not_hold_up_a_small_request(server: Live, options: Any) -> None:
    """Nine of ten, since a test cannot know who else has the machine. With the cores to itself all of them: measured
    were 1 to 5 ms in the middle and 36 ms at most, where 300 ms had been before."""
    batch = json.dumps({"documents": [{"text": text(CHARS)} for _ in range(DOCUMENTS)], **options}).encode()
    small = json.dumps({"documents": [{"text": text(CHARS)}], "store": False}).encode()
    ended = threading.Event()
    batches: list[float] = []

    def load() -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
            while not ended.is_set():
                batches.append(ask(connection, "POST", "/classify", batch))

    loading = threading.Thread(target=load)
    loading.start()
    waited: list[float] = []
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)) as connection:
            until = time.monotonic() + MEASURED_S
            while time.monotonic() < until or not batches:
                waited.append(ask(connection, "GET", "/healthz"))
                waited.append(ask(connection, "POST", "/classify", small))
                time.sleep(0.005)
    finally:
        ended.set()
        loading.join()
    waited.sort()
    assert waited[len(waited) * 9 // 10] < WAIT_S, [round(1000 * seconds) for seconds in waited[-50:]]
