"""Topics that leave as a file and come back as one (the format: file.py).

    export   the log as of one moment, and what is stored beside it
    import   read the whole file  →  fold its log, to check it  →  import its epochs  →  stage  →  one script

A log may be too long for one command, so it is first staged, part by part, under keys that nobody reads and that
expire; then one script gives all of it the topic's keys. A process that dies in between leaves nothing behind. The
digest of the file is kept with the topic: sending the same file again, say because the first answer was lost, changes
nothing. Replacing a topic with the file that it was imported from resets it.
"""

import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, TypeVar

from models.core.names import TAG_BITS
from models.text.idf import Frequencies
from service.archive.file import Archive, ArchiveWriter
from service.archive.lines import (
    FORMAT,
    EpochLine,
    EventLine,
    HeaderLine,
    KnownLine,
    PassedLine,
    ProjectionLine,
    SkippedLine,
    VersionLine,
    VersionRecord,
    Words,
)
from service.config import Config
from service.errors import BadInput, Conflict
from service.store.events import Event, Head
from service.store.imports import StagedTopic
from service.store.known import KnownDocument
from service.store.stream.epochs import StoredProjection
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epoch, Epochs
from service.topics.counts import TopicCounters, TopicCounts, stored_counts
from service.topics.crud import Topics
from service.topics.learning import Learning
from service.topics.projections import NumberedProjection, from_bytes
from service.topics.published import PublishedModel
from service.topics.settings import TopicSettings
from service.topics.state import TopicState

EVENT_BATCH = 200  # events that are written together
TAG_TAKEN = "A projection in this file has the tag of another one that this server has."

Outcome = Literal["made", "replaced", "there"]
T = TypeVar("T")


class Transfer:
    def __init__(
        self,
        store: Store,
        topics: Topics,
        learning: Learning,
        epochs: Epochs,
        counters: TopicCounters,
        config: Config,
        pool: Pool,
    ) -> None:
        self._store = store
        self._topics = topics
        self._learning = learning
        self._epochs = epochs
        self._counters = counters
        self._config = config
        self._pool = pool

    async def export(self, topic: str) -> AsyncIterator[bytes]:
        """The topic as a file, in chunks of lines. A missing topic, or a lost store, raises before the first chunk."""
        head, events = await self._learning.read(topic, lambda state: (state.head, tuple(state.events)))
        versions = await self._store.versions.records(topic, head.seq + 1, self._config.versions_kept)
        known = {
            document: KnownDocument.from_bytes(blob) for document, blob in (await self._store.known.load(topic)).items()
        }
        skipped = await self._store.review.skipped(topic)
        (counts,) = await self._counters.load([topic])
        current = self._epochs.current.number
        needed = {current} | {event.epoch for event in events if event.seq >= head.floor}
        stored, projected = needed & set(await self._store.epochs.numbers()), await self._store.epochs.projected()
        header = HeaderLine(format=FORMAT, topic=topic, seq=head.seq, floor=head.floor, background=current)

        async def chunks() -> AsyncIterator[bytes]:
            writer = ArchiveWriter()
            yield writer.line(header)
            for number in sorted({projected[number] for number in stored & projected.keys()}):
                if blob := await self._store.epochs.load_projection(number):
                    for line in writer.packed(ProjectionLine, number, blob):
                        yield line
            for number in sorted(stored):
                if blob := await self._store.epochs.load(number):
                    for line in writer.packed(EpochLine, number, blob):
                        yield line
            for batch in _batches(events):
                yield await self._pool.run(_event_lines, writer, batch)
            for version, record in sorted(versions):
                yield writer.line(VersionLine(version=version, record=VersionRecord.model_validate_json(record)))
            for document, item in sorted(known.items()):
                yield writer.line(KnownLine(document=document, title=item.title, words=Words.of(item.bag)))
            for document, at_ms in skipped:
                yield writer.line(SkippedLine(document=document, at_ms=at_ms))
            yield writer.line(_passed_line(counts))
            yield writer.end()

        return chunks()

    async def import_topic(self, archive: Archive, id: str | None, replace: bool) -> tuple[PublishedModel, Outcome]:
        """Makes a topic from the archive, under its own id or this one; raises Conflict if the id is taken."""
        topic = id or archive.header.topic
        await self._topics.check_room_for(topic)
        head = Head(secrets.token_hex(8), archive.header.seq, archive.header.floor)
        judged, settings = await self._pool.run(_fold, archive, topic, head, self._config.served_weights)
        self._topics.check_group(topic, settings.group)
        (existing,) = await self._store.heads([topic])
        epochs_first = replace or existing is None  # else it will most likely be refused, and leave nothing behind
        if epochs_first:
            await self._import_epochs(archive)
        outcomes: list[Outcome] = []

        async def put() -> None:
            outcomes.append(await self._put(archive, topic, head, judged, replace))
            if not epochs_first and outcomes[0] == "made":  # the topic that had the id was deleted at this moment
                await self._import_epochs(archive)

        return await self._learning.put(topic, put), outcomes[0]

    async def _import_epochs(self, archive: Archive) -> None:
        tags = {number % (1 << TAG_BITS): number for number in await self._store.epochs.projections()}
        if any(tags.get(number % (1 << TAG_BITS), number) != number for number in archive.projections):
            raise Conflict(TAG_TAKEN)
        # First the one that was in force there, then the others: see LEND in store/stream/epochs.py.
        for number in sorted(archive.epochs, key=lambda number: number != archive.header.background):
            named = archive.projected.get(number)
            projection = StoredProjection(named, archive.projections[named]) if named else None
            blob, current = archive.epochs[number], archive.header.background
            if not await self._store.epochs.lend(number, blob, current, projection):
                raise Conflict(TAG_TAKEN)  # it has come since
        await self._epochs.follow()

    async def _put(self, archive: Archive, topic: str, head: Head, judged: dict[str, str], replace: bool) -> Outcome:
        imports = self._store.imports
        try:
            await imports.stage(topic, head.born, _staged(archive, judged))
            await self._store.enlist(topic)
            counts = stored_counts(archive.ever, archive.lately, archive.as_now, await self._store.counts.passed())
            outcome = await imports.put(topic, head, counts, digest=archive.digest, replace=replace)
            # Also if it was there already: the process that put it may have died before this.
            if outcome != "taken" and (current := (await self._store.heads([topic]))[0]):
                await self._store.begin_stream(topic, current.born)
            await self._store.enlist(topic)  # once more, as in Store.create
        finally:
            await imports.discard(topic, head.born)
        if outcome == "taken":
            raise Conflict(
                f"There is a topic {topic!r} already; choose another with `id`, or replace it with `replace=true`."
            )
        return outcome


