"""Consumers that run inside a test, and what they leave in the store."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from redis import Redis

from service.flow.consumer import MAX_BATCH, Consumer
from service.store.redis.connection import Connection
from service.store.redis.keys import DEAD, IN
from service.store.stream.inbox import Inbox
from tests.support.api import OIL, Api
from tests.support.waiting import wait_until

OUT = "sluice:out:crude"
STREAM_SIZE = 8 * MAX_BATCH  # fewer than a topic's stream keeps


@asynccontextmanager
async def consuming(api: Api, full: "Redis | None" = None) -> AsyncIterator[Consumer]:
    """Runs a consumer in this process until the end of the block; the store given as `full` has no room left."""
    connection, stopping = Connection(str(api.sluice.config.redis), 1.0), asyncio.Event()
    inbox = Inbox(connection)
    await inbox.group.open()
    if full:
        full.config_set("maxmemory", 1)
    consumer = Consumer(api.sluice.classifier, inbox, 0)
    running = asyncio.create_task(consumer.run(stopping))
    try:
        yield consumer
    finally:
        stopping.set()
        try:
            await running
        finally:
            await connection.close()


async def wait_until_consumed(store: "Redis") -> None:
    """Waits until all entries have been acknowledged and deleted."""

    async def empty() -> bool:
        return store.xlen(IN) == 0

    await wait_until(empty)


def add_entry(store: "Redis", document: dict[str, Any]) -> None:
    store.xadd(IN, {"document": json.dumps(document)})


def output_documents(store: "Redis") -> list[str]:
    """Ids of the documents in the output stream of the topic `crude`."""
    rows: Any = store.xrange(OUT)
    return [fields["document"] for _, fields in rows]


def dead_letters(store: "Redis") -> list[dict[str, str]]:
    rows: Any = store.xrange(DEAD)
    return [fields for _, fields in rows]


def accepted_documents(n: int) -> list[dict[str, Any]]:
    """Documents that the topic `crude` accepts."""
    return [OIL | {"id": f"o{i}"} for i in range(n)]
