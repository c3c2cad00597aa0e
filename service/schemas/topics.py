"""Topics: their settings, as created, changed and shown, and their state."""

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

from models.core.names import GoalMode, GoalState, PocketScores
from service.schemas.fields import (
    MAX_NUMBER,
    NESTED,
    PLAIN,
    TOPIC_ID,
    Answer,
    Line,
    Request,
    Rule,
    Scalar,
    Share,
    Threshold,
    TopicId,
    no_nul,
)


def _plain_or_nested(given: object) -> str:
    return NESTED if isinstance(given, dict | Request) else PLAIN


Param = Annotated[
    Annotated[Scalar, Tag(PLAIN)] | Annotated[dict[str, Scalar], Field(max_length=50), Tag(NESTED)],
    Discriminator(_plain_or_nested),
]


class Learner(Request):
    kind: str = Field(max_length=40, examples=["wh"])
    params: dict[str, Param] = Field(
        default_factory=dict,
        max_length=50,
        description="For a committee, an object `params` inside holds the parameters of its members.",
    )


TARGETS = ("max_error", "min_precision", "min_recall", "max_abstain")


Amount = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


class Utility(Request):
    """What decisions are worth; the default is the utility of the TREC filtering track, T11U."""

    hit: Amount = Field(default=2.0, description="What a relevant document gains that is accepted.")
    false_alarm: float = Field(
        default=1.0, gt=0, le=1_000_000, description="What an irrelevant document costs that is accepted."
    )
    miss: Amount = Field(default=0.0, description="What a relevant document costs that is not accepted.")

    @model_validator(mode="after")
    def _something_to_gain(self) -> Self:
        if not self.hit + self.miss:
            raise ValueError("With neither a `hit` nor a `miss` nothing would ever be accepted.")
        return self


class Measure(Request):
    """What to maximise, with its numbers: one of both."""

    f_beta: float | None = Field(
        default=None, gt=0, le=100, description="F_β with this β: 2 wants recall, .5 precision.", examples=[2.0]
    )
    utility: Utility | None = None

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if (self.f_beta is None) == (self.utility is None):
            raise ValueError("Give either `f_beta` or `utility`.")
        return self

    @model_serializer(mode="wrap")
    def _without_nulls(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None}


Maximise = Annotated[
    Annotated[Literal["break_even"], Tag(PLAIN)] | Annotated[Measure, Tag(NESTED)], Discriminator(_plain_or_nested)
]


class Goal(Request):
    """What the user can tolerate. All fields are optional; the more you ask for, the more judgements it takes."""

    max_error: Share | None = None
    min_precision: Share | None = None
    min_recall: Share | None = None
    max_abstain: Share | None = None
    maximise: Maximise | None = Field(
        default=None,
        description="Choose the threshold of acceptance that is best by this measure, in place of F_1. Not together "
        "with `min_precision` or `max_error`.",
        examples=[{"f_beta": 2.0}],
    )
    mode: GoalMode = Field(
        default="best",
        description="Until a precision or error is certain, `best` accepts by the best estimate and marks what it "
        "delivers with `certain: false`; `strict` accepts nothing.",
    )

    @property
    def asks(self) -> bool:
        """Whether a target is set."""
        return any(getattr(self, name) is not None for name in (*TARGETS, "maximise"))

    @model_validator(mode="after")
    def _a_promise_or_a_measure(self) -> Self:
        if self.maximise is not None and (self.min_precision is not None or self.max_error is not None):
            raise ValueError(
                "A goal either keeps a precision or an error, or maximises a measure: leave out `maximise`, or "
                "`min_precision` and `max_error`."
            )
        return self

    @model_serializer(mode="wrap")
    def _without_nulls(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None} if self.asks else {}


