"""A job worker: claims jobs, one at a time, and has each done by a child process.

    python -m service.jobs.queue

    claim (store/jobs.py)  →  child process (child.py), lease renewed every HEARTBEAT_S  →  ended, or queued again

Any number may run, on any number of machines. A worker that dies stops renewing its lease, and after LEASE_S another
claims the job. A worker that cannot reach the store kills its child after GIVE_UP_S, so that no two children do one
job; should it happen all the same, after a pause of the whole machine say, what the first one reports is ignored.

The child has a low priority and can be killed at any moment, so a cancellation takes effect within a second, whatever
computation is running. A child that is killed by somebody else, or that loses the store, is started again; a job is
started MAX_TRIES times at most.
"""

import asyncio
import os
import secrets
import signal
import time
from asyncio.subprocess import DEVNULL, Process
from contextlib import suppress
from typing import Literal

import structlog

from service import logs, processes
from service.clock import now_ms
from service.config import PREFIX, Config
from service.errors import StoreUnavailable
from service.jobs import LOST
from service.store.jobs import Claim, JobStore
from service.store.topics import Store
from service.tasks import cancel_all, stopped_by_signals
from service.tether import tethered

LEASE_S = 10.0
HEARTBEAT_S = 0.5
GIVE_UP_S = 7.0  # without an answer from the store; with KILL_S less than a lease
KILL_S = 2.0  # for a child to end after SIGTERM
WATCH_S = 0.25
POLL_S = 0.5  # between two attempts to claim a job
RETRY_S = 1.0
MAX_TRIES = 5

Outcome = Literal["exited", "cancelled", "lost", "overdue", "stopped"]

log = structlog.get_logger("sluice.jobs")


class JobWorker:
    """Runs jobs until `stopping` is set."""

    def __init__(self, config: Config, jobs: JobStore, stopping: asyncio.Event) -> None:
        self._config = config
        self._jobs = jobs
        self._stopping = stopping
        self._renewed_s = 0.0

    async def run(self) -> None:
        adopted = False
        while not self._stopping.is_set():
            try:
                if not adopted:
                    await self._jobs.adopt()
                    adopted = True
                called_s = time.monotonic()
                claim = await self._jobs.claim(secrets.token_hex(8), now_ms(), LEASE_S, MAX_TRIES)
                if claim is None:
                    await self._pause(POLL_S)
                else:
                    self._renewed_s = called_s
                    await self._work(claim)
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
                adopted = False  # what comes back may be an older copy
                await self._pause(RETRY_S)

    async def _work(self, claim: Claim) -> None:
        """Has a child do the job, and records the outcome, unless the child has done so."""
        environment = os.environ | {f"{PREFIX}REDIS": self._config.redis or ""}
        command = tethered(*processes.command(processes.JOB_CHILD, *claim))
        child = await asyncio.create_subprocess_exec(*command, env=environment, stdin=DEVNULL)
        try:
            outcome = await self._watch(child, claim)
        finally:
            await _kill(child)
        if outcome == "cancelled":
            await self._jobs.end(claim, "cancelled", now_ms(), message="Cancelled.")
        elif outcome == "overdue":
            message = f"The job took longer than {self._config.job_limit_s:g} s (SLUICE_JOB_LIMIT_S)."
            await self._jobs.end(claim, "failed", now_ms(), message=message)
        elif outcome == "stopped":
            await self._jobs.requeue(claim, "Its worker was stopped; the job starts again.")
        elif outcome == "exited":
            await self._record_exit(claim, child.returncode or 0)

    async def _record_exit(self, claim: Claim, code: int) -> None:
        if code == LOST or code < 0:
            reason = (
                "The connection to the store was lost" if code == LOST else f"Its process was killed (signal {-code})"
            )
            if await self._jobs.requeue(claim, f"{reason}; the job starts again."):
                log.warning("a job starts again", job=claim.job, reason=reason)
                await self._pause(RETRY_S)
        elif code:
            await self._jobs.end(
                claim, "failed", now_ms(), message="The job failed unexpectedly; the log has the details."
            )

    async def _watch(self, child: Process, claim: Claim) -> Outcome:
        """Waits for the child to exit, or for a reason to kill it."""
        deadline = time.monotonic() + self._config.job_limit_s
        exited = asyncio.create_task(child.wait())
        renewing = asyncio.create_task(self._renew(claim))
        stopping = asyncio.create_task(self._stopping.wait())
        tasks = (exited, renewing, stopping)
        try:
            while True:
                await asyncio.wait(tasks, timeout=WATCH_S, return_when=asyncio.FIRST_COMPLETED)
                if exited.done():
                    return "exited"
                if renewing.done():
                    return renewing.result()
                if stopping.done():
                    return "stopped"
                if time.monotonic() > deadline:
                    return "overdue"
                if time.monotonic() > self._renewed_s + GIVE_UP_S:
                    log.warning("a job is given up: the store does not answer", job=claim.job)
                    return "lost"
        finally:
            await cancel_all(tasks)

    async def _renew(self, claim: Claim) -> Literal["cancelled", "lost"]:
        """Renews the lease until the job must not go on."""
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            with suppress(StoreUnavailable):
                called_s = time.monotonic()
                answer = await self._jobs.renew(claim, LEASE_S)
                if answer != "held":
                    return answer
                self._renewed_s = called_s

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), seconds)


async def _kill(child: Process) -> None:
    if child.returncode is None:
        with suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(child.wait(), KILL_S)
    if child.returncode is None:
        with suppress(ProcessLookupError):
            child.kill()
        await child.wait()


async def main() -> None:
    config = Config.from_env()
    logs.configure(config.log_level)
    stopping = stopped_by_signals()
    store = Store(config.redis or "", config.store_timeout_s)
    await JobWorker(config, store.jobs, stopping).run()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main())
