"""Judgements in, models out: the only place where a formula meets the store.

    append to the log  →  fold what is new  →  publish  →  serve here; other processes hear of it

Appending is what makes a judgement durable and what orders it; the fold is deterministic, so every process that has
read the same log has the same model, and whoever publishes it first publishes it for all. Nobody waits for anybody: a
process that dies after appending leaves a log that is ahead of its model, and the next to look (`catch_up`) folds it.

Judgements that arrive while others are being folded wait and go together: one append, one fold, one publication.
Inside a process a topic is folded by one task at a time; between processes there are no locks.
"""

import asyncio
import json
import secrets
import weakref
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
from service.store.resolve import obsolete, resolve
from service.store.topics import Store
from service.store.versions import Saved
from service.tasks import Pool
from service.topics.background import Epochs
from service.topics.published import Base, PublishedModel
from service.topics.settings import NOT_THE_MODELS, TopicSettings, effect_of
from service.topics.state import TopicState

log = structlog.get_logger("sluice.topics")

MAX_ATTEMPTS = 20
MAX_STATE_BYTES = 256_000_000  # folds kept at hand; a topic that fell out is read from its log again
SLACK = 0.1  # by this share a log may be over its limit before it is compacted: one refold for many judgements
P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Amendment = tuple[Event, dict[str, bool] | None]  # an event, and the judgements that stand after it if others do


