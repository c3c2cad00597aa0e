"""Deliveries along routes: what topics let through goes to webhooks and to other streams, each at least once.

Every route has a task of its own here, and connections of its own, so that a receiver that is slow, hangs or fails
keeps only itself waiting. The task takes entries of the topic's stream, as a consumer group (see store/routes.py), some
at a time, and settles each when the receiver has taken it. One that fails is given back as if it had been taken long
ago, so that it is due again after

    min(retry_s, 2ⁿ⁻¹ seconds) · (½ … 1)         after n attempts

by whoever looks first; what a process that was killed had taken is due after `retry_s`. After MAX_ATTEMPTS it is given
up, and stands among the dead of the route, from where it can be replayed. At most MAX_PENDING entries of a route are in
hand or wait to be tried again: a receiver that is down is not flooded, and what comes meanwhile waits in the stream, as
long as that keeps it (`SLUICE_OUT_KEPT`).

Any number of processes may do this at once; each delivers what it took. The names of those that have ended are struck
off the group.
"""

import asyncio
import math
import secrets
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress

import structlog
from pydantic_core import to_json

from service.clock import now_ms, time_of
from service.config import Config
from service.errors import GroupGone, StoreUnavailable
from service.flow.webhooks import NotDelivered, Webhooks
from service.schemas.flow import Passed, ToWebhook
from service.store.consumer_group import Arrived, Group
from service.store.inbox import SILENT_S
from service.store.outbox import Entry, order
from service.store.routes import StoredRoute
from service.store.topics import Store
from service.tasks import cancel_all

MAX_PENDING = 32
MAX_CONCURRENT = 8  # deliveries of a route
MAX_ATTEMPTS = 50
POLL_S = 1.0  # between two looks at which routes there are, and for what is due
RETRY_S = 0.5  # before asking again when the store is in trouble
EVENT_TYPE = "sluice.decision"
RANDOM = secrets.SystemRandom()  # so that those who failed together do not come back together

log = structlog.get_logger("sluice.flow")


