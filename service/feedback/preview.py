"""What if: the same judgements folded under other settings, beside the topic, and both models compared.

    judged      judged documents, each scored without its own influence; the label says which decision is right
    unjudged    those of the newest NEWEST_DOCUMENTS documents in the memory that nobody has judged

Nothing is written, and the state that serves is not touched: the judgements that stand are copied and folded again in a
thread, against the background that a change would be made under. So a preview shows what PATCH would give right now.

In a group, one of whose topics may accept, the others decide as they do now, of judged documents by all that they have
learned.

Rules need a document's text. A judged document that the memory has forgotten is decided by the models alone.

`cost` is the same in brief, for the moment at which a goal is set: how the newest documents in the memory, judged or
not, are decided now, and how they would be.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from models.core.vectors import Bag
from models.goals.one_of import Candidate
from models.goals.reporting.volume import StreamCounts
from models.text.analysis import bags
from models.text.rules import Subject
from service.schemas import Decision, Document, Effect
from service.schemas.metrics import DecisionCounts, Move, PreviewComparison, PreviewExample, PreviewRequest
from service.store.events import Event
from service.store.resolve import Resolved
from service.store.stream.documents import unpack
from service.store.topics import Store
from service.tasks import Pool
from service.topics.background import Epoch, Epochs
from service.topics.counts import TopicCounters, TopicCounts
from service.topics.decisions.deciding import bag_of
from service.topics.decisions.registry import Registry
from service.topics.decisions.rules import DECIDES, CompiledRules, compile_rules
from service.topics.features import log_features
from service.topics.learning import Learning
from service.topics.published import DIGITS, PublishedModel
from service.topics.settings import TopicSettings, changed_fields, effect_of
from service.topics.state import TopicState, to_bag, train

NEWEST_DOCUMENTS = 1000  # of the memory that are compared; also how many are loaded together
DECISIONS: tuple[Decision, ...] = ("accept", "abstain", "reject")


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
class Comparison:
    """The topic as it is and as it would be, and how both decide."""

    before: PublishedModel
    after: PublishedModel
    judged: PreviewComparison
    unjudged: PreviewComparison
    newest: PreviewComparison  # judged or not
    examples: list[PreviewExample]


class Outcome(NamedTuple):
    comparison: Comparison
    counts_before: TopicCounts
    counts_after: TopicCounts


class _Neighbours:
    """The other topics in the groups that a topic is in, before and after, and what they make of a document."""

    def __init__(self, registry: Registry, topic: str, models: Sequence[PublishedModel]) -> None:
        settings = [model.settings.group for model in models]
        self._groups = [registry.groups.with_topic(topic, group) if group else None for group in settings]
        names = {name for group in self._groups if group for name in group.topics} - {topic}
        self._others = [model for name in sorted(names) if (model := registry.topics.get(name))]
        self._models = models
        self._rules = registry.rules

    def decide(
        self,
        decisions: Sequence[Decision],
        scores: Sequence[float],
        by_rules: Sequence[bool],
        bag: Bag,
        text: Document | None,
    ) -> list[Decision]:
        """The topic's decision before and after, which is as given where it is in no group."""
        if not self._others:
            return list(decisions)
        others = {model.topic: self._other(model, bag, text) for model in self._others}
        together: list[Decision] = []
        for i, (model, group) in enumerate(zip(self._models, self._groups, strict=True)):
            mine = _candidate(model, decisions[i], scores[i], by_rules[i])
            rows = [mine, *(others[name] for name in group.topics if name in others)] if group else []
            together.append(group.decisions(rows)[model.topic] if group else decisions[i])
        return together

    def _other(self, model: PublishedModel, bag: Bag, text: Document | None) -> Candidate:
        decision, score = model.decide_bag(bag)
        rule = self._rules.of(model.topic, text) if text else None
        return _candidate(model, DECIDES[rule] if rule else decision, score, rule is not None)


def _candidate(model: PublishedModel, decision: Decision, score: float, by_rule: bool) -> Candidate:
    calibration = model.model.calibration
    probability = calibration.probability(score) if calibration and not by_rule else None
    return Candidate(model.topic, decision, probability, by_rule)


