"""The service in one object: its parts put together, and the journey of a document.

    document    tokenise, score (serving)  →  remember it, see whether it repeats another (store, repeats)  →  decide
                (serving)  →  count it, let it through (background, tallies, outbox)
    judgement   see feedback/judge.py

Everything that may take longer than a millisecond or two runs in a thread; the kernels there release the interpreter.
"""

import asyncio
import re
import unicodedata
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, ParamSpec, TypeVar

import structlog

from models.online.model import Model
from models.text.analysis import bags
from models.text.json_shape import shape
from service.archive.file import Archive
from service.archive.transfer import Outcome, Transfer
from service.clock import now_ms
from service.config import Config
from service.errors import BadInput, FieldError, NotFound, StoreUnavailable, TooLarge
from service.feedback.goals import Goals
from service.feedback.judge import Judge
from service.feedback.known import Known
from service.feedback.preview import Previews
from service.feedback.review import Review
from service.flow.classify import Classifier
from service.flow.subscribers import Subscribers
from service.jobs.jobs import Jobs
from service.schemas import (
    ClassifyOptions,
    Document,
    NewTopic,
    TopicChange,
)
from service.schemas.flow import Route
from service.schemas.jobs import Retrain
from service.store.connection import end
from service.store.inbox import Inbox
from service.store.jobs import JobStore
from service.store.log import Event
from service.store.outbox import Outbox
from service.store.routes import Routes, StoredRoute
from service.store.topics import Head, Store
from service.topics import settings as changes
from service.topics.background import Epoch, Epochs, Sampled
from service.topics.counts import TopicCounters
from service.topics.deciding import Serving, analysis_of
from service.topics.learning import Learning
from service.topics.published import Base, PublishedModel, Recipe, TopicSettings
from service.topics.state import TopicState
from service.topics.sync import Sync

log = structlog.get_logger("sluice")

P = ParamSpec("P")
R = TypeVar("R")


