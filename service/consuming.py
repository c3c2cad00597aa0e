"""What a consumer does: takes documents from the stream, decides them as `POST /classify` would, and settles them.

    take some  →  read and decide each  →  remember  →  count, let through, acknowledge and delete

An entry is settled with all that follows from it, or after. Whoever is killed before leaves it pending, and another, or
its successor, takes it over; deciding a document twice does no harm (see outbox.py).

A batch goes to the store once: what follows from the one before is written in the round trip in which this one is
remembered; meanwhile the next is taken. What a batch lets through keeps the store busy for longer than anything else,
and whoever asks for something then has to wait. With more questions in a batch, or with the next one in the answer,
which does not fit into a socket's buffer, consumers fall into step: one waits while another's batch is written, and
from then on all are at work, and all wait, at the same time.

An entry that cannot be read goes to the dead with the reason, at once. One that ends every process that touches it,
which is a bug, is found out by how often it was taken: after ALONE times it is decided by itself, so that it takes no
others along, and after GIVEN_UP times it is dead as well.

While the store is in trouble the consumer takes nothing new. Afterwards it asks what it has taken and not settled: some
of it may have been taken, or settled, in a round trip of which it never heard the end. It takes about BATCH_BYTES at
a time, judging by the size of those before, so that its memory does not depend on what is sent.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import structlog
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from service.bodies import parse
from service.connection import GroupGone, Step, end
from service.errors import BadRequest, ServiceError, StoreUnavailable, TooLarge
from service.group import Arrived
from service.inbox import Dead, Figures, Inbox
from service.passage import Passage
from service.problems import from_validation
from service.schemas import ClassifyOptions, Document
from service.sluice import Sluice

# Documents at a time, at first, and bytes. A round trip with 256 keeps the store busy for 15 ms, in which others wait;
# with twice as many it takes as long for each, and two consumers gain less by each other.
BATCH, FIRST, BATCH_BYTES = 256, 16, 2_000_000
ALONE, GIVEN_UP = 3, 10
REPORT_S = 5.0
LATELY_S = 10.0  # over which a rate is taken
PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0  # before trying again when the store is in trouble

DOCUMENT = TypeAdapter(Document)
OPTIONS = ClassifyOptions()

log = structlog.get_logger()


class Batch(NamedTuple):
    """Entries that are decided: the documents' passage, if there were any, and what it asks for; and the dead."""

    arrived: Sequence[Arrived]
    dead: Sequence[Dead] = ()
    passage: Passage | None = None
    steps: Sequence[Step] = ()


NOTHING = Batch(())


