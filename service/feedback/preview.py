"""What if: the same judgements folded under other settings, beside the topic, and both asked about the same documents.

    judged      each with the score that it has without its own influence; the label says which decision is right
    unjudged    of about the NEWEST documents in the memory, those that nobody has judged

Nothing is written and the fold that serves is not touched: what stands is copied, and folded anew in a thread, against
the background that a change would be made under. So what is previewed is what PATCH would give, as of this moment.

Rules need a document's text. A judged document that the memory has forgotten is decided by the models alone.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from models.text.analysis import Analysis, bags
from models.text.rules import Subject
from service.schemas import Decision, Document, Effect
from service.schemas.metrics import DecisionCounts, Move, PreviewComparison, PreviewExample, PreviewRequest
from service.store.documents import unpack
from service.store.events import Event
from service.store.resolve import Resolved
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epoch, Epochs
from service.topics.deciding import bag_of
from service.topics.features import log_features
from service.topics.learning import Learning
from service.topics.published import DIGITS, PublishedModel
from service.topics.rules import DECIDES, CompiledRules, compile_rules
from service.topics.settings import TopicSettings, changed_fields, effect_of
from service.topics.state import TopicState, train

NEWEST = 500
ORDER: tuple[Decision, ...] = ("accept", "abstain", "reject")


class Case(NamedTuple):
    """A document decided twice."""

    document: str
    title: str
    score: float
    score_after: float
    before: Decision
    after: Decision
    relevant: bool | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    before: PublishedModel
    after: PublishedModel
    judged: PreviewComparison
    unjudged: PreviewComparison
    examples: list[PreviewExample]


class Previews:
    def __init__(
        self,
        store: Store,
        learning: Learning,
        epochs: Epochs,
        analysis: Analysis,
        weights: int,
        pool: Pool,
    ) -> None:
        self._store = store
        self._learning = learning
        self._epochs = epochs
        self._analysis = analysis
        self._weights = weights
        self._pool = pool
        self._turn = asyncio.Lock()  # one at a time: a long log takes seconds, and the threads are there for others

    async def preview(self, topic: str, asked: PreviewRequest) -> Outcome:
        fields = changed_fields(asked, self._analysis)
        published = await self._learning.catch_up(topic)
        resolved, held_out = await self._learning.read(topic, TopicState.snapshot)
        settings = published.settings.model_copy(update=fields)
        ruled = any(compile_rules(one.rules) for one in (published.settings, settings))
        documents = await self._documents(resolved, ruled)
        # A change brings a topic under the current background, and none leaves it where it is.
        epoch = self._epochs.current if settings != published.settings else await self._epochs.load(published.epoch)

        def work() -> Outcome:
            query = resolved.settings.features
            if settings.query != published.settings.query:
                query = log_features("", settings.query, self._analysis, epoch)
            after, scores = self._otherwise(published, resolved, settings, query, epoch)
            return self._compared(published, after, resolved, (held_out, scores), documents, asked.limit)

        async with self._turn:
            return await self._pool.run(work)

    async def _documents(self, resolved: Resolved, ruled: bool) -> dict[str, Document]:
        """The newest in the memory; and, if rules will look at their text, those judged ones that are still there."""
        newest = [one for one in await self._store.documents.newest(0, NEWEST) if one not in resolved.judged]
        ids, found = [*newest, *(resolved.judged if ruled else ())], dict[str, Document]()
        for start in range(0, len(ids), NEWEST):
            some = ids[start : start + NEWEST]
            blobs = zip(some, await self._store.documents.load(some), strict=True)
            found |= {document: unpack(blob).document for document, blob in blobs if blob}
        return found

    def _otherwise(
        self, published: PublishedModel, resolved: Resolved, settings: TopicSettings, query: bytes, epoch: Epoch
    ) -> tuple[PublishedModel, dict[str, float]]:
        """The topic as it would be, and the scores that it would give the judged documents, held out."""
        refold = effect_of(settings, published.settings) is Effect.START
        edited = Event("edited", 0, epoch.number, settings=settings.model_dump_json(), features=query, refold=refold)
        changed = replace(resolved)
        changed.set(edited)
        trainer = train(changed, self._weights)
        model = trainer.model(epoch.background)
        return replace(published, epoch=epoch.number, settings=settings, model=model), trainer.held_out()

    def _compared(
        self,
        before: PublishedModel,
        after: PublishedModel,
        resolved: Resolved,
        held_out: tuple[Mapping[str, float], Mapping[str, float]],
        documents: Mapping[str, Document],
        limit: int,
    ) -> Outcome:
        rules = [compile_rules(one.settings.rules) for one in (before, after)]

        def case(document: str, title: str, scores: Sequence[float], relevant: bool | None) -> Case:
            ruled = _ruled(documents.get(document), rules)
            old, new = (
                rule or one.decide(score) for rule, one, score in zip(ruled, (before, after), scores, strict=True)
            )
            return Case(document, title, scores[0], scores[1], old, new, relevant)

        judged = [
            case(document, one.first.title, [scores[document] for scores in held_out], one.relevant)
            for document, one in resolved.judged.items()
            if all(document in scores for scores in held_out)
        ]
        passed = {document: one for document, one in documents.items() if document not in resolved.judged}
        asked = zip(passed.items(), self._scores(list(passed.values()), (before, after)), strict=True)
        unjudged = [case(document, one.title, scores, None) for (document, one), scores in asked]
        moved = [one for one in [*unjudged, *judged[::-1]] if one.before != one.after]
        return Outcome(before, after, _compare(judged), _compare(unjudged), [_example(one) for one in moved[:limit]])

    def _scores(self, documents: Sequence[Document], models: Sequence[PublishedModel]) -> list[list[float]]:
        """What each of the models says of each document now."""
        counted = bags([(document.title, document.text) for document in documents], self._analysis)
        idf = self._epochs.current.frequencies.idf(counted.features)
        return [[model.decision_score(bag_of(counted, idf, i)) for model in models] for i in range(len(documents))]


def _ruled(document: Document | None, rules: Sequence[CompiledRules | None]) -> list[Decision | None]:
    """What each of the rules decides, None where it does not."""
    if document is None or not any(rules):
        return [None for _ in rules]
    subject = Subject.of(document.title, document.text, document.source or "")
    names = [one.decides(subject) if one else None for one in rules]
    return [DECIDES[name] if name else None for name in names]


def _compare(cases: Sequence[Case]) -> PreviewComparison:
    moves = Counter((one.before, one.after) for one in cases)
    return PreviewComparison(
        documents=len(cases),
        before=_counted(cases, lambda one: one.before),
        after=_counted(cases, lambda one: one.after),
        moves=[Move(before=a, after=b, documents=moves[a, b]) for a in ORDER for b in ORDER if moves[a, b]],
    )


def _counted(cases: Iterable[Case], decided: Callable[[Case], Decision]) -> DecisionCounts:
    tables = {decision: Counter[bool | None]() for decision in ORDER}
    for one in cases:
        tables[decided(one)][one.relevant] += 1
    accepted, abstained, rejected = (tables[decision] for decision in ORDER)
    relevant = accepted[True] + abstained[True] + rejected[True]
    tested = [table[True] + table[False] for table in (accepted, rejected)]
    return DecisionCounts(
        accepted=accepted.total(),
        abstained=abstained.total(),
        rejected=rejected.total(),
        precision=_part(accepted[True], tested[0]),
        recall=_part(relevant - rejected[True], relevant),
        error=_part(accepted[False] + rejected[True], sum(tested)),
    )


def _part(k: int, n: int) -> float | None:
    return k / n if n else None


def _example(one: Case) -> PreviewExample:
    scores = {"score": round(one.score, DIGITS), "score_after": round(one.score_after, DIGITS)}
    return PreviewExample.model_validate(one._asdict() | scores)