class Previews:
    def __init__(
        self,
        store: Store,
        registry: Registry,
        learning: Learning,
        epochs: Epochs,
        counters: TopicCounters,
        weights: int,
        pool: Pool,
    ) -> None:
        self._store = store
        self._registry = registry
        self._learning = learning
        self._epochs = epochs
        self._counters = counters
        self._analysis = registry.analysis
        self._weights = weights
        self._pool = pool
        self._turn = asyncio.Lock()  # one preview at a time: a long log takes seconds, and others need the threads

    async def cost(self, topic: str, asked: PreviewRequest) -> PreviewComparison:
        """How the newest documents are decided, and how they would be under these settings."""
        return (await self._compare(topic, asked)).newest

    async def preview(self, topic: str, asked: PreviewRequest) -> Outcome:
        """The topic under these settings, and the counts by which its goal would be measured then."""
        comparison = await self._compare(topic, asked)
        (counts,) = await self._counters.load([topic])
        changes = effect_of(comparison.after.settings, comparison.before.settings)
        # Where it would decide differently, what it has decided until now says nothing about its goal.
        after = replace(counts, as_now=StreamCounts()) if changes >= Effect.DECISIONS else counts
        return Outcome(comparison, counts, after)

    async def _compare(self, topic: str, asked: PreviewRequest) -> Comparison:
        fields = changed_fields(asked, self._analysis)
        self._registry.groups.check(topic, fields.get("group"))
        published = await self._learning.catch_up(topic)
        resolved, held_out = await self._learning.read(topic, TopicState.snapshot)
        settings = published.settings.model_copy(update=fields)
        has_rules = any(compile_rules(each.rules) or each.group for each in (published.settings, settings))
        newest = await self._store.documents.newest(0, NEWEST_DOCUMENTS)
        documents = await self._load_documents(newest, resolved, has_rules)
        # A change puts a topic under the current background; without one it stays under its own.
        epoch = self._epochs.current if settings != published.settings else await self._epochs.load(published.epoch)

        def compare() -> Comparison:
            query = resolved.settings.features
            if settings.query != published.settings.query:
                query = log_features("", settings.query, self._analysis, epoch)
            after, scores = self._refold(published, resolved, settings, query, epoch)
            return self._compare_models(published, after, resolved, (held_out, scores), documents, newest, asked.limit)

        async with self._turn:
            return await self._pool.run(compare)

    async def _load_documents(self, newest: Sequence[str], resolved: Resolved, has_rules: bool) -> dict[str, Document]:
        """The newest documents in the memory; if rules need their text, also the judged ones that are still there."""
        unjudged = [id for id in newest if id not in resolved.judged]
        ids, documents = [*unjudged, *(resolved.judged if has_rules else ())], dict[str, Document]()
        for start in range(0, len(ids), NEWEST_DOCUMENTS):
            batch = ids[start : start + NEWEST_DOCUMENTS]
            blobs = zip(batch, await self._store.documents.load(batch), strict=True)
            documents |= {id: unpack(blob).document for id, blob in blobs if blob}
        return documents

    def _refold(
        self, published: PublishedModel, resolved: Resolved, settings: TopicSettings, query: bytes, epoch: Epoch
    ) -> tuple[PublishedModel, dict[str, float]]:
        """The topic as it would be, and its held-out scores of the judged documents."""
        refold = effect_of(settings, published.settings) is Effect.START
        edited = Event("edited", 0, epoch.number, settings=settings.model_dump_json(), features=query, refold=refold)
        changed = replace(resolved)
        changed.set(edited)
        trainer = train(changed, self._weights, epoch.projection.projection if epoch.projection else None)
        after = replace(published, epoch=epoch.number, settings=settings, model=trainer.model(epoch.background))
        return after.under(epoch.projection), trainer.held_out()

    def _compare_models(
        self,
        before: PublishedModel,
        after: PublishedModel,
        resolved: Resolved,
        held_out: tuple[Mapping[str, float], Mapping[str, float]],
        documents: Mapping[str, Document],
        newest: Sequence[str],
        limit: int,
    ) -> Comparison:
        rules = [compile_rules(model.settings.rules) for model in (before, after)]

        neighbours = _Neighbours(self._registry, before.topic, (before, after))

        def case(document: str, title: str, scores: Sequence[float], bag: Bag, relevant: bool | None) -> Case:
            text = documents.get(document)
            by_rules = _by_rules(text, rules)
            own = [
                rule or model.decide(score)
                for rule, model, score in zip(by_rules, (before, after), scores, strict=True)
            ]
            old, new = neighbours.decide(own, scores, [rule is not None for rule in by_rules], bag, text)
            return Case(document, title, scores[0], scores[1], old, new, relevant)

        judged = [
            case(
                document,
                standing.first.title,
                [scores[document] for scores in held_out],
                to_bag(standing.first.features),
                standing.relevant,
            )
            for document, standing in resolved.judged.items()
            if all(document in scores for scores in held_out)
        ]
        passed = {id: document for id, document in documents.items() if id not in resolved.judged}
        seen = self._bags(list(passed.values()))
        unjudged = [
            case(id, document.title, [model.decision_score(bag) for model in (before, after)], bag, None)
            for (id, document), bag in zip(passed.items(), seen, strict=True)
        ]
        recent = set(newest)
        lately = [each for each in [*unjudged, *judged] if each.document in recent]
        moved = [each for each in [*unjudged, *judged[::-1]] if each.before != each.after]
        examples = [_example(each) for each in moved[:limit]]
        of_judged, of_unjudged, of_newest = (_comparison(cases) for cases in (judged, unjudged, lately))
        return Comparison(before, after, of_judged, of_unjudged, of_newest, examples)

    def _bags(self, documents: Sequence[Document]) -> list[Bag]:
        """The features of each document, as of now."""
        counted = bags([(document.title, document.text) for document in documents], self._analysis)
        idf = self._epochs.current.frequencies.idf(counted.features)
        return [bag_of(counted, idf, i) for i in range(len(documents))]


