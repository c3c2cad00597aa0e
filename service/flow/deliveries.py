"""Deliveries along routes: sends the decisions of topics to webhooks and to other streams, each at least once.

Every route has a task and connections of its own, so that a receiver that is slow, hangs or fails delays no other. The
task reads entries of the topic's output stream as a consumer group (see store/stream/routes.py), a few at a time, and
acknowledges each when the receiver has taken it. If a delivery fails, the entry stays pending, with an idle time that
makes it due again after

    min(retry_s, 2ⁿ⁻¹ seconds) · (½ … 1)         after n attempts

for any process that claims it; entries of a process that was killed are due after `retry_s`. After MAX_ATTEMPTS a
delivery is given up and becomes a dead letter of the route, which can be replayed. A route has at most MAX_PENDING
pending entries, so that a receiver that is down is not flooded; newer entries wait in the stream, for as long as it
keeps them (`SLUICE_OUT_KEPT`).

Any number of processes may deliver at the same time, each what it has claimed. Those that have ended are removed from
the groups.
"""

import asyncio
import math
import secrets
import ssl
import time
from collections.abc import Sequence
from contextlib import suppress

import structlog

from service.clock import now_ms
from service.config import Config
from service.errors import GroupGone, StoreUnavailable
from service.flow.formats import payload
from service.flow.webhooks import NotDelivered, Webhooks, signature_headers
from service.schemas.flow import ToWebhook
from service.store.redis.consumer_group import Arrived, ConsumerGroup
from service.store.stream.inbox import SILENT_S
from service.store.stream.outbox import Entry, Placed, order
from service.store.stream.routes import StoredRoute
from service.store.topics import Store
from service.tasks import cancel_all

MAX_PENDING = 32
MAX_CONCURRENT = 8  # deliveries of a route
MAX_ATTEMPTS = 50
POLL_S = 1.0  # between two checks for changed routes, and for entries that are due again
RETRY_S = 0.5  # before the store is tried again
RANDOM = secrets.SystemRandom()  # jitter, so that deliveries that failed together are not retried together

log = structlog.get_logger("sluice.flow")


