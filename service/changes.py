"""A change of a topic's settings, checked: what it makes of the settings as they are."""

from typing import Any

from pydantic import BaseModel

from models.learners import parse_params
from service import overlay
from service.errors import BadInput, FieldError
from service.schemas import Learner, TopicFields


def given(change: BaseModel) -> dict[str, Any]:
    """The settings that a request names, null meaning what a setting is by default; refused if they cannot be."""
    named = {name: getattr(change, name) for name in change.model_fields_set & TopicFields.model_fields.keys()}
    named |= {name: TopicFields.model_fields[name].get_default() for name, value in named.items() if value is None}
    if "learner" in named:
        check_learner(named["learner"])
    if "rules" in named:
        overlay.compiled(named["rules"])
    return named


def check_learner(learner: Learner) -> None:
    try:
        parse_params(learner.kind, learner.params)
    except ValueError as error:
        detail = str(error)
        raise BadInput("The learner cannot be made.", [FieldError(pointer="/learner", detail=detail)]) from None
