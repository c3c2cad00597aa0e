"""What a consumer does: takes documents from the stream, decides them as `POST /classify` would, and settles them.

    take some  →  read and decide  →  remember  →  count, let through  →  acknowledge and delete

An entry is settled after everything that follows from it is durable. Whoever is killed in between leaves it pending,
and another, or its successor, takes it over; deciding a document twice does no harm (see store/outbox.py).

New documents go from station to station as on a belt, a batch at each, so that one is decided while the store is at
work on others: a document is more than half as much work for the store as for a consumer. They stay in order: what one
consumer lets through is in the order in which it came. Stations wait for nobody but those beside them; when all of them
moved on at once, in one round trip, two consumers soon fell into step, both at work and then both waiting.

What was left behind, by a process that died or in a round trip of which this one never heard the end, is looked for
while nothing is on the belt, and decided a batch at a time.

An entry that cannot be read goes to the dead with the reason, at once. One that ends every process that touches it,
which is a bug, is found out by how often it was taken: after ALONE_AFTER times it is decided by itself, and after
GIVE_UP_AFTER times it is dead as well. It takes no others along: of those that are to be decided by themselves, one
counts as taken only when it is its turn.

While the store is in trouble the consumer takes nothing new. It takes about BATCH_BYTES at a time, judging by the size
of those before, so that its memory does not depend on what is sent.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import structlog
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from service.errors import BadInput, BadRequest, GroupGone, ServiceError, StoreUnavailable, TooLarge, one_line
from service.flow.classify import Batch, Classifier
from service.schemas import ClassifyOptions, Document
from service.schemas.parsing import check_length, from_validation, parse
from service.store.consumer_group import Arrived
from service.store.inbox import ConsumerStats, Dead, Inbox
from service.store.topics import Step
from service.tasks import cancel_all

# Documents at a time, at first, and bytes. A round trip with 256 keeps the store busy for 15 ms, in which others wait.
MAX_BATCH, FIRST_BATCH, BATCH_BYTES = 256, 16, 2_000_000
MAX_IN_FLIGHT = 5  # batches on the belt at most
ALONE_AFTER, GIVE_UP_AFTER = 3, 10
REPORT_S = 5.0
RATE_WINDOW_S = 10.0  # over which a rate is taken
RETRY_S, MAX_RETRY_S = 0.1, 2.0  # before trying again while the store is in trouble

DOCUMENT = TypeAdapter(Document)
OPTIONS = ClassifyOptions()

log = structlog.get_logger("sluice.flow")


class ConsumerBatch(NamedTuple):
    """Entries of the stream: those that cannot be read, and the documents of the others, if there are any, with the
    store's last replies and the next commands."""

    arrived: Sequence[Arrived]
    dead: Sequence[Dead]
    documents: Batch | None
    replies: Sequence[Any] = ()
    commands: Sequence[Step] = ()


T = TypeVar("T")
R = TypeVar("R")
Belt = asyncio.Queue[T | None]  # None: nothing comes any more


