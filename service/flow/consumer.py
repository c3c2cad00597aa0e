"""A consumer: reads documents from the stream `sluice:in`, decides them as `POST /classify` would, acknowledges them.

    read  →  parse and decide  →  remember  →  prepare the writes  →  write  →  acknowledge and delete

An entry is acknowledged after all its results are durable. If the consumer is killed before that, the entry stays
pending, and another consumer claims it. Deciding a document twice does no harm (see store/stream/outbox.py).

New entries go through a pipeline with a batch in each stage, so that one batch is decided while the store works on
others: a document costs the store more than half of what it costs a consumer. Each stage handles one batch at a time,
so a consumer's output keeps the order of its input. A stage waits for its neighbours only: when all of them advanced
together, in one round trip, two consumers soon fell into step, both computing and then both waiting.

Pending entries of a consumer that died, or of a round trip whose reply was lost, are claimed while the pipeline is
empty, and decided one batch after the other.

An entry that cannot be parsed becomes a dead letter at once, with the reason. One that kills every process that decides
it, which would be a bug, is recognised by its delivery count: above ALONE_AFTER it is decided by itself, above
GIVE_UP_AFTER it becomes a dead letter, too. Entries that were claimed together with it are safe: of those that are to
be decided by themselves, each counts as delivered only when its turn comes.

While the store is unavailable the consumer reads nothing new. A batch has about BATCH_BYTES, going by the size of the
entries before it, so that memory does not depend on what producers send.
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
from service.store.redis.consumer_group import Arrived
from service.store.stream.inbox import ConsumerStats, Dead, Inbox
from service.store.topics import Step
from service.tasks import cancel_all

# Entries in a batch, at most and at first, and bytes. A round trip with 256 entries blocks the store for 15 ms.
MAX_BATCH, FIRST_BATCH, BATCH_BYTES = 256, 16, 2_000_000
MAX_IN_FLIGHT = 5  # batches in the pipeline
ALONE_AFTER, GIVE_UP_AFTER = 3, 10  # deliveries of an entry
REPORT_S = 5.0
RATE_WINDOW_S = 10.0
RETRY_S, MAX_RETRY_S = 0.1, 2.0  # before the store is tried again: at first, and after doubling

DOCUMENT = TypeAdapter(Document)
OPTIONS = ClassifyOptions()

log = structlog.get_logger("sluice.flow")


class ConsumerBatch(NamedTuple):
    """Entries of the stream: the dead letters among them and the batch of all other documents, if there are any, with
    the store's last replies and the next commands."""

    entries: Sequence[Arrived]
    dead: Sequence[Dead]
    documents: Batch | None
    replies: Sequence[Any] = ()
    commands: Sequence[Step] = ()


T = TypeVar("T")
R = TypeVar("R")
Pipe = asyncio.Queue[T | None]  # None: the end


