"""The public contract of background jobs, as types."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from models.core.names import METHOD_KINDS
from service.schemas.fields import Answer, Line, Request, Scalar, TopicId

Kind = Literal["retrain", "compare", "backfill"]
RETRAIN, COMPARE, BACKFILL = "<retrain>", "<compare>", "<backfill>"  # in no pointer of an error
TAGS = {"retrain": RETRAIN, "compare": COMPARE, "backfill": BACKFILL}
State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Publish = Literal["if_better", "always", "never"]
Params = Annotated[dict[str, Scalar], Field(max_length=50, description="Of the method; the others have defaults.")]
_Topics = Annotated[list[TopicId], Field(min_length=1, max_length=1000)]


class Retrain(Request):
    """Fit topics anew to all their judgements, and serve the result if it is better."""

    kind: Kind = Field(json_schema_extra={"const": "retrain"})
    topics: _Topics | None = Field(None, description="null: all topics.")
    method: str = Field(description=f"One of {', '.join(METHOD_KINDS)}.", examples=["svm"])
    params: Params = Field(default_factory=dict)
    publish: Publish = Field("if_better", description="Whether the new model shall be served.")


class Contender(Request):
    method: str = Field(description=f"One of {', '.join(METHOD_KINDS)}.", examples=["svm"])
    params: Params = Field(default_factory=dict)


class Compare(Request):
    """Try several methods on one topic's judgements."""

    kind: Literal["compare"]
    topic: TopicId
    methods: list[Contender] | None = Field(
        None, min_length=1, max_length=20, description="null: each with its defaults."
    )


class Backfill(Request):
    """Decide about documents that came before: those that are remembered, or an archive."""

    kind: Literal["backfill"]
    topics: _Topics | None = Field(None, description="null: all topics.")
    archive: Line | None = Field(
        None,
        description="An NDJSON file in the directory SLUICE_ARCHIVES, a document a line; null: what is remembered.",
    )
    review: bool = Field(True, description="Offer for review what is not rejected, among remembered documents.")


def _kind(asked: object) -> str:
    """What cannot be told apart is taken for the first kind, whose refusal names the field and all kinds."""
    kind = asked.get("kind") if isinstance(asked, dict) else getattr(asked, "kind", None)
    return TAGS.get(str(kind), RETRAIN)


NewJob = Annotated[
    Annotated[Retrain, Tag(RETRAIN)] | Annotated[Compare, Tag(COMPARE)] | Annotated[Backfill, Tag(BACKFILL)],
    Discriminator(_kind),
]


class Job(Answer):
    id: str
    kind: Kind
    state: State
    progress: float = Field(description="From 0 to 1.")
    message: str = Field(description="What it does, or why it ended.")
    created: datetime
    started: datetime | None
    finished: datetime | None
    request: dict[str, Any] = Field(description="What was asked.")
    result: dict[str, Any] | None


# -- results -----------------------------------------------------------------------------------------------------------


class Score(Answer):
    """On documents that were held out."""

    sap: float
    f1: float


class Gain(Answer):
    """In SAP, over what is served; the bounds hold together with the confidence."""

    estimate: float
    low: float
    high: float
    confidence: float


class Retrained(Answer):
    topic: str
    relevant: int
    irrelevant: int
    background: int = Field(description="Unjudged documents that it would reject, and that counted as irrelevant.")
    served: Score | None = None
    candidate: Score | None = None
    gain: Gain | None = None
    better: bool | None = Field(None, description="By more than chance may give.")
    published: bool = False
    version: int | None = Field(None, description="Of the topic, with the new model.")
    detail: str


class RetrainResult(Answer):
    method: str
    published: int = Field(description="Topics with a new model.")
    topics: list[Retrained] = Field(description="The first 1,000.")
    total: int = Field(description="All topics that were asked for.")


class ComparedMethod(Answer):
    method: str = Field(description="`served` is what the topic has now.")
    params: dict[str, Any]
    held_out: Score
    gain: Gain | None = Field(description="null for what is served.")
    seconds: float
    detail: str


class CompareResult(Answer):
    topic: str
    version: int
    relevant: int
    irrelevant: int
    background: int
    table: list[ComparedMethod] = Field(description="Best first.")
    detail: str


class BackfillHit(Answer):
    document: str
    title: str
    score: float
    decision: Literal["accept", "abstain"]


class Backfilled(Answer):
    topic: str
    accepted: int
    abstained: int
    best: list[BackfillHit] = Field(description="Of those not rejected, the 20 that score highest.")


class BackfillResult(Answer):
    documents: int
    refused: int = Field(description="Lines that are no document.")
    topics: list[Backfilled] = Field(description="Of the first 1,000 topics with a document that was not rejected.")
    decisions: str | None = Field(description="The file with every decision but rejections, beside the archive.")
