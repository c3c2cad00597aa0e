"""Judgements, and the answers to them."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from service.schemas.common import Problem
from service.schemas.documents import Decision, Document
from service.schemas.fields import BATCH, BY_ID, SINGLE, WHOLE, Answer, DocumentId, Line, Request, TopicId


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


def _single_or_batch(feedback: object) -> str:
    return BATCH if isinstance(feedback, dict) and "judgements" in feedback else SINGLE


Feedback = Annotated[
    Annotated[Judgement, Tag(SINGLE)] | Annotated[Judgements, Tag(BATCH)],
    Discriminator(_single_or_batch),
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
    version: int = Field(description="The version that this judgement led to.")
    before: Before


class Withdrawn(Answer):
    topic: str
    document: str
    status: Literal["withdrawn"] = "withdrawn"
    version: int
