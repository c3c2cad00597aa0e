"""One job, done in a process of its own, which may be killed at any moment.

    python -m service.jobs.child JOB

It reads what was asked from the job's record, says there how far it has come, and leaves the result there. What it
changes, a published model for example, is written so that doing it again changes nothing (see Learning.publish_once).
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
from service.jobs.backfill import backfill
from service.jobs.compare import compare
from service.jobs.context import LOST, JobContext
from service.jobs.retrain import retrain
from service.schemas.fields import Answer
from service.schemas.jobs import Compare, NewJob, Retrain, RetrainResult
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epochs
from service.topics.learning import Learning

NEW_JOB: TypeAdapter[NewJob] = TypeAdapter(NewJob)
NICE = 10  # those who wait for an answer come first
TELL_S = 0.3

log = structlog.get_logger("sluice.jobs")


async def main(id: str, config: Config) -> int:
    store = Store(config.redis or "", config.store_timeout_s)
    jobs, epochs = store.jobs, Epochs(store)
    with Pool(2, "job") as pool:
        learning = Learning(store, epochs, config, pool, serve=lambda served: None)
        context = JobContext(id, config, store, jobs, epochs, learning)
        telling = asyncio.create_task(_telling(context))
        try:
            result = await _done(context)
            said = {"message": _said(result), "result": result.model_dump_json()}
            await jobs.end(id, "succeeded", now_ms(), progress=1.0, **said)
        except StoreUnavailable as error:
            log.warning("lost the store", job=id, detail=error.detail)
            return LOST
        except ServiceError as error:
            await jobs.end(id, "failed", now_ms(), message=error.detail)
        finally:
            telling.cancel()
            await store.close()
    return 0


async def _done(context: JobContext) -> Answer:
    (record,) = await context.jobs.read([context.job])
    if record is None:
        raise StoreUnavailable("The job's record is gone.")
    context.checkpoint = record.checkpoint
    asked = NEW_JOB.validate_json(record.request)
    await context.epochs.follow()
    if isinstance(asked, Retrain):
        return await retrain(context, asked)
    return await compare(context, asked) if isinstance(asked, Compare) else await backfill(context, asked)


def _said(result: Answer) -> str:
    if not isinstance(result, RetrainResult):
        return "Done."
    why = f" {result.topics[0].detail}" if result.total == 1 else ""
    return f"Done: {result.published:,} of {result.total:,} topic{'s' * (result.total != 1)} published.{why}"


async def _telling(context: JobContext) -> None:
    told = (-1.0, "")
    while True:
        await asyncio.sleep(TELL_S)
        if told != (context.progress, context.message):
            told = (context.progress, context.message)
            with suppress(StoreUnavailable):  # the work itself will notice
                await context.jobs.tell(context.job, progress=round(told[0], 4), message=told[1])


if __name__ == "__main__":
    settings = Config.from_env()
    logs.configure(settings.log_level)
    os.nice(NICE)
    sys.exit(asyncio.run(main(sys.argv[1], settings)))
