"""Judgements in, models out: the only place where a formula meets the store.

    append to the log  →  fold what is new  →  publish  →  serve here; other processes are notified

Appending makes a judgement durable and gives it its place. The fold is deterministic: every process that has read the
same log has the same model, so the first to publish it publishes it for all. A process that dies after appending leaves
a log that is ahead of its model; `catch_up`, in any process, folds the rest.

Judgements that arrive while others are being folded are queued and learned together: one append, one fold, one
publication. Within a process one task at a time works on a topic; between processes there are no locks.
"""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ParamSpec, TypeVar

import structlog

from service.clock import now_ms
from service.config import Config
from service.errors import Conflict, NotFound, PreconditionFailed, StoreUnavailable
from service.schemas import Effect
from service.store import codec
from service.store.events import Event, Head, Kind
from service.store.resolve import resolve
from service.store.topics import Store
from service.store.versions import Saved
from service.tasks import Exclusive, Pool
from service.topics.background import Epochs
from service.topics.published import Base, PublishedModel
from service.topics.settings import KEPT_ON_RESTORE, TopicSettings, effect_of
from service.topics.state import TopicState, settings_of
from service.topics.state_cache import StateCache

log = structlog.get_logger("sluice.topics")

MAX_ATTEMPTS = 20
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Amendment = tuple[Event, dict[str, str] | None]  # an event, and the judgements in force after it if it changes them


@dataclass(slots=True)
class _Waiting:
    """An event in the queue, and the future of its status and version."""

    event: Event
    done: asyncio.Future[tuple[str, int]]


