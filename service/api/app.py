"""The application: settings and store in, ASGI out."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

from service.api import problems
from service.api.openapi import Documented
from service.api.routes import archive, documents, flow, health, jobs, metrics, review, topics, versions
from service.api.telemetry import CountingApp, Telemetry
from service.config import Config, StartError
from service.sluice import Sluice
from service.store.topics import Store
from service.tasks import cancel_all

DESCRIPTION = "Filter and route a stream of documents by standing queries that learn."
NOTE_S = 5.0  # between two notes of what the process holds


def create_app(settings: Config | None = None, store: Store | None = None) -> FastAPI:
    """An app on the store of its settings, or on the one that is given."""
    config = settings or Config.from_env()
    if store is None and config.redis is None:
        raise StartError("SLUICE_REDIS must name a store; `scripts/serve` starts an embedded one by itself.")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        sluice = app.state.sluice = Sluice(config, store or Store(config.redis or "", config.store_timeout_s))
        noting = asyncio.create_task(_keep_noting(sluice, app.state.telemetry))
        try:
            await sluice.start()
            yield {"answered": app.state.telemetry.answered}
        finally:
            await cancel_all([noting])
            await sluice.stop()

    app = _Watched(title="Sluice", version="0.1.0", description=DESCRIPTION, lifespan=lifespan, redirect_slashes=False)
    app.state.telemetry = Telemetry()
    pages = (topics, documents, versions, health, flow, review, metrics, jobs, archive)
    for page in pages:
        app.include_router(page.router)
    problems.install(app, [route for page in pages for route in page.router.routes])
    return app


class _Watched(Documented):
    def build_middleware_stack(self) -> ASGIApp:
        """Counting stands before everything: middleware that is added would not see what errors are answered with."""
        return CountingApp(super().build_middleware_stack(), self.state.telemetry)


async def _keep_noting(sluice: Sluice, telemetry: Telemetry) -> None:
    while True:
        telemetry.note(len(sluice.registry.topics), sluice.registry.bank_bytes)
        await asyncio.sleep(NOTE_S)
