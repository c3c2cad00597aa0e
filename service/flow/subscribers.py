"""Listeners to what topics let through: any number of them, and one reader.

The reader asks the store for what is new in all streams that somebody listens to, over one connection, and deals it
out: an event is read and encoded once, however many listen. Whoever listens has a short queue. One that is full says
that its owner is too slow; it is given what is in it and sent away, and can come back and resume where it was, for
the stream has it all. So nobody waits for the slowest, and nothing grows.

Whoever resumes first reads the stream by itself up to its end, while its queue fills; what stands in both it is given
once, by its place.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import structlog

from service.clock import time_of
from service.errors import Busy, NotFound, StoreUnavailable
from service.schemas.flow import Passed
from service.store.outbox import Outbox, Placed, order
from service.topics.published import PublishedModel

log = structlog.get_logger("sluice.flow")

MAX_QUEUED = 1000  # events that a listener may be behind
HEARTBEAT_S = 15.0  # of silence, after which a listener is shown that the connection lives
RETRY_MS = 1000  # after which a client connects again
RETRY_S = 0.2  # before asking again after the connection broke


class Queue:
    """What a listener has not been given yet."""

    def __init__(self) -> None:
        self._events: list[tuple[str, bytes]] = []
        self._filled = asyncio.Event()
        self.overflowed = False

    def put(self, events: Sequence[tuple[str, bytes]]) -> None:
        self.overflowed = self.overflowed or len(self._events) + len(events) > MAX_QUEUED
        if not self.overflowed:
            self._events.extend(events)
        self._filled.set()

    async def take(self, timeout_s: float) -> list[tuple[str, bytes]]:
        """Everything that is there, as soon as something is; nothing if that takes too long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._filled.wait()
        except TimeoutError:
            return []
        self._filled.clear()
        taken, self._events = self._events, []
        return taken


class Subscribers:
    def __init__(self, outbox: Outbox, topics: Mapping[str, PublishedModel], most: int) -> None:
        self._outbox = outbox
        self._topics = topics  # that there are
        self._most = most
        self._queues: dict[str, set[Queue]] = {}
        self._places: dict[str, str] = {}  # up to which each of these streams has been read
        self._wanted = asyncio.Event()

    async def read(self) -> None:
        """Deals out what is let through, for ever."""
        while True:
            await self._wanted.wait()
            try:
                for topic, found in (await self._outbox.wait(dict(self._places))).items():
                    if topic in self._places:  # somebody still listens
                        self._deal(topic, found)
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
                await asyncio.sleep(RETRY_S)
            except Exception:
                # A bug, and loud; but those who listen must not be left waiting for nothing.
                log.exception("reading for listeners failed and begins again")
                await asyncio.sleep(RETRY_S)

    @asynccontextmanager
    async def joined(self, topic: str, after: str | None) -> AsyncIterator[AsyncIterator[bytes]]:
        """The events of a topic as they come, as bytes to be sent; those after a place first, if one is given."""
        if sum(map(len, self._queues.values())) >= self._most:
            raise Busy(f"There are {self._most:,} listeners already; try again.")
        if topic not in self._places:
            place = await self._outbox.last_place(topic)
            self._places.setdefault(topic, place)
        queue = Queue()
        self._queues.setdefault(topic, set()).add(queue)
        self._wanted.set()
        try:
            yield self._events(topic, self._born(topic), after, self._places[topic], queue)
        finally:
            self._queues[topic].discard(queue)
            if not self._queues[topic]:
                del self._queues[topic], self._places[topic]
            if not self._queues:
                self._wanted.clear()

    def _born(self, topic: str) -> str | None:
        """Which of those that have had this name the topic is; None if there is none."""
        served = self._topics.get(topic)
        return served.born if served else None

    async def _events(
        self, topic: str, born: str | None, after: str | None, joined: str, queue: Queue
    ) -> AsyncIterator[bytes]:
        # Where it begins is said before anything comes, so that it can be resumed from there.
        yield f"retry: {RETRY_MS}\nid: {after or joined}\n\n".encode()
        given = after
        while given is not None and (found := await self._outbox.read_after(topic, given)):
            yield b"".join(event(topic, one) for one in found)
            given = found[-1].place
        while True:
            taken = await queue.take(HEARTBEAT_S)
            if born is None or self._born(topic) != born:  # deleted; if another is there now, this one is not it
                raise NotFound.topic_gone(topic)
            new = [event for place, event in taken if given is None or order(place) > order(given)]
            yield b"".join(new) or b":\n\n"
            if queue.overflowed:
                raise Busy("You read too slowly. Connect again with Last-Event-ID, and go on where you were.")

    def _deal(self, topic: str, found: Sequence[Placed]) -> None:
        if topic not in self._places:
            return  # nobody listens any more
        # Somebody may have left, and another come, while the store was asked: this one wants only what is newer.
        new = [one for one in found if order(one.place) > order(self._places[topic])]
        events = [(one.place, event(topic, one)) for one in new]
        self._places[topic] = max(self._places[topic], found[-1].place, key=order)
        for queue in self._queues[topic]:
            queue.put(events)


def event(topic: str, placed: Placed) -> bytes:
    """As server-sent events are written: JSON has no line breaks, so one line of data is enough."""
    return f"id: {placed.place}\ndata: {passed(topic, placed).model_dump_json()}\n\n".encode()


def passed(topic: str, placed: Placed) -> Passed:
    at = time_of(placed.at_ms)
    return Passed(topic=topic, at=at, **placed.entry.as_dict())
