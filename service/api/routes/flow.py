"""What topics let through: as events, as a list, and along routes; and the state of the stream of documents."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal

from fastapi import Header, Path, Query, Request
from pydantic import TypeAdapter
from starlette.responses import Response

from service.api.deps import Limit, ReadySluice, TopicPath, new_router, paged, read, reply
from service.api.openapi import answers, takes
from service.api.sse import Events
from service.clock import ms_of, now_ms, time_of
from service.errors import NotFound
from service.schemas import Page
from service.schemas.fields import RANK, Place
from service.schemas.flow import (
    ConsumerInfo,
    DeadDelivery,
    Flow,
    Passed,
    RankedPage,
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
from service.store.stream.inbox import ConsumerStatus
from service.store.stream.outbox import order
from service.store.stream.routes import DeliveryStatus, StoredRoute

PlaceCursor = Annotated[Place | None, Query(description="`next` of the previous page.")]
RankCursor = Annotated[str | None, Query(pattern=RANK, description="`next` of the previous page.")]
Since = Annotated[
    datetime | None,
    Query(description="Only what passed since this time, such as 2026-03-01T12:00:00Z; without a zone it is in UTC."),
]
Judged = Annotated[
    Literal["include", "exclude"], Query(description="Whether documents that have been judged are listed, too.")
]
LastEventId = Annotated[Place | None, Header(description="The last event received; 0: from the beginning.")]

RoutePath = Annotated[str, Path(pattern="^[0-9a-f]{16}$", description="The route's id.", examples=["a19efdbe68918fbc"])]

ROUTES = TypeAdapter(Routes)
REPLAY = TypeAdapter(Replay)

router = new_router()


@router.get("/topics/{topic}/stream", tags=["flow"], **answers(None, 404, events=Passed))
async def listen(sluice: ReadySluice, topic: TopicPath, last_event_id: LastEventId = None) -> Response:
    """Sends what the topic accepts or abstains on, live: server-sent events that resume with `Last-Event-ID`. A change
    of the goal's state is an event named `goal`."""
    await sluice.topics.find(topic)
    return Events(sluice.subscribers.subscribe(topic, last_event_id))


@router.get("/topics/{topic}/accepted", tags=["flow"], **answers(Page[Passed], 404))
async def list_passed(
    sluice: ReadySluice, topic: TopicPath, limit: Limit = 100, cursor: PlaceCursor = None
) -> Response:
    """Lists what the topic has accepted or abstained on, newest first."""
    await sluice.topics.find(topic)
    entries = await sluice.outbox.newest(topic, cursor, limit + 1)
    items = [entry.passed(topic) for entry in entries[:limit]]
    return paged(items, entries[limit - 1].place if entries[limit:] else None)


@router.get("/topics/{topic}/ranked", tags=["flow"], **answers(RankedPage, 404))
async def list_ranked(
    sluice: ReadySluice,
    topic: TopicPath,
    since: Since = None,
    judged: Judged = "include",
    limit: Limit = 100,
    cursor: RankCursor = None,
) -> Response:
    """Lists what the topic has accepted or abstained on, highest score first, by the model as it is now."""
    published = await sluice.topics.find(topic)
    since_ms = ms_of(since) if since else 0
    return reply(await sluice.ranking.page(published, since_ms, cursor, limit, judged == "include"))


@router.put("/topics/{topic}/routes", tags=["flow"], **takes(Routes), **answers(RouteList, 404))
async def put_routes(request: Request, sluice: ReadySluice, topic: TopicPath) -> Response:
    """Set where the topic's decisions go. Replaces all routes; one with the same target as before continues."""
    await sluice.topics.find(topic)
    asked = await read(request, ROUTES)
    return reply(await route_list(sluice, await sluice.topics.put_routes(topic, asked.routes)))


@router.get("/topics/{topic}/routes", tags=["flow"], **answers(RouteList, 404))
async def list_routes(sluice: ReadySluice, topic: TopicPath) -> Response:
    """Where the topic's decisions go, and the state of the deliveries."""
    await sluice.topics.find(topic)
    return reply(await route_list(sluice, await sluice.routes.load(topic)))


@router.get("/topics/{topic}/routes/{route}/dead", tags=["flow"], **answers(Page[DeadDelivery], 404))
async def list_dead(
    sluice: ReadySluice, topic: TopicPath, route: RoutePath, limit: Limit = 100, cursor: PlaceCursor = None
) -> Response:
    """Deliveries that were given up, newest first."""
    dead = await sluice.routes.load_dead(await find_route(sluice, topic, route), cursor, limit + 1)
    items = [
        DeadDelivery(document=delivery.document, reason=delivery.reason, at=time_of(order(place)[0]))
        for place, delivery in dead[:limit]
    ]
    return paged(items, dead[limit - 1][0] if dead[limit:] else None)


@router.post("/topics/{topic}/routes/{route}/replay", tags=["flow"], **takes(Replay), **answers(Replayed, 404))
async def replay(request: Request, sluice: ReadySluice, topic: TopicPath, route: RoutePath) -> Response:
    """Deliver again what was given up, or everything after a place in the topic's stream."""
    stored = await find_route(sluice, topic, route)
    asked = await read(request, REPLAY)
    deliveries = await sluice.routes.replay(stored, asked.after, sluice.config.retry_s)
    return reply(Replayed(topic=topic, route=route, deliveries=deliveries))


@router.get("/flow", tags=["flow"], **answers(Flow))
async def flow(sluice: ReadySluice) -> Response:
    """The state of the stream of incoming documents: how far behind it is, and what each consumer does."""
    return reply(await load_flow(sluice))


async def load_flow(sluice: Sluice) -> Flow:
    inbox = await sluice.inbox.load_status()
    consumers = [_consumer_info(consumer) for consumer in inbox.consumers if consumer.stats or consumer.pending]
    lag_s = inbox.lag_s(now_ms())
    return Flow(lag=inbox.lag, lag_s=lag_s, pending=inbox.pending, dead=inbox.dead, consumers=consumers)


def _consumer_info(consumer: ConsumerStatus) -> ConsumerInfo:
    stats = consumer.stats
    return ConsumerInfo(
        name=consumer.name,
        alive=stats is not None,
        pending=consumer.pending,
        started=time_of(stats.started_ms) if stats else None,
        documents=stats.documents if stats else None,
        dead=stats.dead if stats else None,
        taken_over=stats.taken_over if stats else None,
        per_s=stats.per_s if stats else None,
    )


async def find_route(sluice: Sluice, topic: str, id: str) -> StoredRoute:
    await sluice.topics.find(topic)
    for stored in await sluice.routes.load(topic):
        if stored.id == id:
            return stored
    raise NotFound("The topic has no such route.")


async def route_list(sluice: Sluice, routes: Sequence[StoredRoute]) -> RouteList:
    return RouteList(items=[_route_info(route, await sluice.routes.load_status(route)) for route in routes])


def _route_info(stored: StoredRoute, status: DeliveryStatus) -> RouteInfo:
    route, error = stored.route, status.last_error
    return RouteInfo(
        id=stored.id,
        to=route.to,
        url=route.url if isinstance(route, ToWebhook) else None,
        key=route.key if isinstance(route, ToStream) else None,
        format=route.format if isinstance(route, ToWebhook) else None,
        on=route.on,
        state=status.state,
        delivered=status.delivered,
        failed=status.failed,
        pending=status.pending,
        dead=status.dead,
        last_error=RouteError(document=error["document"], reason=error["reason"], at=time_of(int(error["at_ms"])))
        if error
        else None,
    )
