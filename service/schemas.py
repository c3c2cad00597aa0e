"""The public contract as types: what a request may hold and what an answer does.

Requests are validated from the raw bytes in strict mode: no coercion, no unknown field, no NaN or infinity, no lone
surrogate (the parser refuses it), no NUL. Answers are built from the same module, so `/docs` cannot drift from them.
"""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Generic, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    Tag,
    WithJsonSchema,
    model_serializer,
    model_validator,
)

TOPIC_ID = r"^[a-z0-9][a-z0-9._-]{0,127}$"
DOCUMENT_ID_CHARS = 256
METADATA_VALUES, METADATA_CHARS = 1000, 100_000  # of one document: they are kept with it
BEYOND = 3.4028234663852886e38  # the largest float32: a threshold that no score passes, as of a topic without a query
LARGEST = 1e15  # number in a model that is brought along: no learner goes so far, and sums of these still fit

# What pydantic puts into the place of an error to say which of several types it means; not a part of the request.
TAGS = ONE, MANY, BY_ID, WHOLE = "<one>", "<many>", "<id>", "<document>"

Decision = Literal["accept", "reject", "abstain"]
T = TypeVar("T")


def _no_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("holds a NUL character")
    return text


def _addressable(text: str) -> str:
    """An id goes into logs, headers and paths; on their way there, paths lose segments of dots."""
    if not text.isprintable():
        raise ValueError("holds control characters")
    if any(segment in (".", "..") for segment in text.split("/")):
        raise ValueError("holds a path segment of dots")
    return text


def _scalar(value: JsonValue) -> JsonValue:
    if isinstance(value, list | dict):
        raise ValueError("must be a number, a string, true, false or null")
    return _plain(value)


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError("holds a number that is not finite")
    return _no_nul(value) if isinstance(value, str) else value


def _modest(metadata: dict[str, JsonValue]) -> dict[str, JsonValue]:
    values, chars = 0, 0
    waiting: list[JsonValue] = [metadata]
    while waiting:
        value = _plain(waiting.pop())
        values += 1
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
            values -= len(value)
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            chars += len(value)
        if values > METADATA_VALUES or chars > METADATA_CHARS:
            raise ValueError(f"holds more than {METADATA_VALUES:,} values or {METADATA_CHARS:,} characters")
    return metadata


TopicId = Annotated[str, Field(pattern=TOPIC_ID, examples=["crude"])]
DocumentId = Annotated[str, Field(min_length=1, max_length=DOCUMENT_ID_CHARS), AfterValidator(_addressable)]
Text = Annotated[str, AfterValidator(_no_nul)]
Line = Annotated[str, Field(max_length=1000), AfterValidator(_no_nul)]
Rule = Annotated[str, Field(max_length=10_000), AfterValidator(_no_nul)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST, allow_inf_nan=False)]
Threshold = Annotated[float, Field(ge=-BEYOND, le=BEYOND, allow_inf_nan=False)]
Scalar = Annotated[
    JsonValue, AfterValidator(_scalar), WithJsonSchema({"type": ["boolean", "number", "string", "null"]})
]


