"""Boosting on one core, by two processes, and by two workers of a Dask cluster on this machine.

The work is split by models/methods/farm.py.

    wall_s          wall-clock time of S rounds, from selected terms to hypotheses, including sending the parts
    cpu_s           CPU time of the busiest process: what wall-clock time would be on idle cores
    all_cpu_s       CPU time of all processes
    first_s         starting the other processes, before documents are read, and a first fit of one round
    peak_mb         the peak memory of all processes, added up, including reading the documents
    times_faster    than on one core, in wall-clock time: the median over turns of the same round
    times_cpu       the same in cpu_s

Every run has a new process. All must give the same hypotheses, bit for bit (`same`). With a corpus, topics learn from
the training documents, and are those with a training and a test document, as in scripts/evaluate; ^KR, C = 1, N = 20.
"""

import hashlib
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import psutil

from models.methods.boosting import Boosted, Params, boost
from models.methods.farm import Crew, farm
from models.methods.feature_selection import reduced
from models.methods.matrix import Examples, Labels
from models.text.analysis import Analysis, bags
from scripts.benchmarks.contest import TICK_S, one_core, peak_mb
from scripts.common.corpus import generate, read
from service.jobs.farm.local import Processes

WORKERS = 2


class Sizes(NamedTuple):
    """How much to measure."""

    corpus: Path | None
    generated: int
    topics: tuple[str, ...] = ("*",)
    whole: bool = False
    rounds: int = 200
    turns: int = 3
    dask: bool = True


class BoostRun(NamedTuple):
    wall_s: float
    cpu_s: float
    all_cpu_s: float
    first_s: float
    peak_mb: float
    shape: tuple[int, int, int]  # documents, terms, topics
    digest: str


def measure(sizes: Sizes, rho: float) -> dict[str, Any]:
    contestants = {"one core": _alone, "two processes": _by_processes} | ({"Dask": _by_dask} if sizes.dask else {})
    runs: dict[str, list[BoostRun]] = {name: [] for name in contestants}
    for _ in range(sizes.turns):
        for name, contestant in contestants.items():
            with ProcessPoolExecutor(1, get_context("spawn")) as pool:
                runs[name].append(pool.submit(contestant, sizes, rho).result())
    alone = runs["one core"]
    documents, terms, topics = alone[0].shape
    return {
        "rho": rho,
        "rounds": sizes.rounds,
        "documents": documents,
        "terms": terms,
        "topics": topics,
        "same": len({run.digest for of_contestant in runs.values() for run in of_contestant}) == 1,
        "by": {name: _figures(of_contestant, alone) for name, of_contestant in runs.items()},
    }


def examples(sizes: Sizes) -> tuple[Examples, Labels]:
    corpus = read(sizes.corpus) if sizes.corpus else generate(sizes.generated)
    n = len(corpus.documents) if sizes.whole else corpus.train
    names = corpus.largest(1, 1, sizes.topics)
    labels = np.stack([corpus.relevant(name)[:n] for name in names], axis=1)
    return Examples.of_presence(bags(corpus.documents[:n], Analysis())), labels


def _figures(runs: list[BoostRun], alone: list[BoostRun]) -> dict[str, float]:
    figures = {name: float(np.median([getattr(run, name) for run in runs])) for name in BoostRun._fields[:5]}
    pairs = list(zip(alone, runs, strict=True))
    figures["times_faster"] = float(np.median([single.wall_s / run.wall_s for single, run in pairs]))
    figures["times_cpu"] = float(
        np.median([max(TICK_S, single.cpu_s) / max(TICK_S, run.cpu_s) for single, run in pairs])
    )
    return figures


def _alone(sizes: Sizes, rho: float) -> BoostRun:
    one_core()
    return _run(sizes, rho, lambda p, x, labels: boost(p, x, labels))


def _by_processes(sizes: Sizes, rho: float) -> BoostRun:
    return _by(Processes(WORKERS), sizes, rho)


def _by_dask(sizes: Sizes, rho: float) -> BoostRun:
    return _by(_cluster(), sizes, rho)


@contextmanager
def _cluster() -> Iterator[Crew]:
    from distributed import Client, LocalCluster

    from service.jobs.farm.dask import Cluster

    here = {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=WORKERS, threads_per_worker=1, **here) as cluster, Client(cluster) as client:
        yield Cluster(client)


def _by(crews: AbstractContextManager[Crew], sizes: Sizes, rho: float) -> BoostRun:
    began = time.perf_counter()
    with crews as crew:
        started_s = time.perf_counter() - began
        run = _run(sizes, rho, lambda p, x, labels: farm(p, x, labels, crew))
    others = WORKERS - isinstance(crews, Processes)  # this process is one of its workers
    whole_mb = peak_mb() + others * peak_mb(resource.RUSAGE_CHILDREN)
    return run._replace(first_s=run.first_s + started_s, peak_mb=whole_mb)


def _run(sizes: Sizes, rho: float, by: Callable[[Params, Examples, Labels], Boosted]) -> BoostRun:
    every, labels = examples(sizes)
    p = Params(S=sizes.rounds, rho=rho)
    x = reduced(every, labels, p.reduction, p.rho)
    began = time.perf_counter()
    by(replace(p, S=1), x, labels)  # every process loads its kernels
    cpu, ready = _cpu(), time.perf_counter()
    boosted = by(p, x, labels)
    took, busy = time.perf_counter() - ready, [now - cpu.get(pid, 0.0) for pid, now in _cpu().items()]
    digest = hashlib.sha256(b"".join(a.tobytes() for a in (boosted.pivots, boosted.c0, boosted.c1, boosted.Z)))
    shape = x.size, len(x.features), labels.shape[1]
    return BoostRun(took, max(busy), sum(busy), ready - began, peak_mb(), shape, digest.hexdigest())


def _cpu() -> dict[int, float]:
    """CPU seconds of this process and of those it has started, by process id."""
    me = psutil.Process()
    return {process.pid: sum(process.cpu_times()[:2]) for process in (me, *me.children(recursive=True))}