def _by_rules(document: Document | None, rules: Sequence[CompiledRules | None]) -> list[Decision | None]:
    """The decision of each set of rules; None where it leaves the decision to the model."""
    if document is None or not any(rules):
        return [None for _ in rules]
    subject = Subject.of(document.title, document.text, document.source or "")
    names = [each.decides(subject) if each else None for each in rules]
    return [DECIDES[name] if name else None for name in names]


def _comparison(cases: Sequence[Case]) -> PreviewComparison:
    moves = Counter((case.before, case.after) for case in cases)
    return PreviewComparison(
        documents=len(cases),
        before=_counts(cases, lambda case: case.before),
        after=_counts(cases, lambda case: case.after),
        moves=[Move(before=a, after=b, documents=moves[a, b]) for a in DECISIONS for b in DECISIONS if moves[a, b]],
    )


def _counts(cases: Iterable[Case], decision_of: Callable[[Case], Decision]) -> DecisionCounts:
    tables = {decision: Counter[bool | None]() for decision in DECISIONS}
    for case in cases:
        tables[decision_of(case)][case.relevant] += 1
    accepted, abstained, rejected = (tables[decision] for decision in DECISIONS)
    relevant = accepted[True] + abstained[True] + rejected[True]
    tested = [table[True] + table[False] for table in (accepted, rejected)]
    return DecisionCounts(
        accepted=accepted.total(),
        abstained=abstained.total(),
        rejected=rejected.total(),
        precision=_share(accepted[True], tested[0]),
        recall=_share(relevant - rejected[True], relevant),
        error=_share(accepted[False] + rejected[True], sum(tested)),
    )


def _share(k: int, n: int) -> float | None:
    return k / n if n else None


def _example(case: Case) -> PreviewExample:
    scores = {"score": round(case.score, DIGITS), "score_after": round(case.score_after, DIGITS)}
    return PreviewExample.model_validate(case._asdict() | scores)
