"""A change of a topic's settings, checked: what it makes of the settings as they are.

Pinned and banned terms are given as words. They are read once, here, and what they were read as is kept with the
settings, in the log: a fold must not ask how a deployment reads text today.
"""

from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, Field, model_validator

from models.batch import registry
from models.core.names import METHOD_KINDS
from models.online.registry import parse_params
from models.text.analysis import Analysis, occurrences
from service.errors import BadInput, FieldError
from service.schemas import Learner, Pins, Policy, TopicFields
from service.schemas.fields import Canonical, Request
from service.topics import rules

DECIDING = ("query", "learner", "goal", "rules", "terms")  # settings by which documents are decided


class Read(Request):
    """Single terms in canonical form."""

    pin: list[Canonical] = Field(default_factory=list, max_length=50)
    ban: list[Canonical] = Field(default_factory=list, max_length=50)

    @model_validator(mode="after")
    def _each_is_one_thing(self) -> Self:
        if len({*self.pin, *self.ban}) < len(self.pin) + len(self.ban):
            raise ValueError("a term stands there twice")
        return self


def given(change: BaseModel, analysis: Analysis) -> dict[str, Any]:
    """The settings that a request names, null meaning what a setting is by default; refused if they cannot be."""
    named = {name: getattr(change, name) for name in change.model_fields_set & TopicFields.model_fields.keys()}
    named |= {name: TopicFields.model_fields[name].get_default() for name, value in named.items() if value is None}
    check(named)
    if "terms" in named:
        named["read"] = read(named["terms"], analysis)
    return named


def check(settings: Mapping[str, Any]) -> None:
    """Refuses settings that could only fail later."""
    for name, checked in (("learner", check_learner), ("rules", rules.compiled), ("retrain", check_policy)):
        if name in settings:
            checked(settings[name])


def read(terms: Pins, analysis: Analysis) -> Read:
    """The terms as this deployment reads text."""
    pin = {_one_term(word, f"/terms/pin/{i}", analysis): None for i, word in enumerate(terms.pin)}
    ban = {_one_term(word, f"/terms/ban/{i}", analysis): f"/terms/ban/{i}" for i, word in enumerate(terms.ban)}
    if both := [where for term, where in ban.items() if term in pin]:
        errors = [FieldError(pointer=where, detail="is pinned, too") for where in both]
        raise BadInput("A term cannot be pinned and banned.", errors)
    return Read(pin=list(pin), ban=list(ban))


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


def changes_decisions(settings: TopicFields, before: TopicFields) -> bool:
    """Whether documents are decided by other settings than before."""
    return any(getattr(settings, name) != getattr(before, name) for name in DECIDING)