class Consumer:
    def __init__(self, classifier: Classifier, inbox: Inbox, started_ms: int) -> None:
        self._classifier = classifier
        self._inbox = inbox
        self._config = classifier.config
        self.most = FIRST_BATCH
        self._figures = ConsumerStats(started_ms)
        self._lately: deque[tuple[float, int]] = deque()
        self._looked_s = self._reported_s = 0.0
        self._pause_s = RETRY_S
        self._opened = True
        self._astray = False  # whether this consumer may have taken what it does not know of

    async def run(self, stopping: asyncio.Event) -> None:
        """Consumes until told to stop; what is in hand then is finished, or stays pending if the store is not well."""
        while not stopping.is_set():
            try:
                if not self._opened:
                    await self._inbox.group.open()
                    self._opened = True
                await self._report()
                if left := await self._left_behind():
                    await self._make_up(left)
                elif first := await self._inbox.group.wait_new(self.most):
                    await self._consume(first, stopping)
            except StoreUnavailable as error:
                self._lost(error)
                if not stopping.is_set():
                    await asyncio.sleep(self._pause_s)
                    self._pause_s = min(2 * self._pause_s, MAX_RETRY_S)

    def _lost(self, error: StoreUnavailable) -> None:
        log.warning("lost the store", detail=error.detail)
        self._astray, self._opened = True, self._opened and not isinstance(error, GroupGone)

    async def _report(self) -> None:
        now = time.monotonic()
        if now - self._reported_s > REPORT_S:
            self._reported_s = now
            await self._inbox.report(self._figures._replace(per_s=self._rate()))

    # -- what was left behind ------------------------------------------------------------------------------------------

    async def _left_behind(self) -> list[Arrived]:
        """What this consumer took and lost sight of; what somebody else did, now and then."""
        if self._astray:
            if held := await self._inbox.group.own_pending(self.most):
                return held
            self._astray = False
        if not self._due():
            return []
        # Refused by a store that is full, so that nobody takes what cannot be decided: it would seem to end them all.
        await self._inbox.report(self._figures)
        left = await self._inbox.group.claim_idle(self.most, self._config.take_over_s)
        if left:  # and look again at once: there may be more
            self._figures = self._figures._replace(taken_over=self._figures.taken_over + len(left))
        else:
            self._looked_s = time.monotonic()
        return left

    def _due(self) -> bool:
        return time.monotonic() - self._looked_s > self._config.take_over_s / 2

    async def _make_up(self, left: Sequence[Arrived]) -> None:
        self._astray = True  # until all of it is settled
        self.most = self._fitting(left)
        group = self._inbox.group
        suspects = [one for one in left if one.deliveries > ALONE_AFTER]
        if suspects:
            await self._inbox.run([group.set_deliveries_cmd(one.place, one.deliveries - 1) for one in suspects])
        for one in suspects:
            await self._inbox.run([group.set_deliveries_cmd(one.place, one.deliveries)])
            await self._through([one])
        if others := [one for one in left if one.deliveries <= ALONE_AFTER]:
            await self._through(others)

    async def _through(self, arrived: Sequence[Arrived]) -> None:
        batch = await self._answer(await self._remember(await self._decide(arrived)))
        await self._settle(await self._write(batch))

    # -- what is new ---------------------------------------------------------------------------------------------------

    async def _consume(self, first: list[Arrived], stopping: asyncio.Event) -> None:
        """These, and what is new after them, until nothing is, or it is time to look for what was left behind."""
        room, taken = asyncio.Semaphore(MAX_IN_FLIGHT), Belt[list[Arrived]]()
        decided, remembered, answered, written = (
            Belt[ConsumerBatch](),
            Belt[ConsumerBatch](),
            Belt[ConsumerBatch](),
            Belt[ConsumerBatch](),
        )

        async def leave(batch: ConsumerBatch) -> None:
            await self._settle(batch)
            room.release()

        work = [
            asyncio.create_task(station)
            for station in (
                self._feed(first, room, taken, stopping),
                _station(taken, self._decide, decided),
                _station(decided, self._remember, remembered),
                _station(remembered, self._answer, answered),
                _station(answered, self._write, written),
                _station(written, leave),
            )
        ]
        try:
            await asyncio.gather(*work)
        finally:
            await cancel_all(work)  # if one has failed, whatever is on the belt is in doubt

    async def _feed(
        self, some: list[Arrived], room: asyncio.Semaphore, belt: Belt[list[Arrived]], stopping: asyncio.Event
    ) -> None:
        """Takes what is new. If that cannot be done, what is on the belt can still be finished."""
        while some:
            await room.acquire()
            self.most = self._fitting(some)  # not once they are decided: what is taken meanwhile may be as long
            belt.put_nowait(some)
            some = []
            if not stopping.is_set() and not self._due():
                try:
                    some = await self._inbox.group.read_new(self.most)
                except StoreUnavailable as error:
                    self._lost(error)
        belt.put_nowait(None)

    # -- the stations --------------------------------------------------------------------------------------------------

    async def _decide(self, arrived: Sequence[Arrived]) -> ConsumerBatch:
        read = await self._classifier.pool.run(self._read, arrived)
        documents = [one for one in read if isinstance(one, Document)]
        batch = Batch(self._classifier, documents, OPTIONS) if documents else None
        if batch:
            await batch.decide()
        return ConsumerBatch(arrived, [one for one in read if isinstance(one, Dead)], batch)

    async def _remember(self, batch: ConsumerBatch) -> ConsumerBatch:
        if not batch.documents:
            return batch
        return batch._replace(replies=await self._inbox.run(await batch.documents.remember_cmds()))

    async def _answer(self, batch: ConsumerBatch) -> ConsumerBatch:
        return batch._replace(commands=await batch.documents.write_cmds(batch.replies)) if batch.documents else batch

    async def _write(self, batch: ConsumerBatch) -> ConsumerBatch:
        if batch.documents:
            # The figures go along because a store that is full refuses them, and with them the rest.
            commands = [*batch.commands, *self._inbox.report_cmds(self._figures)]
            await batch.documents.finish(await self._inbox.run(commands))
        return batch

    async def _settle(self, batch: ConsumerBatch) -> None:
        before, dead = self._figures, len(batch.dead)
        documents = len(batch.arrived) - dead
        self._lately.append((time.monotonic(), documents))
        self._figures = before._replace(
            documents=before.documents + documents, dead=before.dead + dead, per_s=self._rate()
        )
        places = [one.place for one in batch.arrived]
        settled = self._inbox.ack_cmds(places, batch.dead, self._config.dead_kept)
        await self._inbox.run([*settled, *self._inbox.report_cmds(self._figures)])
        self._pause_s = RETRY_S

    def _fitting(self, arrived: Sequence[Arrived]) -> int:
        """How many to take at a time, judging by these."""
        size = sum(one.size for one in arrived) / len(arrived)
        at_once = min(MAX_BATCH, self._classifier.max_batch(OPTIONS))
        return max(1, min(at_once, 4 * self.most, int(BATCH_BYTES / max(1, size))))

    def _read(self, arrived: Sequence[Arrived]) -> list[Document | Dead]:
        return [self._document(one) for one in arrived]

    def _document(self, arrived: Arrived) -> Document | Dead:
        if arrived.deliveries > GIVE_UP_AFTER:
            return Dead(arrived, f"Taken {arrived.deliveries} times, and whoever took it ended before it was decided.")
        try:
            if arrived.size > self._config.max_body_bytes:
                raise TooLarge(f"The entry is longer than {self._config.max_body_bytes:,} bytes.")
            found = self._parsed(arrived)
            check_length(found, self._config.max_text_chars)
            return found
        except ServiceError as error:
            return Dead(arrived, one_line(error.detail, error.errors))

    def _parsed(self, arrived: Arrived) -> Document:
        """The document: in JSON as the field `document`, or with its parts as fields."""
        if set(arrived.fields) == {b"document"}:
            return parse(DOCUMENT, arrived.fields[b"document"], self._config)
        if b"document" in arrived.fields:
            raise BadInput("An entry has the document as the field `document`, or its parts as fields; not both.")
        try:
            said = {name.decode(): value.decode() for name, value in arrived.fields.items()}
            given = {name: from_json(value) if name == "metadata" else value for name, value in said.items()}
        except UnicodeDecodeError:
            raise BadRequest("A field is not UTF-8.") from None
        except ValueError:
            raise BadRequest("The field metadata is not JSON.") from None
        try:
            return DOCUMENT.validate_python(given)
        except ValidationError as error:
            raise from_validation(error) from None

    def _rate(self) -> float:
        """Documents a second, lately."""
        while self._lately and self._lately[0][0] < time.monotonic() - RATE_WINDOW_S:
            self._lately.popleft()
        return round(sum(n for _, n in self._lately) / RATE_WINDOW_S, 1)


async def _station(come: Belt[T], work: Callable[[T], Awaitable[R]], go: Belt[R] | None = None) -> None:
    """Works at what comes, a piece at a time, and passes it on, until nothing comes any more."""
    while (piece := await come.get()) is not None:
        done = await work(piece)
        if go is not None:
            go.put_nowait(done)
    if go is not None:
        go.put_nowait(None)
