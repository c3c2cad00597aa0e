"""Background jobs and their results."""

import re
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag, WithJsonSchema

from models.core.names import METHOD_KINDS
from service.schemas.fields import Answer, Line, Request, Scalar, TopicId
from service.schemas.metrics import Figure

Kind = Literal["retrain", "compare", "backfill"]
RETRAIN, COMPARE, BACKFILL = "<retrain>", "<compare>", "<backfill>"  # pydantic's tags, left out of error pointers
UNKNOWN_KIND = "unknown_kind"  # type of the error; its pointer is /kind
TAGS = {"retrain": RETRAIN, "compare": COMPARE, "backfill": BACKFILL}
State = Literal["queued", "running", "succeeded", "failed", "cancelled"]
Publish = Literal["if_better", "always", "never"]
Params = Annotated[
    dict[str, Scalar], Field(max_length=50, description="Parameters of the method; those left out have defaults.")
]
MAX_PROCESSES = 32
_ADDRESS = re.compile(r"(tcp|tls)://[^/?#@\s]+:\d{1,5}")


def _workers(value: object) -> object:
    if isinstance(value, str):
        if not _ADDRESS.fullmatch(value) or len(value) > 300:
            raise ValueError("This must be an address such as tcp://scheduler:8786.")
    elif not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MAX_PROCESSES:
        raise ValueError(
            f"This must be a whole number from 1 to {MAX_PROCESSES}, or an address such as tcp://HOST:8786."
        )
    return value


Workers = Annotated[Any, AfterValidator(_workers), WithJsonSchema({"type": ["integer", "string"]})]
_Topics = Annotated[list[TopicId], Field(min_length=1, max_length=1000)]


class Retrain(Request):
    """Retrain topics on all their judgements, and serve the result if it is better."""

    kind: Literal["retrain"]
    topics: _Topics | None = Field(None, description="null: all topics.")
    method: str = Field(description=f"One of {', '.join(METHOD_KINDS)}.", examples=["svm"])
    params: Params = Field(default_factory=dict)
    publish: Publish = Field("if_better", description="Whether to serve the new model.")
    joint: bool = Field(
        True,
        description="With boosting: fit all topics of the job together, as AdaBoost.MH does, and compare and publish "
        "each by itself; false: fit each alone.",
    )
    publish_to: _Topics | None = Field(
        None, description="Those of the topics that may be published; the others only help to fit. null: all."
    )
    workers: Workers | None = Field(
        None,
        description="With boosting: the number of processes, or the address of a Dask cluster. The result is the same, "
        "bit for bit. null: one process.",
        examples=[2],
    )


class Contender(Request):
    method: str = Field(description=f"One of {', '.join(METHOD_KINDS)}.", examples=["svm"])
    params: Params = Field(default_factory=dict)


class Compare(Request):
    """Compare several methods on one topic's judgements."""

    kind: Literal["compare"]
    topic: TopicId
    methods: list[Contender] | None = Field(
        None, min_length=1, max_length=20, description="null: all methods, with their defaults."
    )


class Backfill(Request):
    """Decide earlier documents: those that are remembered, or those of an archive."""

    kind: Literal["backfill"]
    topics: _Topics | None = Field(None, description="null: all topics.")
    archive: Line | None = Field(
        None,
        description="An NDJSON file in the directory SLUICE_ARCHIVES, one document per line; null: those remembered.",
    )
    review: bool = Field(True, description="Offer remembered documents that are not rejected for review.")


def _kind(asked: object) -> str | None:
    """The tag of a job's kind; None if there is no such kind. What is no object is refused as a retraining."""
    kind = asked.get("kind") if isinstance(asked, dict) else getattr(asked, "kind", "retrain")
    return TAGS.get(str(kind))


NewJob = Annotated[
    Annotated[Retrain, Tag(RETRAIN)] | Annotated[Compare, Tag(COMPARE)] | Annotated[Backfill, Tag(BACKFILL)],
    Discriminator(
        _kind, custom_error_type=UNKNOWN_KIND, custom_error_message="This must be retrain, compare or backfill."
    ),
]


class Job(Answer):
    id: str
    kind: Kind
    state: State
    progress: float = Field(description="From 0 to 1.")
    message: str = Field(description="What it is doing, or why it ended.")
    created: datetime
    started: datetime | None
    finished: datetime | None
    request: dict[str, Any] = Field(description="The request as it was sent.")
    result: dict[str, Any] | None


# -- results -----------------------------------------------------------------------------------------------------------


class Score(Answer):
    """Quality on held-out documents."""

    sap: float
    f1: float


class Gain(Answer):
    """Gain in SAP over the served model, unless said otherwise; both bounds hold together with the given confidence."""

    estimate: float
    low: float
    high: float
    confidence: float


class Retrained(Answer):
    topic: str
    relevant: int
    irrelevant: int
    background: int = Field(description="Unjudged documents that it would reject, which counted as irrelevant.")
    served: Score | None = None
    candidate: Score | None = None
    gain: Gain | None = None
    better: bool | None = Field(None, description="Whether the gain is more than chance.")
    published: bool = False
    version: int | None = Field(None, description="Version of the topic with the new model.")
    detail: str


class RetrainResult(Answer):
    method: str
    published: int = Field(description="Number of topics with a new model.")
    topics: list[Retrained] = Field(description="The first 1,000.")
    total: int = Field(description="Number of topics in the request.")


class ComparedMethod(Answer):
    method: str = Field(description="`served` is the topic's current model.")
    params: dict[str, Any]
    held_out: Score
    gain: Gain | None = Field(description="null for the served model.")
    seconds: float
    detail: str


class ComparedRanking(Answer):
    """What the topic let through in two orders: NDCG by the grades of judged documents, each without its influence."""

    judged: int
    by_score: Figure
    by_feedback: Figure = Field(description="In the order learned from the other judgements (`ranking` of the topic).")
    gain: Gain = Field(description="In NDCG.")
    detail: str


class CompareResult(Answer):
    topic: str
    version: int
    relevant: int
    irrelevant: int
    background: int
    table: list[ComparedMethod] = Field(description="Best first.")
    ranking: ComparedRanking | None = Field(
        None, description="null while too few documents that the topic let through were judged, or with few grades."
    )
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
    best: list[BackfillHit] = Field(description="The 20 documents with the highest scores, of those not rejected.")


class BackfillResult(Answer):
    documents: int
    refused: int = Field(description="Lines that are not valid documents.")
    topics: list[Backfilled] = Field(description="Topics with a document that was not rejected; the first 1,000.")
    decisions: str | None = Field(description="File next to the archive with every decision except rejections.")
