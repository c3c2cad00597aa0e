"""A cold start: a process finds many topics in the store and serves them.

store_s   until the embedded store has started and read its directory
load_s    until the service, its modules imported, has read and decoded every published model and put it into the
          bank
ready_s   from the start of an API process, as the supervisor starts it, until /readyz succeeds
"""

import asyncio
import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from models.bank.segment import BankEntry
from models.online.model import Model
from scripts.benchmarks.contest import Seconds, in_a_process, peak_mb, timed
from scripts.benchmarks.topics import TopicMaker
from scripts.common.corpus import load
from scripts.common.live import api_process
from service.config import Config
from service.sluice import Sluice
from service.store.events import Event
from service.store.redis.embedded import Embedded
from service.store.topics import Store
from service.store.versions import Saved
from service.topics.published import PublishedModel
from service.topics.settings import TopicSettings

BORN = "0"
TIMEOUT_S = 60.0
BATCH_SIZE = 64  # topics that are written together


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    topics: int = 10_000
    weights: int = 500
    repeats: int = 3


class Loaded(NamedTuple):
    """How a fresh service became ready."""

    took: Seconds
    topics: int
    peak_mb: float


def measure(sizes: Sizes) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder:
        store = Embedded(Path(folder))
        with store:
            in_a_process(fill, store.url, sizes)
        started = timed(store.start)
        try:
            loads = [in_a_process(start_service, store.url) for _ in range(sizes.repeats)]
            with api_process(store.url) as process:
                ready_s = process.ready_s
        finally:
            store.stop()
    best = min(loads, key=lambda load: load.took.wall)
    return {
        "topics": best.topics,
        "weights": sizes.weights,
        "store_s": started.wall,
        "load_s": best.took.wall,
        "load_cpu_s": best.took.cpu,
        "peak_mb": best.peak_mb,
        "ready_s": ready_s,
    }


def fill(url: str, sizes: Sizes) -> None:
    """Puts topics into the store as learning would have left them there."""
    maker = TopicMaker(load(sizes.corpus, sizes.generated).past)

    async def write() -> None:
        store = Store(url, TIMEOUT_S)
        topics = maker.topics(sizes.topics, sizes.weights)
        while batch := list(islice(topics, BATCH_SIZE)):
            await asyncio.gather(*(_publish(store, topic) for topic in batch))
        await store.close()

    asyncio.run(write())


def start_service(url: str) -> Loaded:
    """Starts a fresh service in this process, and waits until it is ready."""

    async def start() -> Loaded:
        sluice = Sluice(Config(), Store(url, TIMEOUT_S))
        await sluice.start()  # loads the kernels, then begins to load the topics
        wall, cpu = time.perf_counter(), time.process_time()
        await sluice.sync.ready.wait()
        took = Seconds(time.perf_counter() - wall, time.process_time() - cpu)
        topics = len(sluice.registry.topics)
        await sluice.stop()
        return Loaded(took, topics, peak_mb())

    return asyncio.run(start())


async def _publish(store: Store, topic: BankEntry[float]) -> None:
    settings = TopicSettings(name=topic.name, created_ms=0)
    await store.create(topic.name, BORN, Event("created", 0, 0, settings=settings.model_dump_json()))
    model = Model(topic.columns[0], topic.reject_below, topic.payload)
    served = PublishedModel(topic.name, BORN, 1, 0, settings, model, 0, 0)
    await store.versions.save(topic.name, Saved(BORN, 1, served.to_bytes()), "{}", 1)
