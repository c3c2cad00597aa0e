"""What a consumer does: takes documents from the stream, decides them as `POST /classify` would, and settles them.

    take some  →  read each  →  classify, remember (sluice)  →  count, let through, acknowledge and delete, take more

An entry is settled with everything that follows from it, or after. Whoever is killed before leaves it pending, and
another, or its successor, takes it over; deciding a document twice does no harm (see outbox.py).

The last four are one round trip. What a batch lets through keeps the store busy for longer than anything else; were the
next batch asked for only then, that small question would wait for what another consumer writes, and the two would be
at work at the same time and wait for the store at the same time, ever after.

An entry that cannot be read goes to the dead with the reason, at once. One that ends every process that touches it,
which is a bug, is found out by how often it was taken: after ALONE times it is decided by itself, so that it takes no
others along, and after GIVEN_UP times it is dead as well.

While the store is in trouble the consumer holds on to what it has and takes nothing new. It takes about BATCH_BYTES at
a time, judging by the size of those before, so that its memory does not depend on what is sent.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence

import structlog
from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json

from service.bodies import parse
from service.connection import GroupGone
from service.errors import BadRequest, ServiceError, StoreUnavailable, TooLarge
from service.group import Arrived, entries
from service.inbox import Dead, Figures, Inbox
from service.problems import from_validation
from service.schemas import Document
from service.sluice import Sluice

# Documents at a time, at first, and bytes. What is written of 512 keeps the store busy for 20 ms, in which others wait.
BATCH, FIRST, BATCH_BYTES = 512, 16, 2_000_000
ALONE, GIVEN_UP = 3, 10
REPORT_S = 5.0
LATELY_S = 10.0  # over which a rate is taken
PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0  # before trying again when the store is in trouble

DOCUMENT = TypeAdapter(Document)

log = structlog.get_logger()


class Consumer:
    def __init__(self, sluice: Sluice, inbox: Inbox, started_ms: int) -> None:
        self._sluice = sluice
        self._inbox = inbox
        self._config = sluice.config
        self.most = FIRST
        self._figures = Figures(started_ms)
        self._lately: deque[tuple[float, int]] = deque()
        self._looked_s = self._reported_s = 0.0

    async def run(self, stopping: asyncio.Event) -> None:
        """Consumes until told to stop; what is in hand then is finished, or stays pending if the store is not well."""
        opened, pause_s = True, PAUSE_S
        holding: list[Arrived] = []
        while holding or not stopping.is_set():
            try:
                if not opened:
                    await self._inbox.group.open()
                    opened = True
                holding = holding or await self._some()
                holding, pause_s = await self._handle(holding, stopping), PAUSE_S
            except StoreUnavailable as error:
                log.warning("lost the store", detail=error.detail)
                if stopping.is_set():
                    return
                opened = not isinstance(error, GroupGone)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    async def _some(self) -> list[Arrived]:
        """What somebody else left behind, now and then; else what is new."""
        now = time.monotonic()
        if self._to_report(now):
            self._reported_s = now
            await self._inbox.report(self._figures._replace(per_s=self._rate(0)))
        if self._to_look(now):
            left = await self._inbox.group.take_over(self.most, self._config.take_over_s)
            if left:
                self._figures = self._figures._replace(taken_over=self._figures.taken_over + len(left))
                return left  # and look again at once: there may be more
            self._looked_s = now
        return await self._inbox.group.await_new(self.most)

    def _to_report(self, now: float) -> bool:
        return now - self._reported_s > REPORT_S

    def _to_look(self, now: float) -> bool:
        return now - self._looked_s > self._config.take_over_s / 2

    async def _handle(self, arrived: Sequence[Arrived], stopping: asyncio.Event) -> list[Arrived]:
        """Decides these, and takes the next along, if nothing else is to be done before."""
        suspects = [one for one in arrived if one.times > ALONE]
        for one in suspects:
            await self._decide([one], more=False)
        if others := [one for one in arrived if one.times <= ALONE]:
            now = time.monotonic()
            more = not (stopping.is_set() or self._to_report(now) or self._to_look(now))
            return await self._decide(others, more)
        return []

    async def _decide(self, arrived: Sequence[Arrived], more: bool) -> list[Arrived]:
        read = await self._sluice.in_thread(self._read, arrived)
        dead = [one for one in read if isinstance(one, Dead)]
        documents = [one for one in read if isinstance(one, Document)]
        decided = [one for one, what in zip(arrived, read, strict=True) if isinstance(what, Document)]
        before = self._figures
        figures = before._replace(
            documents=before.documents + len(decided), dead=before.dead + len(dead), per_s=self._rate(len(decided))
        )
        size = sum(one.size for one in arrived) / len(arrived)
        self.most = max(1, min(BATCH, 4 * self.most, int(BATCH_BYTES / max(1, size))))
        then = self._inbox.settled(decided, dead, self._config.dead_kept, figures)
        if more:
            then.append(self._inbox.group.taken(self.most))
        answers = await (self._sluice.classify_then(documents, then) if documents else self._inbox.run(then))
        self._figures = figures
        return entries(answers[-1]) if more else []

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
