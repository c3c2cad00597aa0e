"""The child process of a job worker: does one job, and may be killed at any moment.

    python -m service.jobs.child JOB TOKEN

Reads the request from the job's record, reports its progress there, and leaves the result there. Whatever it changes, a
published model for example, is written so that doing it again changes nothing (see Learning.publish_once).
"""

import asyncio
import os
import sys
from contextlib import suppress

import structlog
from pydantic import TypeAdapter

from service import logs
from service.clock import now_ms
from service.config import Config
from service.errors import ServiceError, StoreUnavailable
from service.jobs import LOST
from service.jobs.backfill import backfill
from service.jobs.compare import compare
from service.jobs.context import JobContext
from service.jobs.retrain import retrain
from service.schemas.fields import Answer
from service.schemas.jobs import Backfill, Compare, NewJob, Retrain, RetrainResult
from service.sentences import number_of
from service.store.jobs import Claim
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epochs
from service.topics.learning import Learning

NEW_JOB: TypeAdapter[NewJob] = TypeAdapter(NewJob)
NICENESS = 10  # requests come first
PROGRESS_S = 0.3
MAX_REASONS = 3  # in the message of a job

log = structlog.get_logger("sluice.jobs")


async def main(claim: Claim) -> int:
    """Does the job and returns the exit code."""
    config = Config.from_env()
    logs.configure(config.log_level)
    os.nice(NICENESS)
    store = Store(config.redis or "", config.store_timeout_s)
    jobs, epochs = store.jobs, Epochs(store)
    with Pool(2, "job") as pool:
        learning = Learning(store, epochs, config, pool, serve=lambda served: None)
        context = JobContext(claim, config, store, jobs, epochs, learning)
        reporting = asyncio.create_task(_keep_reporting(context))
        try:
            result = await _run(context)
            fields = {"message": summary(result), "result": result.model_dump_json()}
            await jobs.end(claim, "succeeded", now_ms(), progress=1.0, **fields)
        except StoreUnavailable as error:
            log.warning("lost the store", job=claim.job, detail=error.detail)
            return LOST
        except ServiceError as error:
            await jobs.end(claim, "failed", now_ms(), message=error.detail)
        finally:
            reporting.cancel()
            await store.close()
    return 0


async def _run(context: JobContext) -> Answer:
    (record,) = await context.jobs.load([context.job])
    if record is None:
        raise StoreUnavailable("The job's record is gone.")
    context.checkpoint = record.checkpoint
    request = NEW_JOB.validate_json(record.request)
    await context.epochs.follow()
    match request:
        case Retrain():
            return await retrain(context, request)
        case Compare():
            return await compare(context, request)
        case Backfill():
            return await backfill(context, request)


def summary(result: Answer) -> str:
    """The message of a job that succeeded; of a retraining, with the reasons why topics were not published."""
    if not isinstance(result, RetrainResult):
        return "Done."
    if not result.total:
        return "Done: There is no topic to retrain."
    done = f"Done: {result.published:,} of {number_of(result.total, 'topic')} published."
    if result.total == 1:
        return f"{done} {result.topics[0].detail}"
    unpublished = [topic for topic in result.topics if not topic.published]
    reasons = [f"{topic.topic}: {topic.detail}" for topic in unpublished[:MAX_REASONS]]
    more = result.total - result.published - len(reasons)
    rest = [f"The result says why {more:,} more {'was' if more == 1 else 'were'} not published."] if more else []
    return " ".join([done, *reasons, *rest])


async def _keep_reporting(context: JobContext) -> None:
    saved = (-1.0, "")
    while True:
        await asyncio.sleep(PROGRESS_S)
        if saved != (context.progress, context.message):
            saved = (context.progress, context.message)
            with suppress(StoreUnavailable):  # the job itself will notice
                await context.save_progress()


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Claim(*sys.argv[1:]))))
