"""The journey of a judgement.

    find the document  →  its features, the decision about it, its origin  →  append, fold, publish (learning)

The origin says what the judgement is evidence of: of a document that had passed with the stream, or that the user
brought along; and with what chance it was drawn for audit, if it was. The decision is the one that was delivered when
the document passed, rules included, as long as the topic's stream still has it (store/stream/outbox.py); else what the
model decides now. Both are logged if they differ.

If a judgement that a retrained model was fitted on is corrected or withdrawn, this counts at once, as one more
judgement, so that nobody waits for a fit; and a retraining by the same method is submitted, which puts it right.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import structlog

from service.clock import now_ms, time_of
from service.config import Config
from service.errors import NotFound, ServiceError
from service.feedback.goals import Goals
from service.schemas import Before, Decision, Document, Judgement, Learned, PastJudgement
from service.schemas.parsing import check_length
from service.store.events import Event
from service.store.resolve import StandingJudgement
from service.store.stream.documents import Remembered, unpack
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epoch, Epochs
from service.topics.crud import Topics
from service.topics.decisions.deciding import content_id
from service.topics.decisions.registry import Registry
from service.topics.decisions.rules import DECIDES
from service.topics.features import log_features
from service.topics.learning import Learning
from service.topics.published import DIGITS, PublishedModel, Recipe
from service.topics.state import to_bag

TITLE_CHARS = 200  # of a judged document's title, kept with the judgement
# After these a retrained model may be stale. "known", too: the process that made the correction may have died before it
# submitted the retraining.
MAY_NEED_REFIT = ("corrected", "known")
NEVER_MS = -1
UNKNOWN = "This document is not remembered (any more); send it with its text in place of its id."

log = structlog.get_logger("sluice.feedback")


class Source(NamedTuple):
    """The document that a judgement is about, or the event that judged it before."""

    document: Document | Event
    passed: bool  # it came with the stream
    came_ms: int = 0  # when, if it did
    everywhere: bool = False  # it was put to all topics, so certainly to this one

    @classmethod
    def of(cls, document: Document, known: Remembered | None, created_ms: int) -> "Source":
        if known and known.passed(created_ms):
            return cls(document, True, known.came_ms, known.everywhere)
        return cls(document, False)


class Judge:
    def __init__(
        self,
        store: Store,
        topics: Topics,
        registry: Registry,
        learning: Learning,
        epochs: Epochs,
        goals: Goals,
        config: Config,
        pool: Pool,
        refit: Callable[[str, Recipe], Awaitable[None]],
        learned: Callable[[str], None],
    ) -> None:
        self._store = store
        self._refit = refit
        self._learned = learned  # called when a topic has learned
        self._topics = topics
        self._registry = registry
        self._learning = learning
        self._epochs = epochs
        self._goals = goals
        self._max_chars = config.max_text_chars
        self._pool = pool

    async def judge(self, judgements: Sequence[Judgement]) -> list[Learned | ServiceError]:
        """Logs and learns each judgement. Returns the outcome of each; one that fails leaves the others alone."""
        sources = await self._find_sources(judgements)
        delivered = await self._load_delivered(judgements, sources)
        if any(isinstance(source, Source) and source.passed for source in sources):
            await self._goals.sync_signatures()
        epoch = self._epochs.current
        outcomes: dict[int, Learned | ServiceError] = {}
        by_topic: dict[str, list[tuple[int, Event, Before]]] = {}
        for i, judgement in enumerate(judgements):
            source = sources[i]
            if isinstance(source, ServiceError):
                outcomes[i] = source
                continue
            try:
                event, before = await self._pool.run(self._event, judgement, source, epoch, delivered.get(i))
            except NotFound as error:  # the topic was deleted meanwhile
                outcomes[i] = error
                continue
            by_topic.setdefault(judgement.topic, []).append((i, event, before))
        await asyncio.gather(*(self._learn(topic, items, outcomes) for topic, items in by_topic.items()))
        return [outcomes[i] for i in range(len(judgements))]

    async def withdraw(self, topic: str, document: str) -> int:
        """Takes a judgement back. Returns the version without it."""
        event = Event("withdrawn", now_ms(), self._epochs.current.number, document=document)
        ((status, version),) = await self._learning.learn(topic, [event])
        if status == "absent":
            raise NotFound("This document has no judgement in this topic.")
        self._learned(topic)
        await self._refit_if_stale(topic, [document])
        return version

    async def page(self, topic: str, before: int | None, limit: int) -> tuple[list[PastJudgement], str | None]:
        """The judgements that stand, newest first, of versions before the given one; and where the next page begins."""
        judged = await self._learning.read(topic, lambda state: list(state.resolved.judged.values()))
        newest = sorted(judged, key=lambda standing: -standing.newest.seq)
        rest = [standing for standing in newest if before is None or standing.newest.seq < before]
        items = [_past_judgement(standing) for standing in rest[:limit]]
        return items, str(items[-1].version) if rest[limit:] else None

    async def _learn(
        self, topic: str, items: list[tuple[int, Event, Before]], outcomes: dict[int, Learned | ServiceError]
    ) -> None:
        moves = self._moves(topic)
        try:
            learned = await self._learning.learn(topic, [event for _, event, _ in items])
        except ServiceError as error:
            outcomes.update({i: error for i, _, _ in items})
            return
        for (i, event, before), (status, version) in zip(items, learned, strict=True):
            fields = {"topic": topic, "document": event.document, "relevant": event.relevant, "grade": event.grade}
            fields |= {"before": before, "status": status, "version": version}
            outcomes[i] = Learned.model_validate(fields)
        statuses = zip(items, learned, strict=True)
        changed = [event.document for (_, event, _), (status, _) in statuses if status in MAY_NEED_REFIT]
        self._learned(topic)
        if changed or moves:
            await self._refit_if_stale(topic, changed)

    def _moves(self, topic: str) -> bool:
        """Whether a judgement now puts the topic under another projection."""
        published, projection = self._registry.topics.get(topic), self._epochs.current.projection
        return bool(published and published.projected not in (0, projection.number if projection else 0))

    async def _refit_if_stale(self, topic: str, changed: Sequence[str]) -> None:
        """Submits a retraining if the served model was fitted on judgements that have changed since, or under another
        projection."""
        try:
            recipe = await self._learning.read(topic, lambda state: state.recipe_if_stale(changed))
            if recipe:
                await self._refit(topic, recipe)
        except ServiceError as error:  # the judgement itself is durable, and has been answered
            log.warning("could not submit a retraining", topic=topic, detail=error.detail)

    async def _find_sources(self, judgements: Sequence[Judgement]) -> list[Source | ServiceError]:
        """The document that each judgement is about, or why there is none."""
        ids = [id_of(judgement.document) for judgement in judgements]
        remembered = await self._store.documents.load(ids)
        sources: list[Source | ServiceError] = []
        sent: dict[tuple[str, str], Source | ServiceError] = {}  # with earlier judgements of the same request
        for judgement, document, blob in zip(judgements, ids, remembered, strict=True):
            try:
                created_ms = (await self._topics.find(judgement.topic)).settings.created_ms
                known = unpack(blob) if blob else None
                if isinstance(judgement.document, Document):
                    check_length(judgement.document, self._max_chars)
                    sources.append(Source.of(judgement.document, known, created_ms))
                    sent[judgement.topic, document] = sources[-1]
                elif known:
                    sources.append(Source.of(known.document, known, created_ms))
                elif (judgement.topic, document) in sent:
                    sources.append(sent[judgement.topic, document])
                else:
                    before = await self._judged_event(judgement.topic, document)
                    sources.append(Source(before, before.passed, before.came_ms))
            except ServiceError as error:
                sources.append(error)
        return sources

    async def _judged_event(self, topic: str, document: str) -> Event:
        """The event that first judged the document, which keeps its features."""
        standing = await self._learning.read(topic, lambda state: state.resolved.judged.get(document))
        if standing is None:
            raise NotFound(UNKNOWN)
        return standing.first

    async def _load_delivered(
        self, judgements: Sequence[Judgement], sources: Sequence[Source | ServiceError]
    ) -> dict[int, Decision]:
        """The decisions on the documents when they passed, by the judgement's place. A late judgement is about
        that decision: by now the topic may have learned to accept what it had rejected and shown to nobody."""
        came: dict[str, dict[str, int]] = {}
        for judgement, source in zip(judgements, sources, strict=True):
            if isinstance(source, Source) and source.passed:
                # A document that is not in the topic's stream was rejected, if it was put to all topics.
                came_ms = source.came_ms if source.everywhere else NEVER_MS
                came.setdefault(judgement.topic, {})[id_of(judgement.document)] = came_ms
        decisions = await self._store.outbox.decisions(came)
        keys = {i: (judgement.topic, id_of(judgement.document)) for i, judgement in enumerate(judgements)}
        return {i: decisions[key] for i, key in keys.items() if key in decisions}

    def _event(
        self, judgement: Judgement, source: Source, epoch: Epoch, delivered: Decision | None
    ) -> tuple[Event, Before]:
        """The judgement as it goes into the log, with the decision of this moment and the one that was delivered."""
        subject = source.document
        if isinstance(subject, Event):
            document, title, features, rule = subject.document, subject.title, subject.features, subject.rule
        else:
            document, title = id_of(subject), subject.title
            rule = self._registry.rules.of(judgement.topic, subject) or ""
            features = log_features(subject.title, subject.text, self._registry.analysis, epoch)
        published = self._registry.get(judgement.topic)
        if delivered is None and source.passed and isinstance(subject, Document):
            delivered = DECIDES.get(rule)
        judged = Event(
            "judged",
            now_ms(),
            epoch.number,
            document=document,
            relevant=bool(judgement.relevant),
            grade=None if isinstance(judgement.relevant, bool) else judgement.relevant,
            features=features,
            title=title[:TITLE_CHARS],
            judge=judgement.by or "",
            rule=rule,
            passed=source.passed,
            came_ms=source.came_ms,
            chance=self._goals.chance(published, document, source.came_ms) if source.passed else 0.0,
        )
        event = with_decisions(judged, published, delivered)
        return event, Before.model_validate({"decision": event.decision, "score": round(event.score, DIGITS)})


def with_decisions(judged: Event, published: PublishedModel, delivered: Decision | None) -> Event:
    """The judgement with what the model decides of its document at this moment, and with what was delivered when the
    document passed, where that differs."""
    decision, score = published.decide_bag(to_bag(judged.features))
    calibration = published.model.calibration
    return replace(
        judged,
        decision=decision,
        delivered="" if delivered in (None, decision) else delivered,
        score=score,
        probability=calibration.probability(score) if calibration else None,
    )


def id_of(document: str | Document) -> str:
    """The id that was sent, or the one that is made from the content."""
    return document if isinstance(document, str) else document.id or content_id(document)


def _past_judgement(standing: StandingJudgement) -> PastJudgement:
    first, newest = standing.first, standing.newest
    return PastJudgement(
        document=first.document,
        relevant=standing.relevant,
        grade=standing.grade,
        title=first.title,
        by=newest.judge or None,
        at=time_of(newest.at_ms),
        version=newest.seq,
        before=Before.model_validate({"decision": first.decision, "score": first.score}),
    )
