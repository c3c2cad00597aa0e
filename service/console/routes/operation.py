"""How the service itself is doing: the stream of documents, the store, deliveries, jobs."""

from typing import Any

from fastapi import Request
from starlette.responses import Response

from service.api.deps import ReadySluice
from service.api.routes.flow import load_flow, route_list
from service.console.pages import new_router, page
from service.sluice import Sluice

JOBS = 15  # that are shown
ROUTES = 200  # whose health is looked at

router = new_router()


@router.get("/console/operation", include_in_schema=False)
async def operation(request: Request, sluice: ReadySluice) -> Response:
    """The page."""
    return page(request, "operation.html", **await _now(sluice))


@router.get("/console/operation/now", include_in_schema=False)
async def now(request: Request, sluice: ReadySluice) -> Response:
    """What changes, alone."""
    return page(request, "now.html", **await _now(sluice))


async def _now(sluice: Sluice) -> dict[str, Any]:
    used, limit = await sluice.store.memory()
    stored = await sluice.routes.load_all()
    infos = (await route_list(sluice, stored[:ROUTES])).items
    jobs, _ = await sluice.jobs.page("", JOBS, lambda job: True)
    return {
        "flow": await load_flow(sluice),
        "used": used,
        "limit": limit,
        "topics": len(sluice.registry.topics),
        "bank": sluice.registry.bank_bytes,
        "routes": [(each.topic, info) for each, info in zip(stored, infos, strict=False)],
        "jobs": jobs,
        "failed": [job for job in jobs if job.state == "failed"],
    }
