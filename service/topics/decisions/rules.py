"""Rules over the model: what a topic's user wants accepted or rejected whatever the model decides.

`reject_if` wins over `accept_if`, and both over the model; a verdict names what decided in `decided_by`. The model's
score is reported unchanged, and the model learns from judgements alone: a rule decides, it does not teach.
"""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from models.text.rules import Rule, RuleError, Subject, parse
from service.errors import BadInput, FieldError
from service.schemas import Decision, Document, Rules
from service.sentences import as_sentence

RuleName = Literal["accept_if", "reject_if"]
DECIDES: Mapping[str, Decision] = {"accept_if": "accept", "reject_if": "reject"}


class CompiledRules(NamedTuple):
    accept_if: Rule | None
    reject_if: Rule | None

    def decides(self, subject: Subject) -> RuleName | None:
        """The rule that matches, if one does."""
        if self.reject_if and self.reject_if.matches(subject):
            return "reject_if"
        return "accept_if" if self.accept_if and self.accept_if.matches(subject) else None


def compile_rules(rules: Rules) -> CompiledRules | None:
    """The rules, ready to be matched; None if there are none. A rule that cannot be parsed raises `BadInput`."""

    def compiled(name: RuleName, text: str | None) -> Rule | None:
        try:
            return parse(text) if text is not None and text.strip() else None
        except RuleError as error:
            field_error = FieldError(pointer=f"/rules/{name}", detail=as_sentence(error))
            raise BadInput("A rule cannot be parsed.", [field_error]) from None

    both = CompiledRules(compiled("accept_if", rules.accept_if), compiled("reject_if", rules.reject_if))
    return both if any(both) else None


class TopicRules:
    """The rules of all topics that have any. The table is replaced as a whole, so that readers need no lock."""

    def __init__(self) -> None:
        self._rules: dict[str, CompiledRules] = {}

    def put(self, rules: Mapping[str, Rules]) -> None:
        """Sets the rules of these topics; empty rules remove those that a topic had."""
        changed = {topic: both for topic, texts in rules.items() if (both := compile_rules(texts))}
        if changed or not self._rules.keys().isdisjoint(rules):
            self._rules = {topic: both for topic, both in self._rules.items() if topic not in rules} | changed

    def decides(self, document: Document, topics: Collection[str] | None) -> dict[str, RuleName]:
        """The rule that decides about this document, by topic, for those of the topics (None: all) that have one."""
        if not self._rules:  # the usual case, and this is called for each document
            return {}
        candidates = {topic: rules for topic, rules in self._rules.items() if topics is None or topic in topics}
        if not candidates:
            return {}
        subject = Subject.of(document.title, document.text, document.source or "")
        return {topic: name for topic, rules in candidates.items() if (name := rules.decides(subject))}

    def of(self, topic: str, document: Document) -> RuleName | None:
        """The topic's rule that decides about this document, if one does."""
        return self.decides(document, [topic]).get(topic)
