"""The service in one object: its parts put together, and the journeys of a document and of a judgement.

    document    tokenise, score, decide (serving)  →  remember it, count it (store, background)
    judgement   find the document  →  its features, what had been decided  →  append, fold, publish (learning)

Everything that may take longer than a millisecond or two runs in a thread; the kernels there release the interpreter.
"""

import asyncio
import re
import unicodedata
import zlib
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

import numpy as np
import structlog

from models.fold import Model
from models.function_words import ENGLISH
from models.learners import parse_params
from models.shape import shape
from models.text import Analysis, bags, terms
from models.views import view
from service import codec, overlay
from service.background import Epoch, Epochs, Sampled
from service.config import Settings as Config
from service.errors import BadInput, FieldError, NotFound, ServiceError, StoreUnavailable, TooLarge
from service.folding import Fold, to_bag
from service.following import Following
from service.journal import Event
from service.learning import Learning, now_ms
from service.schemas import (
    Before,
    ClassifyOptions,
    Document,
    Judgement,
    Learned,
    Learner,
    NewTopic,
    TopicChange,
    TopicFields,
)
from service.served import Served, Settings
from service.serving import DIGITS, Classified, Serving, content_id
from service.store import Head, Store

STOP_AGAIN_S = 0.2
LARGE_CHARS, EXPLAINING = 100_000, 10  # of text in a large request; explaining takes ten times as long
LOGGED_TERMS = 2000  # distinct terms of a judged document; one of ten pages has some hundred
TITLE_CHARS = 200  # of a judged document's title, kept with the judgement

log = structlog.get_logger()

P = ParamSpec("P")
R = TypeVar("R")


