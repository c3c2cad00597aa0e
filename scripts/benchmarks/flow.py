"""The whole way of a document, through real processes: lines in and lines out over HTTP, and from a Redis stream.

    ndjson    POST /classify, documents of the corpus as NDJSON over one connection; the API process on one core.
              Not stored; and stored, with everything that follows: remembered, counted, let through. Beside it the
              ceiling, in turns with the first: an application that does nothing with the lines (see ceiling.py)
    memory    of the API process over very many short lines, answered at the end or at once (see memory.py)
    feedback  POST /feedback, judgements of the same documents as NDJSON, durable and learned
    consume   documents that wait in `sluice:in`, decided by one consumer and by two, in turns; and by one that
              is held to one core together with the store

No document is sent twice, nor one that repeats another: those cost more, and most feeds have few. Time is taken by the
clock and as the processes' own; of the consumers' documents, also the store's. The client, the store and the processes
that are measured share the machine; on two cores two consumers have the store for a third.
"""

import json
import os
import tempfile
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
from scripts.common.live import HOST, ApiConnection, ApiProcess, api_process, consumer_processes
from service.store.embedded import Embedded
from service.store.inbox import GROUP
from service.store.keys import IN

TIMEOUT_S = 600.0
WAITING = "waiting"
AT_ONCE = 500  # documents that are added to the stream together
WARM_UP = 1000  # documents for each consumer
TURNS = 3  # of the service and the ceiling
STRIDE = 7  # between two documents of which the halves make a new one
LOOK_S = 0.02


class Team(NamedTuple):
    """Consumers, and whether they and the store have but one core."""

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
    took: Seconds  # the consumers, together
    store_s: float  # that the store was at work meanwhile


