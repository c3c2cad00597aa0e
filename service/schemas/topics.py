"""Topics: their settings, as they are made, changed and shown, and how they stand."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    create_model,
    model_serializer,
    model_validator,
)

from models.core.names import GoalState
from service.schemas.fields import NESTED, PLAIN, Answer, Line, Request, Rule, Scalar, Share, TopicId, no_nul


def _plain_or_nested(given: object) -> str:
    return NESTED if isinstance(given, dict) else PLAIN


Param = Annotated[
    Annotated[Scalar, Tag(PLAIN)] | Annotated[dict[str, Scalar], Field(max_length=50), Tag(NESTED)],
    Discriminator(_plain_or_nested),
]


class Learner(Request):
    kind: str = Field(max_length=40, examples=["wh"])
    params: dict[str, Param] = Field(
        default_factory=dict, max_length=50, description="Of a committee's members: an object, in `params` too."
    )


class Goal(Request):
    """What the user can tolerate. All optional; the more is asked, the more judgements it takes."""

    max_error: Share | None = None
    min_precision: Share | None = None
    min_recall: Share | None = None
    max_abstain: Share | None = None

    @model_serializer(mode="wrap")
    def _only_what_is_asked(self, plain: SerializerFunctionWrapHandler) -> dict[str, float]:
        return {name: value for name, value in plain(self).items() if value is not None}


class Rules(Request):
    accept_if: Rule | None = None
    reject_if: Rule | None = None


SingleTerm = Annotated[str, Field(max_length=400), AfterValidator(no_nul)]


class Pins(Request):
    """Feedback on single terms: a pinned one speaks for the topic, a banned one has no say, whatever is judged. Each is
    one term as the deployment reads text: one word, mostly."""

    pin: list[SingleTerm] = Field(default_factory=list, max_length=50, examples=[["opec", "brent"]])
    ban: list[SingleTerm] = Field(default_factory=list, max_length=50, examples=[["reuters"]])


class Policy(Request):
    """When a topic is retrained by itself, and how."""

    method: str | None = Field(max_length=40, description="As of a job; null: never.", examples=["svm"])
    params: dict[str, Scalar] = Field(default_factory=dict, max_length=50)
    after: int | None = Field(default=None, ge=10, le=1_000_000, description="So many new judgements.")
    on_drift: bool = Field(default=False, description="When the topic has become worse.")
    nightly: bool = Field(default=False, description="Every night, if there are new judgements.")
    publish: Literal["if_better", "always"] = "if_better"


class Effect(IntEnum):
    """What depends on a setting of a topic, and so has to follow when it changes; each includes those before it."""

    NOTHING = 0  # no decision
    DECISIONS = 1  # what is decided, by the same model
    MODEL = 2  # the model: the log is folded again
    START = 3  # what the fold starts from: a retrained base is dropped


class TopicFields(Request):
    """A topic's settings. `TopicChange` and `PreviewRequest` are derived from them."""

    name: Annotated[Line, Effect.NOTHING] = Field(default="", examples=["Crude oil"])
    query: Annotated[str, Field(max_length=100_000), AfterValidator(no_nul), Effect.START] = Field(
        default="", examples=["crude oil OPEC barrels output price"]
    )
    learner: Annotated[Learner, Effect.START] = Learner(kind="wh")
    goal: Annotated[Goal, Effect.MODEL] = Goal()
    rules: Annotated[Rules, Effect.DECISIONS] = Rules()
    terms: Annotated[Pins, Effect.MODEL] = Pins()
    audit: Annotated[Share | None, Effect.NOTHING] = Field(
        default=None,
        description="Share of rejected documents that is drawn for audit and offered for review; "
        "null: SLUICE_AUDIT_RATE where the goal has `min_recall` or `max_error`, else none.",
    )
    retrain: Annotated[Policy | None, Effect.NOTHING] = Field(
        default=None, description="null: as the settings SLUICE_RETRAIN_* say."
    )


EFFECTS: Mapping[str, Effect] = {
    name: next(effect for effect in field.metadata if isinstance(effect, Effect))
    for name, field in TopicFields.model_fields.items()
}


class NewTopic(TopicFields):
    id: TopicId | None = None

    @model_validator(mode="after")
    def _has_a_name_of_some_kind(self) -> Self:
        if self.id is None and not self.name.strip():
            raise ValueError("give the topic an id or a name")
        return self


def optional_settings(names: Iterable[str]) -> dict[str, Any]:
    """Fields for `create_model`: these settings, each of which may be left out or null."""
    fields = ((name, TopicFields.model_fields[name]) for name in names)
    return {name: (Annotated[(field.annotation, *field.metadata)] | None, None) for name, field in fields}


if TYPE_CHECKING:

    class TopicChange(TopicFields): ...

else:
    TopicChange = create_model(
        "TopicChange",
        __base__=Request,
        __doc__="Fields that are left out stay as they are; null puts one back to its default.",
        **optional_settings(TopicFields.model_fields),
    )


class Judged(Answer):
    relevant: int
    irrelevant: int


class Estimate(Answer):
    """How one part of a goal stands."""

    state: GoalState
    estimate: float | None = Field(description="null while nothing is known.")
    low: float | None
    high: float | None
    confidence: float = Field(description="With which each of the bounds holds.")
    judged: int = Field(description="Judgements (of `abstain`: documents) behind the estimate.")
    detail: str


class GoalStatus(Answer):
    """`learning`: too little evidence; `met`; `at_risk`: broken lately; `unreachable`, and `detail` says why. What the
    goal does not ask for is null."""

    state: GoalState
    detail: str
    precision: Estimate | None = None
    recall: Estimate | None = None
    error: Estimate | None = None
    abstain: Estimate | None = None


class Counts(Answer):
    documents: int
    accepted: int
    abstained: int
    rejected: int


class PassedCounts(Counts):
    """Documents that were put to the topic and remembered, since it was made; `lately`, about the last 10,000."""

    lately: Counts


class Retraining(Answer):
    due: bool
    detail: str


class Status(Answer):
    version: int
    judged: Judged
    reject_below: float = Field(description="Scores below it are rejected.")
    accept_above: float = Field(description="Scores above it are accepted; 3.4e38 while none is.")
    passed: PassedCounts | None = Field(description="null while the store does not answer.")
    goal: GoalStatus | None
    retraining: Retraining | None = Field(description="null where the topic is retrained only by a job of yours.")


class PooledRecall(Answer):
    """Recall over all topics that audit, together: sure long before that of any one of them."""

    topics: int
    estimate: float | None = Field(description="null while nothing is known.")
    low: float | None
    high: float | None
    confidence: float
    audits: int
    detail: str


class Topic(Answer):
    id: str
    name: str
    query: str
    learner: Learner
    goal: Goal
    rules: Rules
    terms: Pins = Pins()
    audit: float | None
    retrain: Policy | None
    created: datetime
    status: Status