class Request(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Answer(BaseModel):
    model_config = ConfigDict(frozen=True)


class Problem(Answer):
    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


# -- topics ------------------------------------------------------------------------------------------------------------


class Learner(Request):
    kind: str = Field(max_length=40, examples=["wh"])
    params: dict[str, Scalar] = Field(default_factory=dict, max_length=50)


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


class TopicFields(Request):
    name: Line = Field(default="", examples=["Crude oil"])
    query: Annotated[str, Field(max_length=100_000), AfterValidator(_no_nul)] = Field(
        default="", examples=["crude oil OPEC barrels output price"]
    )
    learner: Learner = Learner(kind="wh")
    goal: Goal = Goal()
    rules: Rules = Rules()


class NewTopic(TopicFields):
    id: TopicId | None = None

    @model_validator(mode="after")
    def _has_a_name_of_some_kind(self) -> Self:
        if self.id is None and not self.name.strip():
            raise ValueError("give the topic an id or a name")
        return self


class TopicChange(Request):
    """Fields that are left out stay as they are; null puts one back to what it is by default."""

    name: Line | None = None
    query: Annotated[str, Field(max_length=100_000), AfterValidator(_no_nul)] | None = None
    learner: Learner | None = None
    goal: Goal | None = None
    rules: Rules | None = None


class Judged(Answer):
    relevant: int
    irrelevant: int


class GoalStatus(Answer):
    state: Literal["learning"] = "learning"
    detail: str = (
        "The goal is kept, but this version of Sluice does not steer by it yet: the thresholds maximise F1, "
        "and no estimate is made of how far the goal is met."
    )


class Status(Answer):
    version: int
    judged: Judged
    reject_below: float
    accept_above: float
    goal: GoalStatus | None


class Topic(Answer):
    id: str
    name: str
    query: str
    learner: Learner
    goal: Goal
    rules: Rules
    created: datetime
    status: Status


# -- documents and decisions -------------------------------------------------------------------------------------------


class Document(Request):
    id: DocumentId | None = Field(default=None, examples=["d1"])
    title: Text = Field(default="", examples=["OPEC meets"])
    text: Text = Field(examples=["Crude prices rose after OPEC agreed to cut output."])
    source: Line | None = None
    published: Line | None = None
    metadata: Annotated[dict[str, JsonValue], AfterValidator(_modest)] | None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.text.strip() and not self.title.strip():
            raise ValueError("the document is empty: title and text are blank")
        return self


class ClassifyOptions(Request):
    topics: list[TopicId] | None = None
    explain: bool = False
    store: bool = True
    include: Literal["all"] | None = None


class Classify(ClassifyOptions):
    documents: list[Document] = Field(min_length=1)


class Contribution(Answer):
    term: str
    contribution: float


class Verdict(Answer):
    topic: str
    decision: Decision
    score: float
    probability: float | None
    version: int
    decided_by: str
    explanation: list[Contribution] | None = None


class Result(Answer):
    document: str
    decisions: list[Verdict]


class Results(Answer):
    results: list[Result]


# -- feedback ----------------------------------------------------------------------------------------------------------


def _by_id_or_whole(document: object) -> str:
    return WHOLE if isinstance(document, dict | Document) else BY_ID


class Judgement(Request):
    topic: TopicId
    document: Annotated[
        Annotated[DocumentId, Tag(BY_ID)] | Annotated[Document, Tag(WHOLE)], Discriminator(_by_id_or_whole)
    ]
    relevant: bool
    by: Line | None = Field(default=None, description="Who judged; shown in the list of judgements.")


class Judgements(Request):
    judgements: list[Judgement] = Field(min_length=1)


def _one_or_many(feedback: object) -> str:
    return MANY if isinstance(feedback, dict) and "judgements" in feedback else ONE


Feedback = Annotated[
    Annotated[Judgement, Tag(ONE)] | Annotated[Judgements, Tag(MANY)],
    Discriminator(_one_or_many),
]


class Before(Answer):
    decision: Decision
    score: float


class Learned(Answer):
    topic: str
    document: str
    relevant: bool
    status: Literal["learned", "known", "corrected"]
    version: int
    before: Before


class LearnedAll(Answer):
    results: list[Learned | Problem]


class PastJudgement(Answer):
    document: str
    relevant: bool
    title: str
    by: str | None
    at: datetime
    version: int = Field(description="The version that this judgement made.")
    before: Before


class Withdrawn(Answer):
    topic: str
    document: str
    status: Literal["withdrawn"] = "withdrawn"
    version: int


# -- versions and models -----------------------------------------------------------------------------------------------


class Version(Answer):
    version: int
    created: datetime
    cause: str
    learner: str
    metrics: Mapping[str, int | float | None] | None = Field(description="null where they were lost with the list.")
    digest: str | None


class Term(Answer):
    term: str | None = Field(description="null when no judged document with this term is at hand any more.")
    weight: float


class Terms(Answer):
    toward: list[Term] = Field(serialization_alias="for")
    against: list[Term]


class ModelInfo(Answer):
    topic: str
    kind: str
    version: int
    reject_below: float
    accept_above: float
    weights: int
    terms: Terms


class ModelFile(Request):
    """A portable model: everything that decides, nothing that was judged."""

    format: Literal["sluice-model/1"] = "sluice-model/1"
    kind: str = Field(max_length=40)
    view: Literal["presence", "tf", "sqrt", "strength", "tfidf"]
    bias: Number
    rest: Number
    reject_below: Threshold
    accept_above: Threshold
    terms: dict[Annotated[str, Field(pattern=r"^[^\n\x00]{1,400}$")], Number]
    features: dict[Annotated[str, Field(pattern=r"^[0-9a-f]{16}$")], Number] = Field(
        default_factory=dict, description="Weights whose word is not known, by hash."
    )

    @model_validator(mode="after")
    def _thresholds_in_order(self) -> Self:
        if self.reject_below > self.accept_above:
            raise ValueError("the thresholds are in the wrong order: reject_below is above accept_above")
        return self


# -- everything else ---------------------------------------------------------------------------------------------------


class Health(Answer):
    status: Literal["ok"]
    topics: int | None = None


class Page(Answer, Generic[T]):
    items: list[T]
    next: str | None = Field(description="The cursor for what follows; null at the end.")
