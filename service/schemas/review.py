"""Review and known items."""

from datetime import datetime
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
    source: str | None = Field(
        default=None, description="This and the fields up to `language` are as the document was sent."
    )
    published: str | None = None
    url: str | None = None
    author: str | None = None
    language: str | None = None
    at: datetime = Field(description="When the document came.")


class ReviewPage(Answer):
    items: list[Offer]
    next: None = Field(description="Always null: judge or skip documents, and others take their place.")
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
    added: int = Field(description="How many of the documents are new.")
    known: int = Field(description="How many known items the topic has now.")


class KnownItem(Answer):
    document: str
    title: str
    score: float
    decision: Decision
    counts: bool = Field(
        description="false if it was judged, or resembles a document that was judged or counts already."
    )


class KnownRecall(Answer):
    """The share of the known items that is not rejected; each bound holds with the given confidence."""

    estimate: float
    low: float
    high: float
    confidence: float
    known: int = Field(description="Number of items that count.")


class KnownPage(Answer):
    items: list[KnownItem]
    next: str | None = Field(description="Cursor of the next page; null on the last.")
    recall: KnownRecall | None = Field(description="null while no item counts.")
    detail: str | None = Field(description="A caveat, if the items could not be tested with the rules; else null.")
