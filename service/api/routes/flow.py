"""What flows through, path by path."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Header, Path, Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service.api.deps import Limit, ReadySluice, TopicPath, new_router, paged, read, reply
from service.api.openapi import answers, takes
from service.api.sse import Events
from service.clock import now_ms, time_of
from service.errors import NotFound
from service.flow.subscribers import passed
from service.schemas import Page
from service.schemas.fields import Place
from service.schemas.flow import (
    ConsumerInfo,
    DeadDelivery,
    Flow,
    Passed,
    Replay,
    Replayed,
    RouteError,
    RouteInfo,
    RouteList,
    Routes,
    ToStream,
    ToWebhook,
)
from service.sluice import Sluice
from service.store.inbox import ConsumerStatus
from service.store.outbox import order
from service.store.routes import DeliveryStatus, StoredRoute

PlaceCursor = Annotated[Place | None, Query(description="`next` of the answer before.")]
LastEventId = Annotated[Place | None, Header(description="The last event that was received; 0: from the beginning.")]

RoutePath = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The route's id.", examples=["a19efdbe68918fbc"])]

ROUTES = TypeAdapter(Routes)
REPLAY = TypeAdapter(Replay)

router = new_router()


@router.get("/topics/{topic}/stream", tags=["flow"], **answers(None, 404, events=Passed))
async def listen(sluice: ReadySluice, topic: TopicPath, last_event_id: LastEventId = None) -> Response:
    """What the topic lets through (accepted or abstained from), as it happens: server-sent events, resumable."""
    await sluice.topics.find(topic)
    return Events(sluice.subscribers.subscribe(topic, last_event_id))


@router.get("/topics/{topic}/accepted", tags=["flow"], **answers(Page[Passed], 404))
async def list_passed(
    sluice: ReadySluice, topic: TopicPath, limit: Limit = 100, cursor: PlaceCursor = None
) -> Response:
    """What the topic has let through (accepted or abstained from), newest first."""
    await sluice.topics.find(topic)
    found = await sluice.outbox.newest(topic, cursor, limit + 1)
    items = [passed(topic, one) for one in found[:limit]]
    return paged(items, found[limit - 1].place if found[limit:] else None)


@router.put("/topics/{topic}/routes", tags=["flow"], **takes(Routes), **answers(RouteList, 404))
async def put_routes(request: Request, sluice: ReadySluice, topic: TopicPath) -> Response:
    """Say where the topic's decisions go. These routes replace those before; one with the same target goes on."""
    await sluice.topics.find(topic)
    asked = await read(request, ROUTES)
    return reply(await _routes(sluice, await sluice.topics.put_routes(topic, asked.routes)))


@router.get("/topics/{topic}/routes", tags=["flow"], **answers(RouteList, 404))
async def list_routes(sluice: ReadySluice, topic: TopicPath) -> Response:
    """Where the topic's decisions go, and how the deliveries stand."""
    await sluice.topics.find(topic)
    return reply(await _routes(sluice, await sluice.routes.load(topic)))


@router.get("/topics/{topic}/routes/{route}/dead", tags=["flow"], **answers(Page[DeadDelivery], 404))
async def list_dead(
    sluice: ReadySluice, topic: TopicPath, route: RoutePath, limit: Limit = 100, cursor: PlaceCursor = None
) -> Response:
    """Deliveries that were given up, newest first."""
    found = await sluice.routes.load_dead(await _route(sluice, topic, route), cursor, limit + 1)
    items = [
        DeadDelivery(document=one.document, reason=one.reason, at=time_of(order(place)[0]))
        for place, one in found[:limit]
    ]
    return paged(items, found[limit - 1][0] if found[limit:] else None)


@router.post("/topics/{topic}/routes/{route}/replay", tags=["flow"], **takes(Replay), **answers(Replayed, 404))
async def replay(request: Request, sluice: ReadySluice, topic: TopicPath, route: RoutePath) -> Response:
    """Deliver again what was given up, or everything after a place in the topic's stream."""
    one = await _route(sluice, topic, route)
    asked = await read(request, REPLAY)
    again = await sluice.routes.replay(one, asked.after, sluice.config.retry_s)
    return reply(Replayed(topic=topic, route=route, deliveries=again))


@router.get("/flow", tags=["flow"], **answers(Flow))
async def flow(sluice: ReadySluice) -> Response:
    """How the stream of documents to decide stands: how far behind, and what each consumer does."""
    found = await sluice.inbox.load_status()
    consumers = [_consumer(one) for one in found.consumers if one.stats or one.pending]
    lag_s = found.lag_s(now_ms())
    return reply(Flow(lag=found.lag, lag_s=lag_s, pending=found.pending, dead=found.dead, consumers=consumers))


def _consumer(one: ConsumerStatus) -> ConsumerInfo:
    done = one.stats
    return ConsumerInfo(
        name=one.name,
        alive=done is not None,
        pending=one.pending,
        started=time_of(done.started_ms) if done else None,
        documents=done.documents if done else None,
        dead=done.dead if done else None,
        taken_over=done.taken_over if done else None,
        per_s=done.per_s if done else None,
    )


async def _route(sluice: Sluice, topic: str, route: str) -> StoredRoute:
    await sluice.topics.find(topic)
    for one in await sluice.routes.load(topic):
        if one.id == route:
            return one
    raise NotFound("The topic has no such route.")


async def _routes(sluice: Sluice, found: Sequence[StoredRoute]) -> RouteList:
    return RouteList(items=[_info(one, await sluice.routes.load_status(one)) for one in found])


def _info(one: StoredRoute, standing: DeliveryStatus) -> RouteInfo:
    route, error = one.route, standing.last_error
    return RouteInfo(
        id=one.id,
        to=route.to,
        url=route.url if isinstance(route, ToWebhook) else None,
        key=route.key if isinstance(route, ToStream) else None,
        on=route.on,
        state=standing.state,
        delivered=standing.delivered,
        failed=standing.failed,
        pending=standing.pending,
        dead=standing.dead,
        last_error=RouteError(document=error["document"], reason=error["reason"], at=time_of(int(error["at_ms"])))
        if error
        else None,
    )
