"""The queue of jobs, and the processes that do them. The queue is streaq, on the same Redis; this is all that knows it.

    python -m service.jobs.queue

    waiting (jobstore)  →  handed to streaq, under the job's own id  →  claimed by one worker  →  a child process

streaq sees to it that a job is claimed once, that it is claimed again when its worker has died (IDLE_S after its last
sign of life), and that workers share what there is. The truth about a job is its record; streaq is only told its id.
Handing a job over twice does no harm, since streaq keeps one task an id, and a job that is over is not begun again.

The work is done by a child process (child.py) of lower priority: it can be killed at any moment, so a cancellation
takes effect within a second whatever the mathematics is at, and the worker goes on listening. A child that is killed by
somebody else, or that loses the store, begins again, TRIES times at most.

Records are JSON and streaq is told to use it too: nothing that comes from the store is ever unpickled.
"""

import asyncio
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

import structlog
from coredis.exceptions import RedisError
from streaq import StreaqRetry, Worker

from service import logs
from service.clock import now_ms
from service.config import PREFIX, Config
from service.errors import StoreUnavailable
from service.jobs.context import LOST
from service.redis_url import is_cluster, nodes
from service.store.jobs import JobStore
from service.store.topics import Store
from service.tasks import cancel_all
from service.tether import tethered

TASK = "do"
QUEUE = "{jobs}"  # a hash tag: all keys of the queue in one slot of a cluster
IDLE_S = 10
LOOK_S = 0.25  # between two looks at a record, or at a child
HAND_S = 0.5
OFFER_S = 30.0  # between two looks whether the queue has forgotten a job
TRIES = 5
AGAIN_S = 1.0
LAST_S = 2.0  # for a child to end, before it is killed

log = structlog.get_logger("sluice.jobs")


class Engine:
    """One worker process's share in the jobs."""

    def __init__(self, config: Config, jobs: JobStore) -> None:
        self._config = config
        self._jobs = jobs

    async def run(self) -> None:
        """Takes jobs until a signal says to stop. Ends with an error when the store is lost."""
        worker, client = self._worker(), self._worker()
        worker.task(name=TASK, max_tries=None, ttl=timedelta(seconds=1), silent=True)(self.do)
        async with client:
            handing = asyncio.create_task(self._hand_over(client))
            working = asyncio.create_task(worker.run_async())
            try:
                ended, _ = await asyncio.wait((handing, working), return_when=asyncio.FIRST_COMPLETED)
                for task in ended:
                    task.result()
            finally:
                await cancel_all((handing, working))

    def _worker(self) -> Worker[None]:
        url, timeout = self._config.redis or "", {"connect_timeout": self._config.store_timeout_s}
        worker: Worker[None] = Worker(
            **(_cluster(url, timeout) if is_cluster(url) else {"redis_url": url, "redis_kwargs": timeout}),
            queue_name=QUEUE,
            concurrency=1,
            idle_timeout=IDLE_S,
            serializer=_dumps,
            deserializer=json.loads,
        )
        worker.prefetch = 1  # no job is claimed that another worker could begin; the constructor adds one to have ready
        return worker

    async def _hand_over(self, client: Worker[None]) -> None:
        """Gives the queue every job that it does not have, for ever."""
        offered = -OFFER_S
        while True:
            with suppress(StoreUnavailable):  # the queue itself notices when the store does not come back
                if time.monotonic() - offered > OFFER_S:
                    ids, offered = await self._unfinished(), time.monotonic()
                else:
                    ids = await self._jobs.waiting()
                if ids:
                    tasks = [client.enqueue_unsafe(TASK, id) for id in ids]
                    for task, id in zip(tasks, ids, strict=True):
                        task.id = id
                    await client.enqueue_many(tasks)
                    await self._jobs.handed(ids)
            await asyncio.sleep(HAND_S)

    async def do(self, id: str) -> None:
        """Does a job, or as much of it as is left to do."""
        try:
            if not await self._jobs.begin(id, now_ms(), TRIES):
                return
            code = await self._child(id)
            if code == LOST or code < 0:
                why = "The store was lost" if code == LOST else f"Its process was killed (signal {-code})"
                if await self._jobs.requeue(id, f"{why}; it begins again."):
                    raise StreaqRetry(delay=timedelta(seconds=AGAIN_S))
            elif code:
                await self._jobs.end(id, "failed", now_ms(), message="It failed unexpectedly; the log says more.")
        except StoreUnavailable as error:
            log.warning("a job begins again: the store was lost", job=id)
            raise StreaqRetry(delay=timedelta(seconds=AGAIN_S)) from error

    async def _child(self, id: str) -> int:
        """Lets a child do the job; its exit code, or 0 if the job was ended here."""
        environment = os.environ | {f"{PREFIX}REDIS": self._config.redis or ""}
        command = tethered(sys.executable, "-m", "service.jobs.child", id)
        child = await asyncio.create_subprocess_exec(*command, env=environment, stdin=asyncio.subprocess.DEVNULL)
        deadline = time.monotonic() + self._config.job_limit_s
        try:
            while True:
                with suppress(TimeoutError):
                    return await asyncio.wait_for(child.wait(), LOOK_S)
                if time.monotonic() > deadline:
                    message = f"It took longer than {self._config.job_limit_s:g} s (SLUICE_JOB_LIMIT_S)."
                    await self._jobs.end(id, "failed", now_ms(), message=message)
                    return 0
                with suppress(StoreUnavailable):  # the child will notice too, if it lasts
                    if not await self._jobs.tell(id):
                        await self._jobs.end(id, "cancelled", now_ms(), message="Cancelled.")
                        return 0
        finally:
            await _ended(child)

    async def _unfinished(self) -> list[str]:
        ids = await self._jobs.ids()
        records = [record for record in await self._jobs.read(ids) if record]
        return [record.id for record in reversed(records) if record.state in ("queued", "running")]


async def _ended(child: asyncio.subprocess.Process) -> None:
    if child.returncode is None:
        with suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), LAST_S)
    if child.returncode is None:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()


async def main() -> None:
    config = Config.from_env()
    logs.configure(config.log_level)
    for library in ("streaq", "coredis"):
        logging.getLogger(library).setLevel("WARNING")
    store = Store(config.redis or "", config.store_timeout_s)
    engine = Engine(config, store.jobs)
    while True:
        try:
            await engine.run()
            break
        except* (RedisError, OSError, StoreUnavailable) as lost:
            log.warning("lost the store", detail=str(lost.exceptions[0]))
        await asyncio.sleep(AGAIN_S)
    await store.close()


def _cluster(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """What streaq is told of a cluster. Options of TLS are called the same by its client and by redis-py."""
    places, said = nodes(url)
    return {"cluster_nodes": places, "redis_kwargs": {**options, **said}}


def _dumps(value: object) -> str:
    return json.dumps(value, default=repr)  # of an error, streaq keeps what it says


if __name__ == "__main__":
    asyncio.run(main())
