"""The application: settings and store in, ASGI out."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from service import problems, routes, routes_flow, routes_jobs, routes_measures, routes_moving, routes_review
from service.config import Settings, StartError
from service.openapi import Documented
from service.sluice import Sluice
from service.store import Store

DESCRIPTION = "Filter and route a stream of documents by standing queries that learn."


def create_app(settings: Settings | None = None, store: Store | None = None) -> FastAPI:
    """An app on the store of its settings, or on the one that is given."""
    config = settings or Settings.from_env()
    if store is None and config.redis is None:
        raise StartError("SLUICE_REDIS must name a store; `scripts/serve` starts an embedded one by itself.")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.sluice = Sluice(config, store or Store(config.redis or "", config.store_timeout_s))
        try:
            await app.state.sluice.start()
            yield
        finally:
            await app.state.sluice.stop()

    app = Documented(
        title="Sluice", version="0.1.0", description=DESCRIPTION, lifespan=lifespan, redirect_slashes=False
    )
    routers = tuple(
        each.router for each in (routes, routes_flow, routes_review, routes_measures, routes_jobs, routes_moving)
    )
    for router in routers:
        app.include_router(router)
    problems.install(app, [route for router in routers for route in router.routes])
    return app