class Sluice:
    def __init__(self, config: Config, store: Store) -> None:
        self.config = config
        self.store = store
        self.epochs = Epochs(store)
        self.serving = Serving(analysis_of(config))
        self._pool = ThreadPoolExecutor(8, "sluice")
        self.learning = Learning(store, self.epochs, config, self._pool, self.serving.put)
        self.sync = Sync(store, self.serving, self.learning, self.epochs, config.sweep_s)
        self.counters = TopicCounters(store, self.serving, config.review_kept)
        self.classifier = Classifier(
            store, self.serving, self.epochs, self.counters, config, self._pool, self._epoch_due
        )
        self.outbox = Outbox(store.connection)
        self.inbox = Inbox(store.connection)
        self.routes = Routes(store.connection)
        self.subscribers = Subscribers(self.outbox, self.serving.topics, config.max_listeners)
        self.goals = Goals(self.counters, self.serving, self.classifier.repeats, config)
        self.judge = Judge(store, self.serving, self.learning, self.epochs, self.goals, config, self._pool, self._refit)
        self.review = Review(store, self.serving, self.learning, self.epochs, self.goals, config)
        self.known = Known(store, self.learning, self.epochs, self.judge, config.known_kept)
        self.previews = Previews(
            store,
            self.learning,
            self.epochs,
            self.judge,
            self.serving.analysis,
            config.served_weights,
            self._pool,
        )
        self.jobs = Jobs(JobStore(store.connection), config)
        self.transfer = Transfer(store, self.learning, self.epochs, self.counters, config, self._pool)
        self._tasks: set[asyncio.Task[None]] = set()
        self._publishing = False

    async def start(self) -> None:
        """Begins to listen; topics are served as soon as they are loaded, and `ready` says when."""
        await self.in_thread(self._rehearse)
        self._background(self.sync.listen())
        self._background(self.sync.sweep())
        self._background(self.subscribers.read())
        self._background(self.classifier.repeats.catch_up())

    async def stop(self) -> None:
        await end(set(self._tasks))
        self._pool.shutdown(wait=True)
        await self.store.close()

    # -- documents -----------------------------------------------------------------------------------------------------

    async def classify(self, documents: Sequence[Document], options: ClassifyOptions) -> list[bytes]:
        """A result for each document, as JSON; remembered, counted and let through if the options say so."""
        for topic in dict.fromkeys(options.topics or ()):
            await self.find(topic)
        return await self.classifier.classify(documents, options)

    async def classify_any(self, documents: Sequence[Document], options: ClassifyOptions) -> list[bytes]:
        """As `classify`, for any number."""
        at_once = self.classifier.at_once(options)
        parts = [documents[start : start + at_once] for start in range(0, len(documents), at_once)]
        return [result for part in parts for result in await self.classify(part, options)]

    def _epoch_due(self) -> None:
        if not self._publishing:
            self._publishing = True
            self._background(self._publish_epoch())

    async def _publish_epoch(self) -> None:
        try:
            await self.epochs.publish()
        except StoreUnavailable as error:
            log.warning("counts of some documents are lost", detail=error.detail)
        finally:
            self._publishing = False

    # -- topics --------------------------------------------------------------------------------------------------------

    async def find(self, topic: str) -> PublishedModel:
        """The topic as it is served; one that another process has just made is fetched."""
        return await self.judge.find(topic)

    async def page(self, after: str, limit: int) -> tuple[list[PublishedModel], str | None]:
        """Topics by id, those after the given one, and where the next page begins."""
        ids = await self.store.topics(after, limit + 1)
        found: list[PublishedModel] = []
        for topic in ids[:limit]:
            with suppress(NotFound):  # deleted at this moment, or never made to its end
                found.append(await self.find(topic))
        return found, ids[limit - 1] if ids[limit:] else None

    async def create(self, new: NewTopic) -> PublishedModel:
        changes.check(dict(new))
        topic = new.id or topic_id(new.name)
        await self._room_for(topic)
        read = changes.read(new.terms, self.serving.analysis)
        settings = TopicSettings(**new.model_dump(exclude={"id"}), created_ms=now_ms(), read=read)
        query = await self.in_thread(self.judge.logged, "", settings.query, self.epochs.current)
        await self.learning.create(topic, settings, query)
        return await self.find(topic)

    async def take(self, archive: Archive, name: str | None, replace: bool) -> tuple[PublishedModel, Outcome]:
        """The topic of a file, under its own name or another."""
        topic = name or archive.header.topic
        await self._room_for(topic)
        return await self.transfer.take(archive, topic, replace)

    async def change(self, topic: str, change: TopicChange, if_match: int | None) -> PublishedModel:
        """Applies the fields that are given; a new learner or query refolds the log."""
        given = changes.given(change, self.serving.analysis)
        epoch, otherwise = self.epochs.current, False

        def edit(fold: TopicState) -> tuple[TopicSettings, bytes] | None:
            nonlocal otherwise
            settings = fold.settings.model_copy(update=given)
            if settings == fold.settings:
                return None
            settings = self.goals.with_audit_history(settings, fold.settings)
            otherwise = changes.changes_decisions(settings, fold.settings)
            same_query = settings.query == fold.settings.query
            return settings, fold.resolved.settings.bag if same_query else self.judge.logged("", settings.query, epoch)

        await self.learning.edit(topic, edit, if_match)
        served = await self.find(topic)
        if otherwise:
            await self.counters.reset_window(served)
        return served

    async def restore(self, topic: str, version: int) -> PublishedModel:
        await self.learning.restore(topic, version)
        served = await self.find(topic)
        await self.counters.reset_window(served)
        return served

    async def put_model(self, topic: str, model: Model, words: Sequence[str]) -> PublishedModel:
        await self.learning.publish(topic, Base(model), words, "import")
        return await self.find(topic)

    async def refresh(self, topic: str) -> None:
        """Puts a topic under the current background."""
        epoch = self.epochs.current
        await self.learning.refresh(topic, lambda settings: self.judge.logged("", settings.query, epoch))

    async def _refit(self, topic: str, recipe: Recipe) -> None:
        how = {"method": recipe.method, "params": recipe.params, "publish": "always"}
        asked = Retrain.model_validate({"kind": "retrain", "topics": [topic], **how})
        await self.jobs.submit_unless_waiting(asked)

    async def put_routes(self, topic: str, routes: Sequence[Route]) -> list[StoredRoute]:
        served = await self.find(topic)
        put = await self.routes.put(topic, routes, self.config.webhooks_private)
        (head,) = await self.store.heads([topic])
        if head is None or head.born != served.born:  # deleted meanwhile: the next of this name must not have them
            await self.routes.forget(topic)
            raise NotFound(f"There is no topic {topic!r} any more.")
        return put

    async def delete(self, topic: str, if_match: int | None = None) -> None:
        if if_match is None:
            await self.routes.forget(topic)  # first: if the store then fails, a second try does the rest
        await self.learning.delete(topic, if_match)
        if not (await self.store.heads([topic]))[0]:
            await self.routes.forget(topic)  # all, or those that somebody has put meanwhile
        self.serving.end(topic)

    # -- how -----------------------------------------------------------------------------------------------------------

    async def _room_for(self, topic: str) -> None:
        if await self.store.count_topics() >= self.config.max_topics and topic not in self.serving.topics:
            raise TooLarge(f"There are {self.config.max_topics:,} topics already, which is the limit.")

    def _rehearse(self) -> None:
        """Learns and decides once, for nobody: compiled kernels are loaded when they are first called, which takes as
        long as a second, and the first request should not be the one to wait."""
        text = "rehearsal"
        sample = Sampled("", *bags([("", text)], self.serving.analysis)[0])
        epoch = Epoch(0, self.epochs.current.frequencies, [sample])
        created = Event(
            "created",
            0,
            0,
            1,
            settings=TopicSettings(created_ms=0).model_dump_json(),
            bag=self.judge.logged("", text, epoch),
        )
        judged = [
            Event("judged", 0, 0, n, str(n), n % 2 == 0, self.judge.logged("", f"{text} {n} {-n}", epoch), passed=True)
            for n in range(2, 20)
        ]
        fold = TopicState(text, Head("", judged[-1].seq, 0), [created, *judged], self.config.served_weights)
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
        error = None if task.cancelled() else task.exception()
        if isinstance(error, StoreUnavailable):
            log.warning("lost the store", detail=error.detail)
        elif error:
            log.error("background work failed", exc_info=error)


def topic_id(name: str) -> str:
    """An id from a name: its letters and digits in ASCII, dashes between; made unique by nobody, so it may be taken."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    made = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:128].strip("-")
    if not made:
        raise BadInput("No id can be made from this name; give one.", [FieldError(pointer="/id", detail="missing")])
    return made