class Deliveries:
    def __init__(self, store: Store, config: Config, name: str) -> None:
        self._routes = store.routes
        self._outbox = store.outbox
        self._config = config
        self._name = name
        self._tasks: dict[str, tuple[StoredRoute, asyncio.Task[None]]] = {}  # by route id
        self._woken: dict[str, asyncio.Event] = {}
        self._places: dict[str, str] = {}  # of topics with routes: the last known ends of their streams
        self._tls = ssl.create_default_context()

    async def run(self) -> None:
        """Delivers until it is cancelled."""
        loaded_s = -POLL_S
        try:
            while True:
                try:
                    if time.monotonic() - loaded_s >= POLL_S:
                        loaded_s = time.monotonic()
                        await self._update_tasks(await self._routes.load_all())
                    await self._wake_routes()
                except StoreUnavailable as error:
                    log.warning("lost the store", detail=error.detail)
                    await asyncio.sleep(RETRY_S)
        finally:
            await cancel_all([task for _, task in self._tasks.values()])

    async def _update_tasks(self, routes: Sequence[StoredRoute]) -> None:
        """Starts and cancels tasks so that there is one for each route, as it is now."""
        by_id = {route.id: route for route in routes}
        for id, (route, task) in list(self._tasks.items()):
            if task.done() and not task.cancelled():
                log.error("deliveries along a route failed, restarting", route=id, exc_info=task.exception())
            if by_id.get(id) != route or task.done():
                await cancel_all([task])
                del self._tasks[id], self._woken[id]
        for id, route in by_id.items():
            if id not in self._tasks:
                self._woken[id] = asyncio.Event()
                self._tasks[id] = route, asyncio.create_task(self._run_route(route, self._woken[id]))
        topics = {route.topic for route in routes}
        self._places = {topic: place for topic, place in self._places.items() if topic in topics}
        for topic in topics - self._places.keys():
            self._places[topic] = await self._outbox.last_place(topic)

    async def _wake_routes(self) -> None:
        """Waits for new entries in any topic's stream, and wakes the tasks of its routes."""
        if not self._places:
            await asyncio.sleep(POLL_S)
            return
        for topic, entries in (await self._outbox.wait(self._places)).items():
            self._places[topic] = max(self._places[topic], entries[-1].place, key=order)
            for route, _ in self._tasks.values():
                if route.topic == topic:
                    self._woken[route.id].set()

    async def _run_route(self, route: StoredRoute, woken: asyncio.Event) -> None:
        """Delivers along one route until it is cancelled."""
        config, group = self._config, self._routes.group(route, self._name)
        webhooks = Webhooks(self._tls, config.webhook_timeout_s, config.webhooks_private, MAX_CONCURRENT)
        slots = asyncio.Semaphore(MAX_CONCURRENT if isinstance(route.route, ToWebhook) else 1)  # a stream has an order

        async def deliver(arrived: Arrived) -> None:
            async with slots:
                await self._deliver(route, group, webhooks, arrived)

        dropped_s = -math.inf
        try:
            while True:
                woken.clear()
                try:
                    entries = await self._fetch(group)
                    if time.monotonic() - dropped_s > SILENT_S:
                        await self._routes.drop_idle(group, SILENT_S)
                        dropped_s = time.monotonic()
                    results = await asyncio.gather(*map(deliver, entries), return_exceptions=True)
                    for error in filter(None, results):  # raised only now, when no delivery is running any more
                        raise error
                except GroupGone:
                    await asyncio.sleep(RETRY_S)
                    await self._reopen(route, group)
                    continue
                except StoreUnavailable as error:
                    log.warning("cannot deliver", route=route.id, detail=error.detail)
                    await asyncio.sleep(RETRY_S)
                    continue
                if not entries:
                    await _wait(woken, POLL_S)
        finally:
            await webhooks.close()

    async def _reopen(self, route: StoredRoute, group: ConsumerGroup) -> None:
        """Opens the group again after its stream was deleted, unless the route was deleted with the topic."""
        with suppress(StoreUnavailable):
            if route in await self._routes.load(route.topic):
                await group.open()

    async def _fetch(self, group: ConsumerGroup) -> list[Arrived]:
        """Entries that are due again, and new ones."""
        due = await group.claim_idle(MAX_PENDING, self._config.retry_s)
        room = MAX_PENDING - await group.pending_count()
        return [*due, *(await group.read_new(room) if room > 0 else ())]

    async def _deliver(self, route: StoredRoute, group: ConsumerGroup, webhooks: Webhooks, arrived: Arrived) -> None:
        entry, target = Entry.from_fields(arrived.fields), route.route
        if entry.decision not in target.on:
            await self._routes.skip(group, arrived)
            return
        try:
            if isinstance(target, ToWebhook):
                placed = Placed(arrived.place, entry)
                sent, now_s = payload(target, route.topic, placed), int(time.time())
                headers = {"Content-Type": sent.media_type} | sent.headers
                if target.secret:
                    headers |= signature_headers(target.secret, message_id(placed), sent.body, now_s)
                await webhooks.send(target.url, headers, sent.body)
            elif refusal := await self._routes.add(target.key, route.topic, arrived, self._config.out_kept):
                raise NotDelivered(f"The store refused the entry: {refusal}")
        except NotDelivered as error:
            await self._routes.failed(route, group, arrived, str(error), now_ms(), self._idle_s(arrived.deliveries))
        else:
            await self._routes.delivered(route, group, arrived, now_ms())

    def _idle_s(self, attempts: int) -> float | None:
        """The idle time of an entry whose delivery failed: it is due at `retry_s`. None if it is given up."""
        if attempts >= MAX_ATTEMPTS:
            return None
        delay_s = min(self._config.retry_s, 2.0 ** min(attempts - 1, 20)) * RANDOM.uniform(0.5, 1)
        return self._config.retry_s - delay_s


def message_id(placed: Placed) -> str:
    """What names a message, whoever delivers it. An update may be decided as an earlier text was, so its place in the
    stream is a part of the name."""
    entry = placed.entry
    return f"{entry.id}-{entry.decision}" + (f"-{placed.place}" if entry.updated else "")


async def _wait(event: asyncio.Event, timeout_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
