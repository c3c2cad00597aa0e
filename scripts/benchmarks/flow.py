"""Documents through real processes from end to end: lines in and lines out over HTTP, and from a Redis stream.

    ndjson    POST /classify, documents of the corpus as NDJSON over one connection, the API process on one core: not
              stored, and stored, with everything that follows (remembered, counted, let through). The ceiling takes
              turns with the first: an application that does nothing with the lines (see ceiling.py)
    memory    of the API process over very many short lines, answered at the end or at once (see memory.py)
    feedback  POST /feedback, judgements of the same documents as NDJSON, durable and learned
    consume   documents that wait in `sluice:in`, decided by one consumer and by two, in turns; and by one that is
              pinned to one core together with the store

No document is sent twice, nor a near-duplicate of another: those cost more, and most feeds have few. Measured are
wall-clock time and the processes' CPU time; for consumers, also the store's. The client, the store and the processes
that are measured share the machine: on two cores, two consumers also compete with the store.
"""

import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

from redis import Redis

from models.text.analysis import Document
from scripts.benchmarks import ceiling, memory, start
from scripts.benchmarks.contest import TICK_S, Seconds, in_a_process
from scripts.common.corpus import load
from scripts.common.live import HOST, ApiConnection, ApiProcess, api_process, consumer_processes, temporary_store
from service.store.redis.keys import IN
from service.store.stream.inbox import GROUP

TIMEOUT_S = 600.0
WAITING = "waiting"  # a stream that nobody reads
BATCH_SIZE = 500  # documents that are added to the stream together
WARM_UP = 1000  # documents for each consumer
TURNS = 3  # of the service and the ceiling
STRIDE = 7  # between two documents whose halves make a new one
POLL_S = 0.02


class Team(NamedTuple):
    """Consumers, and whether they share one core with the store."""

    consumers: int
    one_core: bool = False


TEAMS = {"consumers_1": Team(1), "consumers_2": Team(2), "one_core": Team(1, one_core=True)}


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    documents: int = 50_000
    topics: int = 90
    weights: int = 300
    lines: int = 1_000_000
    heats: int = 2  # of each team of consumers


class Heat(NamedTuple):
    """One run of a team."""

    took: Seconds  # the CPU time is that of all consumers
    store_s: float  # CPU time of the store meanwhile


def measure(sizes: Sizes) -> dict[str, Any]:
    documents = load(sizes.corpus, sizes.generated).stream
    with temporary_store() as store:
        in_a_process(start.fill, store.url, start.Sizes(sizes.corpus, sizes.generated, sizes.topics, sizes.weights))
        return {
            **_over_http(store.url, documents, sizes.documents),
            "memory": memory.measure(store.url, sizes.lines),
            **_by_consumers(store.url, documents, sizes),
        }