def measure(sizes: Sizes) -> dict[str, Any]:
    documents = load(sizes.corpus, sizes.generated).stream
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder, Embedded(Path(folder)) as store:
        in_a_process(start.fill, store.url, start.Sizes(sizes.corpus, sizes.generated, sizes.topics, sizes.weights))
        with ExitStack() as started:
            with on_one_core():
                api = started.enter_context(api_process(store.url))
                bare = started.enter_context(api_process(store.url, ceiling.APPLICATION))
            for each in (api, bare):
                _sent(each, documents, sizes.documents // 5, "store=false")  # warms up
            turns = [
                {name: _sent(each, documents, sizes.documents, "store=false") for name, each in pair}
                for pair in TURNS * [(("scored", api), ("ceiling", bare))]
            ]
            found: dict[str, Any] = {
                name: _rate(TURNS * sizes.documents, _together([turn[name] for turn in turns]))
                for name in ("scored", "ceiling")
            }
            found["of_ceiling"] = found["scored"]["per_cpu_s"] / found["ceiling"]["per_cpu_s"]
            found["stored"] = _rate(sizes.documents // 5, _sent(api, documents, sizes.documents // 5, "store=true"))
            found["feedback"] = _judged(api, documents, max(1, sizes.documents // 50))
        found["memory"] = memory.measure(store.url, sizes.lines)
        heats: dict[str, list[Heat]] = {name: [] for name in TEAMS}
        share, first = sizes.documents // sizes.heats, sizes.documents
        for name in sizes.heats * list(TEAMS):
            heats[name].append(_consumed(store.url, documents, range(first, first + share), TEAMS[name]))
            first += share + TEAMS[name].consumers * WARM_UP
    for name, some in heats.items():
        took = _together([one.took for one in some])
        store_us = 1e6 * sum(one.store_s for one in some) / (sizes.heats * share)
        found[name] = _rate(sizes.heats * share, took) | {"store_us": store_us}
    two = found["consumers_2"]["per_s"]
    return found | {
        "two_over_one": two / found["consumers_1"]["per_s"],
        "two_cores_over_one": two / found["one_core"]["per_s"],
    }


def _rate(documents: int, took: Seconds) -> dict[str, float]:
    return {"per_s": documents / took.wall, "per_cpu_s": documents / max(TICK_S, took.cpu)}


def _sent(api: ApiProcess, documents: Sequence[Document], n: int, options: str) -> Seconds:
    """How long the API takes for n documents in one request, which it must all answer."""
    return _posted(api, f"/classify?{options}", [_document(i, documents) for i in range(n)])


def _judged(api: ApiProcess, documents: Sequence[Document], n: int) -> dict[str, float]:
    """The rate at which a new topic learns n judgements in one request."""
    with closing(ApiConnection(api.port)) as client:
        client.call("POST", "/topics", {"id": "judged", "query": documents[0][0] or documents[0][1][:100]})
    judged = [{"topic": "judged", "document": _document(i, documents), "relevant": i % 3 == 0} for i in range(n)]
    return _rate(n, _posted(api, "/feedback", judged))


def _posted(api: ApiProcess, path: str, items: Sequence[object]) -> Seconds:
    """How long the API takes for these, a line each, every one of which it must answer and none refuse."""
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


def _together(turns: Sequence[Seconds]) -> Seconds:
    return Seconds(sum(one.wall for one in turns), sum(one.cpu for one in turns))


def _document(number: int, documents: Sequence[Document]) -> dict[str, str]:
    """Those of the corpus, then halves of two that have not met before."""
    turn, place = divmod(number, len(documents))
    title, text = documents[place]
    if turn:
        other = documents[(place + STRIDE * turn) % len(documents)][1]
        text = text[: len(text) // 2] + other[len(other) // 2 :]
    return {"id": f"d{number}", "title": title, "text": text}


def _consumed(url: str, documents: Sequence[Document], numbers: range, team: Team) -> Heat:
    """How long these consumers take for documents that wait, all of them loaded and at work."""
    with Redis.from_url(url) as client, ExitStack() as held:
        client.delete(IN, WAITING)
        server: Any = client.info("server")
        store = int(server["process_id"])
        with consumer_processes(url, team.consumers) as processes:
            _add(client, IN, documents, range(numbers.stop, numbers.stop + WARM_UP * team.consumers))
            _await_empty(client)
            _add(client, WAITING, documents, numbers)  # where nobody looks: adding takes no time from deciding
            client.xgroup_create(WAITING, GROUP, "0")
            if team.one_core:
                held.enter_context(holding_to_one_core([store, *processes]))
            wall, cpu, store_s = time.perf_counter(), sum(map(cpu_s, processes)), cpu_s(store)
            client.rename(WAITING, IN)
            _await_empty(client)
            took = Seconds(time.perf_counter() - wall, sum(map(cpu_s, processes)) - cpu)
            return Heat(took, cpu_s(store) - store_s)


def _add(client: "Redis", stream: str, documents: Sequence[Document], numbers: range) -> None:
    for first in range(numbers.start, numbers.stop, AT_ONCE):
        pipe = client.pipeline(transaction=False)
        for i in range(first, min(numbers.stop, first + AT_ONCE)):
            fields: Any = _document(i, documents)  # redis-py wants a dict of all that could be a field
            pipe.xadd(stream, fields)
        pipe.execute()


def _await_empty(client: "Redis") -> None:
    while client.xlen(IN):
        time.sleep(LOOK_S)


@contextmanager
def on_one_core() -> Iterator[None]:
    """Processes that are started in this block are held to one core, and this one is not."""
    with _held([0]):
        yield


@contextmanager
def holding_to_one_core(processes: Sequence[int]) -> Iterator[None]:
    """These processes have one core between them, with all their threads, until the end of the block."""
    with _held([int(task.name) for process in processes for task in Path(f"/proc/{process}/task").glob("*")]):
        yield


@contextmanager
def _held(threads: Sequence[int]) -> Iterator[None]:
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
    """Seconds that a process has been at work, with all its threads."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
