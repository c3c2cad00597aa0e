"""Contenders that take turns: A B C A B C …, so that a noisy minute of the machine falls on all of them alike.

Each lives in a process of its own, started afresh: what one imports, allocates or leaves in a cache is not the others'.
All are held to one and the same core, their helper threads too. Time is taken by the clock on the wall and as the
process's own (all its threads), since on a busy machine the first tells of the neighbours as well.
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
TRIED, MOST = 20, 200_000  # items of a turn: the fewest that are tried, and the most
TICK_S = 0.01  # in which the system counts the time of other processes: less is told as nothing
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Seconds(NamedTuple):
    wall: float
    cpu: float


class Turn(NamedTuple):
    """What was done in a turn (documents, judgements), and how long it took."""

    done: int
    took: Seconds


class Work(Protocol):
    """What a contender does when it is its turn, and what it has to say about itself."""

    def turn(self) -> Turn: ...
    def facts(self) -> dict[str, float]: ...


def timed(call: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Seconds:
    wall, cpu = time.perf_counter(), time.process_time()
    call(*args, **kwargs)
    return Seconds(time.perf_counter() - wall, time.process_time() - cpu)


class Contestant:
    """`prepare(*args)`, which gives the work, is called in the contender's process."""

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
    """What the call answers in a process of its own, on one core."""
    with ProcessPoolExecutor(1, get_context("spawn"), initializer=one_core) as pool:
        return pool.submit(call, *args, **kwargs).result()


def take_turns(contenders: Mapping[str, Contestant], turns: int) -> dict[str, list[Turn]]:
    """Every contender this often, one after the other; a first round that warms up is not counted."""
    for contender in contenders.values():
        contender.turn()
    taken: dict[str, list[Turn]] = {name: [] for name in contenders}
    for _ in range(turns):
        for name, contender in contenders.items():
            taken[name].append(contender.turn())
    return taken


def repeated(items: Sequence[T], n: int) -> list[T]:
    """n items: these, over and over."""
    return (list(items) * (n // len(items) + 1))[:n]


def fitting(call: Callable[[list[T]], object], items: Sequence[T], seconds: float) -> int:
    """How many items the call does in about so many seconds, found by trying more and more."""
    n = TRIED
    while (took := timed(call, repeated(items, n)).wall) < seconds / 4 and n < MOST:
        n *= 4
    return max(1, min(MOST, int(n * seconds / took)))


def rates(turns: list[Turn]) -> dict[str, float]:
    """The median number done in a second, by either clock."""
    wall, cpu = (np.array([turn.done / turn.took[clock] for turn in turns]) for clock in (0, 1))
    return {"per_s": float(np.median(wall)), "per_cpu_s": float(np.median(cpu)), "turns": len(turns)}


def times_faster(ours: list[Turn], theirs: list[Turn]) -> dict[str, float]:
    """The median over turns that stood side by side of how much faster ours was, by either clock."""
    pairs = list(zip(ours, theirs, strict=True))
    wall, cpu = (
        np.median([(a.done / a.took[clock]) / (b.done / b.took[clock]) for a, b in pairs]).item() for clock in (0, 1)
    )
    return {"wall": wall, "cpu": cpu}


def quantiles(times: list[Seconds]) -> dict[str, float]:
    """Milliseconds."""
    wall, cpu = 1e3 * np.array(times).T
    return {
        "p50_ms": float(np.quantile(wall, 0.5)),
        "p99_ms": float(np.quantile(wall, 0.99)),
        "p50_cpu_ms": float(np.quantile(cpu, 0.5)),
        "p99_cpu_ms": float(np.quantile(cpu, 0.99)),
        "mean_cpu_ms": float(np.mean(cpu)),
    }


def peak_mb(whose: int = resource.RUSAGE_SELF) -> float:
    """The most memory that this process has held, or the largest of the children that have ended."""
    peak = resource.getrusage(whose).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def one_core() -> None:
    """Hold this process, with all its threads, to the last core that it may use."""
    os.environ.update(dict.fromkeys(THREADS, "1"))
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


_work: list[Work] = []  # the one of this process, if it is a contender's


def _prepare(prepare: Callable[..., Work], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    one_core()
    _work.append(prepare(*args, **kwargs))


def _turn() -> Turn:
    return _work[0].turn()


def _facts() -> dict[str, float]:
    return _work[0].facts()
