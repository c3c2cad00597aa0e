"""What durability costs: judgements a second with every acknowledged one on disk, against one sync a second.

    append      one event through the store alone: an atomic script, no learning
    judgement   POST /feedback with the document's text, to the real service: appended, learned, published, served

Both are sent by one client, which waits for each response, and by 16, each with a topic of its own. The two policies
take turns on the same server, whose configuration is changed. Clients have a process of their own, on all cores.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from redis import Redis

from models.text.analysis import Document
from scripts.common.corpus import load
from scripts.common.live import ApiConnection, api_process, temporary_store
from service.store.events import Event
from service.store.topics import Store
from service.topics.settings import TopicSettings

Policy = Literal["always", "everysec"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
CLIENTS = (1, 16)
TIMEOUT_S = 30.0
FEATURES = b"x" * 1000  # of a document


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    turn_s: float = 2.0
    turns: int = 3


def measure(sizes: Sizes) -> dict[str, Any]:
    with temporary_store() as store:
        rates = {_label("append", n): _compare(store.url, 0, sizes, append, n) for n in CLIENTS}
        with api_process(store.url) as service:
            rates |= {_label("judgement", n): _compare(store.url, service.port, sizes, judge, n) for n in CLIENTS}
    return rates


def _label(what: str, clients: int) -> str:
    return f"{what}, {clients} client{'s' if clients > 1 else ''}"


def _compare(store: str, port: int, sizes: Sizes, work: Callable[[int], float], clients: int) -> dict[str, float]:
    """The median rate of the work under each policy, and how many times faster `everysec` is."""
    taken: dict[Policy, list[float]] = {policy: [] for policy in POLICIES}
    arguments = (store, port, sizes, clients)
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=_prepare, initargs=arguments) as pool:
        for turn in range(sizes.turns + 1):
            for policy in POLICIES:
                with Redis.from_url(store) as admin:
                    admin.config_set("appendfsync", policy)
                rate = pool.submit(work, clients).result()
                if turn:  # the first one warms up
                    taken[policy].append(rate)
    medians = {f"{policy}_per_s": float(np.median(turns)) for policy, turns in taken.items()}
    pairs = zip(taken["everysec"], taken["always"], strict=True)
    return medians | {"everysec_times_faster": float(np.median([lax / strict for lax, strict in pairs]))}


class _Context(NamedTuple):
    """What the clients' process needs."""

    store: str
    port: int
    turn_s: float
    documents: Sequence[Document]
    numbers: Iterator[int]


_context: list[_Context] = []


def _prepare(store: str, port: int, sizes: Sizes, clients: int) -> None:
    documents = load(sizes.corpus, sizes.generated).stream
    _context.append(_Context(store, port, sizes.turn_s, documents, count()))
    for number in range(clients if port else 0):
        topic = {"id": f"topic-{clients}-{number}", "query": documents[0][0]}
        with closing(ApiConnection(port)) as connection:
            connection.call("POST", "/topics", topic)


def append(clients: int) -> float:
    """Appends events for one turn, and returns their number a second."""
    context = _context[0]

    async def run() -> float:
        store = Store(context.store, TIMEOUT_S)
        topics = [f"append-{number}" for number in range(clients)]
        for topic in topics:
            await store.create(
                topic, "0", Event("created", 0, 0, settings=TopicSettings(created_ms=0).model_dump_json())
            )
        began = time.perf_counter()

        async def work(topic: str) -> int:
            done = 0
            while time.perf_counter() - began < context.turn_s:
                document = f"document-{next(context.numbers)}"
                await store.logs.append(topic, "0", [Event("judged", 0, 0, document=document, features=FEATURES)])
                done += 1
            return done

        done = sum(await asyncio.gather(*map(work, topics)))
        rate = done / (time.perf_counter() - began)
        for topic in topics:
            await store.delete(topic, "0")
        await store.close()
        return rate

    return asyncio.run(run())


def judge(clients: int) -> float:
    """Sends judgements for one turn, and returns the number of responses a second."""
    context = _context[0]
    began = time.perf_counter()

    def work(number: int) -> int:
        connection = ApiConnection(context.port, TIMEOUT_S)
        done = 0
        while time.perf_counter() - began < context.turn_s:
            n = next(context.numbers)
            title, text = context.documents[n % len(context.documents)]
            document = {"id": f"document-{n}", "title": title, "text": text}
            connection.call(
                "POST",
                "/feedback",
                {"topic": f"topic-{clients}-{number}", "document": document, "relevant": n % 3 == 0},
            )
            done += 1
        connection.close()
        return done

    with ThreadPoolExecutor(clients) as threads:
        done = sum(threads.map(work, range(clients)))
    return done / (time.perf_counter() - began)