def _over_http(store: str, documents: Sequence[Document], n: int) -> dict[str, Any]:
    """Rates of the API, and of the ceiling."""
    with ExitStack() as stack:
        with on_one_core():
            api = stack.enter_context(api_process(store))
            bare = stack.enter_context(api_process(store, ceiling.APPLICATION))
        processes = {"scored": api, "ceiling": bare}
        for process in processes.values():
            _classify(process, documents, n // 5, "store=false")  # warms up
        turns = [
            {name: _classify(process, documents, n, "store=false") for name, process in processes.items()}
            for _ in range(TURNS)
        ]
        rates = {name: _rate(TURNS * n, _sum([turn[name] for turn in turns])) for name in processes}
        return {
            **rates,
            "of_ceiling": rates["scored"]["per_cpu_s"] / rates["ceiling"]["per_cpu_s"],
            "stored": _rate(n // 5, _classify(api, documents, n // 5, "store=true")),
            "feedback": _feed_back(api, documents, max(1, n // 50)),
        }


def _by_consumers(store: str, documents: Sequence[Document], sizes: Sizes) -> dict[str, Any]:
    """Rates of each team of consumers, which take turns."""
    heats: dict[str, list[Heat]] = {name: [] for name in TEAMS}
    share, first = sizes.documents // sizes.heats, sizes.documents
    for name in sizes.heats * list(TEAMS):
        heats[name].append(_consume(store, documents, range(first, first + share), TEAMS[name]))
        first += share + TEAMS[name].consumers * WARM_UP
    rates = {}
    for name, of_team in heats.items():
        store_us = 1e6 * sum(heat.store_s for heat in of_team) / (sizes.heats * share)
        rates[name] = _rate(sizes.heats * share, _sum([heat.took for heat in of_team])) | {"store_us": store_us}
    one, two, one_core = (rates[name]["per_s"] for name in ("consumers_1", "consumers_2", "one_core"))
    return {**rates, "two_over_one": two / one, "two_cores_over_one": two / one_core}


def _rate(documents: int, took: Seconds) -> dict[str, float]:
    return {"per_s": documents / took.wall, "per_cpu_s": documents / max(TICK_S, took.cpu)}


def _classify(api: ApiProcess, documents: Sequence[Document], n: int, options: str) -> Seconds:
    """How long the API takes for n documents in one request."""
    return _post(api, f"/classify?{options}", [_document(i, documents) for i in range(n)])


def _feed_back(api: ApiProcess, documents: Sequence[Document], n: int) -> dict[str, float]:
    """The rate at which a new topic learns n judgements in one request."""
    with closing(ApiConnection(api.port)) as client:
        client.call("POST", "/topics", {"id": "judged", "query": documents[0][0] or documents[0][1][:100]})
    judgements = [{"topic": "judged", "document": _document(i, documents), "relevant": i % 3 == 0} for i in range(n)]
    return _rate(n, _post(api, "/feedback", judgements))


def _post(api: ApiProcess, path: str, items: Sequence[object]) -> Seconds:
    """How long the API takes for these items, a line each, all of which it must answer and none refuse."""
    connection = HTTPConnection(HOST, api.port, timeout=TIMEOUT_S)
    body = b"".join(json.dumps(item).encode() + b"\n" for item in items)
    wall, cpu = time.perf_counter(), cpu_s(api.pid)
    connection.request("POST", path, body, {"Content-Type": "application/x-ndjson"})
    answers = connection.getresponse().read()
    took = Seconds(time.perf_counter() - wall, cpu_s(api.pid) - cpu)
    connection.close()
    if answers.count(b"\n") != len(items) or b'"title":' in answers:
        raise RuntimeError(f"{path}: {len(items)} lines, answered with {answers[-500:]!r}")
    return took


def _sum(turns: Sequence[Seconds]) -> Seconds:
    return Seconds(sum(turn.wall for turn in turns), sum(turn.cpu for turn in turns))


def _document(number: int, documents: Sequence[Document]) -> dict[str, str]:
    """The document of this number: first those of the corpus, then new ones from the halves of two."""
    turn, place = divmod(number, len(documents))
    title, text = documents[place]
    if turn:
        other = documents[(place + STRIDE * turn) % len(documents)][1]
        text = text[: len(text) // 2] + other[len(other) // 2 :]
    return {"id": f"d{number}", "title": title, "text": text}


def _consume(url: str, documents: Sequence[Document], numbers: range, team: Team) -> Heat:
    """How long warmed-up consumers take for documents that wait."""
    with Redis.from_url(url) as client, ExitStack() as stack:
        client.delete(IN, WAITING)
        server: Any = client.info("server")
        store = int(server["process_id"])
        with consumer_processes(url, team.consumers) as processes:
            _add(client, IN, documents, range(numbers.stop, numbers.stop + WARM_UP * team.consumers))
            _await_empty(client)
            _add(client, WAITING, documents, numbers)  # adding takes no time from deciding
            client.xgroup_create(WAITING, GROUP, "0")
            if team.one_core:
                stack.enter_context(pinned_to_one_core([store, *processes]))
            wall, cpu, store_s = time.perf_counter(), sum(map(cpu_s, processes)), cpu_s(store)
            client.rename(WAITING, IN)
            _await_empty(client)
            took = Seconds(time.perf_counter() - wall, sum(map(cpu_s, processes)) - cpu)
            return Heat(took, cpu_s(store) - store_s)


def _add(client: "Redis", stream: str, documents: Sequence[Document], numbers: range) -> None:
    for first in range(numbers.start, numbers.stop, BATCH_SIZE):
        pipe = client.pipeline(transaction=False)
        for i in range(first, min(numbers.stop, first + BATCH_SIZE)):
            fields: Any = _document(i, documents)  # redis-py asks for a dict with every type that a field may have
            pipe.xadd(stream, fields)
        pipe.execute()


def _await_empty(client: "Redis") -> None:
    while client.xlen(IN):
        time.sleep(POLL_S)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Pins the processes that are started in this block, but not this one, to one core."""
    with _pinned([0]):
        yield


@contextmanager
def pinned_to_one_core(processes: Sequence[int]) -> Iterator[None]:
    """Pins these processes, with all their threads, to the same core until the end of the block."""
    with _pinned([int(task.name) for process in processes for task in Path(f"/proc/{process}/task").glob("*")]):
        yield


@contextmanager
def _pinned(threads: Sequence[int]) -> Iterator[None]:
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    for thread in threads:
        os.sched_setaffinity(thread, {max(allowed)})
    try:
        yield
    finally:
        for thread in threads:
            with suppress(ProcessLookupError):
                os.sched_setaffinity(thread, allowed)


def cpu_s(process: int) -> float:
    """CPU seconds of a process, with all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
