"""Topics that leave as a file and come as one (the form of it: file.py).

    export   the log as it is at one moment, and what stands beside it
    import   read the whole file  →  fold its log, to see that it can be  →  lend its epochs  →  stage  →  one script

A log may be too long for one command, so it is first written, part by part, under names that nobody reads and that
expire; then one script gives all of it the topic's names. A process that dies meanwhile leaves nothing. The digest of
the file is kept with the topic: the same file sent again, say because the first answer got lost, changes nothing. To
replace a topic by the file that it came from is to put it back.
"""

import secrets
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, TypeVar

from models.text.idf import Frequencies
from service.archive.file import Archive, Writer
from service.archive.lines import (
    FORMAT,
    EventLine,
    HeaderLine,
    KnownLine,
    PassedLine,
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
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epoch, Epochs
from service.topics.counts import TopicCounters, TopicCounts, stored_counts
from service.topics.crud import Topics
from service.topics.learning import Learning
from service.topics.published import PublishedModel
from service.topics.state import TopicState

AT_ONCE = 200  # events that are written together

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

    # -- out -----------------------------------------------------------------------------------------------------------

    async def lines(self, topic: str) -> AsyncIterator[bytes]:
        """The topic as a file, line by line; what can fail for want of a topic or a store does so before the first."""
        head, events = await self._learning.read(topic, lambda state: (state.head, tuple(state.events)))
        versions = await self._store.versions.records(topic, head.seq + 1, self._config.versions_kept)
        known = {
            document: KnownDocument.from_bytes(blob) for document, blob in (await self._store.known.load(topic)).items()
        }
        skipped = await self._store.review.skipped(topic)
        (counts,) = await self._counters.load([topic])
        current = self._epochs.current.number
        wanted = {current} | {event.epoch for event in events if event.seq >= head.floor}
        held = wanted & set(await self._store.epochs.numbers())
        header = HeaderLine(format=FORMAT, topic=topic, seq=head.seq, floor=head.floor, background=current)

        async def written() -> AsyncIterator[bytes]:
            writer = Writer()
            yield writer.line(header)
            for number in sorted(held):
                if blob := await self._store.epochs.load(number):
                    for line in writer.epoch(number, blob):
                        yield line
            for some in _chunks(events):
                yield await self._pool.run(_written, writer, some)
            for version, record in sorted(versions):
                yield writer.line(VersionLine(version=version, record=VersionRecord.model_validate_json(record)))
            for document, found in sorted(known.items()):
                yield writer.line(KnownLine(document=document, title=found.title, words=Words.of(found.bag)))
            for document, at_ms in skipped:
                yield writer.line(SkippedLine(document=document, at_ms=at_ms))
            yield writer.line(_passed(counts))
            yield writer.end()

        return written()

    # -- in ------------------------------------------------------------------------------------------------------------

    async def take(self, archive: Archive, name: str | None, replace: bool) -> tuple[PublishedModel, Outcome]:
        """The topic of that file, under its own name or this one, and the outcome; Conflict if the name is taken."""
        topic = name or archive.header.topic
        await self._topics.check_room_for(topic)
        head = Head(secrets.token_hex(8), archive.header.seq, archive.header.floor)
        judged = await self._pool.run(_folded, archive, topic, head, self._config.served_weights)
        (standing,) = await self._store.heads([topic])
        lent = replace or standing is None  # else nothing will come of it, and what is here stays as it is
        if lent:
            await self._lend(archive)
        outcomes: list[Outcome] = []

        async def put() -> None:
            outcomes.append(await self._put(archive, topic, head, judged, replace))
            if not lent and outcomes[0] == "made":  # what had the name was deleted at this moment
                await self._lend(archive)

        return await self._learning.put(topic, put), outcomes[0]

    async def _lend(self, archive: Archive) -> None:
        # First the one that was in force there, then the others: see LEND.
        for number in sorted(archive.epochs, key=lambda number: number != archive.header.background):
            await self._store.epochs.lend(number, archive.epochs[number], archive.header.background)
        await self._epochs.follow()

    async def _put(self, archive: Archive, topic: str, head: Head, judged: dict[str, bool], replace: bool) -> Outcome:
        imports = self._store.imports
        try:
            await imports.stage(topic, head.born, _staged(archive, judged))
            await self._store.enlist(topic)
            counts = stored_counts(archive.ever, archive.lately, await self._store.counts.passed())
            outcome = await imports.put(topic, head, counts, digest=archive.digest, replace=replace)
            # Also if it was there: whoever put it may have died before this.
            if outcome != "taken" and (standing := (await self._store.heads([topic]))[0]):
                await self._store.begin_stream(topic, standing.born)
            await self._store.enlist(topic)  # once more, as in Store.create
        finally:
            await imports.discard(topic, head.born)
        if outcome == "taken":
            raise Conflict(f"There is a topic {topic!r} already; give another `id`, or say `replace`.")
        return outcome


def _staged(archive: Archive, judged: dict[str, bool]) -> StagedTopic:
    # The newest version is left out: the fold writes it anew, so that what is listed is what it came to.
    past = {version: record for version, record in archive.versions.items() if version < archive.header.seq}
    known = {document: KnownDocument(title, bag).to_bytes() for document, (title, bag) in archive.known.items()}
    return StagedTopic(archive.events, judged, past, known, archive.skipped)


def _folded(archive: Archive, topic: str, head: Head, weights: int) -> dict[str, bool]:
    """The judgements that stand, once the log has been folded to its end for a try."""
    try:
        state = TopicState(topic, head, archive.events, weights)
        number = state.resolved.epoch
        blob = archive.epochs.get(number)
        state.build_model(Epoch.from_bytes(number, blob) if blob else Epoch(number, Frequencies.prior(), ()))
    except (ArithmeticError, ValueError, LookupError, TypeError) as error:
        raise BadInput("The log of this file cannot be folded.") from error
    return {document: standing.relevant for document, standing in state.resolved.judged.items()}


def _written(writer: Writer, events: Sequence[Event]) -> bytes:
    return b"".join(writer.line(EventLine.of(event)) for event in events)


def _passed(counts: TopicCounts) -> PassedLine:
    ever, lately = ([one.documents, one.accepted, one.abstained] for one in (counts.ever, counts.lately))
    return PassedLine(ever=ever, lately=lately)


def _chunks(rows: Iterable[T]) -> Iterator[Sequence[T]]:
    left = iter(rows)
    while some := list(islice(left, AT_ONCE)):
        yield some
