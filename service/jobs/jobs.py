"""Background jobs as users see them: submitted, listed, cancelled. Nothing runs here; see queue.py."""

import json
import secrets
from collections.abc import Callable, Sequence

from service.clock import now_ms, time_of
from service.config import Config
from service.errors import BadInput, Conflict, FieldError, NotFound
from service.jobs.crews import is_allowed
from service.schemas.jobs import Compare, Job, NewJob, Retrain, State
from service.store.jobs import JobRecord, JobStore
from service.topics import settings

MAX_UNFINISHED = 1000
CHUNK_SIZE = 100


class Jobs:
    def __init__(self, store: JobStore, config: Config) -> None:
        self._store = store
        self._config = config

    async def submit(self, request: NewJob) -> Job:
        check(request, self._config)
        return await self.submit_as(new_id(), request)

    async def submit_as(self, id: str, request: NewJob) -> Job:
        """Submits a job under a given id; once, if called twice."""
        text, kept = request.model_dump_json(), self._config.jobs_kept
        if not await self._store.submit(id, request.kind, text, now_ms(), kept, MAX_UNFINISHED):
            raise Conflict(f"{MAX_UNFINISHED:,} jobs are waiting already; wait for some of them, or cancel them.")
        return await self.find(id)

    async def submit_unless_waiting(self, request: NewJob) -> None:
        """Submits a job unless an equal one waits already: that one will see everything there is when it begins."""
        text = request.model_dump_json()
        records = await self.records(await self._store.ids())
        if not any(record and record.state == "queued" and record.request == text for record in records):
            await self.submit_as(new_id(), request)

    async def records(self, ids: Sequence[str]) -> list[JobRecord | None]:
        return await self._store.load(ids)

    async def states(self) -> dict[State, int]:
        """Counts the jobs in each state."""
        return await self._store.states()

    async def find(self, id: str) -> Job:
        (record,) = await self.records([id])
        if record is None:
            raise NotFound(f"There is no job {id!r}; the oldest finished jobs are dropped first.")
        return job(record)

    async def cancel(self, id: str) -> Job:
        """Cancels a job: at once if it waits, within two seconds if it runs. A finished job stays as it is."""
        await self._store.cancel(id, now_ms())
        return await self.find(id)

    async def page(self, before: str, limit: int, wanted: Callable[[Job], bool]) -> tuple[list[Job], str | None]:
        """Returns the newest jobs that are wanted, from those older than `before`, and where the next page begins."""
        jobs: list[Job] = []
        while ids := await self._store.ids(before, CHUNK_SIZE):
            chunk = [job(record) for record in await self._store.load(ids) if record]
            jobs += filter(wanted, chunk)
            if len(jobs) > limit:
                return jobs[:limit], jobs[limit - 1].id
            before = ids[-1]
        return jobs, None


def new_id() -> str:
    """Returns an id that sorts after all ids made earlier."""
    return f"{now_ms():012x}{secrets.token_hex(4)}"


def check(request: NewJob, config: Config) -> None:
    """Refuses what could only fail later."""
    if isinstance(request, Retrain):
        settings.check_method(request.method, request.params, "")
        _check_workers(request, config)
    elif isinstance(request, Compare):
        for i, contender in enumerate(request.methods or ()):
            settings.check_method(contender.method, contender.params, f"/methods/{i}")
    elif request.archive is not None:
        if config.archives is None:
            raise BadInput("This service reads no archives: SLUICE_ARCHIVES is not set.", _at("/archive"))
        path = (config.archives / request.archive).resolve()
        if not path.is_relative_to(config.archives.resolve()) or not path.is_file():
            raise BadInput("There is no such file in the directory of archives.", _at("/archive"))


def _check_workers(request: Retrain, config: Config) -> None:
    workers = request.workers
    if workers is not None and request.method != "boosting":
        errors = [FieldError(pointer="/workers", detail="Only boosting can be divided among workers.")]
        raise BadInput("This method has no workers.", errors)
    if isinstance(workers, str) and not is_allowed(workers, config):
        detail = "This must be a cluster on the same machine, or one that SLUICE_DASK names."
        raise BadInput("Jobs may not use this Dask cluster.", [FieldError(pointer="/workers", detail=detail)])
    if not {*(request.publish_to or ())} <= {*(request.topics or request.publish_to or ())}:
        errors = [FieldError(pointer="/publish_to", detail="All of these must be topics of the job.")]
        raise BadInput("A topic that the job does not retrain cannot be published.", errors)


def topics_of(request: NewJob) -> list[str] | None:
    """Returns the topics that a job is about; None for all."""
    return [request.topic] if isinstance(request, Compare) else request.topics


def job(record: JobRecord) -> Job:
    times = {"created": record.created_ms, "started": record.started_ms, "finished": record.finished_ms}
    return Job.model_validate(
        {
            "id": record.id,
            "kind": record.kind,
            "state": record.state,
            "progress": record.progress,
            "message": record.message,
            "request": json.loads(record.request),
            "result": None if record.result is None else json.loads(record.result),
            **{name: None if ms is None else time_of(ms) for name, ms in times.items()},
        }
    )


def _at(pointer: str) -> list[FieldError]:
    return [FieldError(pointer=pointer, detail="This archive cannot be read.")]
