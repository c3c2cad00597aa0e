"""Documents, and the decisions about them."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, SerializerFunctionWrapHandler, model_serializer, model_validator

from service.schemas.fields import Answer, DocumentId, Language, Line, Request, Text, TopicId, Url, bounded

Decision = Literal["accept", "reject", "abstain"]
ORIGIN = ("source", "published", "url", "author", "language")  # fields that say where a document comes from


class Document(Request):
    id: DocumentId | None = Field(default=None, examples=["d1"])
    title: Text = Field(default="", examples=["OPEC meets"])
    text: Text = Field(default="", examples=["Crude prices rose after OPEC agreed to cut output."])
    source: Line | None = None
    published: Line | None = None
    url: Url | None = Field(default=None, description="Where the original is, for people to open.")
    author: Line | None = None
    language: Language | None = Field(default=None, description="A language tag such as en or pt-BR.")
    metadata: Annotated[dict[str, JsonValue], AfterValidator(bounded)] | None = None

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if not self.text.strip() and not self.title.strip():
            raise ValueError("The document is empty: its title and its text are blank.")
        return self


def origin(document: Document) -> dict[str, str | None]:
    """Where the document comes from, as it was sent."""
    return {name: getattr(document, name) for name in ORIGIN}


class ClassifyOptions(Request):
    topics: list[TopicId] | None = None
    explain: bool = False
    store: bool = True
    include: Literal["all"] | None = None


class Classify(ClassifyOptions):
    documents: list[Document] = Field(min_length=1)


class Pinnable(Answer):
    pinned: bool = Field(default=False, description="Present only if true.")

    @model_serializer(mode="wrap")
    def _without_false(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if name != "pinned" or value}


class Contribution(Pinnable):
    term: str
    contribution: float


class Flip(Answer):
    """What would have changed the decision: the fewest of the document's strongest terms without which, or of the
    query's missing terms with which, the model would have decided differently."""

    decision: Decision = Field(description="What the decision would have been.")
    without: list[str]
    with_: list[str] = Field(alias="with")


class Verdict(Answer):
    topic: str
    decision: Decision
    score: float
    probability: float | None
    version: int
    decided_by: str = Field(description="`model`, `accept_if`, `reject_if`, or `group`: what made the decision.")
    certain: bool | None = Field(
        default=None,
        description="Whether the precision or error that the topic's goal asks for can be promised by now; absent "
        "without such a goal.",
    )
    explanation: list[Contribution] | None = Field(
        default=None, description="With `explain`: contributions that add up to the score."
    )
    flip: Flip | None = Field(
        default=None, description="With `explain`; null if a rule or a group decides, or if a few terms are not enough."
    )


class Result(Answer):
    document: str
    decisions: list[Verdict]
    duplicate_of: str | None = Field(
        default=None, description="The document that this one is a near-duplicate of; absent if there is none."
    )
    updated: bool | None = Field(
        default=None, description="Whether it came before under this id with another text; absent if it did not."
    )


class Results(Answer):
    results: list[Result]
