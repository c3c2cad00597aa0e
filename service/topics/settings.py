"""A topic's settings, as the log keeps them, and the checks that a change of them has to pass.

Pinned and banned terms are given as words. They are analysed once, here, and the log keeps their canonical form with
the settings: a fold must not depend on how the deployment analyses text today.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, Field, SerializerFunctionWrapHandler, field_validator, model_serializer, model_validator

from models.batch import registry
from models.core.names import METHOD_KINDS
from models.goals.objectives import BreakEven, FBeta, Objective, Utility
from models.goals.promises import Targets
from models.goals.thresholds import HandCuts
from models.online.pins import PinnedTerms
from models.online.registry import parse_params
from models.text.analysis import Analysis, features_of, occurrences
from service.clock import now_ms
from service.errors import BadInput, FieldError
from service.schemas import EFFECTS, TARGETS, Cuts, Effect, Learner, Measure, Pins, Pocket, Policy, TopicFields
from service.schemas.fields import Canonical, Millis, Request, Share
from service.sentences import as_sentence
from service.topics.decisions import rules

MAX_AUDIT_RATES = 20  # in the history
ALWAYS_STORED = ("name", "query", "learner", "goal", "rules", "audit", "retrain", "created_ms")  # even as defaults
# Settings that no model depends on: restoring a version does not change them.
KEPT_ON_RESTORE = (*(name for name, effect in EFFECTS.items() if effect < Effect.MODEL), "drawn")


class CanonicalTerms(Request):
    """Pinned and banned terms in canonical form (models/text/analysis.py)."""

    pin: list[Canonical] = Field(default_factory=list, max_length=50)
    ban: list[Canonical] = Field(default_factory=list, max_length=50)

    @model_validator(mode="after")
    def _no_term_twice(self) -> Self:
        if len({*self.pin, *self.ban}) < len(self.pin) + len(self.ban):
            raise ValueError("A term is listed twice.")
        return self


class PastAuditRate(Request):
    """The rate at which rejected documents were drawn for audit until then."""

    until_ms: Millis
    rate: Share


class TopicSettings(TopicFields):
    """A topic's settings as the log keeps them: the user's, the time of creation, its pinned and banned terms in
    canonical form (`read`), and its past audit rates, oldest first (`drawn`).

    In the JSON, settings other than `ALWAYS_STORED` stand only where they are not the default, so that a new setting
    does not change the digests of models that do without it. A goal without a mode is strict, and without a pocket
    vectors are ranked with all that they have learned: once all were.
    """

    pocket: Annotated[Pocket, Effect.MODEL] = Pocket(by="learned")
    created_ms: Millis
    read: CanonicalTerms = CanonicalTerms()
    drawn: list[PastAuditRate] = Field(default_factory=list, max_length=MAX_AUDIT_RATES)

    @field_validator("goal", mode="before")
    @classmethod
    def _strict_without_a_mode(cls, goal: object) -> object:
        return {"mode": "strict"} | goal if isinstance(goal, dict) and goal else goal

    @model_validator(mode="after")
    def _terms_are_canonical_too(self) -> Self:
        terms, read = self.terms, self.read
        if (bool(terms.pin), bool(terms.ban)) != (bool(read.pin), bool(read.ban)):
            raise ValueError("The canonical form of its terms is missing.")
        return self

    @model_serializer(mode="wrap")
    def _without_defaults(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = serialize(self)
        if self.goal.mode == "strict":
            fields.get("goal", {}).pop("mode", None)
        return {name: value for name, value in fields.items() if name in ALWAYS_STORED or not self._is_default(name)}

    def _is_default(self, name: str) -> bool:
        default = type(self).model_fields[name].get_default(call_default_factory=True)
        return bool(getattr(self, name) == default)

    @property
    def pinned_terms(self) -> PinnedTerms:
        """Its pinned and banned terms, by feature."""
        pin, ban = (tuple(features_of(terms).tolist()) for terms in (self.read.pin, self.read.ban))
        return PinnedTerms(pin, ban)


def changed_fields(change: BaseModel, analysis: Analysis) -> dict[str, Any]:
    """The settings that a request names, with the default in place of null; raises `BadInput` if one is invalid."""
    named = {name: getattr(change, name) for name in change.model_fields_set & TopicFields.model_fields.keys()}
    named |= {name: TopicFields.model_fields[name].get_default() for name, value in named.items() if value is None}
    check(named)
    if "terms" in named:
        named["read"] = read_terms(named["terms"], analysis)
    return named


def check(settings: Mapping[str, Any]) -> None:
    """Raises `BadInput` for settings that would fail later."""
    for name, check_field in (("learner", check_learner), ("rules", rules.compile_rules), ("retrain", check_policy)):
        if name in settings:
            check_field(settings[name])


def read_terms(terms: Pins, analysis: Analysis) -> CanonicalTerms:
    """The terms in canonical form, as this deployment analyses text; `BadInput` if one is not a single term."""
    pin = {_single_term(word, f"/terms/pin/{i}", analysis): None for i, word in enumerate(terms.pin)}
    ban = {_single_term(word, f"/terms/ban/{i}", analysis): f"/terms/ban/{i}" for i, word in enumerate(terms.ban)}
    if both := [pointer for term, pointer in ban.items() if term in pin]:
        errors = [FieldError(pointer=pointer, detail="This term is also pinned.") for pointer in both]
        raise BadInput("A term cannot be both pinned and banned.", errors)
    return CanonicalTerms(pin=list(pin), ban=list(ban))


def _single_term(word: str, pointer: str, analysis: Analysis) -> str:
    found = list(dict.fromkeys(term.canonical for term, _ in occurrences("", word, analysis)))
    if analysis.bigrams and len(found) == 3 and found[2] == f"{found[0]} {found[1]}":
        return found[2]  # a pair of words is a term where pairs are counted
    if len(found) != 1:
        detail = f"This holds {len(found)} terms." if found else "This holds no term."
        raise BadInput("Only single terms can be pinned or banned.", [FieldError(pointer=pointer, detail=detail)])
    return found[0]


def check_learner(learner: Learner) -> None:
    try:
        parse_params(learner.kind, learner.params)
    except ValueError as error:
        field_error = FieldError(pointer="/learner", detail=as_sentence(error))
        raise BadInput("The learner is not valid.", [field_error]) from None


def check_policy(policy: Policy | None) -> None:
    if policy and policy.method is not None:
        check_method(policy.method, policy.params, "/retrain")


def check_method(method: str, params: Mapping[str, object], pointer: str) -> None:
    """Raises `BadInput` for a method of retraining that does not exist, or does not take these parameters."""
    try:
        registry.parse(method, params)
    except ValueError as error:
        field = f"{pointer}/params" if method in METHOD_KINDS else f"{pointer}/method"
        field_error = FieldError(pointer=field, detail=as_sentence(error))
        raise BadInput("The method or its parameters are not valid.", [field_error]) from None


def effect_of(settings: TopicFields, before: TopicFields) -> Effect:
    """The greatest effect among the settings that differ."""
    effects = (effect for name, effect in EFFECTS.items() if getattr(settings, name) != getattr(before, name))
    return max(effects, default=Effect.NOTHING)


def targets_of(settings: TopicFields) -> Targets:
    """The goal, and cuts set by hand, as the models take them."""
    goal, cuts = settings.goal, settings.cuts
    shares = {name: getattr(goal, name) for name in TARGETS}
    return Targets(**shares, mode=goal.mode, maximise=_objective(goal.maximise), cuts=_by_hand(cuts))


def _by_hand(cuts: Cuts | None) -> HandCuts | None:
    if cuts is None:
        return None
    if cuts.band is not None:
        return HandCuts(band=cuts.band)
    return HandCuts(cuts.reject_below or 0.0, cuts.accept_above or 0.0)


def _objective(asked: Measure | str | None) -> Objective | None:
    if asked is None:
        return None
    if isinstance(asked, str):
        return BreakEven()
    return Utility(**asked.utility.model_dump()) if asked.utility else FBeta(asked.f_beta or 1.0)


def audit_rate(settings: TopicFields, default: float) -> float:
    """The share of rejected documents that is drawn for audit."""
    return default if settings.audit is None else settings.audit


def with_audit_history(settings: TopicSettings, before: TopicSettings, default: float) -> TopicSettings:
    """The settings, with the audit rate before them appended to the history if the rate changes."""
    rate = audit_rate(before, default)
    if not rate or rate == audit_rate(settings, default):
        return settings
    history = [*before.drawn, PastAuditRate(until_ms=now_ms(), rate=rate)]
    return settings.model_copy(update={"drawn": history[-MAX_AUDIT_RATES:]})
