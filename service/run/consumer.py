"""A consumer, a process of its own: decides documents from the stream `sluice:in`, for feeds that never end, and
delivers what topics let through along their routes.

    python -m service.run.consumer

Any number may run, on any number of machines; they share the work. Models, kernels and topics are loaded only when the
first document comes, so an idle consumer costs next to nothing.
"""

import asyncio
import gc
import time

import structlog
import uvloop

from service import logs
from service.clock import now_ms
from service.config import Config
from service.errors import StoreUnavailable
from service.flow.deliveries import Deliveries
from service.store.stream.inbox import ConsumerStats, Inbox
from service.store.topics import Store
from service.tasks import cancel_all, stopped_by_signals

REPORT_S = 5.0
RETRY_S = 0.5  # while the store does not answer

log = structlog.get_logger("sluice.run")


async def main() -> None:
    config = Config.from_env()
    logs.configure(config.log_level)
    stopping = stopped_by_signals()
    store = Store(config.redis or "", config.store_timeout_s)
    inbox, started_ms = store.inbox, now_ms()
    delivering = asyncio.create_task(Deliveries(store, config, inbox.name).run())
    delivering.add_done_callback(lambda task: _deliveries_ended(task, stopping))
    await idle(inbox, ConsumerStats(started_ms), stopping)
    if not stopping.is_set():
        # Imported only now: they take a second and a hundred megabytes, perhaps for nothing.
        from service.flow.consumer import Consumer
        from service.sluice import Sluice

        sluice = Sluice(config, Store(config.redis or "", config.store_timeout_s))
        await sluice.start()
        ready = asyncio.ensure_future(sluice.sync.ready.wait())
        stopped = asyncio.ensure_future(stopping.wait())
        await asyncio.wait([ready, stopped], return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        # As in api.py: spares the garbage collector from scanning all of this, a tenth of a second each time.
        gc.collect()
        gc.freeze()
        await Consumer(sluice.classifier, inbox, started_ms).run(stopping)
        stopped.cancel()
        await sluice.stop()
    await cancel_all([delivering])
    await store.close()


def _deliveries_ended(delivering: asyncio.Task[None], stopping: asyncio.Event) -> None:
    """Stops the process if deliveries failed, which would be a bug: the supervisor starts it again."""
    if not delivering.cancelled() and (error := delivering.exception()):
        log.error("deliveries failed", exc_info=error)
        stopping.set()


async def idle(inbox: Inbox, stats: ConsumerStats, stopping: asyncio.Event) -> None:
    """Waits until there is a document to decide."""
    opened, reported_s = False, 0.0
    while not stopping.is_set():
        try:
            if not opened:
                await inbox.group.open()
                opened = True
            if time.monotonic() - reported_s > REPORT_S:
                reported_s = time.monotonic()
                await inbox.report(stats)
            if await inbox.wait():
                return
        except StoreUnavailable as error:
            log.warning("lost the store", detail=error.detail)
            opened = False
            await asyncio.sleep(RETRY_S)


if __name__ == "__main__":
    uvloop.run(main())
