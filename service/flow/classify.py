"""The way of some documents through the service.

    decide      each by itself
    remember                                               the store is asked to remember them, and what they repeat
    go_on       they are decided like those they repeat    the store is asked to count them, and to let them through
    finish      the results

A passage says what it asks of the store, and is told the answers; who sends it on its way talks with the store. So what
two passages ask for can go in one round trip, while a third is decided (see consumer.py).
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

import structlog
from pydantic_core import to_json

from models.text.minhash import Signatures, signatures
from service.clock import now_ms
from service.config import Config
from service.errors import StoreUnavailable
from service.schemas import ClassifyOptions, Document
from service.store import outbox
from service.store.documents import Remembering, packed
from service.store.outbox import Entry
from service.store.signatures import SignatureLog
from service.store.topics import Step, Store
from service.tasks import Background, Pool, retrieve_exception
from service.topics.background import Epochs
from service.topics.counts import TopicCounters
from service.topics.crud import Topics
from service.topics.deciding import Classified, Decided, First, Kept, Serving, most

LARGE_CHARS, EXPLAINING = 100_000, 10  # of text in a large request; explaining takes ten times as long

log = structlog.get_logger("sluice.flow")


class Classifier:
    def __init__(
        self,
        store: Store,
        topics: Topics,
        serving: Serving,
        epochs: Epochs,
        counters: TopicCounters,
        config: Config,
        pool: Pool,
        background: Background,
    ) -> None:
        self.store = store
        self.topics = topics
        self.serving = serving
        self.epochs = epochs
        self.counters = counters
        self.repeats = SignatureLog(store.connection, config.documents_kept)
        self.config = config
        self.pool = pool
        self._background = background
        self._publishing = False
        # Two large requests at a time, since more would only share the cores; the other threads are for small ones and
        # for learning, which must find one free.
        self._large = asyncio.Semaphore(2)

    async def classify(self, documents: Sequence[Document], options: ClassifyOptions) -> list[bytes]:
        """A result for each document, as JSON; remembered, counted and let through if the options say so."""
        for topic in dict.fromkeys(options.topics or ()):
            await self.topics.find(topic)
        if options.store:
            run = self.store.run
            passage = Batch(self, documents, options)
            await passage.decide()
            asked = await passage.go_on(await run(await passage.remember()))
            return await passage.finish(await run(asked))
        async with self.turn(documents, options):
            classified = await self.pool.run(self.serving.classify, documents, options, self.epochs.current)
        return classified.results

    async def classify_any(self, documents: Sequence[Document], options: ClassifyOptions) -> list[bytes]:
        """As `classify`, for any number of documents."""
        size = self.at_once(options)
        batches = [documents[start : start + size] for start in range(0, len(documents), size)]
        return [result for batch in batches for result in await self.classify(batch, options)]

    def publish_if_due(self) -> None:
        """Publishes the counts of this process as another epoch, in the background, if there are enough of them."""
        if self.epochs.due and not self._publishing:
            self._publishing = True
            self._background.start(self._publish())

    async def _publish(self) -> None:
        try:
            await self.epochs.publish()
        except StoreUnavailable as error:
            log.warning("counts of some documents are lost", detail=error.detail)
        finally:
            self._publishing = False

    def at_once(self, options: ClassifyOptions) -> int:
        """Documents that one passage should have at most: fewer with very many topics, or explanations of many."""
        return max(1, most(options) // max(1, len(options.topics or self.serving.topics)))

    def turn(self, documents: Sequence[Document], options: ClassifyOptions) -> AbstractAsyncContextManager[Any]:
        chars = sum(len(document.text) for document in documents) * (EXPLAINING if options.explain else 1)
        return self._large if chars > LARGE_CHARS else nullcontext()


class Batch:
    """Of documents that are to be stored."""

    _decided: Decided
    _blobs: dict[str, bytes]
    _signed: Signatures
    _remembering: Remembering
    _again: set[str]  # documents that had come before
    _classified: Classified
    _counts: list[Step]
    _counting: "asyncio.Task[None]"

    def __init__(self, way: Classifier, documents: Sequence[Document], options: ClassifyOptions) -> None:
        self._way = way
        self._documents = documents
        self._options = options
        self._epoch = way.epochs.current
        self._turn = way.turn(documents, options)

    async def decide(self) -> None:
        way = self._way
        async with self._turn:
            self._decided = await way.pool.run(way.serving.decide, self._documents, self._options, self._epoch)
        await way.pool.run(self._prepare)

    def _prepare(self) -> None:
        self._blobs = packed(self._decided.ids, self._decided.documents, now_ms(), self._options.topics is None)
        self._signed = signatures(self._decided.bags)

    async def remember(self) -> list[Step]:
        way = self._way
        note, likely = await way.repeats.note(self._decided.ids, self._signed)
        self._remembering = Remembering(self._blobs, way.config.documents_kept, likely)
        return [note, *self._remembering.steps]

    async def go_on(self, answers: Sequence[Any]) -> list[Step]:
        way, decided = self._way, self._decided
        noted, *remembered = answers
        new, known = self._remembering.heard(remembered)
        self._again = set(decided.ids) - new
        firsts = await self._firsts(await way.repeats.hear(decided.ids, noted), known)
        async with self._turn:
            found = await way.pool.run(way.serving.answer, decided, self._options, self._epoch, firsts)
        self._classified = found
        self._counts = await way.counters.counting(found, new, self._options.topics)
        # In a thread, while the store is at work.
        unlike = new - {found.ids[place] for place in found.repeats}
        self._counting = asyncio.create_task(way.pool.run(way.epochs.count, found.ids, found.bags, unlike))
        self._counting.add_done_callback(retrieve_exception)  # if the store is lost, nobody comes for it
        return [*self._counts, *self._outgoing()]

    async def finish(self, answers: Sequence[Any]) -> list[bytes]:
        if self._counts:
            self._way.counters.heard(answers)
        await self._counting
        self._way.publish_if_due()
        return self._classified.results

    async def _firsts(self, repeated: Mapping[str, str], known: Mapping[str, bytes | None]) -> dict[int, First]:
        """By place, the documents that some of them repeat; almost all of these are known already."""
        if not repeated:
            return {}
        firsts = set(repeated.values())
        missing = list(firsts - known.keys())
        more = await self._way.store.documents.recall(missing)
        found = {**known, **dict(zip(missing, more, strict=True))}
        blobs = [blob for name in firsts if (blob := found[name])]
        serving = self._way.serving
        return await self._way.pool.run(serving.firsts, self._decided, repeated, blobs, self._options, self._epoch)

    def _outgoing(self) -> list[Step]:
        """What lets through all that was not rejected, be it new or not: the last time may have been cut short."""
        steps: list[Step] = []
        for topic, kept in self._classified.kept.items():
            if served := self._way.serving.topics.get(topic):
                entries = [self._entry(topic, one) for one in kept]
                steps += outbox.append(topic, served.born, entries, self._way.config.out_kept, self._again)
        return steps

    def _entry(self, topic: str, kept: Kept) -> Entry:
        classified, whole = self._classified, self._documents[kept.place]
        document, repeat = classified.ids[kept.place], classified.repeats.get(kept.place)
        how = kept.decision, kept.score, kept.version
        first = repeat.first if repeat else ""
        about = whole.source or "", whole.published or "", to_json(whole.metadata).decode() if whole.metadata else ""
        return Entry(outbox.entry_id(topic, document), *how, document, whole.title, whole.text, first, *about)
