"""What flows through, path by path."""

from typing import Annotated

from fastapi import Header, Query
from starlette.responses import Response

from service.events import Events
from service.handling import App, Limit, TopicPath, new_router, paged, reply
from service.inbox import Holder
from service.learning import now_ms
from service.listening import passed
from service.openapi import answers
from service.schemas import Page
from service.schemas_flow import ConsumerInfo, Flow, Passed
from service.topics import time_of

PLACE = r"^[0-9]{1,19}(-[0-9]{1,19})?$"
PlaceCursor = Annotated[
    str | None, Query(pattern=PLACE, description="`next` of the answer before.", examples=["1795000000000-0"])
]
LastEventId = Annotated[
    str | None, Header(pattern=PLACE, description="The last event that was received; 0: from the beginning.")
]

router = new_router()


@router.get("/topics/{topic}/stream", tags=["flow"], **answers(None, 404, events=Passed))
async def listen(app: App, topic: TopicPath, last_event_id: LastEventId = None) -> Response:
    """What the topic lets through (accepted or abstained from), as it happens: server-sent events, resumable."""
    await app.find(topic)
    return Events(app.listening.joined(topic, last_event_id))


@router.get("/topics/{topic}/accepted", tags=["flow"], **answers(Page[Passed], 404))
async def list_passed(app: App, topic: TopicPath, limit: Limit = 100, cursor: PlaceCursor = None) -> Response:
    """What the topic has let through (accepted or abstained from), newest first."""
    await app.find(topic)
    found = await app.outbox.newest(topic, cursor, limit + 1)
    items = [passed(topic, one) for one in found[:limit]]
    return paged(items, found[limit - 1].place if found[limit:] else None)


@router.get("/flow", tags=["flow"], **answers(Flow))
async def flow(app: App) -> Response:
    """How the stream of documents to decide stands: how far behind, and what each consumer does."""
    found = await app.inbox.look()
    pending = sum(one.pending for one in found.consumers)
    lag_s = 0.0 if found.oldest_ms is None else max(0, now_ms() - found.oldest_ms) / 1000
    consumers = [_consumer(one) for one in found.consumers if one.figures or one.pending]
    lag = max(0, found.entries - pending)
    return reply(Flow(lag=lag, lag_s=lag_s, pending=pending, dead=found.dead, consumers=consumers))


def _consumer(one: Holder) -> ConsumerInfo:
    done = one.figures
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