@dataclass(slots=True)
class _Waiting:
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
        self._folds: dict[str, TopicState] = {}  # the least recently used first
        self._sizes: dict[str, int] = {}
        self._held_bytes = 0
        self._tasks: set[asyncio.Task[Any]] = set()
        self._turns: weakref.WeakValueDictionary[str, asyncio.Lock] = weakref.WeakValueDictionary()
        self._waiting: dict[str, list[_Waiting]] = {}

    # -- what changes a topic ------------------------------------------------------------------------------------------

    async def create(self, topic: str, settings: TopicSettings, query: bytes) -> None:
        first = Event(
            "created", now_ms(), self._epochs.current.number, settings=settings.model_dump_json(), features=query
        )
        if not await self._store.create(topic, secrets.token_hex(8), first):
            raise Conflict(f"There is a topic {topic!r} already; choose another id, or change that one.")
        await self.catch_up(topic)

    async def learn(self, topic: str, events: Sequence[Event]) -> list[tuple[str, int]]:
        """Judgements and withdrawals, durable and learned; for each what it came to, and the version that has it."""
        loop = asyncio.get_running_loop()
        mine = [_Waiting(event, loop.create_future()) for event in events]
        self._waiting.setdefault(topic, []).extend(mine)
        await self._alone(topic, self._settle)
        answers = await asyncio.gather(*(waiting.done for waiting in mine), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
        return [answer for answer in answers if not isinstance(answer, BaseException)]

    async def edit(
        self, topic: str, edit: Callable[[TopicState], tuple[TopicSettings, bytes] | None], if_match: int | None
    ) -> None:
        """Appends the settings that `edit` makes of the topic as it stands; None changes nothing."""

        def amended(fold: TopicState) -> Amendment | None:
            if if_match is not None and if_match != fold.resolved.version:
                raise PreconditionFailed(f"The topic is at version {fold.resolved.version} now; read it again.")
            edited = edit(fold)
            if edited is None:
                return None
            settings, query = edited
            event = self._event("edited", settings=settings.model_dump_json(), features=query)
            return replace(event, refold=effect_of(settings, fold.settings) is Effect.START), None

        await self._amend(topic, amended)

    async def restore(self, topic: str, version: int) -> None:
        """Makes the topic what it was at that version; what is not the model's stays as it is."""

        epochs = await self._store.epochs.numbers()

        def amended(fold: TopicState) -> Amendment:
            oldest = max(fold.head.floor, 1)
            if not oldest <= version <= fold.resolved.version:
                raise NotFound(
                    f"Version {version} cannot be restored; those from {oldest} to {fold.resolved.version} can."
                )
            then = resolve(fold.events, version)
            # Under the background of then, so that it decides as it did; under the present one if that is forgotten.
            epoch = then.epoch if then.epoch in (0, *epochs) else self._epochs.current.number
            was, now = TopicSettings.model_validate_json(then.settings.settings), fold.settings
            settings = was.model_copy(update={name: getattr(now, name) for name in NOT_THE_MODELS})
            event = Event(
                "restored",
                now_ms(),
                epoch,
                restores=version,
                settings=settings.model_dump_json(),
                features=then.settings.features,
            )
            return event, {document: standing.relevant for document, standing in then.judged.items()}

        await self._amend(topic, amended)

    async def publish(self, topic: str, base: Base, words: Sequence[str], cause: str) -> None:
        """Makes a model from elsewhere, of whose terms some or all are known, the base that learning goes on from."""
        event = self._event("published", model=base.to_bytes(), words=codec.pack_words(words), cause=cause)
        await self._amend(topic, lambda fold: (event, None))

    async def publish_once(
        self, topic: str, born: str, base: Base, words: Sequence[str], made_from: int, job: str
    ) -> int:
        """The same for a model that a job has fitted to the judgements as they stood at version `made_from` of this
        incarnation of the topic. However often it is tried, it is done once; the version that has it. 0 if somebody
        wanted another query or learner meanwhile, which is to begin anew."""
        event = self._event(
            "published",
            model=base.to_bytes(),
            words=codec.pack_words(words),
            cause="retrain",
            job=job,
            made_from=made_from,
        )

        def amended(fold: TopicState) -> Amendment | None:
            if fold.head.born != born:
                raise NotFound(f"There is another topic {topic!r} now.")
            since = (one for one in fold.events if one.seq > made_from)
            if fold.published_by(job) or any(one.refold for one in since):
                return None
            return event, None

        await self._amend(topic, amended)
        return await self.read(topic, lambda fold: fold.published_by(job))

    async def refresh(self, topic: str, query: Callable[[TopicSettings], bytes]) -> None:
        """Puts the topic under the current background: its query weighed anew, its thresholds chosen anew."""

        def amended(fold: TopicState) -> Amendment | None:
            if fold.resolved.epoch == self._epochs.current.number:
                return None  # another worker was faster
            event = self._event("refreshed", settings=fold.resolved.settings.settings, features=query(fold.settings))
            return event, None

        await self._amend(topic, amended)

    async def put(self, topic: str, put: Callable[[], Awaitable[None]]) -> PublishedModel:
        """Serves the topic whose whole log `put` brings, and lets go of another of that name."""

        async def replace(topic: str) -> PublishedModel:
            await put()
            self._release(topic)
            return await self._publish(await self._read(topic))

        return await self._alone(topic, replace)

    async def delete(self, topic: str, if_match: int | None = None) -> None:
        """Deletes it; where a process died while it did, the rest."""

        async def delete(topic: str) -> None:
            (head,) = await self._store.heads([topic])
            self._release(topic)
            if head is None:
                if not await self._store.clear(topic):
                    raise NotFound.topic(topic)
                return
            if not await self._store.delete(topic, head.born, if_match):
                if if_match is None:
                    raise NotFound.topic_gone(topic)
                raise PreconditionFailed("The topic has changed since you read it; read it again.")

        await self._alone(topic, delete)

    # -- what reads it -------------------------------------------------------------------------------------------------

    async def catch_up(self, topic: str, again: bool = False) -> PublishedModel:
        """Folds every event that the model has not seen yet. Safe to call twice, from anywhere.

        `again` publishes the model even if this process has done so before: the store may have lost it.
        """

        async def catch_up(topic: str) -> PublishedModel:
            fold = await self._read(topic)
            if again:
                fold.published = None
            return await self._publish(fold)

        return await self._alone(topic, catch_up)

    def forget(self) -> None:
        """Lets go of every fold: the store may not be what it was, and the logs have it all."""
        for topic in list(self._folds):
            self._release(topic)

    async def read(self, topic: str, look: Callable[[TopicState], T]) -> T:
        """What `look` makes of the topic with its log as it is now; nothing changes it meanwhile."""

        async def read(topic: str) -> T:
            return await self._in_thread(topic, look, await self._read(topic))

        return await self._alone(topic, read)

    async def versions(self, topic: str, before: int, limit: int) -> list[dict[str, Any]]:
        rows = await self._store.versions.records(topic, before, limit)
        return [{"version": version, **json.loads(record)} for version, record in rows]

    # -- how -----------------------------------------------------------------------------------------------------------

    async def _alone(self, topic: str, work: Callable[[str], Awaitable[T]]) -> T:
        """Runs the work when no other task of this process has the topic in hand, to its end even if the caller goes
        away: a fold that is being changed in a thread must not be let go of half-way."""

        async def run() -> T:
            turn = self._turns.get(topic) or asyncio.Lock()
            self._turns[topic] = turn
            async with turn:
                return await work(topic)

        task = asyncio.get_running_loop().create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return await asyncio.shield(task)

    async def _settle(self, topic: str) -> None:
        """Appends, folds and publishes all that waits; each gets its answer, or the failure of the whole."""
        group = self._waiting.pop(topic, [])
        if not group:
            return  # an earlier turn took ours along
        try:
            fold, answers = await self._append(topic, [waiting.event for waiting in group])
            served = await self._publish(fold)
        except Exception as error:
            for waiting in group:
                waiting.done.set_exception(error)
            return
        for waiting, (status, _) in zip(group, answers, strict=True):
            waiting.done.set_result((status, served.version))
        try:
            await self._compact(fold)
        except StoreUnavailable as error:
            log.warning("a log is compacted later", topic=topic, detail=error.detail)

    async def _append(self, topic: str, events: Sequence[Event]) -> tuple[TopicState, list[tuple[str, int]]]:
        fold = self._folds.get(topic)
        try:
            head = fold.head if fold else await self._head(topic)
            appended = await self._store.logs.append(topic, head.born, events)
        except NotFound:
            if fold is None:
                raise
            # Deleted and made again by another process since we read it: the fold in hand is not this topic's.
            self._release(topic)
            return await self._append(topic, events)
        answers = [(status, event.seq) for status, event in appended]
        new = [event for status, event in appended if status not in ("known", "absent")]
        if fold and new and new[0].seq == fold.resolved.version + 1:
            # Nobody came between: what we appended is what the log goes on with.
            await self._in_thread(topic, fold.advance, replace(fold.head, seq=new[-1].seq), new)
            self._hold(fold)
            return fold, answers
        return await self._read(topic), answers

    async def _amend(self, topic: str, amended: Callable[[TopicState], Amendment | None]) -> None:
        async def amend(topic: str) -> None:
            for _ in range(MAX_ATTEMPTS):
                fold = await self._read(topic)
                amendment = amended(fold)
                if amendment is None:
                    return
                event, judged = amendment
                if await self._store.logs.amend(topic, fold.head, event, judged=judged):
                    await self._publish(await self._read(topic))
                    return
                # Somebody appended since we read. Look again.
            raise Conflict(f"The topic changed {MAX_ATTEMPTS} times meanwhile; try again.")

        await self._alone(topic, amend)

    async def _compact(self, fold: TopicState) -> None:
        """Forgets the oldest judgements once there are clearly too many, and what no version needs that is listed."""
        kept, versions = self._config.judgements_kept, self._config.versions_kept
        slack = int(SLACK * kept) + 1
        judged = {document: standing.relevant for document, standing in fold.resolved.judged.items()}
        full = len(judged) >= kept + slack
        if not full and len(fold.events) < max(fold.compact_from, kept + slack + versions):
            return
        fold.compact_from = len(fold.events) + slack
        floor = max(fold.head.floor, fold.resolved.version - versions)
        gone = obsolete(fold.events, floor) if floor > fold.head.floor else []
        if not full and len(gone) < slack:
            return
        event = self._event("compacted", floor=floor, kept=kept)
        left = dict(list(judged.items())[-kept:])
        seq = await self._store.logs.amend(fold.topic, fold.head, event, floor=floor, judged=left, obsolete=gone)
        if seq:
            head = replace(fold.head, seq=seq, floor=floor)
            await self._in_thread(fold.topic, fold.advance, head, [replace(event, seq=seq)], gone)
            fold.compact_from = len(fold.events) + slack
            await self._publish(fold)

    async def _head(self, topic: str) -> Head:
        (head,) = await self._store.heads([topic])
        if head is None:
            raise NotFound.topic(topic)
        return head

    async def _read(self, topic: str) -> TopicState:
        """The fold over the log as it is now."""
        fold = self._folds.get(topic)
        head, tail = await self._store.logs.load(topic, fold.resolved.version if fold else 0)
        # Another topic of this name, a log that was compacted, or one that has lost its end with its store.
        if fold and ((head.born, head.floor) != (fold.head.born, fold.head.floor) or head.seq < fold.resolved.version):
            fold = None
            head, tail = await self._store.logs.load(topic)
        if fold is None:
            fold = await self._in_thread(topic, TopicState, topic, head, tail, self._config.served_weights)
        elif tail:
            await self._in_thread(topic, fold.advance, head, tail)
        self._hold(fold)
        return fold

    async def _publish(self, fold: TopicState) -> PublishedModel:
        if fold.published is None or fold.published.version != fold.resolved.version:
            epoch = await self._epochs.load(fold.resolved.epoch)
            served = await self._in_thread(fold.topic, fold.build_model, epoch)
            saved = Saved(fold.head.born, served.version, served.to_bytes())
            await self._store.versions.save(
                fold.topic, saved, fold.record(served, saved.digest), self._config.versions_kept
            )
            fold.published = served
        # In a thread because the bank may have to copy some weights.
        await self._in_thread(fold.topic, self._serve, fold.published)
        return fold.published

    async def _in_thread(self, topic: str, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return await self._pool.run(call, *args, **kwargs)
        except Exception:
            self._release(topic)  # it may have stopped half-way; the log has not
            raise

    def _event(self, kind: Kind, **attributes: Any) -> Event:
        return Event(kind, now_ms(), self._epochs.current.number, **attributes)

    def _hold(self, fold: TopicState) -> None:
        self._release(fold.topic)
        self._folds[fold.topic] = fold
        self._sizes[fold.topic] = fold.nbytes
        self._held_bytes += fold.nbytes
        while len(self._folds) > 1 and self._held_bytes > MAX_STATE_BYTES:
            self._release(next(iter(self._folds)))

    def _release(self, topic: str) -> None:
        self._folds.pop(topic, None)
        self._held_bytes -= self._sizes.pop(topic, 0)
