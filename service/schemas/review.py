"""The public contract of review and of known items, as types."""

from typing import Literal

from pydantic import Field

from service.schemas.documents import Decision
from service.schemas.feedback import IdOrDocument
from service.schemas.fields import Answer, DocumentId, Request

Reason = Literal["uncertain", "likely", "audit"]


class Offer(Answer):
    document: str
    title: str
    snippet: str
    score: float
    decision: Decision
    reason: Reason


class ReviewPage(Answer):
    items: list[Offer]
    next: None = Field(description="What is judged or skipped makes room for others; there is no next page.")
    enough: bool = Field(description="Whether more judgements would hardly help.")
    detail: str


class Skip(Request):
    document: DocumentId


class Skipped(Answer):
    topic: str
    document: str
    status: Literal["skipped"] = "skipped"


class NewKnown(Request):
    documents: list[IdOrDocument] = Field(min_length=1)


class KnownAdded(Answer):
    topic: str
    added: int = Field(description="How many of these were not there before.")
    known: int = Field(description="How many there are now.")


class KnownItem(Answer):
    document: str
    title: str
    score: float
    decision: Decision
    counts: bool = Field(description="false if it, or one much like it, was judged or counts already.")


class KnownRecall(Answer):
    """The share of the known items that is not rejected; each bound holds with the confidence."""

    estimate: float
    low: float
    high: float
    confidence: float
    known: int = Field(description="Items that count.")


class KnownPage(Answer):
    items: list[KnownItem]
    next: str | None = Field(description="The cursor for what follows; null at the end.")
    recall: KnownRecall | None = Field(description="null while no item counts.")
    detail: str | None = Field(description="What the items were not tested with; null if that is nothing.")
