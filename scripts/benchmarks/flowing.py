"""The whole way of a document, through real processes: lines in and lines out over HTTP, and from a Redis stream.

    ndjson    POST /classify, documents of the corpus as NDJSON over one connection; the API process on one core.
              Not stored; and stored, with everything that follows: remembered, counted, let through
    consume   documents that wait in `sluice:in`, decided by one consumer, then by two

Time is taken by the clock and as the processes' own. The client, the store and the processes that are measured share
the machine; on two cores two consumers have the store for a third.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from redis import Redis

from models.text import Document
from scripts.benchmarks import starting
from scripts.benchmarks.contest import Seconds, in_a_process
from scripts.benchmarks.corpus import load
from scripts.benchmarks.live import Live, live
from service.embedded import Embedded
from service.inbox import IN

TIMEOUT_S = 600.0
AT_ONCE = 500  # documents that are added to the stream together
CONSUMERS = (1, 2)
LOOK_S = 0.02
TICK_S = 0.01  # in which the system counts the time of processes


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    documents: int = 50_000
    topics: int = 90
    weights: int = 300


def measure(sizes: Sizes) -> dict[str, Any]:
    documents = load(sizes.corpus, sizes.generated).stream
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder, Embedded(Path(folder)) as store:
        in_a_process(
            starting.fill, store.url, starting.Sizes(sizes.corpus, sizes.generated, sizes.topics, sizes.weights)
        )
        with ExitStack() as started:
            with on_one_core():
                api = started.enter_context(live(store.url))
            _sent(api, documents, sizes.documents // 5, "store=false")  # warms up
            found: dict[str, Any] = {
                "scored": _rate(sizes.documents, _sent(api, documents, sizes.documents, "store=false")),
                "stored": _rate(sizes.documents // 5, _sent(api, documents, sizes.documents // 5, "store=true")),
            }
        rates = [_consumed(store.url, documents, sizes.documents, n) for n in CONSUMERS]
    found |= {f"consumers_{n}": rate for n, rate in zip(CONSUMERS, rates, strict=True)}
    return found | {"two_over_one": rates[1]["per_s"] / rates[0]["per_s"]}


def _rate(documents: int, took: Seconds) -> dict[str, float]:
    return {"per_s": documents / took.wall, "per_cpu_s": documents / max(TICK_S, took.cpu)}


def _sent(api: Live, documents: Sequence[Document], n: int, options: str) -> Seconds:
    """How long the API takes for n documents in one request, which it must all answer."""
    connection = HTTPConnection("127.0.0.1", api.port, timeout=TIMEOUT_S)
    lines = [_line(i, *documents[i % len(documents)]) for i in range(n)]
    body = b"".join(lines)
    wall, cpu = time.perf_counter(), cpu_s(api.process)
    connection.request("POST", f"/classify?{options}", body, {"Content-Type": "application/x-ndjson"})
    answered = connection.getresponse().read().count(b"\n")
    took = Seconds(time.perf_counter() - wall, cpu_s(api.process) - cpu)
    connection.close()
    if answered != n:
        raise RuntimeError(f"{n} documents, {answered} answers")
    return took


def _line(number: int, title: str, text: str) -> bytes:
    return json.dumps({"id": f"d{number}", "title": title, "text": text}).encode() + b"\n"


def _consumed(url: str, documents: Sequence[Document], n: int, consumers: int) -> dict[str, float]:
    """The rate at which this many consumers decide n documents that wait, all of them loaded and at work."""
    with Redis.from_url(url) as client:
        client.delete(IN)
        with consuming(url, consumers) as processes:
            _add(client, documents, 1000 * consumers, "warm-up")
            _await_empty(client)
            _signal(processes, signal.SIGSTOP)  # so that adding documents takes no time from deciding them
            _add(client, documents, n, f"of-{consumers}")
            wall, cpu = time.perf_counter(), sum(map(cpu_s, processes))
            _signal(processes, signal.SIGCONT)
            _await_empty(client)
            took = Seconds(time.perf_counter() - wall, sum(map(cpu_s, processes)) - cpu)
    return _rate(n, took)


@contextmanager
def consuming(url: str, consumers: int) -> Iterator[list[int]]:
    environment = os.environ | {"SLUICE_REDIS": url, "SLUICE_LOG_LEVEL": "error"}
    command = [sys.executable, "-m", "service.consumer"]
    started = [subprocess.Popen(command, env=environment) for _ in range(consumers)]
    try:
        yield [process.pid for process in started]
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def _signal(processes: Sequence[int], number: int) -> None:
    for process in processes:
        os.kill(process, number)


def _add(client: "Redis", documents: Sequence[Document], n: int, prefix: str) -> None:
    for start in range(0, n, AT_ONCE):
        pipe = client.pipeline(transaction=False)
        for i in range(start, min(n, start + AT_ONCE)):
            title, text = documents[i % len(documents)]
            pipe.xadd(IN, {"id": f"{prefix}-{i}", "title": title, "text": text})
        pipe.execute()


def _await_empty(client: "Redis") -> None:
    while client.xlen(IN):
        time.sleep(LOOK_S)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Processes that are started in this block are held to one core, and this one is not."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def cpu_s(process: int) -> float:
    """Seconds that a process has been at work, with all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
