"""Job workers for tests, in processes of their own, as the supervisor starts them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from service.processes import JOB_QUEUE, command
from tests.support.api import Api
from tests.support.processes import end, environment
from tests.support.waiting import PATIENCE_S, wait_until

OVER = ("succeeded", "failed", "cancelled")


def start_worker(redis_url: str, **settings: object) -> subprocess.Popen[bytes]:
    env = environment(**settings | {"redis": redis_url, "log_level": "warning"})
    return subprocess.Popen(command(JOB_QUEUE), env=env)


@contextmanager
def running_workers(redis_url: str, workers: int = 1, **settings: object) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes = [start_worker(redis_url, **settings) for _ in range(workers)]
    try:
        yield processes
    finally:
        for process in processes:
            end(process)


async def submit(api: Api, **request: Any) -> str:
    """Submits a job and returns its id."""
    answer = await api.post("/jobs", json=request)
    assert answer.status_code == 202, answer.text
    assert answer.headers["location"] == f"/jobs/{answer.json()['id']}"
    return str(answer.json()["id"])


async def wait_for_state(api: Api, job: str, *states: str, within_s: float = PATIENCE_S) -> Any:
    """Returns the job once it is in one of these states; waits also for a store that is down meanwhile."""

    async def reached() -> Any:
        response = await api.get(f"/jobs/{job}")
        assert response.status_code in (200, 503), response.text
        return response.json() if response.is_success and response.json()["state"] in states else None

    return await wait_until(reached, within_s)


async def run_job(api: Api, **request: Any) -> Any:
    """Submits a job and returns it when it has succeeded."""
    job = await wait_for_state(api, await submit(api, **request), *OVER)
    assert job["state"] == "succeeded", job
    return job
