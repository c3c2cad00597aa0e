"""Judgements, and the answers to them."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, SerializerFunctionWrapHandler, Tag, model_serializer

from service.schemas.common import Problem
from service.schemas.documents import Decision, Document
from service.schemas.fields import BATCH, BY_ID, SINGLE, WHOLE, Answer, DocumentId, Grade, Line, Request, TopicId


def _by_id_or_whole(document: object) -> str:
    return WHOLE if isinstance(document, dict | Document) else BY_ID


IdOrDocument = Annotated[
    Annotated[DocumentId, Tag(BY_ID)] | Annotated[Document, Tag(WHOLE)], Discriminator(_by_id_or_whole)
]


def _relevance(value: object) -> object:
    if isinstance(value, bool) or (isinstance(value, int) and 0 <= value <= 3):
        return value
    raise ValueError("This must be true, false, or a grade: 0, 1, 2 or 3.")


Relevance = Annotated[bool | Grade, BeforeValidator(_relevance)]


class Judgement(Request):
    topic: TopicId
    document: IdOrDocument
    relevant: Relevance = Field(
        description="Whether the document is relevant; or how much, from 0 (not at all) to 3. Decisions are learned "
        "from whether it is, and rankings are measured by how much."
    )
    by: Line | None = Field(default=None, description="Who judged; shown in the list of judgements.")


class Judgements(Request):
    judgements: list[Judgement] = Field(min_length=1)


def _single_or_batch(feedback: object) -> str:
    return BATCH if isinstance(feedback, dict) and "judgements" in feedback else SINGLE


Feedback = Annotated[
    Annotated[Judgement, Tag(SINGLE)] | Annotated[Judgements, Tag(BATCH)],
    Discriminator(_single_or_batch),
]


class Before(Answer):
    decision: Decision
    score: float


GivenGrade = Annotated[Grade | None, Field(description="Present only if a grade was given.")]


class Graded(Answer):
    """An answer with a grade."""

    @model_serializer(mode="wrap")
    def _without_null(self, serialize: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialize(self).items() if name != "grade" or value is not None}


class Learned(Graded):
    topic: str
    document: str
    relevant: bool
    grade: GivenGrade = None
    status: Literal["learned", "known", "corrected"]
    version: int
    before: Before


class LearnedAll(Answer):
    results: list[Learned | Problem]


class PastJudgement(Graded):
    document: str
    relevant: bool
    grade: GivenGrade = None
    title: str
    by: str | None
    at: datetime
    version: int = Field(description="The version that this judgement led to.")
    before: Before


class Withdrawn(Answer):
    topic: str
    document: str
    status: Literal["withdrawn"] = "withdrawn"
    version: int
