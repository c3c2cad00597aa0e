"""Subscribers to the decisions of topics, over HTTP: any number of them, and one reader.

The reader waits for new entries in the output streams of all topics that have subscribers, over one connection, and
dispatches them: each event is encoded once, however many subscribers get it. Every subscriber has a short queue. If it
overflows, the subscriber is too slow: it gets what is queued and is disconnected, and can resume later, since
everything is in the stream. So nobody waits for the slowest, and memory is bounded.

A subscriber that resumes first reads the stream up to its end, while its queue fills. Events that are in both are
skipped in the queue, by their place in the stream.

(Settings and documentation call subscribers *listeners*.)
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager

import structlog

from service.errors import Busy, NotFound, StoreUnavailable
from service.store.stream.outbox import Outbox, Placed, order
from service.topics.published import PublishedModel

log = structlog.get_logger("sluice.flow")

MAX_QUEUED = 1000  # events that a subscriber may be behind
HEARTBEAT_S = 15.0  # of silence, after which a comment shows the client that the connection is alive
RETRY_MS = 1000  # after which a client reconnects
RETRY_S = 0.2  # before the store is tried again


class Queue:
    """Events that a subscriber has not been sent yet."""

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
        """Takes all events as soon as there are any; nothing if that takes too long."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._filled.wait()
        except TimeoutError:
            return []
        self._filled.clear()
        events, self._events = self._events, []
        return events


class Subscribers:
    def __init__(self, outbox: Outbox, topics: Mapping[str, PublishedModel], limit: int) -> None:
        self._outbox = outbox
        self._topics = topics
        self._limit = limit
        self._queues: dict[str, set[Queue]] = {}
        self._places: dict[str, str] = {}  # of topics with subscribers: up to where their streams were read
        self._wanted = asyncio.Event()

    async def run(self) -> None:
        """Reads the streams and dispatches new entries, until it is cancelled."""
        while True:
            await self._wanted.wait()
            try:
                for topic, entries in (await self._outbox.wait(dict(self._places))).items():
                    self._dispatch(topic, entries)
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
                await asyncio.sleep(RETRY_S)
            except Exception:
                # A bug, and loud; but subscribers must not wait for events that never come.
                log.exception("reading for subscribers failed, restarting")
                await asyncio.sleep(RETRY_S)

    @asynccontextmanager
    async def subscribe(self, topic: str, after: str | None) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yields the encoded events of a topic as they come; if `after` is given, those after that place first."""
        if sum(map(len, self._queues.values())) >= self._limit:
            raise Busy(f"There are {self._limit:,} listeners already; try again.")
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
        """The token of this topic, which an earlier one of the same name did not have; None if there is no topic."""
        model = self._topics.get(topic)
        return model.born if model else None

    async def _events(
        self, topic: str, born: str | None, after: str | None, end: str, queue: Queue
    ) -> AsyncIterator[bytes]:
        # The first id is sent before any event, so that a client can resume even if it never gets one.
        yield f"retry: {RETRY_MS}\nid: {after or end}\n\n".encode()
        sent = after
        while sent is not None and (entries := await self._outbox.read_after(topic, sent)):
            yield b"".join(event(topic, entry) for entry in entries)
            sent = entries[-1].place
        while True:
            queued = await queue.take(HEARTBEAT_S)
            if born is None or self._born(topic) != born:  # deleted, and perhaps there is another with its name
                raise NotFound.topic_gone(topic)
            new = [event for place, event in queued if sent is None or order(place) > order(sent)]
            yield b"".join(new) or b":\n\n"
            if queue.overflowed:
                raise Busy("You read too slowly. Connect again with Last-Event-ID to resume.")

    def _dispatch(self, topic: str, entries: Sequence[Placed]) -> None:
        if topic not in self._places:
            return  # the last subscriber has left
        # The topic may have got its first subscriber while the store was asked: it wants newer entries only.
        new = [entry for entry in entries if order(entry.place) > order(self._places[topic])]
        events = [(entry.place, event(topic, entry)) for entry in new]
        self._places[topic] = max(self._places[topic], entries[-1].place, key=order)
        for queue in self._queues[topic]:
            queue.put(events)


def event(topic: str, placed: Placed) -> bytes:
    """Encodes an entry as a server-sent event. JSON has no line breaks, so one line of data is enough. A change of the
    goal has a name, so that clients which only want documents do not see it."""
    if placed.is_goal:
        return f"id: {placed.place}\nevent: goal\ndata: {placed.goal_change(topic).model_dump_json()}\n\n".encode()
    return f"id: {placed.place}\ndata: {placed.passed(topic).model_dump_json()}\n\n".encode()