def _staged(archive: Archive, judged: dict[str, str]) -> StagedTopic:
    # The newest version is left out: publishing the topic lists it, with the digest of the model as folded here.
    past = {version: record for version, record in archive.versions.items() if version < archive.header.seq}
    known = {document: KnownDocument(title, bag).to_bytes() for document, (title, bag) in archive.known.items()}
    return StagedTopic(archive.events, judged, past, known, archive.skipped)


def _fold(archive: Archive, topic: str, head: Head, weights: int) -> tuple[dict[str, str], TopicSettings]:
    """Folds the log once, to check that it can be. Returns the judgements that stand, and the settings."""
    try:
        state = TopicState(topic, head, archive.events, weights)
        number = state.resolved.epoch
        blob = archive.epochs.get(number)
        epoch = Epoch.from_bytes(number, blob) if blob else Epoch(number, Frequencies.prior(), ())
        if named := archive.projected.get(number):
            epoch.projection = NumberedProjection(named, from_bytes(named, archive.projections[named]))
        state.build_model(epoch)
    except (ArithmeticError, ValueError, LookupError, TypeError) as error:
        raise BadInput("The log in this file is not consistent: no model can be made from it.") from error
    return {document: standing.label for document, standing in state.resolved.judged.items()}, state.settings


def _event_lines(writer: ArchiveWriter, events: Sequence[Event]) -> bytes:
    return b"".join(writer.line(EventLine.of(event)) for event in events)


def _passed_line(counts: TopicCounts) -> PassedLine:
    windows = (counts.ever, counts.lately, counts.as_now)
    ever, lately, as_now = ([window.documents, window.accepted, window.abstained] for window in windows)
    line = PassedLine(ever=ever, lately=lately)
    return line if as_now == lately else line.model_copy(update={"as_now": as_now})


def _batches(rows: Iterable[T]) -> Iterator[Sequence[T]]:
    left = iter(rows)
    while batch := list(islice(left, EVENT_BATCH)):
        yield batch