class Cuts(Request):
    """Thresholds set by hand, which stay until they are changed: two scores, or a band."""

    reject_below: Threshold | None = None
    accept_above: Threshold | None = None
    band: Annotated[float, Field(ge=0, le=MAX_NUMBER, allow_inf_nan=False)] | None = Field(
        default=None,
        description="Abstain where a score is this near to the threshold that the topic would have by itself, and that "
        "moves as it learns; in place of the two scores.",
    )

    @model_validator(mode="after")
    def _two_scores_or_a_band(self) -> Self:
        low, high = self.reject_below, self.accept_above
        if (self.band is None) == (low is None and high is None):
            raise ValueError("Give either `reject_below` and `accept_above`, or `band`.")
        if self.band is None and (low is None or high is None):
            raise ValueError("Give both `reject_below` and `accept_above`.")
        if low is not None and high is not None and low > high:
            raise ValueError("`reject_below` must not be above `accept_above`.")
        return self

    @model_serializer(mode="wrap")
    def _without_nulls(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if value is not None}


class Rules(Request):
    accept_if: Rule | None = None
    reject_if: Rule | None = None


class Group(Request):
    """Topics of which one may accept a document, such as the queues of tickets: those that name the same group."""

    name: Annotated[str, Field(pattern=TOPIC_ID, examples=["queue"])]
    rule: Literal["at_most_one", "exactly_one"] = "at_most_one"
    margin: Share = Field(
        default=0.1, description="Where the probabilities of two differ by no more, both abstain. One for the group."
    )


class LearnedRanking(Request):
    """What a topic let through is ordered by a ranking SVM over pairs of judged documents, by their grades."""

    kind: Literal["pairwise"]
    C: float = Field(default=0.003, gt=0, le=1000, description="How much judgements count against the order by score.")


SingleTerm = Annotated[str, Field(max_length=400), AfterValidator(no_nul)]


class Pins(Request):
    """Feedback on single terms: whatever is judged, a pinned term counts in favour of the topic, and a banned one does
    not count. Each must be a single term, usually one word."""

    pin: list[SingleTerm] = Field(default_factory=list, max_length=50, examples=[["opec", "brent"]])
    ban: list[SingleTerm] = Field(default_factory=list, max_length=50, examples=[["reuters"]])


class Pocket(Request):
    """Of all vectors that a topic could be served by, the pocket chooses the one that ranks the judged documents best:
    the newest, the average, one that was good before, and under `auto` those of every learner."""

    every: int | None = Field(
        default=10,
        ge=1,
        le=1000,
        description="Judgements between two choices, more when there are many; null: none, so that the newest vector "
        "is served.",
    )
    by: PocketScores = Field(
        default="both",
        description="What current vectors are compared by: how they rank judged documents without what each taught "
        "(`held_out`), with it (`learned`, as in topics that are older than this setting), or `both`.",
    )


class Policy(Request):
    """When and how a topic is retrained automatically."""

    method: str | None = Field(max_length=40, description="As for a job; null: never.", examples=["svm"])
    params: dict[str, Scalar] = Field(default_factory=dict, max_length=50)
    after: int | None = Field(default=None, ge=10, le=1_000_000, description="After this many new judgements.")
    on_drift: bool = Field(default=False, description="When the topic's errors have become more frequent.")
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
    cuts: Annotated[Cuts | None, Effect.MODEL] = Field(
        default=None, description="Thresholds set by hand, which stay until they are changed; null: the topic's own."
    )
    rules: Annotated[Rules, Effect.DECISIONS] = Rules()
    group: Annotated[Group | None, Effect.DECISIONS] = None
    ranking: Annotated[LearnedRanking | None, Effect.NOTHING] = Field(
        default=None, description="How GET /topics/{topic}/ranked is ordered; null: by score."
    )
    terms: Annotated[Pins, Effect.MODEL] = Pins()
    semantic: Annotated[bool, Effect.MODEL] = Field(
        default=True,
        description="Go by meaning, too: by which words go together in the stream. It starts after about 500 "
        "documents, if SLUICE_SEMANTIC is on and no term is banned.",
    )
    pocket: Annotated[Pocket, Effect.MODEL] = Pocket()
    audit: Annotated[Share | None, Effect.NOTHING] = Field(
        default=None,
        description="Share of rejected documents that is drawn for audit and offered for review; "
        "null: SLUICE_AUDIT_RATE; 0: none, so recall stays unknown.",
    )
    retrain: Annotated[Policy | None, Effect.NOTHING] = Field(
        default=None, description="null: as SLUICE_RETRAIN_* is configured."
    )


