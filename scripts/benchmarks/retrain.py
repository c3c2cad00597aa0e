"""Retraining on a live service: topics are retrained by one method after the other, while documents are decided and
judged all the time.

Measured for each method: how long the job takes, how well the topics rank before and after (SAP of held-out documents,
from the job's result), how many would be published, and how long requests take meanwhile. A request that fails ends the
benchmark. Nothing is published, so that all methods retrain the same topics.
"""

import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from scripts.common.corpus import SEED, Corpus, load
from scripts.common.live import ApiConnection, api_process, job_process, latencies, temporary_store
from scripts.common.report import tracked

BATCH_SIZE = 100  # judgements a request, when topics are created
PAUSE_S = 0.02  # between two requests of a client
POLL_S = 0.1


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    topics: int
    judgements: int
    methods: Sequence[str]


def measure(sizes: Sizes) -> list[dict[str, Any]]:
    corpus = load(sizes.corpus, sizes.generated)
    sizes_of_topics = Counter(name for names in corpus.past.topics for name in names)
    largest = [name for name, _ in sizes_of_topics.most_common(sizes.topics)]
    with (
        temporary_store() as store,
        api_process(store.url) as service,
        job_process(store.url),
        closing(ApiConnection(service.port)) as client,
    ):
        names = {f"topic-{n}": name for n, name in enumerate(largest)}
        _teach(client, corpus.past, names, sizes.judgements)
        return [
            _retrain(service.port, client, corpus, names, method) for method in tracked(sizes.methods, "Retraining")
        ]


def _teach(client: ApiConnection, past: Corpus, names: dict[str, str], judgements: int) -> None:
    """Creates the topics; a third of each one's judgements is of relevant documents, if there are as many."""
    rng = np.random.default_rng(SEED)
    for number, (topic, name) in enumerate(names.items()):
        client.call("POST", "/topics", {"id": topic, "query": name})
        relevant = np.array([name in topics for topics in past.topics])
        yes = rng.permutation(np.flatnonzero(relevant))[: judgements // 3]
        no = rng.permutation(np.flatnonzero(~relevant))[: judgements - len(yes)]
        chosen = rng.permutation(np.concatenate([yes, no])).tolist()
        judged = [
            {"topic": topic, "document": _document(past, i, f"{number}-{i}"), "relevant": bool(relevant[i])}
            for i in chosen
        ]
        for start in range(0, len(judged), BATCH_SIZE):
            client.call("POST", "/feedback", {"judgements": judged[start : start + BATCH_SIZE]})


def _retrain(port: int, client: ApiConnection, corpus: Corpus, names: dict[str, str], method: str) -> dict[str, Any]:
    """Runs one job, and measures other requests meanwhile."""
    ended = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        deciding = pool.submit(_decide, port, corpus, ended)
        judging = pool.submit(_judge, port, corpus, names, method, ended)
        try:
            began = time.perf_counter()
            request = {"kind": "retrain", "topics": list(names), "method": method, "publish": "never"}
            job = client.call("POST", "/jobs", request)
            while job["state"] in ("queued", "running"):
                time.sleep(POLL_S)
                job = client.call("GET", f"/jobs/{job['id']}")
            took = time.perf_counter() - began
        finally:
            ended.set()
        waits = {"classify": latencies(deciding.result()), "feedback": latencies(judging.result())}
    if job["state"] != "succeeded":
        raise RuntimeError(f"{method}: {job['state']}, {job['message']}")
    topics = [topic for topic in job["result"]["topics"] if topic["candidate"]]
    if not topics:
        raise RuntimeError(f"{method}: {job['result']['topics'][0]['detail']}")

    def mean(model: str, figure: str) -> float:
        return float(np.mean([topic[model][figure] for topic in topics]))

    return {
        "method": method,
        "seconds": took,
        "topics": len(topics),
        "sap_served": mean("served", "sap"),
        "sap_candidate": mean("candidate", "sap"),
        "f1_served": mean("served", "f1"),
        "f1_candidate": mean("candidate", "f1"),
        "surely_better": sum(topic["better"] for topic in topics),
        **{f"{what}_{name}": value for what, row in waits.items() for name, value in row.items()},
    }


def _decide(port: int, corpus: Corpus, ended: threading.Event) -> list[float]:
    """Classifies documents one by one until the event is set; the seconds that each took."""
    middle, waited = len(corpus.past.documents), list[float]()
    places = cycle(range(middle, len(corpus.documents)))
    with closing(ApiConnection(port)) as client:
        while not ended.is_set():
            document = _document(corpus, i := next(places), f"stream-{i}")
            began = time.perf_counter()
            client.call("POST", "/classify", {"documents": [document]})
            waited.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)
    return waited


def _judge(port: int, corpus: Corpus, names: dict[str, str], method: str, ended: threading.Event) -> list[float]:
    """Judges documents one by one until the event is set; the seconds that each took."""
    waited = list[float]()
    with closing(ApiConnection(port)) as client:
        stream = range(len(corpus.past.documents), len(corpus.documents))
        for i, topic in zip(cycle(stream), cycle(names), strict=False):
            if ended.is_set():
                break
            body = {"topic": topic, "document": _document(corpus, i, f"{method}-{i}")}
            began = time.perf_counter()
            client.call("POST", "/feedback", body | {"relevant": names[topic] in corpus.topics[i]})
            waited.append(time.perf_counter() - began)
            time.sleep(PAUSE_S)
    return waited


def _document(corpus: Corpus, i: int, id: str) -> dict[str, str]:
    title, text = corpus.documents[i]
    return {"id": id, "title": title, "text": text}
