"""Results: what is decided about each document, as values; each interface writes them in its own form.

A result lists the decisions that are shown: those of topics requested by name, or all that are not rejections. With the
results comes what a stored batch leads to: what each topic keeps, and which documents repeat others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from models.core.vectors import Bag
from models.text.analysis import Bags, terms
from service.schemas import ClassifyOptions, Decision, Document
from service.topics.background import Epoch
from service.topics.decisions.deciding import Decided, TopicVerdict, decide_documents
from service.topics.decisions.explain import Contribution, Flip, explain, flip
from service.topics.decisions.registry import Registry
from service.topics.decisions.repeats import Original, Repeat, as_original
from service.topics.published import DIGITS

MODEL = "model"


class Explanation(NamedTuple):
    """Why a topic decided as it did. Empty if the model, and so its weights, have changed since."""

    contributions: list[Contribution] | None
    flip: Flip | None


class TopicDecision(NamedTuple):
    topic: str
    decision: Decision
    score: float
    probability: float | None
    version: int
    decided_by: str
    explanation: Explanation | None = None  # None if it was not requested

    @classmethod
    def of(cls, verdict: TopicVerdict, decision: Decision) -> "TopicDecision":
        topic = verdict.topic
        score = round(verdict.score, DIGITS)
        return cls(topic.name, decision, score, verdict.probability, topic.version, verdict.rule or MODEL)

    def to_dict(self) -> dict[str, Any]:
        """The fields of `schemas.Verdict`."""
        topic, decision, score, probability, version, decided_by, explanation = self
        fields: dict[str, Any] = {
            "topic": topic,
            "decision": decision,
            "score": score,
            "probability": probability,
            "version": version,
            "decided_by": decided_by,
        }
        if explanation:
            contributions, change = explanation
            fields["explanation"] = contributions and [contribution.to_dict() for contribution in contributions]
            fields["flip"] = change and change.to_dict()
        return fields


class DocumentResult(NamedTuple):
    document: str
    decisions: list[TopicDecision]
    duplicate_of: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The fields of `schemas.Result`."""
        fields: dict[str, Any] = {
            "document": self.document,
            "decisions": [decision.to_dict() for decision in self.decisions],
        }
        return fields | {"duplicate_of": self.duplicate_of} if self.duplicate_of else fields


class Kept(NamedTuple):
    """A document that a topic did not reject."""

    place: int  # of the document in its batch
    decision: Decision
    by_rule: bool
    score: float
    version: int  # of the model that decided


@dataclass(frozen=True, slots=True)
class Classified:
    """Documents that were classified: their ids, features and results, and, if they are stored, what follows."""

    ids: list[str]
    bags: Bags
    results: list[DocumentResult]
    kept: dict[str, list[Kept]]  # by topic
    repeats: dict[int, Repeat]  # by place


def classify(
    registry: Registry, documents: Sequence[Document], options: ClassifyOptions, epoch: Epoch
) -> list[DocumentResult]:
    """The results of documents, each decided on its own, by all topics or those requested."""
    return classified(registry, decide_documents(registry, documents, options, epoch), options, epoch, {}).results


def classified(
    registry: Registry, decided: Decided, options: ClassifyOptions, epoch: Epoch, originals: Mapping[int, Original]
) -> Classified:
    """The results of documents, and what follows from them; `originals` are those that documents repeat, by place."""
    results: list[DocumentResult] = []
    kept: dict[str, list[Kept]] = {}
    repeats: dict[int, Repeat] = {}
    show_all = options.topics is not None or options.include == "all"
    for place, verdicts in enumerate(decided.verdicts):
        original = originals.get(place)
        alike: set[str] = set()
        if original:
            verdicts, alike = as_original(verdicts, original.verdicts)
        decisions = []
        for verdict in verdicts:
            decision = verdict.decision
            if decision == "reject" and not show_all:
                continue
            if decision != "reject" and options.store:
                kept.setdefault(verdict.topic.name, []).append(_kept(place, verdict, decision))
            decisions.append(TopicDecision.of(verdict, decision))
        if original:
            different = {shown.topic for shown in decisions if shown.decision != "reject"} - alike
            younger = registry.created_after(original.came_ms, options.topics)
            repeats[place] = Repeat(original.id, younger | different)
        if options.explain and decisions:
            by_itself = _Explainer(registry, decided.documents[place], decided.bag(place), epoch)
            by_original = _Explainer(registry, original.document, original.bag, epoch) if original else by_itself
            decisions = [(by_original if shown.topic in alike else by_itself).explained(shown) for shown in decisions]
        results.append(DocumentResult(decided.ids[place], decisions, original.id if original else None))
    return Classified(decided.ids, decided.bags, results, kept, repeats)


def _kept(place: int, verdict: TopicVerdict, decision: Decision) -> Kept:
    return Kept(place, decision, verdict.rule is not None, round(verdict.score, DIGITS), verdict.topic.version)


class _Explainer:
    """Explains decisions about one document."""

    def __init__(self, registry: Registry, document: Document, bag: Bag, epoch: Epoch) -> None:
        self._registry = registry
        self._bag = bag
        self._epoch = epoch
        self._words = self._surfaces(document.title, document.text)

    def explained(self, decision: TopicDecision) -> TopicDecision:
        model = self._registry.topics.get(decision.topic)
        if not model or model.version != decision.version:
            return decision._replace(explanation=Explanation(None, None))
        contributions = explain(model, self._bag, self._words)
        if decision.decided_by != MODEL:
            return decision._replace(explanation=Explanation(contributions, None))
        pins = zip(model.settings.pinned_terms.pin, model.settings.read.pin, strict=True)
        query = dict(pins) | self._surfaces("", model.settings.query)
        idf = self._epoch.frequencies.idf
        change = flip(model, decision.decision, self._bag, self._words, query, idf)
        return decision._replace(explanation=Explanation(contributions, change))

    def _surfaces(self, title: str, text: str) -> dict[int, str]:
        """The words behind the features of a text, as they are written there."""
        return {feature: term.surface for feature, term in terms(title, text, self._registry.analysis).items()}
