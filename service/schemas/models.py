"""Versions of a topic, and models: shown, or as a portable file."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from models.core.names import LEARNER_KINDS, WordView
from service.schemas.documents import Pinnable
from service.schemas.fields import FEATURE, Answer, Canonical, Number, Request, Threshold


def _learner(kind: str) -> str:
    if kind not in LEARNER_KINDS:
        raise ValueError(f"This must be one of {', '.join(LEARNER_KINDS)}.")
    return kind


class Version(Answer):
    version: int
    created: datetime
    cause: str
    learner: str = Field(description="What made this version: the topic's learner, or the method of a retraining.")
    metrics: Mapping[str, int | float | None] | None = Field(
        description="Measured on the judged documents, all of which it has learned from; for new documents see "
        "`GET …/metrics`. null if they were lost with the list of versions."
    )
    digest: str | None = Field(description="Digest of everything that was served, the version's number included.")


class WeightedTerm(Pinnable):
    term: str | None = Field(description="null if no text with this term is kept any more.")
    weight: float


class StrongestTerms(Answer):
    toward: list[WeightedTerm] = Field(validation_alias=AliasChoices("toward", "for"), serialization_alias="for")
    against: list[WeightedTerm]


class LossAndError(Answer):
    loss: float = Field(description="Share of documents on which the committee would abstain.")
    error: float = Field(description="Share of wrong decisions among the others.")


class CommitteeInfo(Answer):
    k: int = Field(description="Number of members.")
    weights: list[float] | None = Field(
        description="Weights of the members' votes; null if the mean of their scores decides."
    )
    more_than: float | None = Field(
        description="t₁: a document is accepted if the votes to accept, less those to reject, are more than this share."
    )
    less_than: float | None = Field(description="t₂: it is rejected if they are less than this share.")
    estimates: dict[str, LossAndError] = Field(
        description="Estimates, by method, for a committee that decides only when its members agree."
    )


class ModelInfo(Answer):
    topic: str
    kind: str
    version: int
    reject_below: float
    accept_above: float
    weights: int
    terms: StrongestTerms
    committee: CommitteeInfo | None = None


class Form(Request):
    """A linear model: bias + rest·Σ x + Σ w x."""

    bias: Number
    rest: Number
    terms: dict[Canonical, Number]
    features: dict[Annotated[str, Field(pattern=FEATURE)], Number] = Field(
        default_factory=dict, description="Weights of terms whose word is not known, by hash."
    )


class Voters(Request):
    """A committee that votes: a document is accepted if the votes to accept, less those to reject, are more than the
    share `more_than` (t₁), and rejected if they are less than `less_than` (t₂). A member that can abstain stands here
    twice, with half its weight: accepting is harder for the one, rejecting for the other."""

    weights: list[Annotated[float, Field(ge=0, le=1)]] = Field(max_length=32, description="Their sum is 1.")
    more_than: float = Field(gt=-1, lt=1)
    less_than: float | None = Field(default=None, gt=-1, lt=1, description="null: −`more_than`.")
    members: list[Form] = Field(min_length=1, max_length=32)

    @model_validator(mode="after")
    def _every_member_has_a_weight(self) -> Self:
        if len(self.weights) != len(self.members) or not abs(sum(self.weights) - 1) < 1e-6:
            raise ValueError("There must be a weight for each member, and their sum must be 1.")
        if self.t2 > self.more_than:
            raise ValueError("`less_than` must not be above `more_than`.")
        return self

    @property
    def t2(self) -> float:
        return -self.more_than if self.less_than is None else self.less_than


class ModelFile(Form):
    """A portable model: everything that it needs to decide, but no judgements."""

    format: Literal["sluice-model/1"] = "sluice-model/1"
    kind: Annotated[str, AfterValidator(_learner)] = Field(
        description="The learner that made it. The topic keeps its own learner."
    )
    view: WordView
    reject_below: Threshold
    accept_above: Threshold
    committee: Voters | None = Field(
        default=None, description="If given, its members decide, and the other fields are their mean."
    )

    @model_validator(mode="after")
    def _thresholds_in_order(self) -> Self:
        if self.reject_below > self.accept_above:
            raise ValueError("`reject_below` must not be above `accept_above`.")
        return self
