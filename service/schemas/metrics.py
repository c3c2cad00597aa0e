"""Metrics of a topic, and previews of other settings."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, create_model

from service.schemas.documents import Decision
from service.schemas.fields import Answer, Request
from service.schemas.topics import EFFECTS, Status, TopicFields, optional_settings

# -- metrics -----------------------------------------------------------------------------------------------------------


class Figure(Answer):
    """A share or a count with its interval: it lies between `low` and `high` with the given confidence."""

    estimate: float | None = Field(description="null if there is no evidence for a part of it.")
    low: float
    high: float


class MetricFigures(Answer):
    """Measures; null where there is no evidence. Without audits, for example, recall is not known."""

    precision: Figure | None = Field(description="Share of accepted documents that are relevant.")
    recall: Figure | None = Field(description="Share of relevant documents that are not rejected.")
    f1: Figure | None = Field(
        description="F1 of the accepted documents; a relevant document that was abstained on counts as missed."
    )
    error: Figure | None = Field(description="Share of wrong decisions among those to accept or reject.")
    abstain: Figure | None = Field(description="Share of all documents that were abstained on.")
    sap: Figure | None = Field(description="Simple average precision of the ranking of the documents shown.")
    r_precision: Figure | None = Field(
        description="Of the documents shown, share of relevant ones among the R that score highest, if R are relevant."
    )
    break_even: Figure | None = Field(
        description="Precision of the ranking of the documents shown where it equals recall."
    )
    ndcg: Figure | None = Field(
        description="NDCG of the ranking of the documents shown. Without a grade, what is relevant has grade 1. Null "
        "until two grades were given."
    )
    t11su: Figure | None = Field(description="Utility T11SU of the TREC filtering track, of the accepted documents.")


class Window(Answer):
    at: datetime = Field(description="Time of the newest judgement in the window.")
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
    probability: float = Field(description="Mean of the predicted probabilities.")
    observed: Figure = Field(description="Share of the documents that is relevant.")


class Reliability(Answer):
    """Reliability of the probabilities that documents had before they were judged."""

    bins: list[ReliabilityBin]
    brier: Figure | None


class Heading(Answer):
    topic: str
    version: int
    confidence: float
    judgements: int = Field(
        description="Judgements of documents that had passed with the stream; near-duplicates count once."
    )


class ConfusionPart(Answer):
    documents: int
    relevant: Figure
    irrelevant: Figure


class Confusion(Answer):
    """How many documents of each decision are relevant; estimated, where only a part was judged."""

    accepted: ConfusionPart
    abstained: ConfusionPart
    rejected: ConfusionPart


class Metrics(MetricFigures, Heading):
    confusion: Confusion
    t11su_of_nothing: float = Field(description="T11SU of a topic that accepts nothing.")
    drift: Drift
    flow: Volume
    reliability: Reliability
    series: list[Point] = Field(description="The same measures over consecutive windows of judgements, oldest first.")


# -- all topics --------------------------------------------------------------------------------------------------------


class Average(Figure):
    topics: int = Field(description="Number of topics with an estimate; the others are left out.")


class MicroAverages(Answer):
    """All decisions of all topics in one table: every document counts the same."""

    precision: Average | None
    recall: Average | None
    f1: Average | None
    error: Average | None
    abstain: Average | None


class MacroAverages(MicroAverages):
    """The mean over topics: every topic counts the same."""

    sap: Average | None
    r_precision: Average | None
    break_even: Average | None
    ndcg: Average | None
    t11su: Average | None


class Overview(Answer):
    topics: int
    judged: int = Field(description="Topics with judgements of documents that had passed with the stream.")
    confidence: float = Field(description="Of each topic's interval; averages are more certain.")
    micro: MicroAverages
    macro: MacroAverages


# -- curves ------------------------------------------------------------------------------------------------------------


class TradeoffPoint(Answer):
    """A pair of cuts, what it leaves undecided, and the error among what it decides."""

    loss: float = Field(description="Share of the documents that is neither accepted nor rejected.")
    error: float = Field(description="Share of wrong decisions among the accepted and rejected documents.")
    low: float = Field(description="The error lies between `low` and `high` with the given confidence.")
    high: float
    reject_below: float
    accept_above: float


class Tradeoff(Heading):
    """The smallest estimated error for each share left undecided, by ascending loss."""

    points: list[TradeoffPoint] = Field(
        description="Empty while no relevant document of the stream was judged. A larger loss is listed only if the "
        "error is smaller."
    )
    now: TradeoffPoint | None = Field(description="The cuts in force; null while nothing of the stream was judged.")
    detail: str


class CurvePoint(Answer):
    accept_above: float
    precision: Figure = Field(description="Share of the documents above the cut that is relevant.")
    recall: Figure = Field(description="Share of the relevant documents that is above the cut.")


class Curve(Heading):
    """Precision and recall of accepting above each cut, strictest first."""

    points: list[CurvePoint] = Field(description="Empty while no relevant document of the stream was judged.")
    break_even: float | None = Field(description="Where precision equals recall.")
    now: CurvePoint | None = Field(description="The cut in force; null while no relevant document was judged.")
    detail: str


# -- preview -----------------------------------------------------------------------------------------------------------


MaxExamples = Annotated[int, Field(ge=0, le=500, description="Maximum number of examples in the answer.")]

if TYPE_CHECKING:

    class PreviewRequest(TopicFields):
        limit: int = 20

else:
    PreviewRequest = create_model(
        "PreviewRequest",
        __base__=Request,
        __doc__="Settings to try. Those left out stay as they are; null resets one to its default.",
        **optional_settings(name for name, effect in EFFECTS.items() if effect or name == "audit"),
        limit=(MaxExamples, 20),
    )


class DecisionCounts(Answer):
    """How documents are decided. The shares are of judged documents, and null if there are none."""

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
    moves: list[Move] = Field(description="Number of documents by decision before and after, unchanged ones included.")


class Preview(Answer):
    topic: str
    version: int = Field(description="Version of the topic, which does not change.")
    before: Status
    after: Status
    audit: dict[str, float] = Field(description="Share of rejected documents drawn for audit, before and after.")
    judged: PreviewComparison = Field(description="Judged documents, each scored without its own influence.")
    unjudged: PreviewComparison = Field(description="The newest remembered documents that nobody has judged.")
    examples: list[PreviewExample] = Field(description="Documents that would be decided differently.")
