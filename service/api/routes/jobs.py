"""Background jobs: submitted, listed, read, cancelled."""

from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service.api.deps import Limit, ReadySluice, new_router, paged, read, reply
from service.api.openapi import answers, takes
from service.jobs.jobs import topics_of
from service.schemas import Page
from service.schemas.fields import JOB_ID, TopicId
from service.schemas.jobs import Backfill, Compare, Job, Kind, NewJob, Retrain, State

NEW_JOB: TypeAdapter[NewJob] = TypeAdapter(NewJob)

JobPath = Annotated[str, Path(pattern=JOB_ID, description="The job's id.", examples=["019a8c5d3f2e4b7a9c01"])]
JobCursor = Annotated[str | None, Query(pattern=JOB_ID, description="`next` of the previous page.")]

router = new_router()


@router.post("/jobs", status_code=202, tags=["jobs"], **takes(Retrain, Compare, Backfill), **answers(Job, 404, 409))
async def submit_job(request: Request, sluice: ReadySluice) -> Response:
    """Retrain topics, compare methods, or decide earlier documents, in the background."""
    asked = await read(request, NEW_JOB)
    for topic in dict.fromkeys(topics_of(asked) or ()):
        await sluice.topics.find(topic)
    job = await sluice.jobs.submit(asked)
    return reply(job, 202, {"Location": f"/jobs/{job.id}"})


@router.get("/jobs", tags=["jobs"], **answers(Page[Job]))
async def list_jobs(
    sluice: ReadySluice,
    limit: Limit = 100,
    cursor: JobCursor = None,
    state: Annotated[State | None, Query(description="Only jobs in this state.")] = None,
    kind: Annotated[Kind | None, Query(description="Only jobs of this kind.")] = None,
    topic: Annotated[TopicId | None, Query(description="Only jobs that name this topic.")] = None,
) -> Response:
    """Jobs, newest first."""

    def wanted(job: Job) -> bool:
        topics = job.request.get("topics") or [job.request.get("topic")]
        return (state in (None, job.state)) and (kind in (None, job.kind)) and (topic is None or topic in topics)

    return paged(*await sluice.jobs.page(cursor or "", limit, wanted))


@router.get("/jobs/{job}", tags=["jobs"], **answers(Job, 404))
async def read_job(sluice: ReadySluice, job: JobPath) -> Response:
    """A job: its progress, or its result."""
    return reply(await sluice.jobs.find(job))


@router.delete("/jobs/{job}", status_code=202, tags=["jobs"], **answers(Job, 404))
async def cancel_job(sluice: ReadySluice, job: JobPath) -> Response:
    """Cancel a job. A running one ends within two seconds; a finished one stays as it is."""
    return reply(await sluice.jobs.cancel(job), 202)
