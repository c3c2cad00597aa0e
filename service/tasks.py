"""Tasks and threads: a pool, background tasks, work by turns, cancelling for good, and stopping by a signal."""

import asyncio
import signal
from collections.abc import Awaitable, Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, Self, TypeVar
from weakref import WeakValueDictionary

import structlog

from service.errors import StoreUnavailable

CANCEL_AGAIN_S = 0.2  # before a task that has not ended is cancelled again

P = ParamSpec("P")
R = TypeVar("R")

log = structlog.get_logger("sluice")


def stopped_by_signals() -> asyncio.Event:
    """An event that is set when this process is asked to stop."""
    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping


class Pool:
    """Threads for calls that take longer than a millisecond or two; compiled kernels release the interpreter lock."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(threads, name)

    async def run(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(call, *args, **kwargs))

    def close(self) -> None:
        """Waits for the calls that are running."""
        self._threads.shutdown(wait=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class BackgroundTasks:
    """Tasks that run beside the requests. A failure is logged and does not affect the others."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    async def stop(self) -> None:
        await cancel_all(set(self._tasks))

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreUnavailable):
            log.warning("lost the store", detail=error.detail)
        elif error:
            log.error("background work failed", exc_info=error)


class Exclusive:
    """Runs one piece of work for a key at a time."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, key: str, work: Callable[[str], Awaitable[R]]) -> R:
        """Awaits the work when no other has the key, and runs it to its end even if the caller is cancelled: what a
        thread is changing must not be handed to the next one halfway."""

        async def locked() -> R:
            lock = self._locks.get(key) or asyncio.Lock()
            self._locks[key] = lock
            async with lock:
                return await work(key)

        task = asyncio.get_running_loop().create_task(locked())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)


async def cancel_all(tasks: Collection[asyncio.Task[Any]]) -> None:
    """Cancels tasks until they end: redis-py may swallow a cancellation while it connects."""
    while waiting := [task for task in tasks if not task.done()]:
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting, timeout=CANCEL_AGAIN_S)
    for task in tasks:
        retrieve_exception(task)


def retrieve_exception(task: asyncio.Future[Any]) -> None:
    """Marks the task's exception as retrieved, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()
