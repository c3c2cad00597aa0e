"""Whether the service is up and ready, and what Prometheus reads."""

from fastapi import Request
from starlette.responses import Response

from service import schemas
from service.api.deps import AnySluice, ReadySluice, new_router, reply
from service.api.openapi import answers
from service.api.prometheus import service_metrics
from service.api.telemetry import CONTENT_TYPE, Telemetry

router = new_router()


@router.get("/healthz", tags=["health"], **answers(schemas.Health))
async def healthz() -> Response:
    """The process is up."""
    return reply(schemas.Health(status="ok"))


@router.get("/readyz", tags=["health"], **answers(schemas.Health))
async def readyz(sluice: ReadySluice) -> Response:
    """The store answers and all models are loaded."""
    await sluice.store.ping()
    return reply(schemas.Health(status="ok", topics=len(sluice.registry.topics)))


@router.get("/metrics", tags=["health"], **answers(None, text=CONTENT_TYPE))
async def scrape(request: Request, sluice: AnySluice) -> Response:
    """Metrics for Prometheus; available even while the store does not answer."""
    telemetry: Telemetry = request.app.state.telemetry
    telemetry.note(len(sluice.registry.topics), sluice.registry.bank_bytes)
    metrics = await service_metrics(sluice, request.app.version)
    return Response(await sluice.pool.run(telemetry.text, metrics), media_type=CONTENT_TYPE)