class Consumer:
    def __init__(self, classifier: Classifier, inbox: Inbox, started_ms: int) -> None:
        self._classifier = classifier
        self._inbox = inbox
        self._config = classifier.config
        self.batch_size = FIRST_BATCH
        self._stats = ConsumerStats(started_ms)
        self._recent: deque[tuple[float, int]] = deque()  # documents, by time
        self._claimed_s = self._reported_s = 0.0
        self._retry_s = RETRY_S
        self._group_open = True
        self._check_own = False  # whether entries may be pending for this consumer that it does not know of

    async def run(self, stopping: asyncio.Event) -> None:
        """Consumes until `stopping` is set; then batches in flight are finished, or left pending if the store fails."""
        while not stopping.is_set():
            try:
                if not self._group_open:
                    await self._inbox.group.open()
                    self._group_open = True
                await self._report()
                if pending := await self._fetch_pending():
                    await self._process_pending(pending)
                elif entries := await self._inbox.group.wait_new(self.batch_size):
                    await self._process_new(entries, stopping)
            except StoreUnavailable as error:
                self._note_outage(error)
                if not stopping.is_set():
                    await asyncio.sleep(self._retry_s)
                    self._retry_s = min(2 * self._retry_s, MAX_RETRY_S)

    def _note_outage(self, error: StoreUnavailable) -> None:
        log.warning("lost the store", detail=error.detail)
        self._check_own, self._group_open = True, self._group_open and not isinstance(error, GroupGone)

    async def _report(self) -> None:
        now = time.monotonic()
        if now - self._reported_s > REPORT_S:
            self._reported_s = now
            await self._inbox.report(self._stats._replace(per_s=self._rate()))

    # -- pending entries -----------------------------------------------------------------------------------------------

    async def _fetch_pending(self) -> list[Arrived]:
        """Entries that are pending for this consumer, after an outage; those of dead consumers, if a claim is due."""
        if self._check_own:
            if pending := await self._inbox.group.own_pending(self.batch_size):
                return pending
            self._check_own = False
        if not self._claim_due():
            return []
        # A full store refuses the report, and so nothing is claimed. Otherwise consumers would claim from each other
        # what none of them can write, until its delivery count made it a dead letter.
        await self._inbox.report(self._stats)
        claimed = await self._inbox.group.claim_idle(self.batch_size, self._config.take_over_s)
        if claimed:  # there may be more: the claim stays due
            self._stats = self._stats._replace(taken_over=self._stats.taken_over + len(claimed))
        else:
            self._claimed_s = time.monotonic()
        return claimed

    def _claim_due(self) -> bool:
        return time.monotonic() - self._claimed_s > self._config.take_over_s / 2

    async def _process_pending(self, pending: Sequence[Arrived]) -> None:
        self._check_own = True  # until all of them are acknowledged
        self.batch_size = self._next_batch_size(pending)
        group = self._inbox.group
        suspects = [entry for entry in pending if entry.deliveries > ALONE_AFTER]
        if suspects:
            await self._inbox.run([group.set_deliveries_cmd(entry.place, entry.deliveries - 1) for entry in suspects])
        for entry in suspects:
            await self._inbox.run([group.set_deliveries_cmd(entry.place, entry.deliveries)])
            await self._process([entry])
        if others := [entry for entry in pending if entry.deliveries <= ALONE_AFTER]:
            await self._process(others)

    async def _process(self, entries: Sequence[Arrived]) -> None:
        batch = await self._prepare_writes(await self._remember(await self._decide(entries)))
        await self._acknowledge(await self._write(batch))

    # -- new entries ---------------------------------------------------------------------------------------------------

    async def _process_new(self, entries: list[Arrived], stopping: asyncio.Event) -> None:
        """Sends these entries and new ones after them through the pipeline, until there are none or a claim is due."""
        slots, read = asyncio.Semaphore(MAX_IN_FLIGHT), Pipe[list[Arrived]]()
        decided, remembered, prepared, written = (
            Pipe[ConsumerBatch](),
            Pipe[ConsumerBatch](),
            Pipe[ConsumerBatch](),
            Pipe[ConsumerBatch](),
        )

        async def leave(batch: ConsumerBatch) -> None:
            await self._acknowledge(batch)
            slots.release()

        stages = [
            asyncio.create_task(stage)
            for stage in (
                self._read(entries, slots, read, stopping),
                _stage(read, self._decide, decided),
                _stage(decided, self._remember, remembered),
                _stage(remembered, self._prepare_writes, prepared),
                _stage(prepared, self._write, written),
                _stage(written, leave),
            )
        ]
        try:
            await asyncio.gather(*stages)
        finally:
            await cancel_all(stages)  # if one failed, the batches in the others stay pending

    async def _read(
        self, entries: list[Arrived], slots: asyncio.Semaphore, output: Pipe[list[Arrived]], stopping: asyncio.Event
    ) -> None:
        """Passes on these entries and reads new ones. If reading fails, batches in the pipeline can still finish."""
        while entries:
            await slots.acquire()
            self.batch_size = self._next_batch_size(entries)  # now: the next ones are read before these are decided
            output.put_nowait(entries)
            entries = []
            if not stopping.is_set() and not self._claim_due():
                try:
                    entries = await self._inbox.group.read_new(self.batch_size)
                except StoreUnavailable as error:
                    self._note_outage(error)
        output.put_nowait(None)

    # -- the stages ----------------------------------------------------------------------------------------------------

    async def _decide(self, entries: Sequence[Arrived]) -> ConsumerBatch:
        parsed = await self._classifier.pool.run(self._parse_all, entries)
        documents = [document for document in parsed if isinstance(document, Document)]
        batch = Batch(self._classifier, documents, OPTIONS) if documents else None
        if batch:
            await batch.decide()
        return ConsumerBatch(entries, [dead for dead in parsed if isinstance(dead, Dead)], batch)

    async def _remember(self, batch: ConsumerBatch) -> ConsumerBatch:
        if not batch.documents:
            return batch
        return batch._replace(replies=await self._inbox.run(await batch.documents.remember_cmds()))

    async def _prepare_writes(self, batch: ConsumerBatch) -> ConsumerBatch:
        return batch._replace(commands=await batch.documents.write_cmds(batch.replies)) if batch.documents else batch

    async def _write(self, batch: ConsumerBatch) -> ConsumerBatch:
        if batch.documents:
            # With the report, because a full store refuses it, and then the other commands, too.
            commands = [*batch.commands, *self._inbox.report_cmds(self._stats)]
            await batch.documents.finish(await self._inbox.run(commands))
        return batch

    async def _acknowledge(self, batch: ConsumerBatch) -> None:
        stats, dead = self._stats, len(batch.dead)
        documents = len(batch.entries) - dead
        self._recent.append((time.monotonic(), documents))
        self._stats = stats._replace(documents=stats.documents + documents, dead=stats.dead + dead, per_s=self._rate())
        places = [entry.place for entry in batch.entries]
        commands = self._inbox.ack_cmds(places, batch.dead, self._config.dead_kept)
        await self._inbox.run([*commands, *self._inbox.report_cmds(self._stats)])
        self._retry_s = RETRY_S

    def _next_batch_size(self, entries: Sequence[Arrived]) -> int:
        """How many entries to read next, going by the size of these; at most four times as many as before."""
        size = sum(entry.size for entry in entries) / len(entries)
        limit = min(MAX_BATCH, self._classifier.max_batch(OPTIONS))
        return max(1, min(limit, 4 * self.batch_size, int(BATCH_BYTES / max(1, size))))

    def _parse_all(self, entries: Sequence[Arrived]) -> list[Document | Dead]:
        return [self._parse_entry(entry) for entry in entries]

    def _parse_entry(self, entry: Arrived) -> Document | Dead:
        if entry.deliveries > GIVE_UP_AFTER:
            reason = f"Delivered {entry.deliveries} times; each time the consumer died before it was decided."
            return Dead(entry, reason)
        try:
            if entry.size > self._config.max_body_bytes:
                raise TooLarge(f"The entry is longer than {self._config.max_body_bytes:,} bytes.")
            document = self._parse_document(entry)
            check_length(document, self._config.max_text_chars)
            return document
        except ServiceError as error:
            return Dead(entry, one_line(error.detail, error.errors))

    def _parse_document(self, entry: Arrived) -> Document:
        """Parses the field `document`, which is JSON; or the fields of the entry as those of a document."""
        if set(entry.fields) == {b"document"}:
            return parse(DOCUMENT, entry.fields[b"document"], self._config)
        if b"document" in entry.fields:
            raise BadInput("An entry has either the field `document` or the document's own fields, not both.")
        try:
            texts = {name.decode(): value.decode() for name, value in entry.fields.items()}
            fields = {name: from_json(text) if name == "metadata" else text for name, text in texts.items()}
        except UnicodeDecodeError:
            raise BadRequest("A field is not UTF-8.") from None
        except ValueError:
            raise BadRequest("The field `metadata` is not JSON.") from None
        try:
            return DOCUMENT.validate_python(fields)
        except ValidationError as error:
            raise from_validation(error) from None

    def _rate(self) -> float:
        """Documents a second, over the last RATE_WINDOW_S."""
        while self._recent and self._recent[0][0] < time.monotonic() - RATE_WINDOW_S:
            self._recent.popleft()
        return round(sum(count for _, count in self._recent) / RATE_WINDOW_S, 1)


async def _stage(source: Pipe[T], work: Callable[[T], Awaitable[R]], output: Pipe[R] | None = None) -> None:
    """Runs one stage of the pipeline until its source ends."""
    while (item := await source.get()) is not None:
        result = await work(item)
        if output is not None:
            output.put_nowait(result)
    if output is not None:
        output.put_nowait(None)
