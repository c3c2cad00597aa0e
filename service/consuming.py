"""What a consumer does: takes documents from the stream, decides them as `POST /classify` would, and settles them.

    take some  →  read and decide each  →  remember  →  count, let through  →  acknowledge and delete

An entry is settled after everything that follows from it is durable. Whoever is killed in between leaves it pending,
and another, or its successor, takes it over; deciding a document twice does no harm (see outbox.py).

Batches follow one another as on a belt. In one round trip a batch is remembered, what follows from an earlier one is
written, and one that was written is settled. Meanwhile the next is decided, and the one between is answered: a document
is as much work for the store as for a consumer, and whatever is done between two round trips has both wait for each
other.

    round trip      1              2              3              4              5
    batch 1         remembered                    written        settled
    batch 2                        remembered                    written        settled
    meanwhile       2 decided      1 answered     2 answered
                    3 taken        3 decided      4 decided      …

Only what is new is taken beside it, in a question of its own: in the answer it would not fit into a socket's buffer.
With more questions consumers fall into step: one waits while another's batch is written, and from then on all are at
work, and all wait, at the same time.

An entry that cannot be read goes to the dead with the reason, at once. One that ends every process that touches it,
which is a bug, is found out by how often it was taken: after ALONE times it is decided by itself, and after GIVEN_UP
times it is dead as well. It takes no others along: of those that are to be decided by themselves, one counts as taken
only when it is its turn.

While the store is in trouble the consumer takes nothing new. Afterwards it asks what it has taken and not settled: some
of it may have been taken, or settled, in a round trip of which it never heard the end. It takes about BATCH_BYTES at
a time, judging by the size of those before, so that its memory does not depend on what is sent.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import structlog
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from service.bodies import parse
from service.connection import GroupGone, Step, end
from service.errors import BadInput, BadRequest, ServiceError, StoreUnavailable, TooLarge, in_a_line
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
PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0  # before trying again while the store is in trouble

DOCUMENT = TypeAdapter(Document)
OPTIONS = ClassifyOptions()

log = structlog.get_logger()


class Batch(NamedTuple):
    """Entries that are read: the dead, and the others' passage, if there are any, with what it was told last, and what
    it asks for next."""

    arrived: Sequence[Arrived]
    dead: Sequence[Dead] = ()
    passage: Passage | None = None
    told: Sequence[Any] = ()
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
        self._decided = self._remembered = self._answered = self._written = NOTHING  # the newest that got so far
        self._pause_s = PAUSE_S
        self._astray = False  # whether this consumer may have taken what it does not know of

    async def run(self, stopping: asyncio.Event) -> None:
        """Consumes until told to stop; what is in hand then is finished, or stays pending if the store is not well."""
        opened = True
        holding: list[Arrived] = []
        while holding or not self._idle or not stopping.is_set():
            try:
                if not opened:
                    await self._inbox.group.open()
                    opened = True
                await self._report()
                if not holding and self._idle:
                    holding = await self._some()
                holding = await self._turn(holding, more=not stopping.is_set())
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
                if stopping.is_set():
                    return
                # Without its group an entry is held by nobody: then only who has it in hand can decide it.
                holding = holding if isinstance(error, GroupGone) else []
                opened, self._astray = not isinstance(error, GroupGone), True
                await asyncio.sleep(self._pause_s)
                self._pause_s = min(2 * self._pause_s, LONGEST_PAUSE_S)

    @property
    def _idle(self) -> bool:
        """Whether everything that was decided is written and settled."""
        belt = self._decided, self._remembered, self._answered, self._written
        return not any(batch.arrived for batch in belt)

    async def _report(self) -> None:
        now = time.monotonic()
        if now - self._reported_s > REPORT_S:
            self._reported_s = now
            await self._inbox.report(self._figures._replace(per_s=self._rate()))

    async def _some(self) -> list[Arrived]:
        """What was taken and went astray; what somebody else left behind, now and then; else what is new."""
        if self._astray:
            if held := await self._inbox.group.held(self.most):
                return held
            self._astray = False
        if self._looks():
            left = await self._inbox.group.take_over(self.most, self._config.take_over_s)
            if left:
                self._figures = self._figures._replace(taken_over=self._figures.taken_over + len(left))
                return left  # and look again at once: there may be more
            self._looked_s = time.monotonic()
        return await self._inbox.group.await_new(self.most)

    def _looks(self) -> bool:
        """Whether it is time to look for what somebody left behind."""
        return time.monotonic() - self._looked_s > self._config.take_over_s / 2

    async def _turn(self, holding: Sequence[Arrived], more: bool) -> list[Arrived]:
        """What is in hand is decided; what is in hand now."""
        suspects = [one for one in holding if one.times > ALONE]
        if suspects:
            await self._finish()
            group = self._inbox.group
            await self._inbox.run([group.counted(one.place, one.times - 1) for one in suspects])
            for one in suspects:
                await self._inbox.run([group.counted(one.place, one.times)])
                await self._round([one])
                await self._finish()
            return [one for one in holding if one.times <= ALONE]
        if not holding or not more or self._astray or self._looks():
            if holding or not self._idle:
                await self._round(holding)
            return []
        taking = asyncio.create_task(self._inbox.group.take_new(self.most))
        try:
            await self._round(holding)
        except BaseException:
            await end([taking])
            raise
        try:
            return await taking
        except StoreUnavailable as error:
            log.warning("lost the store", detail=error.detail)
            self._astray = True
            return []

    async def _finish(self) -> None:
        """All that was decided is written and settled."""
        while not self._idle:
            await self._round([])

    async def _round(self, arrived: Sequence[Arrived]) -> None:
        """A round trip, if anything is on the belt: everything moves on by a place, and these are decided."""
        if self._idle:
            self._decided = await self._read_and_decided(arrived)
            return
        decided, remembered, answered, written = self._decided, self._remembered, self._answered, self._written
        asked = await decided.passage.remember() if decided.passage else []
        figures = self._after(answered)
        # The figures are always among it: a store that is full refuses them, and with them the rest.
        steps = [*answered.steps, *asked, *self._settled(written), *self._inbox.said(figures)]
        # If the store is lost now, all of them are in doubt, and decided once more.
        self._decided = self._remembered = self._answered = self._written = NOTHING
        answering = asyncio.create_task(self._with_answers(remembered))  # which begin when everything is sent
        deciding = asyncio.create_task(self._read_and_decided(arrived))
        try:
            told = await self._inbox.run(steps)
            self._pause_s = PAUSE_S
            self._lately.append((time.monotonic(), len(answered.arrived) - len(answered.dead)))
            self._written, self._figures = answered._replace(passage=None, steps=()), figures
            if answered.passage:
                await answered.passage.finish(told)
            first = len(answered.steps)
            self._remembered = decided._replace(told=told[first : first + len(asked)])
            self._answered = await answering
            self._decided = await deciding
        except BaseException:
            await end([answering, deciding])
            raise

    async def _with_answers(self, remembered: Batch) -> Batch:
        steps = await remembered.passage.go_on(remembered.told) if remembered.passage else []
        return remembered._replace(told=(), steps=steps)

    async def _read_and_decided(self, arrived: Sequence[Arrived]) -> Batch:
        if not arrived:
            return NOTHING
        self.most = self._fitting(arrived)
        read = await self._sluice.in_thread(self._read, arrived)
        documents = [one for one in read if isinstance(one, Document)]
        passage = Passage(self._sluice.passages, documents, OPTIONS) if documents else None
        if passage:
            await passage.decide()
        return Batch(arrived, [one for one in read if isinstance(one, Dead)], passage)

    def _settled(self, written: Batch) -> list[Step]:
        places = [one.place for one in written.arrived]
        return self._inbox.settled(places, written.dead, self._config.dead_kept) if places else []

    def _after(self, answered: Batch) -> Figures:
        """The figures when this is written."""
        before, dead = self._figures, len(answered.dead)
        documents = len(answered.arrived) - dead
        return before._replace(documents=before.documents + documents, dead=before.dead + dead, per_s=self._rate())

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
            return Dead(arrived, in_a_line(error.detail, error.errors))

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
        while self._lately and self._lately[0][0] < time.monotonic() - LATELY_S:
            self._lately.popleft()
        return round(sum(n for _, n in self._lately) / LATELY_S, 1)
