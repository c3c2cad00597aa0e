"""Background jobs as a user sees them: submitted, looked at, cancelled. Nothing is done here; see queue.py."""

import json
import secrets
from collections.abc import Callable, Sequence

from service.clock import now_ms, time_of
from service.config import Config
from service.errors import BadInput, Conflict, FieldError, NotFound
from service.schemas.jobs import Compare, Job, NewJob, Retrain, State
from service.store.jobs import JobRecord, JobStore
from service.topics import settings

OPEN = 1000  # jobs that wait or run
CHUNK = 100


class Jobs:
    def __init__(self, store: JobStore, config: Config) -> None:
        self._store = store
        self._config = config

    async def submit(self, asked: NewJob) -> Job:
        check(asked, self._config)
        return await self.submit_as(new_id(), asked)

    async def submit_as(self, id: str, asked: NewJob) -> Job:
        now = now_ms()
        request = asked.model_dump_json()
        if not await self._store.submit(id, asked.kind, request, now, self._config.jobs_kept, OPEN):
            raise Conflict(f"{OPEN:,} jobs wait already; wait for some, or cancel them.")
        return await self.find(id)

    async def submit_unless_waiting(self, asked: NewJob) -> None:
        """Submits it unless the very same waits already: it will see all that there is when it begins."""
        waiting = (one for one in await self.records(await self._store.ids()) if one and one.state == "queued")
        if not any(one.request == asked.model_dump_json() for one in waiting):
            await self.submit_as(new_id(), asked)

    async def records(self, ids: Sequence[str]) -> list[JobRecord | None]:
        return await self._store.read(ids)

    async def states(self) -> dict[State, int]:
        """How many jobs are in each state."""
        return await self._store.states()

    async def find(self, id: str) -> Job:
        (record,) = await self.records([id])
        if record is None:
            raise NotFound(f"There is no job {id!r}; those that were over first are forgotten first.")
        return job(record)

    async def cancel(self, id: str) -> Job:
        """A job that waits is cancelled at once, one that runs within two seconds; one that is over stays as it is."""
        await self._store.cancel(id, now_ms())
        return await self.find(id)

    async def page(self, before: str, limit: int, wanted: Callable[[Job], bool]) -> tuple[list[Job], str | None]:
        """The newest jobs that are wanted, from those older than the given one, and where the next page begins."""
        found: list[Job] = []
        while ids := await self._store.ids(before, CHUNK):
            jobs = [job(record) for record in await self._store.read(ids) if record]
            found += [one for one in jobs if wanted(one)]
            if len(found) > limit:
                return found[:limit], found[limit - 1].id
            before = ids[-1]
        return found, None


def new_id() -> str:
    """Ids in the order of time."""
    return f"{now_ms():012x}{secrets.token_hex(4)}"


def check(asked: NewJob, config: Config) -> None:
    """Refuses what could only fail later."""
    if isinstance(asked, Retrain):
        settings.check_method(asked.method, asked.params, "")
    elif isinstance(asked, Compare):
        for i, one in enumerate(asked.methods or ()):
            settings.check_method(one.method, one.params, f"/methods/{i}")
    elif asked.archive is not None:
        if config.archives is None:
            raise BadInput("This Sluice reads no archives: SLUICE_ARCHIVES names no directory.", _at("/archive"))
        path = (config.archives / asked.archive).resolve()
        if not path.is_relative_to(config.archives.resolve()) or not path.is_file():
            raise BadInput("There is no such file in the directory of archives.", _at("/archive"))


def topics_of(asked: NewJob) -> list[str] | None:
    """The topics that a job is about; None for all."""
    return [asked.topic] if isinstance(asked, Compare) else asked.topics


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
    return [FieldError(pointer=pointer, detail="cannot be read")]
