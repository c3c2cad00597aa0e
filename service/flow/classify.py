"""Classifying documents that are to be stored, in two round trips to the store:

    decide          each document by itself
    remember_cmds                                       commands that remember them and note their signatures
    write_cmds      copies decided as their originals   commands that count them and append the decisions
    finish          the results

A batch *builds* the commands and is handed the replies; its caller talks to the store. So a consumer can decide one
batch while the store works on others (see consumer.py). Documents that are not stored are decided at once.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, TypeVar

import structlog
from pydantic_core import to_json

from models.text.minhash import Signatures, signatures
from service.clock import now_ms
from service.config import Config
from service.errors import StoreUnavailable
from service.schemas import ClassifyOptions, Document
from service.store.stream import outbox
from service.store.stream.documents import RememberCall, pack, unpack
from service.store.stream.outbox import Entry
from service.store.stream.signatures import SignatureLog
from service.store.topics import Step, Store
from service.tasks import BackgroundTasks, Pool, retrieve_exception
from service.topics.background import Epochs
from service.topics.counts import TopicCounters
from service.topics.crud import Topics
from service.topics.decisions.deciding import Decided, decide_documents, max_verdicts
from service.topics.decisions.registry import Registry
from service.topics.decisions.repeats import Original, originals
from service.topics.decisions.results import Classified, DocumentResult, Kept, classified, classify

LARGE_CHARS = 100_000  # of text: a request with more of it is a large one
EXPLAINING_FACTOR = 10  # explaining takes so many times longer than deciding
LARGE_REQUESTS = 2  # at a time: more would only share the cores, and learning must find a thread free
FEW_DECISIONS = 50  # are rendered faster than a thread is found

T = TypeVar("T")
Render = Callable[[Sequence[DocumentResult]], list[T]]  # results in the form that the caller answers in

log = structlog.get_logger("sluice.flow")


class Classifier:
    def __init__(
        self,
        store: Store,
        topics: Topics,
        registry: Registry,
        epochs: Epochs,
        counters: TopicCounters,
        config: Config,
        pool: Pool,
        background: BackgroundTasks,
    ) -> None:
        self.store = store
        self.registry = registry
        self.epochs = epochs
        self.counters = counters
        self.signatures = SignatureLog(store.connection, config.documents_kept)
        self.config = config
        self.pool = pool
        self._topics = topics
        self._background = background
        self._publishing = False
        self._large = asyncio.Semaphore(LARGE_REQUESTS)

    async def classify(self, documents: Sequence[Document], options: ClassifyOptions, render: Render[T]) -> list[T]:
        """The result of each document, as `render` gives it; the documents are remembered, counted and appended to the
        output streams if the options say so."""
        for topic in dict.fromkeys(options.topics or ()):
            await self._topics.find(topic)
        if not options.store:
            async with self.turn(documents, options):
                return await self.pool.run(self._rendered, documents, options, render)
        run = self.store.run
        batch = Batch(self, documents, options)
        await batch.decide()
        commands = await batch.write_cmds(await run(await batch.remember_cmds()))
        results = await batch.finish(await run(commands))
        few = sum(len(result.decisions) for result in results) <= FEW_DECISIONS
        return render(results) if few else await self.pool.run(render, results)

    def _rendered(self, documents: Sequence[Document], options: ClassifyOptions, render: Render[T]) -> list[T]:
        """Both in one call of a thread: to hand results from one to the next takes as long as to decide some."""
        return render(classify(self.registry, documents, options, self.epochs.current))

    async def classify_any(self, documents: Sequence[Document], options: ClassifyOptions, render: Render[T]) -> list[T]:
        """The same for any number of documents."""
        size = self.max_batch(options)
        batches = [documents[start : start + size] for start in range(0, len(documents), size)]
        return [result for batch in batches for result in await self.classify(batch, options, render)]

    def max_batch(self, options: ClassifyOptions) -> int:
        """The most documents in a batch: fewer if there are many topics, or many to explain."""
        return max(1, max_verdicts(options) // max(1, len(options.topics or self.registry.topics)))

    def turn(self, documents: Sequence[Document], options: ClassifyOptions) -> AbstractAsyncContextManager[Any]:
        """Waits for a turn, if the request is a large one."""
        chars = sum(len(document.text) for document in documents) * (EXPLAINING_FACTOR if options.explain else 1)
        return self._large if chars > LARGE_CHARS else nullcontext()

    async def publish_epoch_if_due(self) -> None:
        """Publishes the term counts of this process as an epoch, if there are enough of them: in the background, or,
        where epochs are to follow one another without a pause, now."""
        if self.epochs.due and not self._publishing:
            self._publishing = True
            if self.config.epoch_s:
                self._background.start(self._publish_epoch())
            else:
                await self._publish_epoch()

    async def _publish_epoch(self) -> None:
        try:
            await self.epochs.publish()
        except StoreUnavailable as error:
            log.warning("term counts of some documents are lost", detail=error.detail)
        finally:
            self._publishing = False


class Batch:
    """Documents that are to be stored, on their way through the stages above; each stage needs those before it."""

    # Filled by `decide`:
    _decided: Decided
    _blobs: dict[str, bytes]
    _signatures: Signatures
    # by `remember_cmds`:
    _remembering: RememberCall
    # by `write_cmds`:
    _seen_before: set[str]
    _updated: frozenset[str]
    _classified: Classified
    _count_cmds: list[Step]
    _counting: "asyncio.Task[None]"

    def __init__(self, classifier: Classifier, documents: Sequence[Document], options: ClassifyOptions) -> None:
        self._classifier = classifier
        self._documents = documents
        self._options = options
        self._epoch = classifier.epochs.current
        self._turn = classifier.turn(documents, options)

    async def decide(self) -> None:
        pool, registry = self._classifier.pool, self._classifier.registry
        async with self._turn:
            self._decided = await pool.run(decide_documents, registry, self._documents, self._options, self._epoch)
        await pool.run(self._prepare)

    def _prepare(self) -> None:
        self._blobs = pack(self._decided.ids, self._decided.documents, now_ms(), self._options.topics is None)
        self._signatures = signatures(self._decided.bags)

    async def remember_cmds(self) -> list[Step]:
        note, likely = await self._classifier.signatures.note_cmd(self._decided.ids, self._signatures)
        self._remembering = RememberCall(self._blobs, self._classifier.config.documents_kept, likely)
        return [note, *self._remembering.cmds]

    async def write_cmds(self, replies: Sequence[Any]) -> list[Step]:
        classifier, decided = self._classifier, self._decided
        noted, *remembered = replies
        new, known, earlier = self._remembering.results(remembered)
        self._seen_before = set(decided.ids) - new
        self._updated = await classifier.pool.run(_updated, decided, earlier) if earlier else frozenset()
        copied = await self._originals(await classifier.signatures.repeats(decided.ids, noted), known)
        async with self._turn:
            results = await classifier.pool.run(
                classified, classifier.registry, decided, self._options, self._epoch, copied, self._updated
            )
        self._classified = results
        self._count_cmds = await classifier.counters.count_cmds(results, new, self._options.topics)
        # The terms are counted in a thread while the store is busy.
        original = new - {results.ids[place] for place in results.repeats}
        counting = classifier.pool.run(classifier.epochs.count, results.ids, results.bags, original)
        self._counting = asyncio.create_task(counting)
        self._counting.add_done_callback(retrieve_exception)  # it is not awaited if the store fails
        return [*self._count_cmds, *self._outbox_cmds()]

    async def finish(self, replies: Sequence[Any]) -> list[DocumentResult]:
        if self._count_cmds:
            self._classifier.counters.note_replies(replies)
        await self._counting
        await self._classifier.publish_epoch_if_due()
        return self._classified.results

    async def _originals(self, repeated: Mapping[str, str], known: Mapping[str, bytes | None]) -> dict[int, Original]:
        """The documents that those in the batch repeat, by place. Almost all of them came with the replies."""
        if not repeated:
            return {}
        classifier, ids = self._classifier, set(repeated.values())
        missing = list(ids - known.keys())
        loaded = await classifier.store.documents.load(missing)
        stored = {**known, **dict(zip(missing, loaded, strict=True))}
        blobs = [blob for id in ids if (blob := stored[id])]

        def find() -> dict[int, Original]:
            remembered = list(map(unpack, blobs))
            return originals(classifier.registry, self._decided, repeated, remembered, self._options, self._epoch)

        return await classifier.pool.run(find)

    def _outbox_cmds(self) -> list[Step]:
        """Commands that append what was not rejected to the output streams. Documents need not be new: an earlier
        attempt may have been interrupted."""
        commands: list[Step] = []
        for topic, all_kept in self._classified.kept.items():
            if model := self._classifier.registry.topics.get(topic):
                entries = [self._entry(topic, kept) for kept in all_kept]
                out_kept = self._classifier.config.out_kept
                commands += outbox.append_cmds(topic, model.born, entries, out_kept, self._seen_before)
        return commands

    def _entry(self, topic: str, kept: Kept) -> Entry:
        document, id = self._documents[kept.place], self._classified.ids[kept.place]
        repeat = self._classified.repeats.get(kept.place)
        return Entry(
            outbox.entry_id(topic, id),
            kept.decision,
            kept.score,
            kept.version,
            id,
            document.title,
            document.text,
            repeat.original if repeat else "",
            document.source or "",
            document.published or "",
            to_json(document.metadata).decode() if document.metadata else "",
            "" if kept.certain is None else to_json(kept.certain).decode(),
            document.url or "",
            document.author or "",
            document.language or "",
            to_json(True).decode() if id in self._updated else "",
        )


def _updated(decided: Decided, earlier: Mapping[str, bytes]) -> frozenset[str]:
    """Those of the documents that came before with another title or text."""
    texts = {id: (document.title, document.text) for id, document in zip(decided.ids, decided.documents, strict=True)}
    remembered = {id: unpack(blob).document for id, blob in earlier.items()}
    return frozenset(id for id, before in remembered.items() if (before.title, before.text) != texts[id])
