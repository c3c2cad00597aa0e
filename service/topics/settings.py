"""A change of a topic's settings, checked: what it makes of the settings as they are.

Pinned and banned terms are given as words. They are read once, here, and what they were read as is kept with the
settings, in the log: a fold must not ask how a deployment reads text today.
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from models.batch import registry
from models.core.names import METHOD_KINDS
from models.online.pins import PinnedTerms
from models.online.registry import parse_params
from models.text.analysis import Analysis, features_of, occurrences
from service.clock import now_ms
from service.errors import BadInput, FieldError
from service.schemas import EFFECTS, Effect, Learner, Pins, Policy, TopicFields
from service.schemas.fields import Canonical, Millis, Request, Share
from service.topics import rules

MAX_AUDIT_RATES = 20  # earlier rates that are remembered
# Settings that no model depends on, and that a restored version leaves as they are.
KEPT_ON_RESTORE = (*(name for name, effect in EFFECTS.items() if effect < Effect.MODEL), "drawn")


class CanonicalTerms(Request):
    """Single terms in canonical form."""

    pin: list[Canonical] = Field(default_factory=list, max_length=50)
    ban: list[Canonical] = Field(default_factory=list, max_length=50)

    @model_validator(mode="after")
    def _each_is_one_thing(self) -> Self:
        if len({*self.pin, *self.ban}) < len(self.pin) + len(self.ban):
            raise ValueError("a term stands there twice")
        return self


class PastAuditRate(Request):
    """A rate at which rejected documents were drawn for audit, and until when."""

    until_ms: Millis
    rate: Share


class TopicSettings(TopicFields):
    """A topic's settings as the log keeps them: the user's, when it was created, how the deployment read its single
    terms (canonical: models/text/analysis.py), and its past audit rates, oldest first.

    `terms`, `read` and `drawn` are left out of the JSON when they are empty, so that the digests of models without
    them do not change.
    """

    created_ms: Millis
    read: CanonicalTerms = CanonicalTerms()
    drawn: list[PastAuditRate] = Field(default_factory=list, max_length=MAX_AUDIT_RATES)

    @model_validator(mode="after")
    def _terms_were_read(self) -> Self:
        terms, read = self.terms, self.read
        if (bool(terms.pin), bool(terms.ban)) != (bool(read.pin), bool(read.ban)):
            raise ValueError("it does not say what its terms were read as")
        return self

    @model_serializer(mode="wrap")
    def _without_empty_fields(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        empty = {"terms", "read"} if self.terms == Pins() else set[str]()
        if not self.drawn:
            empty.add("drawn")
        fields: dict[str, Any] = serialize(self)
        return {name: value for name, value in fields.items() if name not in empty}

    @property
    def pinned_terms(self) -> PinnedTerms:
        """Its terms by feature."""
        pin, ban = (tuple(features_of(one).tolist()) for one in (self.read.pin, self.read.ban))
        return PinnedTerms(pin, ban)


def changed_fields(change: BaseModel, analysis: Analysis) -> dict[str, Any]:
    """The settings that a request names, null meaning what a setting is by default; refused if they cannot be."""
    named = {name: getattr(change, name) for name in change.model_fields_set & TopicFields.model_fields.keys()}
    named |= {name: TopicFields.model_fields[name].get_default() for name, value in named.items() if value is None}
    check(named)
    if "terms" in named:
        named["read"] = read_terms(named["terms"], analysis)
    return named


def check(settings: Mapping[str, Any]) -> None:
    """Refuses settings that could only fail later."""
    for name, checked in (("learner", check_learner), ("rules", rules.compile_rules), ("retrain", check_policy)):
        if name in settings:
            checked(settings[name])


def read_terms(terms: Pins, analysis: Analysis) -> CanonicalTerms:
    """The terms as this deployment reads text."""
    pin = {_one_term(word, f"/terms/pin/{i}", analysis): None for i, word in enumerate(terms.pin)}
    ban = {_one_term(word, f"/terms/ban/{i}", analysis): f"/terms/ban/{i}" for i, word in enumerate(terms.ban)}
    if both := [where for term, where in ban.items() if term in pin]:
        errors = [FieldError(pointer=where, detail="is pinned, too") for where in both]
        raise BadInput("A term cannot be pinned and banned.", errors)
    return CanonicalTerms(pin=list(pin), ban=list(ban))


def _one_term(word: str, where: str, analysis: Analysis) -> str:
    found = list(dict.fromkeys(term.canonical for term, _ in occurrences("", word, analysis)))
    if analysis.bigrams and len(found) == 3 and found[2] == f"{found[0]} {found[1]}":
        return found[2]  # a pair of words is a term where pairs are counted
    if len(found) != 1:
        detail = f"holds {len(found)} terms" if found else "holds no term"
        raise BadInput("Only single terms can be pinned or banned.", [FieldError(pointer=where, detail=detail)])
    return found[0]


def check_learner(learner: Learner) -> None:
    try:
        parse_params(learner.kind, learner.params)
    except ValueError as error:
        detail = str(error)
        raise BadInput("The learner cannot be made.", [FieldError(pointer="/learner", detail=detail)]) from None


def check_policy(policy: Policy | None) -> None:
    if policy and policy.method is not None:
        check_method(policy.method, policy.params, "/retrain")


def check_method(method: str, params: Mapping[str, object], where: str) -> None:
    """Refuses what a retraining could not do."""
    try:
        registry.parse(method, params)
    except ValueError as error:
        at = f"{where}/params" if method in METHOD_KINDS else f"{where}/method"
        raise BadInput("The method cannot be used so.", [FieldError(pointer=at, detail=str(error))]) from None


def effect_of(settings: TopicFields, before: TopicFields) -> Effect:
    """The furthest that the settings which differ reach."""
    effects = (effect for name, effect in EFFECTS.items() if getattr(settings, name) != getattr(before, name))
    return max(effects, default=Effect.NOTHING)


def audit_rate(settings: TopicFields, usual: float) -> float:
    """The share of rejected documents that is drawn for audit."""
    if settings.audit is not None:
        return settings.audit
    goal = settings.goal
    return usual if goal.min_recall is not None or goal.max_error is not None else 0.0


def with_audit_history(settings: TopicSettings, before: TopicSettings, usual: float) -> TopicSettings:
    """The settings that follow others, with the previous audit rate appended to its history if the rate changed."""
    rate = audit_rate(before, usual)
    if not rate or rate == audit_rate(settings, usual):
        return settings
    history = [*before.drawn, PastAuditRate(until_ms=now_ms(), rate=rate)]
    return settings.model_copy(update={"drawn": history[-MAX_AUDIT_RATES:]})