class Sluice:
    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.store = store
        self.epochs = Epochs(store)
        self.serving = Serving(
            Analysis(
                title_weight=config.title_weight,
                stemmer=config.stemmer,
                stop_words=ENGLISH if config.stop_words else frozenset(),
                bigrams=config.bigrams,
            )
        )
        # Two large requests at a time, since more would only share the cores; the other threads are for small ones and
        # for learning, which must find one free.
        self._pool = ThreadPoolExecutor(8, "sluice")
        self._large = asyncio.Semaphore(2)
        self.learning = Learning(store, self.epochs, config, self._pool, self.serving.put)
        self.following = Following(store, self.serving, self.learning, self.epochs, config.sweep_s)
        self._tasks: set[asyncio.Task[None]] = set()
        self._publishing = False

    async def start(self) -> None:
        """Begins to listen; topics are served as soon as they are loaded, and `ready` says when."""
        await self.in_thread(self._rehearse)
        self._background(self.following.listen())
        self._background(self.following.sweep())

    async def stop(self) -> None:
        while tasks := set(self._tasks):
            for task in tasks:
                task.cancel()  # more than once if need be: redis-py swallows a cancellation that meets it connecting
            await asyncio.wait(tasks, timeout=STOP_AGAIN_S)
        self._pool.shutdown(wait=True)
        await self.store.close()

    # -- documents -----------------------------------------------------------------------------------------------------

    async def classify(self, documents: Sequence[Document], options: ClassifyOptions) -> list[bytes]:
        """A result for each document, as JSON; remembered and counted if the options say so."""
        for topic in dict.fromkeys(options.topics or ()):
            await self.find(topic)
        chars = sum(len(document.text) for document in documents) * (EXPLAINING if options.explain else 1)
        async with self._large if chars > LARGE_CHARS else nullcontext():
            classified = await self.in_thread(self.serving.classify, documents, options, self.epochs.current)
        if options.store:
            await self._remember(documents, classified)
        return classified.results

    async def _remember(self, documents: Sequence[Document], classified: Classified) -> None:
        blobs = await self.in_thread(_blobs, classified.ids, documents)
        new = await self.store.remember(blobs, self.config.documents_kept)
        fresh = {document for document, is_new in new.items() if is_new}
        await self.in_thread(self.epochs.count, classified.ids, classified.bags, fresh)
        if self.epochs.due and not self._publishing:
            self._publishing = True
            self._background(self._publish_epoch())

    async def _publish_epoch(self) -> None:
        try:
            await self.epochs.publish()
        except StoreUnavailable as error:
            log.warning("counts of some documents are lost", detail=error.detail)
        finally:
            self._publishing = False

    # -- judgements ----------------------------------------------------------------------------------------------------

    async def judge(self, judgements: Sequence[Judgement]) -> list[Learned | ServiceError]:
        """Each judgement durable and learned, or why not; one that fails leaves the others alone."""
        found = await self._documents(judgements)
        epoch = self.epochs.current
        answers: dict[int, Learned | ServiceError] = {}
        of_topic: dict[str, list[tuple[int, Event, Before]]] = {}
        for i, judgement in enumerate(judgements):
            source = found[i]
            if isinstance(source, ServiceError):
                answers[i] = source
                continue
            event, before = await self.in_thread(self._event, judgement, source, epoch)
            of_topic.setdefault(judgement.topic, []).append((i, event, before))
        await asyncio.gather(*(self._learn(topic, items, answers) for topic, items in of_topic.items()))
        return [answers[i] for i in range(len(judgements))]

    async def _learn(
        self, topic: str, items: list[tuple[int, Event, Before]], answers: dict[int, Learned | ServiceError]
    ) -> None:
        try:
            taken = await self.learning.take(topic, [event for _, event, _ in items])
        except ServiceError as error:
            answers.update({i: error for i, _, _ in items})
            return
        for (i, event, before), (status, version) in zip(items, taken, strict=True):
            said = {"topic": topic, "document": event.document, "relevant": event.relevant, "before": before}
            answers[i] = Learned.model_validate(said | {"status": status, "version": version})

    async def withdraw(self, topic: str, document: str) -> int:
        """Takes a judgement back; the version without it."""
        event = Event("withdrawn", now_ms(), self.epochs.current.number, document=document)
        ((status, version),) = await self.learning.take(topic, [event])
        if status == "absent":
            raise NotFound("This document has no judgement that stands in this topic.")
        return version

    # -- topics --------------------------------------------------------------------------------------------------------

    async def find(self, topic: str) -> Served:
        """The topic as it is served; one that another process has just made is fetched."""
        return self.serving.topics.get(topic) or await self.learning.catch_up(topic)

    async def page(self, after: str, limit: int) -> tuple[list[Served], str | None]:
        """Topics by id, those after the given one, and where the next page begins."""
        ids = await self.store.topics(after, limit + 1)
        found: list[Served] = []
        for topic in ids[:limit]:
            with suppress(NotFound):  # deleted at this moment, or never made to its end
                found.append(await self.find(topic))
        return found, ids[limit - 1] if ids[limit:] else None

    async def create(self, new: NewTopic) -> Served:
        _check_learner(new.learner)
        overlay.compiled(new.rules)
        topic = new.id or topic_id(new.name)
        if await self.store.count_topics() >= self.config.max_topics and topic not in self.serving.topics:
            raise TooLarge(f"There are {self.config.max_topics:,} topics already, which is the limit.")
        settings = Settings(**new.model_dump(exclude={"id"}), created_ms=now_ms())
        query = await self.in_thread(self._logged, "", settings.query, self.epochs.current)
        await self.learning.create(topic, settings, query)
        return await self.find(topic)

    async def change(self, topic: str, change: TopicChange, if_match: int | None) -> Served:
        """Applies the fields that are given; a new learner or query refolds the log."""
        given = {name: getattr(change, name) for name in change.model_fields_set}
        given |= {name: TopicFields.model_fields[name].get_default() for name, value in given.items() if value is None}
        if change.learner:
            _check_learner(change.learner)
        if change.rules:
            overlay.compiled(change.rules)
        epoch = self.epochs.current

        def edit(fold: Fold) -> tuple[Settings, bytes] | None:
            settings = fold.settings.model_copy(update=given)
            if settings == fold.settings:
                return None
            same_query = settings.query == fold.settings.query
            return settings, fold.lineage.settings.bag if same_query else self._logged("", settings.query, epoch)

        await self.learning.edit(topic, edit, if_match)
        return await self.find(topic)

    async def restore(self, topic: str, version: int) -> Served:
        await self.learning.restore(topic, version)
        return await self.find(topic)

    async def publish(self, topic: str, model: Model, cause: str) -> Served:
        await self.learning.publish(topic, model, cause)
        return await self.find(topic)

    async def refresh(self, topic: str) -> None:
        """Puts a topic under the current background."""
        epoch = self.epochs.current
        await self.learning.refresh(topic, lambda settings: self._logged("", settings.query, epoch))

    async def delete(self, topic: str) -> None:
        await self.learning.delete(topic)
        self.serving.remove(topic)

    # -- how -----------------------------------------------------------------------------------------------------------

    def _rehearse(self) -> None:
        """Learns and decides once, for nobody: compiled kernels are loaded when they are first called, which takes as
        long as a second, and the first request should not be the one to wait."""
        text = "rehearsal"
        sample = Sampled("", *bags([("", text)], self.serving.analysis)[0])
        epoch = Epoch(0, self.epochs.current.frequencies, [sample])
        created = Event(
            "created", 0, 0, 1, settings=Settings(created_ms=0).model_dump_json(), bag=self._logged("", text, epoch)
        )
        judged = [Event("judged", 0, 0, n, str(n), n % 2 == 0, created.bag) for n in range(2, 14)]
        fold = Fold(text, Head("", judged[-1].seq, 0), [created, *judged], self.config.served_weights)
        stage = Serving(self.serving.analysis)
        stage.put(fold.served(epoch))
        for options in (ClassifyOptions(), ClassifyOptions(topics=[text])):
            stage.classify([Document(text=text)], options, epoch)
        shape(b"{}")

    async def in_thread(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        return await asyncio.get_running_loop().run_in_executor(self._pool, partial(call, *args, **kwargs))

    def _background(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.error("background work failed", exc_info=error)

    async def _documents(self, judgements: Sequence[Judgement]) -> list[Document | Event | ServiceError]:
        """For each judgement the document it is about (or the event that judged it before), or what is wrong."""
        found: list[Document | Event | ServiceError] = []
        ids = [j.document for j in judgements if isinstance(j.document, str)]
        remembered = dict(zip(ids, await self.store.recall(ids), strict=True)) if ids else {}
        for judgement in judgements:
            try:
                await self.find(judgement.topic)
                if isinstance(judgement.document, Document):
                    self.check(judgement.document)
                    found.append(judgement.document)
                elif blob := remembered[judgement.document]:
                    found.append(Document.model_validate_json(zlib.decompress(blob)))
                else:
                    found.append(await self._judged_before(judgement.topic, judgement.document))
            except ServiceError as error:
                found.append(error)
        return found

    async def _judged_before(self, topic: str, document: str) -> Event:
        standing = await self.learning.read(topic, lambda fold: fold.lineage.judged.get(document))
        if standing is None:
            raise NotFound("This document is not known (any more); send it with its text in place of its id.")
        return standing.first

    def _event(self, judgement: Judgement, source: Document | Event, epoch: Epoch) -> tuple[Event, Before]:
        """The judgement as it goes into the log, with what is decided at this moment."""
        if isinstance(source, Event):
            document, title, blob = source.document, source.title, source.bag
        else:
            document, title = source.id or content_id(source), source.title
            blob = self._logged(source.title, source.text, epoch)
        served = self.serving.get(judgement.topic)
        score = served.model.linear.score(view(served.model.linear.view, to_bag(blob)))
        before = Before(decision=served.decide(score), score=round(score, DIGITS))
        event = Event(
            "judged",
            now_ms(),
            epoch.number,
            document=document,
            relevant=judgement.relevant,
            bag=blob,
            title=title[:TITLE_CHARS],
            by=judgement.by or "",
            decision=before.decision,
            score=score,
        )
        return event, before

    def _logged(self, title: str, text: str, epoch: Epoch) -> bytes:
        """The features of a text as the log keeps them: words, counts, and the idf in force; of a very long text the
        weightiest, so that a log of such texts stays bounded too."""
        features, counts = bags([(title, text)], self.serving.analysis)[0]
        idf = epoch.frequencies.idf(features)
        kept = np.sort(np.argsort(-counts * idf, kind="stable")[:LOGGED_TERMS])
        words = terms(title, text, self.serving.analysis)
        canonical = [words[feature].canonical for feature in features[kept].tolist()]
        return codec.pack_bag(canonical, counts[kept], idf[kept])

    def check(self, document: Document) -> None:
        """Refuses a document that is longer than the settings allow."""
        limit = self.config.max_text_chars
        if max(len(document.text), len(document.title)) > limit:
            raise TooLarge(f"A document may have {limit:,} characters of text.")


def topic_id(name: str) -> str:
    """An id from a name: its letters and digits in ASCII, dashes between; made unique by nobody, so it may be taken."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    made = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:128].strip("-")
    if not made:
        raise BadInput("No id can be made from this name; give one.", [FieldError(pointer="/id", detail="missing")])
    return made


def _check_learner(learner: Learner) -> None:
    try:
        parse_params(learner.kind, learner.params)
    except ValueError as error:
        detail = str(error)
        raise BadInput("The learner cannot be made.", [FieldError(pointer="/learner", detail=detail)]) from None


def _blobs(ids: Sequence[str], documents: Sequence[Document]) -> dict[str, bytes]:
    pairs = zip(ids, documents, strict=True)
    return {name: zlib.compress(d.model_copy(update={"id": name}).model_dump_json().encode(), 1) for name, d in pairs}
