"""What the API processes of one machine count of themselves, for Prometheus: requests, and what they hold.

A scrape reaches any one of the processes that share the port, so each must be able to tell of all. The library does
that (the multiprocess mode of `prometheus_client`): where the supervisor names a directory, every process counts in a
file of its own there, mapped into memory, and a scrape adds up all files. Those of processes that have ended stay, so
that no sum goes backwards; what they held is struck out by the supervisor. Without a directory (one process under a
server that is not ours) it counts in memory.

    counters, histogram     summed over processes
    gauges                  one series a process, labelled with the name that the supervisor gave it (`api-1`)

A request counts when its answer begins: with its route's template, not its path, and a method that we know, so that
nobody can make series by asking. It is counted outside of everything that handles errors, so that a 500 is seen, too.
That costs some 20 µs: of 240 for the smallest request, of 650 for one document decided.

Rejected: a text written by hand (the library is smaller than our own files with locks and sums would be); a `process`
label on every counter and only the own ones in an answer (each series would be there in one scrape of n); figures sent
to the store (they would be gone when it is, which is when somebody looks).
"""

import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.config import METRICS_DIR_VAR, PROCESS_VAR

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
OTHER = "other"
# Of these two the library's own signatures have no types. Without the second there would be a series with the time of
# birth beside every other.
COUNTED: Callable[[CollectorRegistry], Collector] = MultiProcessCollector
UNDATED: Callable[[], None] = disable_created_metrics
BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Telemetry:
    def __init__(self) -> None:
        UNDATED()
        self._registry = registry = CollectorRegistry()
        self._name = os.environ.get(PROCESS_VAR, "api")
        self._requests = Counter(
            "sluice_http_requests",
            "Requests answered, by method, path template and status.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "sluice_http_request_seconds",
            "Seconds from a request's headers to the beginning of its answer.",
            ["method", "route"],
            registry=registry,
            buckets=BUCKETS_S,
        )
        self.documents = Counter(
            "sluice_http_documents", "Documents decided in answer to requests, stored or not.", registry=registry
        )
        self._judgements = Counter(
            "sluice_http_judgements", "Judgements taken, by what came of them.", ["status"], registry=registry
        )
        self._topics = self._gauge("topics", "Topics that the process serves.")
        self._bank = self._gauge("bank_bytes", "Bytes of the index from which the process decides.")
        self._resident = self._gauge("resident_bytes", "Memory that the process holds.")
        self._gauge("start_time_seconds", "When the process started.").set(time.time())
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def _gauge(self, name: str, said: str) -> Gauge:
        gauge = Gauge(
            f"sluice_process_{name}", said, ["process"], registry=self._registry, multiprocess_mode="livemostrecent"
        )
        return gauge.labels(self._name)

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        method = method if method in METHODS else OTHER
        key = method, route, status
        if key not in self._known:
            counter = self._requests.labels(method, route, str(status))
            self._known[key] = counter, self._seconds.labels(method, route)
        counter, histogram = self._known[key]
        counter.inc()
        histogram.observe(seconds)

    def judged(self, statuses: Iterable[str]) -> None:
        for status in statuses:
            self._judgements.labels(status).inc()

    def note(self, topics: int, bank_bytes: int) -> None:
        """Writes down what the process holds, now and then, so that any other can tell."""
        self._topics.set(topics)
        self._bank.set(bank_bytes)
        with suppress(FileNotFoundError):  # where there is no /proc, one looks elsewhere
            pages = int(Path("/proc/self/statm").read_text().split()[1])
            self._resident.set(pages * os.sysconf("SC_PAGESIZE"))

    def text(self, others: Iterable[Metric]) -> bytes:
        """What all processes of this machine count, and these, as Prometheus reads it."""
        registry = CollectorRegistry()
        if os.environ.get(METRICS_DIR_VAR):
            COUNTED(registry)
        else:
            registry.register(self._registry)
        registry.register(_Found(others))
        return generate_latest(registry)


class CountingApp:
    """An application whose answers are counted."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry) -> None:
        self._app = app
        self._answered = telemetry.answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun_s = time.perf_counter()

        async def counting(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "path", OTHER)
                self._answered(scope["method"], route, message["status"], time.perf_counter() - begun_s)
            await send(message)

        await self._app(scope, receive, counting)


class _Found(Collector):
    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        return self._metrics