class Consumer:
    def __init__(self, sluice: Sluice, inbox: Inbox, started_ms: int) -> None:
        self._sluice = sluice
        self._inbox = inbox
        self._config = sluice.config
        self.most = FIRST
        self._figures = Figures(started_ms)
        self._lately: deque[tuple[float, int]] = deque()
        self._looked_s = self._reported_s = 0.0
        self._astray = False  # whether this consumer may have taken what it does not know of

    async def run(self, stopping: asyncio.Event) -> None:
        """Consumes until told to stop; what is in hand then is finished, or stays pending if the store is not well."""
        opened, pause_s = True, PAUSE_S
        holding: list[Arrived] = []
        decided = NOTHING
        while holding or decided.arrived or not stopping.is_set():
            try:
                if not opened:
                    await self._inbox.group.open()
                    opened = True
                await self._report()
                if not holding and not stopping.is_set():
                    holding = await self._some(idle=not decided.arrived)
                if holding or decided.arrived:
                    decided, holding = await self._turn(decided, holding, more=not stopping.is_set())
                pause_s = PAUSE_S
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
                if stopping.is_set():
                    return
                holding, decided, self._astray = [], NOTHING, True
                opened = not isinstance(error, GroupGone)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _report(self) -> None:
        now = time.monotonic()
        if now - self._reported_s > REPORT_S:
            self._reported_s = now
            await self._inbox.report(self._figures._replace(per_s=self._rate(0)))

    async def _some(self, idle: bool) -> list[Arrived]:
        """What was taken and went astray; what somebody else left behind, now and then; else what is new, if there is
        nothing else to do than to wait for it."""
        if self._astray:
            if held := await self._inbox.group.held(self.most) if idle else []:
                return held
            self._astray = not idle  # what is decided and not written would be among it
        if self._looks():
            left = await self._inbox.group.take_over(self.most, self._config.take_over_s)
            if left:
                self._figures = self._figures._replace(taken_over=self._figures.taken_over + len(left))
                return left  # and look again at once: there may be more
            self._looked_s = time.monotonic()
        return await self._inbox.group.await_new(self.most) if idle else []

    def _looks(self) -> bool:
        """Whether it is time to look for what somebody left behind."""
        return time.monotonic() - self._looked_s > self._config.take_over_s / 2

    async def _turn(self, decided: Batch, holding: Sequence[Arrived], more: bool) -> tuple[Batch, list[Arrived]]:
        """What was decided is written, and what is in hand is decided; with that, what is in hand now."""
        suspects = [one for one in holding if one.times > ALONE]
        if suspects:
            await self._round(decided, [])
            for one in suspects:
                await self._round(await self._round(NOTHING, [one]), [])
            return NOTHING, [one for one in holding if one.times <= ALONE]
        if not more or self._astray or self._looks():
            return await self._round(decided, holding), []
        taking = asyncio.create_task(self._inbox.group.take_new(self.most))
        try:
            return await self._round(decided, holding), await taking
        finally:
            await end([taking])

    async def _round(self, decided: Batch, arrived: Sequence[Arrived]) -> Batch:
        """A round trip: one batch is written, and another, which is decided then, remembered."""
        if arrived:
            self.most = self._fitting(arrived)
        read = await self._sluice.in_thread(self._read, arrived)
        documents = [one for one in read if isinstance(one, Document)]
        passage = Passage(self._sluice.passages, documents, OPTIONS) if documents else None
        remembered = await passage.begin() if passage else []
        written = [*decided.steps, *self._settled(decided)]
        figures = self._after(decided)
        # The figures are always among it, so that a store which is full does nothing of it, rather than a part.
        answers = await self._inbox.run([*written, *remembered, *self._inbox.said(figures)])
        self._figures = figures
        if decided.passage:
            await decided.passage.finish(answers)
        steps = await passage.go_on(answers[len(written) : len(written) + len(remembered)]) if passage else []
        return Batch(arrived, [one for one in read if isinstance(one, Dead)], passage, steps)

    def _settled(self, decided: Batch) -> list[Step]:
        places = [one.place for one in decided.arrived]
        return self._inbox.settled(places, decided.dead, self._config.dead_kept) if places else []

    def _after(self, decided: Batch) -> Figures:
        """The figures when this is written."""
        before, dead = self._figures, len(decided.dead)
        documents = len(decided.arrived) - dead
        return before._replace(
            documents=before.documents + documents, dead=before.dead + dead, per_s=self._rate(documents)
        )

    def _fitting(self, arrived: Sequence[Arrived]) -> int:
        """How many to take at a time, judging by these."""
        size = sum(one.size for one in arrived) / len(arrived)
        at_once = min(BATCH, self._sluice.passages.at_once(OPTIONS))
        return max(1, min(at_once, 4 * self.most, int(BATCH_BYTES / max(1, size))))

    def _read(self, arrived: Sequence[Arrived]) -> list[Document | Dead]:
        return [self._document(one) for one in arrived]

    def _document(self, arrived: Arrived) -> Document | Dead:
        if arrived.times > GIVEN_UP:
            return Dead(arrived, f"Taken {arrived.times} times, and whoever took it ended before it was decided.")
        try:
            if arrived.size > self._config.max_body_bytes:
                raise TooLarge(f"The entry is longer than {self._config.max_body_bytes:,} bytes.")
            found = self._parsed(arrived)
            self._sluice.judging.check(found)
            return found
        except ServiceError as error:
            where = "".join(f" {one['pointer']}: {one['detail']}" for one in error.errors)
            return Dead(arrived, error.detail + where)

    def _parsed(self, arrived: Arrived) -> Document:
        """The document: in JSON as the field `document`, or with its parts as fields."""
        if set(arrived.fields) == {b"document"}:
            return parse(DOCUMENT, arrived.fields[b"document"], self._config)
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

    def _rate(self, documents: int) -> float:
        """Documents a second, lately, with these just decided."""
        now = time.monotonic()
        self._lately.append((now, documents))
        while self._lately[0][0] < now - LATELY_S:
            self._lately.popleft()
        return round(sum(n for _, n in self._lately) / LATELY_S, 1)
