"""How long clients of a live service wait: what is promised in seconds, measured from outside.

    frozen      many requests of every kind at once, to a service whose store is frozen: seconds until the 503
    beside      small requests while batches of a thousand documents are decided: milliseconds
    served      a judgement through one of several processes, until all of them decide by it: milliseconds
    long log    one more judgement, a correction, a withdrawal, a version restored, in a long log: milliseconds
    rules       a document analysed and matched with a thousand rules: milliseconds

The processes use all cores, and the figures are wall-clock time: on a busy machine they say little about Sluice.
"""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from functools import partial
from itertools import repeat
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.text.analysis import Document
from models.text.rules import Subject, parse
from scripts.common.corpus import load
from scripts.common.live import ApiConnection, api_process, latencies, temporary_store
from service.store.redis.embedded import Embedded

CLIENTS = 60  # at once, each with one kind of request after the other
TOPICS, BATCH_SIZE = 100, 1000
RULES = 1000
REPEATS = 10  # of each kind of change in a long log
JUDGEMENTS = 500  # a request, when the long log is written
OPTIONS: dict[str, dict[str, Any]] = {
    "stored": {},
    "explained": {"explain": True},
    "every decision": {"include": "all", "store": False},
}


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    turn_s: float = 3.0
    turns: int = 3
    judgements: int = 5000
    processes: int = 4


def measure(sizes: Sizes) -> dict[str, Any]:
    documents = load(sizes.corpus, sizes.generated).stream
    with temporary_store() as store, ExitStack() as stack:
        ports = [stack.enter_context(api_process(store.url)).port for _ in range(sizes.processes)]
        return {
            "beside": _beside(ports[0], documents, sizes.turn_s),
            "served": _served(ports, documents, sizes.turns * REPEATS),
            "long_log": _long_log(ports[0], documents, sizes.judgements),
            "rules_ms": _rules(documents),
            "frozen": max((_frozen(store, ports[0], documents) for _ in range(sizes.turns)), key=itemgetter("max_s")),
        }


