"""Results: what is decided about each document, as values; each interface writes them in its own form.

A result lists the decisions that are shown: those of topics requested by name, or all that are not rejections. With the
results comes what a stored batch leads to: what each topic keeps, and which documents repeat others.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from models.core.vectors import Bag
from models.text.analysis import Bags, terms
from service.schemas import ClassifyOptions, Decision, Document
from service.topics.background import Epoch
from service.topics.decisions.deciding import Decided, TopicVerdict, decide_documents
from service.topics.decisions.explain import Counterfactual, ScorePart, explain, flip
from service.topics.decisions.groups import decide_together
from service.topics.decisions.registry import Registry
from service.topics.decisions.repeats import Original, Repeat, as_original, counts_in
from service.topics.published import DIGITS

MODEL, GROUP = "model", "group"  # in `decided_by`


class Explanation(NamedTuple):
    """Why a topic decided as it did. Empty if the model, and so its weights, have changed since."""

    contributions: list[ScorePart] | None
    flip: Counterfactual | None

    def to_dict(self) -> dict[str, Any]:
        """The last two fields of `schemas.Verdict`."""
        return {
            "explanation": self.contributions and [contribution.to_dict() for contribution in self.contributions],
            "flip": self.flip and self.flip.to_dict(),
        }


class DocumentResult(NamedTuple):
    document: str
    decisions: list[tuple[Decision, TopicVerdict]]  # those that are shown, each with the verdict it follows from
    explanations: Sequence[Explanation] = ()  # of each decision, if they were requested
    duplicate_of: str | None = None
    updated: bool = False  # it came before with another text

    def to_dict(self) -> dict[str, Any]:
        """The fields of `schemas.Result`."""
        decisions: list[dict[str, Any]] = []
        for decision, verdict in self.decisions:
            topic, score, rule, _, group = verdict  # faster than by name, and this runs for each decision
            name, _, _, version, calibration, _, certain, _ = topic
            fields: dict[str, Any] = {
                "topic": name,
                "decision": decision,
                "score": round(score, DIGITS),
                "probability": verdict.probability if calibration else None,
                "version": version,
                "decided_by": GROUP if group else rule or MODEL,
            }
            if certain is not None:
                fields["certain"] = certain
            decisions.append(fields)
        if self.explanations:
            for explained, explanation in zip(decisions, self.explanations, strict=True):
                explained |= explanation.to_dict()
        result: dict[str, Any] = {"document": self.document, "decisions": decisions}
        if self.duplicate_of:
            result["duplicate_of"] = self.duplicate_of
        if self.updated:
            result["updated"] = True
        return result


class Kept(NamedTuple):
    """A document that a topic did not reject."""

    place: int  # of the document in its batch
    decision: Decision
    by_rule: bool
    score: float
    version: int  # of the model that decided
    certain: bool | None = None  # as in ServedTopic


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
    registry: Registry,
    decided: Decided,
    options: ClassifyOptions,
    epoch: Epoch,
    originals: Mapping[int, Original],
    updated: Collection[str] = (),
) -> Classified:
    """The results of documents, and what follows from them; `originals` are those that documents repeat, by place, and
    `updated` those that came before with another text."""
    results: list[DocumentResult] = []
    kept: dict[str, list[Kept]] = {}
    repeats: dict[int, Repeat] = {}
    show_all = options.topics is not None or options.include == "all"
    wanted = set(options.topics) if decided.groups and options.topics is not None else None
    for place, verdicts in enumerate(decided.verdicts):
        original = originals.get(place)
        alike: set[str] = set()
        if original:
            verdicts, alike = as_original(verdicts, original.verdicts)
        if decided.groups:
            verdicts = decide_together(decided.groups, verdicts, wanted)
        decisions: list[tuple[Decision, TopicVerdict]] = []
        for verdict in verdicts:
            decision = verdict.decision
            if decision == "reject" and not show_all:
                continue
            if decision != "reject" and options.store:
                kept.setdefault(verdict.topic.name, []).append(_kept(place, verdict, decision))
            decisions.append((decision, verdict))
        if original:
            not_rejecting = (verdict.topic.name for decision, verdict in decisions if decision != "reject")
            younger = registry.created_after(original.came_ms, options.topics)
            repeats[place] = Repeat(original.id, counts_in(not_rejecting, alike, younger))
        explanations: Sequence[Explanation] = ()
        if options.explain and decisions:
            by_itself = _Explainer(registry, decided.documents[place], decided.bag(place), epoch)
            by_original = _Explainer(registry, original.document, original.bag, epoch) if original else by_itself
            explanations = [
                (by_original if verdict.topic.name in alike else by_itself).explain(decision, verdict)
                for decision, verdict in decisions
            ]
        duplicate_of = original.id if original else None
        id = decided.ids[place]
        results.append(DocumentResult(id, decisions, explanations, duplicate_of, id in updated))
    return Classified(decided.ids, decided.bags, results, kept, repeats)


def _kept(place: int, verdict: TopicVerdict, decision: Decision) -> Kept:
    topic = verdict.topic
    return Kept(place, decision, verdict.rule is not None, round(verdict.score, DIGITS), topic.version, topic.certain)


class _Explainer:
    """Explains decisions about one document."""

    def __init__(self, registry: Registry, document: Document, bag: Bag, epoch: Epoch) -> None:
        self._registry = registry
        self._bag = bag
        self._epoch = epoch
        self._words = self._surfaces(document.title, document.text)

    def explain(self, decision: Decision, verdict: TopicVerdict) -> Explanation:
        model = self._registry.topics.get(verdict.topic.name)
        if not model or model.version != verdict.topic.version:
            return Explanation(None, None)
        contributions = explain(model, self._bag, self._words)
        if verdict.rule or verdict.group:
            return Explanation(contributions, None)
        pins = zip(model.settings.pinned_terms.pin, model.settings.read.pin, strict=True)
        query = dict(pins) | self._surfaces("", model.settings.query)
        idf = self._epoch.frequencies.idf
        return Explanation(contributions, flip(model, decision, self._bag, self._words, query, idf))

    def _surfaces(self, title: str, text: str) -> dict[int, str]:
        """The words behind the features of a text, as they are written there."""
        return {feature: term.surface for feature, term in terms(title, text, self._registry.analysis).items()}
