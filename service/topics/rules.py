"""Rules over the model: what a topic's user wants accepted or rejected whatever the model thinks.

`reject_if` wins over `accept_if`, and both over the model; the verdict says so in `decided_by`. The model's score
stands beside it unchanged, and what it learns from is judgements alone: a rule decides, it does not teach.
"""

from collections.abc import Collection, Mapping
from typing import Literal, NamedTuple

from models.text.rules import Rule, RuleError, Subject, parse
from service.errors import BadInput, FieldError
from service.schemas import Decision, Document, Rules

RuleName = Literal["accept_if", "reject_if"]
DECIDES: Mapping[str, Decision] = {"accept_if": "accept", "reject_if": "reject"}


class CompiledRules(NamedTuple):
    accept_if: Rule | None
    reject_if: Rule | None

    def decides(self, subject: Subject) -> RuleName | None:
        if self.reject_if and self.reject_if.matches(subject):
            return "reject_if"
        return "accept_if" if self.accept_if and self.accept_if.matches(subject) else None


def compile_rules(rules: Rules) -> CompiledRules | None:
    """The rules, ready to be asked; None if there are none. Rules that cannot be read are refused, and say where."""

    def one(name: RuleName, text: str | None) -> Rule | None:
        try:
            return parse(text) if text is not None and text.strip() else None
        except RuleError as error:
            where = FieldError(pointer=f"/rules/{name}", detail=str(error))
            raise BadInput("A rule cannot be read.", [where]) from None

    both = CompiledRules(one("accept_if", rules.accept_if), one("reject_if", rules.reject_if))
    return both if any(both) else None


class TopicRules:
    """The rules of all topics that have some. Replaced as a whole when one changes, so that readers need no lock."""

    def __init__(self) -> None:
        self._rules: dict[str, CompiledRules] = {}

    def put(self, rules: Mapping[str, Rules]) -> None:
        """These topics have these rules from now on."""
        found = {topic: both for topic, one in rules.items() if (both := compile_rules(one))}
        if found or not self._rules.keys().isdisjoint(rules):
            self._rules = {topic: both for topic, both in self._rules.items() if topic not in rules} | found

    def decides(self, document: Document, topics: Collection[str] | None) -> dict[str, RuleName]:
        """The topics, of those asked for, whose rules decide about this document, and which rule does."""
        asked = {t: r for t, r in self._rules.items() if topics is None or t in topics}
        if not asked:
            return {}
        subject = Subject.of(document.title, document.text, document.source or "")
        return {topic: name for topic, rules in asked.items() if (name := rules.decides(subject))}

    def of(self, topic: str, document: Document) -> RuleName | None:
        """The topic's rule that decides about this document, if one does."""
        return self.decides(document, [topic]).get(topic)
