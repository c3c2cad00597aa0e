"""Job workers for tests, in processes of their own, as the supervisor starts them."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from service.processes import JOB_QUEUE, command
from tests.support.api import Api
from tests.support.waiting import PATIENCE_S, wait_until

OVER = ("succeeded", "failed", "cancelled")


def start_worker(redis_url: str, **settings: object) -> subprocess.Popen[bytes]:
    environment = os.environ | {f"SLUICE_{name.upper()}": str(value) for name, value in settings.items()}
    fixed = {"SLUICE_REDIS": redis_url, "SLUICE_LOG_LEVEL": "warning"}
    return subprocess.Popen(command(JOB_QUEUE), env=environment | fixed)


def end_worker(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()


@contextmanager
def running_workers(redis_url: str, workers: int = 1, **settings: object) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes = [start_worker(redis_url, **settings) for _ in range(workers)]
    try:
        yield processes
    finally:
        for process in processes:
            end_worker(process)


async def submit(api: Api, **request: Any) -> str:
    """Submits a job and returns its id."""
    answer = await api.post("/jobs", json=request)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/jobs/{answer.json()['id']}"
    return str(answer.json()["id"])


async def wait_for_state(api: Api, job: str, *states: str, within_s: float = PATIENCE_S) -> Any:
    """Returns the job once it is in one of these states; waits also for a store that is down meanwhile."""

    async def found() -> Any:
        answer = await api.get(f"/jobs/{job}")
        assert answer.status_code in (200, 503), answer.text
        return answer.json() if answer.is_success and answer.json()["state"] in states else None

    return await wait_until(found, within_s)


async def run_job(api: Api, **request: Any) -> Any:
    """Submits a job and returns it when it has succeeded."""
    job = await wait_for_state(api, await submit(api, **request), *OVER)
    assert job["state"] == "succeeded", job
    return job
