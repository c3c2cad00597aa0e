"""The public contract of what is measured and of what would be, as types."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, create_model

from service.schemas.documents import Decision
from service.schemas.fields import Answer, Request
from service.schemas.topics import Status, TopicFields, optional_settings

# -- metrics -----------------------------------------------------------------------------------------------------------


class Figure(Answer):
    """The share lies between `low` and `high` with the confidence that is named; both bounds hold at once."""

    estimate: float | None = Field(description="null where part of it rests on nothing.")
    low: float
    high: float


class MetricFigures(Answer):
    """null where nothing is known: without audits, for example, nothing of what was missed."""

    precision: Figure | None = Field(description="Relevant among the accepted.")
    recall: Figure | None = Field(description="Not rejected among the relevant.")
    f1: Figure | None = Field(description="Of what is accepted; a relevant document abstained from counts as missed.")
    error: Figure | None = Field(description="Wrong among what was accepted or rejected.")
    abstain: Figure | None = Field(description="Abstained from, of all that passed.")
    sap: Figure | None = Field(description="Simple average precision of the ranking of what was shown.")
    t11su: Figure | None = Field(description="Utility of the TREC filtering track, of what is accepted.")


class Window(Answer):
    at: datetime = Field(description="Of the newest judgement of the window.")
    version: int
    judgements: int


class Point(MetricFigures, Window):
    """The figures of one window of judgements."""


class Drift(Answer):
    drifting: bool = Field(description="Whether errors have become more frequent than chance explains.")
    since: datetime | None
    version: int | None
    detail: str


class Volume(Answer):
    silent: bool
    flooded: bool
    detail: str


class ReliabilityBin(Answer):
    low: float
    high: float
    documents: int
    probability: float = Field(description="The mean of what was said.")
    observed: Figure = Field(description="The share that is relevant.")


class Reliability(Answer):
    """Of the probabilities that documents had been given before they were judged."""

    bins: list[ReliabilityBin]
    brier: Figure | None


class Heading(Answer):
    topic: str
    version: int
    confidence: float
    judgements: int = Field(description="Of documents that had passed with the stream; near-duplicates count once.")


class Metrics(MetricFigures, Heading):
    t11su_of_nothing: float = Field(description="What a topic earns that accepts nothing.")
    drift: Drift
    flow: Volume
    reliability: Reliability
    series: list[Point] = Field(description="The same over consecutive windows of judgements, oldest first.")


# -- preview -----------------------------------------------------------------------------------------------------------


MaxExamples = Annotated[int, Field(ge=0, le=500, description="Most examples in the answer.")]

if TYPE_CHECKING:

    class PreviewRequest(TopicFields):
        limit: int = 20

else:
    PreviewRequest = create_model(
        "PreviewRequest",
        __base__=Request,
        __doc__="Settings to try; those left out stay as they are, null puts one back to its default.",
        **optional_settings(name for name in TopicFields.model_fields if name not in ("name", "retrain")),
        limit=(MaxExamples, 20),
    )


class DecisionCounts(Answer):
    """How documents are decided; the shares where they are judged, null where there is nothing to share."""

    accepted: int
    abstained: int
    rejected: int
    precision: float | None = None
    recall: float | None = None
    error: float | None = None


class Move(Answer):
    before: Decision
    after: Decision
    documents: int


class PreviewExample(Answer):
    document: str
    title: str
    before: Decision
    after: Decision
    score: float
    score_after: float
    relevant: bool | None = Field(description="null if it was not judged.")


class PreviewComparison(Answer):
    documents: int
    before: DecisionCounts
    after: DecisionCounts
    moves: list[Move] = Field(description="From which decision to which, unchanged ones too.")


class Preview(Answer):
    topic: str
    version: int = Field(description="Nothing has changed: the topic stays at this version.")
    before: Status
    after: Status
    audit: dict[str, float] = Field(description="Share of rejected documents drawn for audit, before and after.")
    judged: PreviewComparison = Field(description="Judged documents, each scored without its own influence.")
    unjudged: PreviewComparison = Field(description="The newest remembered documents that nobody has judged.")
    examples: list[PreviewExample] = Field(description="Documents that would be decided otherwise.")
