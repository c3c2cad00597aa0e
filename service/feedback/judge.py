"""The journey of a judgement.

    find the document  →  its features, what was decided, how it came about  →  append, fold, publish (learning)

How it came about says what the judgement is evidence of: a document that had passed with the stream, or that its user
brought along; and with what chance it was drawn, if it was. What was decided is what was delivered when it passed, as
long as the topic's stream tells (store/outbox.py), rules and all; else, and beside it, what the model decides now.

A correction, or a withdrawal, of a judgement that a retrained model was fitted on counts at once as one more judgement,
since nobody shall wait for a fit; and a retraining by the same method is submitted, which sees it in its place.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple

import structlog

from service.clock import now_ms, time_of
from service.config import Config
from service.errors import NotFound, ServiceError
from service.feedback.goals import Goals
from service.schemas import Before, Decision, Document, Judgement, Learned, PastJudgement
from service.schemas.parsing import check_length
from service.store.documents import Remembered, unpack
from service.store.events import Event
from service.store.resolve import StandingJudgement
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epoch, Epochs
from service.topics.crud import Topics
from service.topics.deciding import content_id
from service.topics.features import log_features
from service.topics.learning import Learning
from service.topics.published import DIGITS, Recipe
from service.topics.registry import Registry
from service.topics.rules import DECIDES
from service.topics.state import to_bag

TITLE_CHARS = 200  # of a judged document's title, kept with the judgement
MENDED = ("corrected", "known")
NEVER_MS = -1
UNKNOWN = "This document is not remembered (any more); send it with its text in place of its id."

log = structlog.get_logger("sluice.feedback")


class Source(NamedTuple):
    """The document that a judgement is about, or the event that judged it before."""

    document: Document | Event
    passed: bool  # it came with the stream ...
    came_ms: int = 0  # ... then ...
    everywhere: bool = False  # ... and was surely put to the topic

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
    ) -> None:
        self._store = store
        self._refit = refit
        self._topics = topics
        self._registry = registry
        self._learning = learning
        self._epochs = epochs
        self._goals = goals
        self._max_chars = config.max_text_chars
        self._pool = pool

    async def judge(self, judgements: Sequence[Judgement]) -> list[Learned | ServiceError]:
        """Each judgement durable and learned, or why not; one that fails leaves the others alone."""
        found = await self._sources(judgements)
        delivered = await self._delivered(judgements, found)
        if any(isinstance(source, Source) and source.passed for source in found):
            await self._goals.sync_signatures()
        epoch = self._epochs.current
        answers: dict[int, Learned | ServiceError] = {}
        of_topic: dict[str, list[tuple[int, Event, Before]]] = {}
        for i, judgement in enumerate(judgements):
            source = found[i]
            if isinstance(source, ServiceError):
                answers[i] = source
                continue
            try:
                event, before = await self._pool.run(self._event, judgement, source, epoch, delivered.get(i))
            except NotFound as error:  # the topic was deleted meanwhile
                answers[i] = error
                continue
            of_topic.setdefault(judgement.topic, []).append((i, event, before))
        await asyncio.gather(*(self._learn(topic, items, answers) for topic, items in of_topic.items()))
        return [answers[i] for i in range(len(judgements))]

    async def withdraw(self, topic: str, document: str) -> int:
        """Takes a judgement back; the version without it."""
        event = Event("withdrawn", now_ms(), self._epochs.current.number, document=document)
        ((status, version),) = await self._learning.learn(topic, [event])
        if status == "absent":
            raise NotFound("This document has no judgement that stands in this topic.")
        await self._mend(topic, [document])
        return version

    async def page(self, topic: str, before: int | None, limit: int) -> tuple[list[PastJudgement], str | None]:
        """The judgements that stand, newest first, of versions before the given one; and where the next page begins."""
        judged = await self._learning.read(topic, lambda state: list(state.resolved.judged.values()))
        newest = sorted(judged, key=lambda standing: -standing.latest.seq)
        rest = [standing for standing in newest if before is None or standing.latest.seq < before]
        items = [_past_judgement(standing) for standing in rest[:limit]]
        return items, str(items[-1].version) if rest[limit:] else None

    async def _learn(
        self, topic: str, items: list[tuple[int, Event, Before]], answers: dict[int, Learned | ServiceError]
    ) -> None:
        try:
            taken = await self._learning.learn(topic, [event for _, event, _ in items])
        except ServiceError as error:
            answers.update({i: error for i, _, _ in items})
            return
        for (i, event, before), (status, version) in zip(items, taken, strict=True):
            said = {"topic": topic, "document": event.document, "relevant": event.relevant, "before": before}
            answers[i] = Learned.model_validate(said | {"status": status, "version": version})
        # One that is known, too: whoever changed it may have died before what follows.
        changed = [event.document for (_, event, _), (status, _) in zip(items, taken, strict=True) if status in MENDED]
        await self._mend(topic, changed)

    async def _mend(self, topic: str, changed: Sequence[str]) -> None:
        """A retrained model rests on judgements of which some are not what they were: it is to be fitted again."""
        try:
            recipe = await self._learning.read(topic, lambda state: state.recipe_if_stale(changed)) if changed else None
            if recipe:
                await self._refit(topic, recipe)
        except ServiceError as error:  # the judgement itself is durable, and has been answered
            log.warning("a model is not fitted again", topic=topic, detail=error.detail)

    async def _sources(self, judgements: Sequence[Judgement]) -> list[Source | ServiceError]:
        """For each judgement the document it is about, or what is wrong."""
        ids = [id_of(judgement.document) for judgement in judgements]
        remembered = await self._store.documents.load(ids)
        found: list[Source | ServiceError] = []
        brought: dict[tuple[str, str], Source | ServiceError] = {}  # by judgements before, in the same request
        for judgement, document, blob in zip(judgements, ids, remembered, strict=True):
            try:
                created_ms = (await self._topics.find(judgement.topic)).settings.created_ms
                known = unpack(blob) if blob else None
                if isinstance(judgement.document, Document):
                    check_length(judgement.document, self._max_chars)
                    found.append(Source.of(judgement.document, known, created_ms))
                    brought[judgement.topic, document] = found[-1]
                elif known:
                    found.append(Source.of(known.document, known, created_ms))
                elif (judgement.topic, document) in brought:
                    found.append(brought[judgement.topic, document])
                else:
                    before = await self._judged_before(judgement.topic, document)
                    found.append(Source(before, before.passed, before.came_ms))
            except ServiceError as error:
                found.append(error)
        return found

    async def _judged_before(self, topic: str, document: str) -> Event:
        standing = await self._learning.read(topic, lambda state: state.resolved.judged.get(document))
        if standing is None:
            raise NotFound(UNKNOWN)
        return standing.first

    async def _delivered(
        self, judgements: Sequence[Judgement], sources: Sequence[Source | ServiceError]
    ) -> dict[int, Decision]:
        """By place, what was decided of documents as they passed. Whoever judges late judges that: by now the topic may
        have learned to accept what it had rejected, and nobody would ever have been shown."""
        came: dict[str, dict[str, int]] = {}
        for judgement, source in zip(judgements, sources, strict=True):
            if isinstance(source, Source) and source.passed:
                # What was not let through was rejected, if it was surely put to the topic.
                came_ms = source.came_ms if source.everywhere else NEVER_MS
                came.setdefault(judgement.topic, {})[id_of(judgement.document)] = came_ms
        found = await self._store.outbox.decisions(came)
        places = {i: (judgement.topic, id_of(judgement.document)) for i, judgement in enumerate(judgements)}
        return {i: found[place] for i, place in places.items() if place in found}

    def _event(
        self, judgement: Judgement, source: Source, epoch: Epoch, delivered: Decision | None
    ) -> tuple[Event, Before]:
        """The judgement as it goes into the log, with what is decided at this moment, and what had been delivered."""
        about = source.document
        if isinstance(about, Event):
            document, title, blob, rule = about.document, about.title, about.features, about.rule
        else:
            document, title, rule = id_of(about), about.title, self._registry.rules.of(judgement.topic, about) or ""
            blob = log_features(about.title, about.text, self._registry.analysis, epoch)
        published = self._registry.get(judgement.topic)
        calibration = published.model.calibration
        decision, score = published.decide_bag(to_bag(blob))
        before = Before(decision=decision, score=round(score, DIGITS))
        if delivered is None and source.passed and isinstance(about, Document):
            delivered = DECIDES.get(rule)
        event = Event(
            "judged",
            now_ms(),
            epoch.number,
            document=document,
            relevant=judgement.relevant,
            features=blob,
            title=title[:TITLE_CHARS],
            judge=judgement.by or "",
            decision=before.decision,
            delivered="" if delivered in (None, before.decision) else delivered,
            rule=rule,
            score=score,
            probability=calibration.probability(score) if calibration else None,
            passed=source.passed,
            came_ms=source.came_ms,
            chance=self._goals.chance(published, document, source.came_ms) if source.passed else 0.0,
        )
        return event, before


def id_of(document: str | Document) -> str:
    return document if isinstance(document, str) else document.id or content_id(document)


def _past_judgement(standing: StandingJudgement) -> PastJudgement:
    first, latest = standing.first, standing.latest
    return PastJudgement(
        document=first.document,
        relevant=standing.relevant,
        title=first.title,
        by=latest.judge or None,
        at=time_of(latest.at_ms),
        version=latest.seq,
        before=Before.model_validate({"decision": first.decision, "score": first.score}),
    )
