"""Compiles every kernel before the first request.

    python -m service.run.warm

numba compiles a function when it is first called, for the types it is called with, and caches the machine code on disk.
The surest way to compile everything is to do what users do: this plays a short session through the real application, on
a store of its own, with topics of every learner, documents, judgements and a correction, and fits the judgements by
every method. The error/loss curve, and cuts that are tuned to a loss, need documents that were shown, so they are made
of two imagined ones. A test makes sure that no kernel is left out.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import httpx
import numpy as np

from models.batch.refit import Dataset, refit
from models.goals.curves.tradeoff import curve
from models.goals.curves.weighted import StreamSample
from models.goals.restrictive import Sample, best_pair
from models.methods.feature_selection import Reduction
from models.methods.registry import METHODS
from models.online.model import Example
from models.online.registry import LEARNERS
from service.api.app import create_app
from service.config import Config
from service.store.redis.embedded import Embedded
from service.topics.state import TopicState, example

READY_TRIES = 600
DOCUMENTS = [
    {"id": "oil", "title": "OPEC", "text": "Crude oil output rises as OPEC ministers meet in Vienna over the price"},
    {"id": "wheat", "title": "Grain", "text": "Wheat and corn exports fall after a dry summer; größte Ernte erwartet"},
    {"id": "rates", "title": "", "text": "The central bank keeps its interest rates, the minister said on Monday"},
    {"id": "cup", "title": "Sport", "text": "The final was won on penalties after extra time"},
]


async def rehearse(redis: str) -> None:
    app = create_app(Config(redis=redis, log_level="warning"))
    transport = httpx.ASGITransport(app)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://rehearsal") as client,
    ):
        for _ in range(READY_TRIES):
            if (await client.get("/readyz")).is_success:
                break
            await asyncio.sleep(0.05)
        for kind in LEARNERS:
            await _play(client, kind)
        resolved, _ = await app.state.sluice.learning.read("wh", TopicState.snapshot)
        _fit([example(judgement) for judgement in resolved.judged.values()])
        ends = np.array([0.0, 1.0])
        curve(StreamSample(ends, ends > 0, np.ones(2)))
        best_pair(Sample(ends, ends, ends))


async def _play(client: httpx.AsyncClient, kind: str) -> None:
    async def call(method: str, path: str, **body: Any) -> None:
        (await client.request(method, path, json=body or None)).raise_for_status()

    await call("POST", "/topics", id=kind, name=kind, query="crude oil OPEC", learner={"kind": kind, "params": {}})
    copy = DOCUMENTS[0] | {"id": f"copy-{kind}", "text": f"{DOCUMENTS[0]['text']} again"}
    await call("POST", "/classify", documents=[*DOCUMENTS, copy])
    await call("POST", "/classify", documents=DOCUMENTS[:1], topics=[kind], explain=True)
    for n, document in enumerate(DOCUMENTS * 4):
        judged = document | {"id": f"{document['id']}{n}", "text": f"{document['text']} {n}"}
        await call("POST", "/feedback", topic=kind, document=judged, relevant=n % 4 == 0)
    long = {"id": "long", "text": " ".join(f"word{n}" for n in range(5000))}  # tables grow
    await call("POST", "/feedback", topic=kind, document=long, relevant=False)
    await call("POST", "/feedback", topic=kind, document="oil0", relevant=False)
    await call("DELETE", f"/topics/{kind}/judgements/oil0")
    await call("POST", "/classify", documents=DOCUMENTS, include="all", explain=True)


def _fit(judged: Sequence[Example]) -> None:
    data = Dataset.of(judged, {})
    for method in METHODS:
        refit(method, {}, data, weights=100)
    for reduction in get_args(Reduction):
        refit("boosting", {"S": 1, "reduction": reduction}, data, weights=100)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="sluice-") as directory, Embedded(Path(directory)) as store:
        asyncio.run(rehearse(store.url))


if __name__ == "__main__":
    main()
