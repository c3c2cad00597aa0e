"""Contestants that take turns, A B C A B C …, so that a noisy minute of the machine affects all of them alike.

Each has a new process of its own: nothing that one imports, allocates or leaves in a cache is there for the others. All
are pinned to the same core with all their threads. Wall-clock time and CPU time (of all threads) are both measured,
since on a busy machine the first depends on the neighbours, too.
"""

import os
import resource
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import TracebackType
from typing import Any, NamedTuple, ParamSpec, Protocol, Self, TypeVar

import numpy as np

P = ParamSpec("P")
T = TypeVar("T")
MIN_ITEMS, MAX_ITEMS = 20, 200_000  # of a turn
TICK_S = 0.01  # the unit of other processes' CPU time: what is shorter is reported as nothing
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Seconds(NamedTuple):
    wall: float
    cpu: float


class Turn(NamedTuple):
    """The number of items done in a turn (documents, judgements), and how long it took."""

    done: int
    took: Seconds


class Work(Protocol):
    """What a contestant does in its turns, and other figures about it."""

    def turn(self) -> Turn: ...
    def facts(self) -> dict[str, float]: ...


def timed(call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    call(*args, **kwargs)
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


class Contestant:
    """Work in a process of its own, where `prepare(*args)` is called to create it."""

    def __init__(self, prepare: Callable[P, Work], *args: P.args, **kwargs: P.kwargs) -> None:
        self._pool = ProcessPoolExecutor(1, get_context("spawn"))
        self._pool.submit(_prepare, prepare, args, kwargs).result()

    def turn(self) -> Turn:
        return self._pool.submit(_turn).result()

    def facts(self) -> dict[str, float]:
        return self._pool.submit(_facts).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown()


def in_a_process(call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of the call in a process of its own, on one core."""
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=one_core) as pool:
        return pool.submit(call, *args, **kwargs).result()


def take_turns(contestants: Mapping[str, Contestant], turns: int) -> dict[str, list[Turn]]:
    """Lets every contestant take its turns, after a warm-up round that is not counted."""
    for contestant in contestants.values():
        contestant.turn()
    taken: dict[str, list[Turn]] = {name: [] for name in contestants}
    for _ in range(turns):
        for name, contestant in contestants.items():
            taken[name].append(contestant.turn())
    return taken


def repeated(items: Sequence[T], n: int) -> list[T]:
    """n items: these, over and over again."""
    return (list(items) * (n // len(items) + 1))[:n]


def fitting(call: Callable[[list[T]], object], items: Sequence[T], seconds: float) -> int:
    """How many items the call processes in about that many seconds, found by trying more and more."""
    n = MIN_ITEMS
    while (took := timed(call, repeated(items, n)).wall) < seconds / 4 and n < MAX_ITEMS:
        n *= 4
    return max(1, min(MAX_ITEMS, int(n * seconds / took)))


def rates(turns: list[Turn]) -> dict[str, float]:
    """The median number of items a second and a CPU second."""
    wall, cpu = (np.array([turn.done / turn.took[clock] for turn in turns]) for clock in (0, 1))
    return {"per_s": float(np.median(wall)), "per_cpu_s": float(np.median(cpu)), "turns": len(turns)}


def times_faster(ours: list[Turn], theirs: list[Turn]) -> dict[str, float]:
    """How many times faster ours is, by wall-clock and CPU time: the median over turns of the same round."""
    pairs = list(zip(ours, theirs, strict=True))
    wall, cpu = (
        np.median([(a.done / a.took[clock]) / (b.done / b.took[clock]) for a, b in pairs]).item() for clock in (0, 1)
    )
    return {"wall": wall, "cpu": cpu}


def quantiles(times: list[Seconds]) -> dict[str, float]:
    """Quantiles in milliseconds."""
    wall, cpu = 1e3 * np.array(times).T
    return {
        "p50_ms": float(np.quantile(wall, 0.5)),
        "p99_ms": float(np.quantile(wall, 0.99)),
        "p50_cpu_ms": float(np.quantile(cpu, 0.5)),
        "p99_cpu_ms": float(np.quantile(cpu, 0.99)),
        "mean_cpu_ms": float(np.mean(cpu)),
    }


def peak_mb(whose: int = resource.RUSAGE_SELF) -> float:
    """The peak memory of this process, or of the largest of its children that have ended."""
    peak = resource.getrusage(whose).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def one_core() -> None:
    """Pins this process, with all its threads, to the last core that it may use."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


_work: list[Work] = []  # of this process, if it is a contestant's


def _prepare(prepare: Callable[..., Work], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    one_core()
    _work.append(prepare(*args, **kwargs))


def _turn() -> Turn:
    return _work[0].turn()


def _facts() -> dict[str, float]:
    return _work[0].facts()
