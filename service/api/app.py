"""The application: `create_app` takes a config and a store, and gives an ASGI app."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from service.api import problems
from service.api.openapi import Documented
from service.api.routes import (
    archive,
    documents,
    feeds,
    flow,
    health,
    jobs,
    keys,
    metrics,
    remembered,
    review,
    sources,
    topics,
    versions,
)
from service.api.telemetry import CountingApp, Telemetry
from service.config import Config, StartError
from service.console import static
from service.console.routes import access, inbox, manual, operation, search, start, topic
from service.console.routes import sources as source_list
from service.console.routes import topics as topic_list
from service.sluice import Sluice
from service.store.topics import Store
from service.tasks import cancel_all

DESCRIPTION = "Filter and route a stream of documents by standing queries that learn."
CONSOLE = (access, inbox, start, topic_list, topic, search, source_list, operation, manual)
GAUGES_S = 5.0  # between two updates of the gauges


def create_app(config: Config | None = None, store: Store | None = None) -> FastAPI:
    """An app on the given store, or on the one that the config names."""
    config = config or Config.from_env()
    if store is None and config.redis is None:
        raise StartError("SLUICE_REDIS must name a store; `scripts/serve` starts an embedded one.")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        sluice = app.state.sluice = Sluice(config, store or Store(config.redis or "", config.store_timeout_s))
        gauges = asyncio.create_task(_update_gauges(sluice, app.state.telemetry))
        try:
            await sluice.start()
            sluice.start_indexing()
            yield {"answered": app.state.telemetry.answered}
        finally:
            await cancel_all([gauges])
            await sluice.stop()

    app = _CountedApi(
        title="Sluice",
        version="0.1.0",
        description=DESCRIPTION,
        lifespan=lifespan,
        redirect_slashes=False,
        docs_url=None,  # the console draws it, without asking another host
        redoc_url=None,
    )
    app.state.telemetry = Telemetry()
    pages = (
        topics,
        documents,
        remembered,
        versions,
        health,
        flow,
        feeds,
        review,
        metrics,
        jobs,
        sources,
        archive,
        keys,
    )
    for page in pages:
        app.include_router(page.router)
    for page in CONSOLE:
        app.include_router(page.router)
    app.mount(static.PATH, static.files(), name="static")
    problems.install(app, [route for page in (*pages, *CONSOLE) for route in page.router.routes])
    return app


class _CountedApi(Documented):
    def build_middleware_stack(self) -> ASGIApp:
        """Counting wraps everything: as ordinary middleware it would not see the answers of error handlers."""
        return CountingApp(super().build_middleware_stack(), self.state.telemetry)


async def _update_gauges(sluice: Sluice, telemetry: Telemetry) -> None:
    while True:
        telemetry.note(len(sluice.registry.topics), sluice.registry.bank_bytes)
        await asyncio.sleep(GAUGES_S)