EFFECTS: Mapping[str, Effect] = {
    name: next(effect for effect in field.metadata if isinstance(effect, Effect))
    for name, field in TopicFields.model_fields.items()
}


class NewTopic(TopicFields):
    id: TopicId | None = None

    @model_validator(mode="after")
    def _has_an_id_or_a_name(self) -> Self:
        if self.id is None and not self.name.strip():
            raise ValueError("Give the topic an id or a name.")
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
        __doc__="Fields that are left out stay as they are; null resets one to its default.",
        **optional_settings(TopicFields.model_fields),
    )


class Judged(Answer):
    relevant: int
    irrelevant: int


class Estimate(Answer):
    """The state of one part of a goal."""

    state: GoalState
    estimate: float | None = Field(description="null while there is no evidence.")
    low: float | None
    high: float | None
    confidence: float = Field(description="Confidence with which each of the bounds holds.")
    judged: int = Field(description="Number of judgements behind the estimate; for `abstain`, of documents.")
    detail: str
    needed: tuple[int, int] | None = Field(
        default=None,
        description="About how many more judgements (for `recall`, audits) are needed, at least and at most; null if "
        "none are, or if the two would differ by more than a factor of four.",
    )


class Maximised(Answer):
    """What the goal maximises, at the threshold in force."""

    state: GoalState
    estimate: float | None = Field(description="null while no relevant document is judged.")
    judged: int = Field(description="Number of judgements of documents that were shown.")
    detail: str


class GoalStatus(Answer):
    """`learning`: too little evidence; `met`; `at_risk`: broken lately; `unreachable`: `detail` says why. Parts that
    the goal does not ask for are null."""

    state: GoalState
    detail: str
    precision: Estimate | None = None
    recall: Estimate | None = None
    error: Estimate | None = None
    abstain: Estimate | None = None
    maximise: Maximised | None = Field(default=None, description="Absent if the goal maximises nothing.")

    @model_serializer(mode="wrap")
    def _without_what_is_not_maximised(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if name != "maximise" or value}


class Counts(Answer):
    documents: int
    accepted: int
    abstained: int
    rejected: int


class PassedCounts(Counts):
    """Remembered documents that the topic has decided since it was created; `lately`: about the last 10,000."""

    lately: Counts


class Retraining(Answer):
    due: bool
    detail: str


class Status(Answer):
    version: int
    judged: Judged
    reject_below: float = Field(description="Documents with a score below it are rejected.")
    accept_above: float = Field(description="Documents with a score above it are accepted; 3.4e38: none is.")
    passed: PassedCounts | None = Field(description="null while the store does not answer.")
    goal: GoalStatus | None
    retraining: Retraining | None = Field(description="null if the topic is not retrained automatically.")


class PooledRecall(Answer):
    """Recall over all topics whose audits are asked for or judged, taken together: known with confidence long before
    that of a single topic."""

    topics: int
    estimate: float | None = Field(description="null while there is no evidence, as before the first judged audit.")
    low: float | None
    high: float | None
    confidence: float
    audits: int
    detail: str


ABSENT = ("warnings", "group", "ranking", "cuts")  # from a topic, where there is none


class Topic(Answer):
    id: str
    name: str
    query: str
    learner: Learner
    goal: Goal
    rules: Rules
    group: Group | None = Field(default=None, description="Absent if the topic is in none.")
    ranking: LearnedRanking | None = Field(default=None, description="Absent if what it lets through is by score.")
    cuts: Cuts | None = Field(default=None, description="Absent if no thresholds are set by hand.")
    terms: Pins = Pins()
    semantic: bool = True
    pocket: Pocket = Pocket()
    audit: float | None
    retrain: Policy | None
    created: datetime
    status: Status
    warnings: list[str] = Field(
        default_factory=list,
        description="What a goal costs on recent documents, when it has just been set; absent if there is none.",
    )

    @model_serializer(mode="wrap")
    def _without_what_is_absent(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if name not in ABSENT or value}
