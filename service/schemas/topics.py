"""The public contract as types: what a request may hold and what an answer does.

Answers are built from the same module as requests, so `/docs` cannot drift from them. What a single field may be is in
`fields.py`; what is about models, review, measures, jobs or the flow has a module of its own.
"""

from datetime import datetime
from typing import Annotated, Any, Generic, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    JsonValue,
    SerializerFunctionWrapHandler,
    Tag,
    model_serializer,
    model_validator,
)

from models.core.names import GoalState
from service.schemas.fields import (
    Answer,
    DocumentId,
    Line,
    Request,
    Rule,
    Scalar,
    Share,
    Text,
    TopicId,
    modest,
    no_nul,
)

# What pydantic puts into the place of an error to say which of several types it means; not a part of the request.
ONE, MANY, BY_ID, WHOLE, PLAIN, NESTED = "<one>", "<many>", "<id>", "<document>", "<plain>", "<nested>"
WEBHOOK, STREAM = "<webhook>", "<stream>"
TAGS = (ONE, MANY, BY_ID, WHOLE, PLAIN, NESTED, WEBHOOK, STREAM)

Decision = Literal["accept", "reject", "abstain"]
T = TypeVar("T")


class Problem(Answer):
    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


# -- topics ------------------------------------------------------------------------------------------------------------


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


class TopicFields(Request):
    name: Line = Field(default="", examples=["Crude oil"])
    query: Annotated[str, Field(max_length=100_000), AfterValidator(no_nul)] = Field(
        default="", examples=["crude oil OPEC barrels output price"]
    )
    learner: Learner = Learner(kind="wh")
    goal: Goal = Goal()
    rules: Rules = Rules()
    terms: Pins = Pins()
    audit: Share | None = Field(
        default=None,
        description="Share of rejected documents that is drawn for audit and offered for review; "
        "null: SLUICE_AUDIT_RATE where the goal has `min_recall` or `max_error`, else none.",
    )
    retrain: Policy | None = Field(default=None, description="null: as the settings SLUICE_RETRAIN_* say.")


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
    query: Annotated[str, Field(max_length=100_000), AfterValidator(no_nul)] | None = None
    learner: Learner | None = None
    goal: Goal | None = None
    rules: Rules | None = None
    terms: Pins | None = None
    audit: Share | None = None
    retrain: Policy | None = None


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


# -- documents and decisions -------------------------------------------------------------------------------------------


class Document(Request):
    id: DocumentId | None = Field(default=None, examples=["d1"])
    title: Text = Field(default="", examples=["OPEC meets"])
    text: Text = Field(examples=["Crude prices rose after OPEC agreed to cut output."])
    source: Line | None = None
    published: Line | None = None
    metadata: Annotated[dict[str, JsonValue], AfterValidator(modest)] | None = None

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


class Pinnable(Answer):
    pinned: bool = Field(default=False, description="Named only where it is true.")

    @model_serializer(mode="wrap")
    def _only_if_pinned(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in plain(self).items() if name != "pinned" or value}


class Contribution(Pinnable):
    term: str
    contribution: float


class Flip(Answer):
    """What would have changed a decision: the fewest of the document's strongest terms without which, or of the query's
    missing ones with which, the model would have decided otherwise."""

    decision: Decision = Field(description="What it would have been.")
    without: list[str]
    with_: list[str] = Field(alias="with")


class Verdict(Answer):
    topic: str
    decision: Decision
    score: float
    probability: float | None
    version: int
    decided_by: str
    explanation: list[Contribution] | None = Field(default=None, description="With `explain`; it adds up to the score.")
    flip: Flip | None = Field(
        default=None, description="With `explain`; null where a rule decides, or where no few terms would do."
    )


class Result(Answer):
    document: str
    decisions: list[Verdict]
    duplicate_of: str | None = Field(
        default=None, description="The document that this one repeats, but for a few words; absent if there is none."
    )


class Results(Answer):
    results: list[Result]


# -- feedback ----------------------------------------------------------------------------------------------------------


def _by_id_or_whole(document: object) -> str:
    return WHOLE if isinstance(document, dict | Document) else BY_ID


IdOrDocument = Annotated[
    Annotated[DocumentId, Tag(BY_ID)] | Annotated[Document, Tag(WHOLE)], Discriminator(_by_id_or_whole)
]


class Judgement(Request):
    topic: TopicId
    document: IdOrDocument
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


# -- everything else ---------------------------------------------------------------------------------------------------


class Health(Answer):
    status: Literal["ok"]
    topics: int | None = None


class Page(Answer, Generic[T]):
    items: list[T]
    next: str | None = Field(description="The cursor for what follows; null at the end.")
