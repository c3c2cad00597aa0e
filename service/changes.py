"""A change of a topic's settings, checked: what it makes of the settings as they are."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from models import methods
from models.learners import parse_params
from service import overlay
from service.errors import BadInput, FieldError
from service.schemas import Learner, Policy, TopicFields


def given(change: BaseModel) -> dict[str, Any]:
    """The settings that a request names, null meaning what a setting is by default; refused if they cannot be."""
    named = {name: getattr(change, name) for name in change.model_fields_set & TopicFields.model_fields.keys()}
    named |= {name: TopicFields.model_fields[name].get_default() for name, value in named.items() if value is None}
    if "learner" in named:
        check_learner(named["learner"])
    if "rules" in named:
        overlay.compiled(named["rules"])
    if "retrain" in named:
        check_policy(named["retrain"])
    return named


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
        methods.parse(method, params)
    except ValueError as error:
        at = f"{where}/params" if method in methods.KINDS else f"{where}/method"
        raise BadInput("The method cannot be used so.", [FieldError(pointer=at, detail=str(error))]) from None
