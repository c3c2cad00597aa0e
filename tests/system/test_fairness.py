"""A large request does not hold up small ones, on a live process. How long they take, `scripts/bench wait` measures."""

import http.client
import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import httpx
import pytest

from service.store.redis.embedded import Embedded
from tests.support.live import Live, live
from tests.support.waiting import PATIENCE_S

TOPICS = 100
DOCUMENTS = 1000
CHARS = 2000
BATCHES = 3
TURNS = 10  # small requests a batch, at least; measured were 60 and more
JSON = {"content-type": "application/json"}

rng = random.Random(5)
WORDS = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(20_000)]
WEIGHTS = [1 / (rank + 2) for rank in range(len(WORDS))]  # as words are distributed, about


def text(chars: int) -> str:
    return " ".join(rng.choices(WORDS, WEIGHTS, k=chars // 5))[:chars]


@pytest.fixture(scope="module")
def server(emptied: Embedded) -> Iterator[Live]:
    with live(emptied.url) as server, httpx.Client(base_url=server.address, timeout=PATIENCE_S) as client:
        for n in range(TOPICS):
            topic = {"id": f"t{n}", "query": " ".join(rng.choices(WORDS[200:], k=20))}
            assert client.post("/topics", json=topic).status_code == 201
        yield server


def ask(connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> None:
    connection.request(method, path, body, JSON if body else {})
    answer = connection.getresponse()
    content = answer.read()
    assert answer.status == 200, content[:500]


@pytest.mark.parametrize(
    "options",
    [{}, {"explain": True}, {"include": "all", "store": False}],
    ids=["stored", "explained", "every decision"],
)
def test_while_a_thousand_documents_are_decided_many_small_requests_are_answered(server: Live, options: Any) -> None:
    """By turns, however fast the machine is: a batch that kept the event loop to itself would let one or two pass."""
    batch = json.dumps({"documents": [{"text": text(CHARS)} for _ in range(DOCUMENTS)], **options}).encode()
    small = json.dumps({"documents": [{"text": text(CHARS)}], "store": False}).encode()
    answered = 0

    def load() -> None:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as connection:
            for _ in range(BATCHES):
                ask(connection, "POST", "/classify", batch)

    with (
        ThreadPoolExecutor(1) as pool,
        closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as connection,
    ):
        loading = pool.submit(load)
        while not loading.done():
            ask(connection, "GET", "/healthz")
            ask(connection, "POST", "/classify", small)
            answered += 2
        loading.result()
    assert answered >= TURNS * BATCHES
