"""Jobs under kills: of the child that runs one, of the worker that watches it, of the store. Each job ends, and what it
publishes is published once; judgements that come meanwhile are neither lost nor doubled."""

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from service.processes import JOB_CHILD
from service.run.replay import replay
from service.store.redis.embedded import Embedded
from tests.service.jobs.test_jobs import documents, teach
from tests.support.api import Api, running_api
from tests.support.job_workers import OVER, start_worker, submit, wait_for_state
from tests.support.processes import children, end, has_ended
from tests.support.waiting import wait_until

LONG = {"kind": "retrain", "topics": ["crude"], "method": "wh", "params": {"draws": 60_000}, "publish": "always"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Embedded]:
    with Embedded(tmp_path / "data") as server:
        yield server


def job_children(worker: subprocess.Popen[bytes]) -> list[int]:
    """The child processes in which this worker runs jobs."""
    return [pid for pid, command in children(worker.pid).items() if JOB_CHILD in command]


async def at_work(workers: list[subprocess.Popen[bytes]]) -> tuple[int, int]:
    """Which of the workers runs a job, and the child process that does it."""

    async def busy() -> tuple[int, int] | None:
        pairs = [(n, pid) for n, worker in enumerate(workers) if worker.poll() is None for pid in job_children(worker)]
        return pairs[0] if pairs else None

    return await wait_until(busy)


async def judging(api: Api, stopping: asyncio.Event) -> list[str]:
    """Judges one document after the other, each until it is acknowledged."""
    judged: list[str] = []
    for n, document in enumerate(documents(2000, 77, "meanwhile-")):
        if stopping.is_set():
            break
        body = {"topic": "crude", "document": document, "relevant": n % 3 == 0}
        await wait_until(partial(_acknowledged, api, body), every_s=0.1)
        judged.append(document["id"])
        await asyncio.sleep(0.05)
    return judged


async def test_a_job_survives_the_death_of_all_around_it_and_publishes_once(server: Embedded) -> None:
    workers = [start_worker(server.url), start_worker(server.url)]
    try:
        async with running_api(server.url) as api:
            await api.topic()
            await teach(api, "crude", 60)
            stopping = asyncio.Event()
            reader = asyncio.create_task(judging(api, stopping))
            job = await submit(api, **LONG)

            _, child = await at_work(workers)
            os.kill(child, signal.SIGKILL)  # the child that runs the job

            n, child = await at_work(workers)
            workers[n].kill()  # the worker that watches it, and with it the child
            workers[n].wait()
            await wait_until(lambda: _true(has_ended(child)))
            workers[n] = start_worker(server.url)

            await at_work(workers)
            assert server.server is not None
            server.server.kill()  # the store
            server.server.wait()
            server.start()

            ended = await wait_for_state(api, job, *OVER)
            assert ended["state"] == "succeeded", ended
            stopping.set()
            acknowledged = await reader
            _, events = await api.sluice.store.logs.load("crude")
            (published,) = [event for event in events if event.kind == "published"]
            assert published.job == job
            assert ended["result"]["topics"][0]["version"] == published.seq
            judged = [event.document for event in events if event.kind == "judged"]
            assert [document for document in judged if document.startswith("meanwhile")] == acknowledged
            assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"
    finally:
        for worker in workers:
            end(worker)


async def test_a_worker_that_is_stopped_gives_its_job_back(server: Embedded) -> None:
    workers = [start_worker(server.url)]
    try:
        async with running_api(server.url) as api:
            await api.topic()
            await teach(api, "crude", 60)
            job = await submit(api, **LONG)
            _, child = await at_work(workers)
            end(workers[0])
            assert workers[0].returncode == 0
            assert has_ended(child)
            queued = await api.ok("GET", f"/jobs/{job}")
            assert (queued["state"], queued["message"]) == ("queued", "Its worker was stopped; the job starts again.")
            workers.append(start_worker(server.url))
            assert (await wait_for_state(api, job, *OVER))["state"] == "succeeded"
    finally:
        for worker in workers:
            end(worker)


async def test_a_worker_that_cannot_reach_the_store_kills_its_child_before_another_may_begin(server: Embedded) -> None:
    worker = start_worker(server.url)
    try:
        async with running_api(server.url) as api:
            await api.topic()
            await teach(api, "crude", 60)
            job = await submit(api, **LONG | {"params": {"draws": 1_000_000}})
            _, child = await at_work([worker])
            assert server.server is not None
            server.server.send_signal(signal.SIGSTOP)
            try:
                await wait_until(lambda: _true(has_ended(child)))
                assert not job_children(worker)
            finally:
                server.server.send_signal(signal.SIGCONT)
            _, again = await at_work([worker])
            assert again != child
            await wait_until(partial(_cancelled, api, job))
            assert (await wait_for_state(api, job, *OVER))["state"] == "cancelled"
    finally:
        end(worker)


async def _cancelled(api: Api, job: str) -> bool:
    return (await api.request("DELETE", f"/jobs/{job}")).is_success


async def _true(value: bool) -> bool:
    return value


async def _acknowledged(api: Api, body: Any) -> bool:
    return (await api.post("/feedback", json=body)).is_success


async def test_an_archive_is_gone_on_with_where_a_killed_process_had_come(server: Embedded, tmp_path: Path) -> None:
    archive = tmp_path / "old.ndjson"
    with archive.open("w") as lines:
        for n in range(30):
            lines.writelines(json.dumps(document) + "\n" for document in documents(2000, n, f"{n}-"))
    worker = start_worker(server.url, archives=tmp_path)
    try:
        async with running_api(server.url, archives=tmp_path) as api:
            await api.topic()
            job = await submit(api, kind="backfill", archive=archive.name)
            decisions = tmp_path / f"{archive.name}.{job}.decisions.ndjson"

            async def begun() -> Any:
                (record,) = await api.sluice.jobs.records([job])
                return record and record.checkpoint

            checkpoint = json.loads(await wait_until(begun))  # of the first megabyte of sixteen
            for child in job_children(worker):  # none, if this process had no time to look before all sixteen were done
                os.kill(child, signal.SIGKILL)
            assert 0 < checkpoint["written"] <= decisions.stat().st_size
            ended = await wait_for_state(api, job, *OVER)
            assert ended["state"] == "succeeded", ended
            assert ended["result"]["documents"] == 60_000
            decided = [json.loads(line)["document"] for line in decisions.read_text().splitlines()]
            assert len(decided) == len(set(decided)) > 5000
            (counts,) = ended["result"]["topics"]
            assert counts["accepted"] + counts["abstained"] == len(decided)
    finally:
        end(worker)


async def test_a_job_that_takes_too_long_is_ended_and_says_so(server: Embedded) -> None:
    worker = start_worker(server.url, job_limit_s=0.5)
    try:
        async with running_api(server.url) as api:
            await api.topic()
            await teach(api, "crude", 60)
            ended = await wait_for_state(api, await submit(api, **LONG), *OVER)
            assert ended["state"] == "failed"
            assert "SLUICE_JOB_LIMIT_S" in ended["message"]
            await wait_until(lambda: _true(not job_children(worker)))
    finally:
        end(worker)