class Learning:
    def __init__(
        self, store: Store, epochs: Epochs, config: Config, pool: Pool, serve: Callable[[PublishedModel], None]
    ) -> None:
        self._store = store
        self._epochs = epochs
        self._config = config
        self._pool = pool
        self._serve = serve
        self._states = StateCache()
        self._exclusive = Exclusive()  # by topic
        self._waiting: dict[str, list[_Waiting]] = {}

    # -- changing a topic ----------------------------------------------------------------------------------------------

    async def create(self, topic: str, settings: TopicSettings, query: bytes) -> None:
        first = self._event("created", settings=settings.model_dump_json(), features=query)
        if not await self._store.create(topic, secrets.token_hex(8), first):
            raise Conflict(f"There is a topic {topic!r} already; choose another id, or change that one.")
        await self.catch_up(topic)

    async def learn(self, topic: str, events: Sequence[Event]) -> list[tuple[str, int]]:
        """Appends judgements and withdrawals, learns them and publishes the model. For each, its status in the log and
        the version of that model."""
        loop = asyncio.get_running_loop()
        mine = [_Waiting(event, loop.create_future()) for event in events]
        self._waiting.setdefault(topic, []).extend(mine)
        await self._exclusive.run(topic, self._learn_waiting)
        results = await asyncio.gather(*(waiting.done for waiting in mine), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return [result for result in results if not isinstance(result, BaseException)]

    async def edit(
        self, topic: str, edit: Callable[[TopicState], tuple[TopicSettings, bytes] | None], if_match: int | None
    ) -> None:
        """Appends the settings and the query that `edit` returns for the current state; None changes nothing."""

        def propose(state: TopicState) -> Amendment | None:
            if if_match is not None and if_match != state.resolved.version:
                raise PreconditionFailed(f"The topic is at version {state.resolved.version} now; read it again.")
            edited = edit(state)
            if edited is None:
                return None
            settings, query = edited
            event = self._event("edited", settings=settings.model_dump_json(), features=query)
            return replace(event, refold=effect_of(settings, state.settings) is Effect.START), None

        await self._amend(topic, propose)

    async def restore(self, topic: str, version: int) -> None:
        """Makes the topic what it was at that version; settings that do not affect the model stay as they are."""
        epochs = await self._store.epochs.numbers()

        def propose(state: TopicState) -> Amendment:
            oldest = max(state.head.floor, 1)
            if not oldest <= version <= state.resolved.version:
                newest = state.resolved.version
                those = f"only those from {oldest} to {newest}" if oldest < newest else f"only version {newest}"
                raise NotFound(f"Version {version} cannot be restored, {those}.")
            then = resolve(state.events, version)
            # With the background of that time it decides as it did; if that was forgotten, the current one has to do.
            epoch = then.epoch if then.epoch in (0, *epochs) else self._epochs.current.number
            current = state.settings
            settings = settings_of(then).model_copy(update={name: getattr(current, name) for name in KEPT_ON_RESTORE})
            event = Event(
                "restored",
                now_ms(),
                epoch,
                restores=version,
                settings=settings.model_dump_json(),
                features=then.settings.features,
            )
            return event, {document: standing.label for document, standing in then.judged.items()}

        await self._amend(topic, propose)

    async def publish(self, topic: str, base: Base, words: Sequence[str], cause: str) -> None:
        """Makes an imported model the base that learning continues from; `words` are its terms, as far as known."""
        event = self._event("published", model=base.to_bytes(), words=codec.pack_words(words), cause=cause)
        await self._amend(topic, lambda state: (event, None))

    async def publish_once(
        self, topic: str, born: str, base: Base, words: Sequence[str], made_from: int, job: str
    ) -> int:
        """Does the same, once however often it is called, for a model that a job has fitted to the judgements in force
        at version `made_from`; `born` identifies the topic among others of its name. Returns the version that has the
        model, or 0 if the query or the learner has changed since, so that the fold starts from there."""
        event = self._event(
            "published",
            model=base.to_bytes(),
            words=codec.pack_words(words),
            cause="retrain",
            job=job,
            made_from=made_from,
        )

        def propose(state: TopicState) -> Amendment | None:
            if state.head.born != born:
                raise NotFound(f"There is another topic {topic!r} now.")
            refolded = any(later.refold for later in state.events if later.seq > made_from)
            if refolded or state.published_by(job):
                return None
            return event, None

        await self._amend(topic, propose)
        return await self.read(topic, lambda state: state.published_by(job))

    async def refresh(self, topic: str, query: Callable[[TopicSettings], bytes]) -> None:
        """Moves the topic to the current background, which weights its query and sets its thresholds."""

        def propose(state: TopicState) -> Amendment | None:
            if state.resolved.epoch == self._epochs.current.number:
                return None  # another process was faster
            event = self._event("refreshed", settings=state.resolved.settings.settings, features=query(state.settings))
            return event, None

        await self._amend(topic, propose)

    async def put(self, topic: str, write_log: Callable[[], Awaitable[None]]) -> PublishedModel:
        """Serves the topic whose whole log `write_log` writes, in place of any other of that name."""

        async def put(topic: str) -> PublishedModel:
            await write_log()
            self._states.remove(topic)
            return await self._publish(await self._load(topic))

        return await self._exclusive.run(topic, put)

    async def delete(self, topic: str, if_match: int | None = None) -> None:
        """Deletes the topic, or what is left of it if a process died while deleting it."""

        async def delete(topic: str) -> None:
            (head,) = await self._store.heads([topic])
            self._states.remove(topic)
            if head is None:
                if not await self._store.clear(topic):
                    raise NotFound.topic(topic)
                return
            if not await self._store.delete(topic, head.born, if_match):
                if if_match is None:
                    raise NotFound.topic_gone(topic)
                raise PreconditionFailed("The topic has changed since you read it; read it again.")

        await self._exclusive.run(topic, delete)

    # -- reading a topic -----------------------------------------------------------------------------------------------

    async def catch_up(self, topic: str, republish: bool = False) -> PublishedModel:
        """Folds every event that the model has not seen yet. Safe to call twice, from anywhere.

        `republish` saves the model even if this process has done so before: the store may have lost it.
        """

        async def catch_up(topic: str) -> PublishedModel:
            state = await self._load(topic)
            if republish:
                state.published = None
            return await self._publish(state)

        return await self._exclusive.run(topic, catch_up)

    def clear_cache(self) -> None:
        """Drops every state: the store may have changed, and the logs hold everything."""
        self._states.clear()

    async def read(self, topic: str, extract: Callable[[TopicState], T]) -> T:
        """Returns what `extract`, run in a thread, makes of the topic's state; nothing changes that meanwhile."""

        async def read(topic: str) -> T:
            return await self._in_thread(topic, extract, await self._load(topic))

        return await self._exclusive.run(topic, read)

    async def versions(self, topic: str, before: int, limit: int) -> list[dict[str, Any]]:
        """Records of published versions, newest first; with `before`, of those before it."""
        rows = await self._store.versions.records(topic, before, limit)
        return [{"version": version, **json.loads(record)} for version, record in rows]

    # -- steps ---------------------------------------------------------------------------------------------------------

    async def _learn_waiting(self, topic: str) -> None:
        """Appends, folds and publishes the queued events; each gets its result, or the error of the whole batch."""
        batch = self._waiting.pop(topic, [])
        if not batch:
            return  # learned with an earlier batch
        try:
            state, statuses = await self._append(topic, [waiting.event for waiting in batch])
            published = await self._publish(state)
        except Exception as error:
            for waiting in batch:
                waiting.done.set_exception(error)
            return
        for waiting, status in zip(batch, statuses, strict=True):
            waiting.done.set_result((status, published.version))
        try:
            await self._compact(state)
        except StoreUnavailable as error:
            log.warning("compacting a log was put off", topic=topic, detail=error.detail)

    async def _append(self, topic: str, events: Sequence[Event]) -> tuple[TopicState, list[str]]:
        """Appends events and folds them: the topic's state, and the status of each."""
        state = self._states.get(topic)
        try:
            head = state.head if state else await self._load_head(topic)
            appended = await self._store.logs.append(topic, head.born, events)
        except NotFound:
            if state is None:
                raise
            # Another process has deleted the topic and created it again: the state in the cache is of the old one.
            self._states.remove(topic)
            return await self._append(topic, events)
        statuses = [status for status, _ in appended]
        new = [event for status, event in appended if status not in ("known", "absent")]
        if state and new and new[0].seq == state.resolved.version + 1:
            # No other process has appended in between, so there is nothing to read.
            await self._in_thread(topic, state.advance, replace(state.head, seq=new[-1].seq), new)
            self._states.put(state)
            return state, statuses
        return await self._load(topic), statuses

    async def _amend(self, topic: str, propose: Callable[[TopicState], Amendment | None]) -> None:
        """Appends the event that `propose` returns for the current state, if the log has not grown meanwhile."""

        async def amend(topic: str) -> None:
            for _ in range(MAX_ATTEMPTS):
                state = await self._load(topic)
                amendment = propose(state)
                if amendment is None:
                    return
                event, judged = amendment
                if await self._store.logs.amend(topic, state.head, event, judged=judged):
                    await self._publish(await self._load(topic))
                    return
                # Another process has appended since. Try again with its event.
            raise Conflict(f"The topic changed {MAX_ATTEMPTS} times meanwhile; try again.")

        await self._exclusive.run(topic, amend)

    async def _compact(self, state: TopicState) -> None:
        """Removes the oldest judgements if there are clearly too many, and events that no listed version needs."""
        kept = self._config.judgements_kept
        compaction = state.compaction(kept, self._config.versions_kept)
        if compaction is None:
            return
        floor, gone = compaction
        event = self._event("compacted", floor=floor, kept=kept)
        judged = {document: standing.label for document, standing in state.resolved.judged.items()}
        left = dict(list(judged.items())[-kept:])
        seq = await self._store.logs.amend(state.topic, state.head, event, floor=floor, judged=left, obsolete=gone)
        if seq:
            head = replace(state.head, seq=seq, floor=floor)
            await self._in_thread(state.topic, state.advance, head, [replace(event, seq=seq)], gone)
            await self._publish(state)

    async def _load_head(self, topic: str) -> Head:
        (head,) = await self._store.heads([topic])
        if head is None:
            raise NotFound.topic(topic)
        return head

    async def _load(self, topic: str) -> TopicState:
        """The topic's state, with its log as it is now."""
        state = self._states.get(topic)
        head, tail = await self._store.logs.load(topic, state.resolved.version if state else 0)
        # Another topic of this name, a log that was compacted, or a store that has lost the end of it.
        if state and (
            (head.born, head.floor) != (state.head.born, state.head.floor) or head.seq < state.resolved.version
        ):
            state = None
            head, tail = await self._store.logs.load(topic)
        if state is None:
            state = await self._in_thread(topic, TopicState, topic, head, tail, self._config.served_weights)
        elif tail:
            await self._in_thread(topic, state.advance, head, tail)
        if tail:
            await self._epochs.follow_to(state.resolved.epoch)
            epoch = await self._epochs.load(state.resolved.epoch)
            await self._in_thread(topic, state.fold_under, epoch.projection)
        self._states.put(state)
        return state

    async def _publish(self, state: TopicState) -> PublishedModel:
        if state.published is None or state.published.version != state.resolved.version:
            epoch = await self._epochs.load(state.resolved.epoch)
            published = await self._in_thread(state.topic, state.build_model, epoch)
            saved = Saved(state.head.born, published.version, published.to_bytes())
            await self._store.versions.save(
                state.topic, saved, state.record(published, saved.digest), self._config.versions_kept
            )
            state.published = published
        # In a thread, because the bank may have to copy weights.
        await self._in_thread(state.topic, self._serve, state.published)
        return state.published

    async def _in_thread(self, topic: str, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await self._pool.run(call, *args, **kwargs)
        except Exception:
            self._states.remove(topic)  # it may have been changed halfway
            raise

    def _event(self, kind: Kind, **attributes: Any) -> Event:
        return Event(kind, now_ms(), self._epochs.current.number, **attributes)