class Deliveries:
    def __init__(self, store: Store, config: Config, name: str) -> None:
        self._routes = store.routes
        self._outbox = store.outbox
        self._config = config
        self._name = name
        self._tasks: dict[str, tuple[StoredRoute, asyncio.Task[None]]] = {}
        self._woken: dict[str, asyncio.Event] = {}
        self._places: dict[str, str] = {}  # of topics with routes: where their streams ended when we last looked
        self._tls = ssl.create_default_context()

    async def run(self) -> None:
        """Delivers, until it is cancelled."""
        looked_s = -POLL_S
        try:
            while True:
                try:
                    if time.monotonic() - looked_s >= POLL_S:
                        looked_s = time.monotonic()
                        await self._follow(await self._routes.load_all())
                    await self._listen()
                except StoreUnavailable as NotDelivered:
                    log.warning("lost the store", detail=NotDelivered.detail)
                    await asyncio.sleep(RETRY_S)
        finally:
            await cancel_all([task for _, task in self._tasks.values()])

    async def _follow(self, wanted: Sequence[StoredRoute]) -> None:
        """A task for each route that there is, and for no other."""
        by_id = {one.id: one for one in wanted}
        for route, (one, task) in list(self._tasks.items()):
            if task.done() and not task.cancelled():
                log.error("deliveries along a route failed and begin again", route=route, exc_info=task.exception())
            if by_id.get(route) != one or task.done():
                await cancel_all([task])
                del self._tasks[route], self._woken[route]
        for route, one in by_id.items():
            if route not in self._tasks:
                self._woken[route] = asyncio.Event()
                self._tasks[route] = one, asyncio.create_task(self._carry(one, self._woken[route]))
        topics = {one.topic for one in wanted}
        self._places = {topic: place for topic, place in self._places.items() if topic in topics}
        for topic in topics - self._places.keys():
            self._places[topic] = await self._outbox.last_place(topic)

    async def _listen(self) -> None:
        """Wakes the routes of topics that let something through."""
        if not self._places:
            await asyncio.sleep(POLL_S)
            return
        for topic, found in (await self._outbox.wait(self._places)).items():
            self._places[topic] = max(self._places[topic], found[-1].place, key=order)
            for one, _ in self._tasks.values():
                if one.topic == topic:
                    self._woken[one.id].set()

    async def _carry(self, one: StoredRoute, woken: asyncio.Event) -> None:
        """Delivers along one route, for ever."""
        config, group = self._config, self._routes.group(one, self._name)
        webhooks = Webhooks(self._tls, config.webhook_timeout_s, config.webhooks_private, MAX_CONCURRENT)
        turns = asyncio.Semaphore(MAX_CONCURRENT if isinstance(one.route, ToWebhook) else 1)  # a stream has an order

        async def deliver(arrived: Arrived) -> None:
            async with turns:
                await self._deliver(one, group, webhooks, arrived)

        retired_s = -math.inf
        try:
            while True:
                woken.clear()
                try:
                    taken = await self._take(group)
                    if time.monotonic() - retired_s > SILENT_S:
                        await self._routes.drop_idle(group, SILENT_S)
                        retired_s = time.monotonic()
                    ended = await asyncio.gather(*map(deliver, taken), return_exceptions=True)
                    for NotDelivered in filter(None, ended):  # only now: none of them is left to run on by itself
                        raise NotDelivered
                except GroupGone:
                    await asyncio.sleep(RETRY_S)
                    await self._begin_again(one, group)
                    continue
                except StoreUnavailable as NotDelivered:
                    log.warning("cannot deliver", route=one.id, detail=NotDelivered.detail)
                    await asyncio.sleep(RETRY_S)
                    continue
                if not taken:
                    await _either(woken, POLL_S)
        finally:
            await webhooks.close()

    async def _begin_again(self, one: StoredRoute, group: Group) -> None:
        """The topic was replaced by another of its name, with a new stream; or deleted, and its routes with it."""
        with suppress(StoreUnavailable):
            if one in await self._routes.load(one.topic):
                await group.open()

    async def _take(self, group: Group) -> list[Arrived]:
        """What is due again, and what is new."""
        due = await group.claim_idle(MAX_PENDING, self._config.retry_s)
        room = MAX_PENDING - await group.pending_count()
        return [*due, *(await group.read_new(room) if room > 0 else ())]

    async def _deliver(self, one: StoredRoute, group: Group, webhooks: Webhooks, arrived: Arrived) -> None:
        entry = Entry.from_fields(arrived.fields)
        if entry.decision not in one.route.on:
            await self._routes.skip(group, arrived)
            return
        try:
            if isinstance(one.route, ToWebhook):
                body = message(one.topic, arrived.place, entry)
                secret, now_s = one.route.secret or "", int(time.time())
                await webhooks.send(one.route.url, secret, f"{entry.id}-{entry.decision}", body, now_s)
            elif refused := await self._routes.add(one.route.key, one.topic, arrived, self._config.out_kept):
                raise NotDelivered(f"The store refused it: {refused}")
        except NotDelivered as error:
            due_s = (
                None if arrived.deliveries >= MAX_ATTEMPTS else self._config.retry_s - self._delay_s(arrived.deliveries)
            )
            await self._routes.failed(one, group, arrived, str(error), now_ms(), due_s)
        else:
            await self._routes.delivered(one, group, arrived, now_ms())

    def _delay_s(self, attempts: int) -> float:
        longest = min(self._config.retry_s, 2.0 ** min(attempts - 1, 20))
        return longest * RANDOM.uniform(0.5, 1)


def message(topic: str, place: str, entry: Entry) -> bytes:
    """The body of a webhook, in the form that Standard Webhooks advises."""
    at = time_of(order(place)[0])
    data = Passed(topic=topic, at=at, **entry.as_dict())
    return to_json({"type": EVENT_TYPE, "timestamp": at, "data": data})


async def _either(woken: asyncio.Event, timeout_s: float) -> None:
    try:
        async with asyncio.timeout(timeout_s):
            await woken.wait()
    except TimeoutError:
        return
