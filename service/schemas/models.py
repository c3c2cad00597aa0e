"""The public contract of versions and models, as types."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, AliasChoices, Field, model_validator

from models.core.names import LEARNER_KINDS, View
from service.schemas.documents import Pinnable
from service.schemas.fields import Answer, Canonical, Number, Request, Threshold


def _learner(kind: str) -> str:
    if kind not in LEARNER_KINDS:
        raise ValueError(f"must be one of {', '.join(LEARNER_KINDS)}")
    return kind


class Version(Answer):
    version: int
    created: datetime
    cause: str
    learner: str = Field(description="What made this version: the topic's learner, or the method of a retraining.")
    metrics: Mapping[str, int | float | None] | None = Field(
        description="Of the judged documents, all of which it has learned from: `GET …/metrics` has how it does on new "
        "ones. null where they were lost with the list."
    )
    digest: str | None = Field(description="Of everything that was served, with the number of the version.")


class WeightedTerm(Pinnable):
    term: str | None = Field(description="null where no text with this term is at hand any more.")
    weight: float


class StrongestTerms(Answer):
    toward: list[WeightedTerm] = Field(validation_alias=AliasChoices("toward", "for"), serialization_alias="for")
    against: list[WeightedTerm]


class LossAndError(Answer):
    loss: float = Field(description="The share of documents from which the committee would abstain.")
    error: float = Field(description="The share of wrong decisions among the others.")


class CommitteeInfo(Answer):
    k: int = Field(description="How many members there are.")
    weights: list[float] | None = Field(description="Of the members' votes; null where the mean of scores decides.")
    more_than: float | None = Field(description="The share of the vote above which a document is accepted.")
    estimates: dict[str, LossAndError] = Field(description="By estimator: what unanimous members would do.")


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
    """bias + rest·Σ x + Σ w x."""

    bias: Number
    rest: Number
    terms: dict[Canonical, Number]
    features: dict[Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")], Number] = Field(
        default_factory=dict, description="Weights whose word is not known, by hash."
    )


class Voters(Request):
    """Members of a committee that votes: a document whose share of the vote is above `more_than` is accepted."""

    weights: list[Annotated[float, Field(ge=0, le=1)]] = Field(max_length=16, description="Their sum is 1.")
    more_than: float = Field(ge=0, lt=1)
    members: list[Form] = Field(min_length=1, max_length=16)

    @model_validator(mode="after")
    def _every_member_has_a_weight(self) -> Self:
        if len(self.weights) != len(self.members) or not abs(sum(self.weights) - 1) < 1e-6:
            raise ValueError("there must be as many weights as members, and their sum must be 1")
        return self


class ModelFile(Form):
    """A portable model: everything that decides, nothing that was judged."""

    format: Literal["sluice-model/1"] = "sluice-model/1"
    kind: Annotated[str, AfterValidator(_learner)] = Field(description="What learned it; the topic's own stays.")
    view: View
    reject_below: Threshold
    accept_above: Threshold
    committee: Voters | None = Field(
        default=None, description="If given, its members decide, and what stands beside it is their mean."
    )

    @model_validator(mode="after")
    def _thresholds_in_order(self) -> Self:
        if self.reject_below > self.accept_above:
            raise ValueError("the thresholds are in the wrong order: reject_below is above accept_above")
        return self