def _timed_s(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _beside(port: int, documents: Sequence[Document], turn_s: float) -> dict[str, Any]:
    """Latencies of small requests beside batches with different options."""
    with closing(ApiConnection(port)) as client:
        for number in range(TOPICS):
            client.call("POST", "/topics", {"id": f"beside-{number}", "query": " ".join(documents[number])[:100]})
    batch = [{"title": title, "text": text} for title, text in documents[:BATCH_SIZE]]
    small = json.dumps({"documents": batch[:1], "store": False}).encode()
    return {name: _while(port, {"documents": batch, **options}, small, turn_s) for name, options in OPTIONS.items()}


def _while(port: int, large: object, small: bytes, turn_s: float) -> dict[str, float]:
    """How long small requests take while large ones follow each other."""
    ended, batch, batches = threading.Event(), json.dumps(large).encode(), list[float]()

    def send_batches() -> None:
        with closing(ApiConnection(port)) as client:
            while not ended.is_set():
                batches.append(_timed_s(lambda: client.call("POST", "/classify", batch)))

    waited: list[float] = []
    with ThreadPoolExecutor(1) as pool, closing(ApiConnection(port)) as client:
        sending = pool.submit(send_batches)
        began = time.perf_counter()
        while time.perf_counter() - began < turn_s or not batches:
            waited.append(_timed_s(lambda: client.call("GET", "/healthz")))
            waited.append(_timed_s(lambda: client.call("POST", "/classify", small)))
            time.sleep(0.005)
        ended.set()
        sending.result()
    return latencies(waited) | {"batch_ms": 1e3 * float(np.median(batches))}


def _served(ports: Sequence[int], documents: Sequence[Document], judgements: int) -> dict[str, float]:
    """Latencies from a judgement's response until every process decides by it."""
    topic = "served"

    def version(client: ApiConnection) -> int:
        body = {"documents": [{"text": "oil"}], "topics": [topic], "store": False}
        return int(client.call("POST", "/classify", body)["results"][0]["decisions"][0]["version"])

    def served_s(client: ApiConnection, wanted: int, since: float) -> float:
        while version(client) < wanted:
            time.sleep(0.001)
        return time.perf_counter() - since

    delays: list[float] = []
    with ThreadPoolExecutor(len(ports)) as pool, ExitStack() as stack:
        clients = [stack.enter_context(closing(ApiConnection(port))) for port in ports]
        clients[0].call("POST", "/topics", {"id": topic, "query": "oil"})
        for number in range(judgements):
            learned = clients[number % len(ports)].call("POST", "/feedback", _judgement(topic, documents, number))
            since = time.perf_counter()
            delays.append(max(pool.map(served_s, clients, repeat(learned["version"]), repeat(since))))
    return latencies(delays)


def _judgement(topic: str, documents: Sequence[Document], number: int) -> dict[str, Any]:
    title, text = documents[number % len(documents)]
    return {
        "topic": topic,
        "document": {"id": f"d{number}", "title": title, "text": f"{text} {number}"},
        "relevant": number % 10 == 0,
    }


def _long_log(port: int, documents: Sequence[Document], judgements: int) -> dict[str, float]:
    """The time of each kind of change after this many judgements."""
    topic = "long"

    def median_ms(call: Callable[[int], object]) -> float:
        return 1e3 * float(np.median([_timed_s(partial(call, n)) for n in range(REPEATS)]))

    with closing(ApiConnection(port)) as client:
        client.call("POST", "/topics", {"id": topic, "query": "oil"})
        for start in range(0, judgements, JUDGEMENTS):
            numbers = range(start, min(start + JUDGEMENTS, judgements))
            client.call("POST", "/feedback", {"judgements": [_judgement(topic, documents, n) for n in numbers]})
        version = client.call("GET", f"/topics/{topic}")["status"]["version"]
        every = judgements // REPEATS
        corrected = {"topic": topic, "relevant": True}
        return {
            "judgements": judgements,
            "one_more_ms": median_ms(
                lambda n: client.call("POST", "/feedback", _judgement(topic, documents, judgements + n))
            ),
            "correction_ms": median_ms(
                lambda n: client.call("POST", "/feedback", corrected | {"document": f"d{n * every + 1}"})
            ),
            "withdrawal_ms": median_ms(lambda n: client.call("DELETE", f"/topics/{topic}/judgements/d{n * every + 2}")),
            "restore_ms": 1e3 * _timed_s(lambda: client.call("POST", f"/topics/{topic}/versions/{version}/restore")),
        }


def _rules(documents: Sequence[Document]) -> float:
    """Milliseconds a document."""
    rules = [
        parse(f'("crude oil" OR barrel{i}* OR title:w{i}) AND NOT (sport OR "opec argue" OR source:x{i})')
        for i in range(RULES)
    ]

    def analyse_and_match(document: Document) -> None:
        subject = Subject.of(*document, "reuters")
        for rule in rules:
            rule.matches(subject)

    return 1e3 * float(np.median([_timed_s(partial(analyse_and_match, d)) for d in documents[:100]]))


def _frozen(store: Embedded, port: int, documents: Sequence[Document]) -> dict[str, float]:
    """How long many clients at once wait for the 503."""
    if store.server is None:
        raise RuntimeError("the store is not running")
    requests = list(_requests(documents))
    ready = threading.Barrier(CLIENTS)

    def send_all(number: int) -> list[float]:
        with closing(ApiConnection(port)) as client:
            client.call("GET", "/healthz")
            ready.wait()
            turned = requests[number % len(requests) :] + requests[: number % len(requests)]
            return [_timed_s(partial(client.expect_unavailable, *request)) for request in turned]

    os.kill(store.server.pid, signal.SIGSTOP)
    try:
        with ThreadPoolExecutor(CLIENTS) as pool:
            waited = np.concatenate(list(pool.map(send_all, range(CLIENTS))))
    finally:
        os.kill(store.server.pid, signal.SIGCONT)
    with closing(ApiConnection(port)) as client:
        while True:
            try:
                client.call("GET", "/readyz")
                break
            except RuntimeError:
                time.sleep(0.05)
    return {"requests": len(waited), "p50_s": float(np.median(waited)), "max_s": float(waited.max())}


def _requests(documents: Sequence[Document]) -> Iterator[tuple[str, str, Any]]:
    """One request of each kind that cannot be answered without the store."""
    topic, (title, text) = "beside-0", documents[0]
    document = {"id": "frozen", "title": title, "text": text}
    yield "POST", "/topics", {"id": "another", "query": "wheat"}
    yield "GET", "/topics", None
    yield "PATCH", f"/topics/{topic}", {"name": "changed"}
    yield "POST", "/classify", {"documents": [document]}
    yield "POST", "/feedback", {"topic": topic, "document": document, "relevant": True}
    yield "GET", f"/topics/{topic}/judgements", None
    yield "GET", f"/topics/{topic}/versions", None
    yield "GET", "/readyz", None
