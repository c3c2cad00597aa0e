"""Documents that are remembered, with what was decided and said about them."""

from datetime import datetime

from pydantic import Field, JsonValue

from service.schemas.common import Page
from service.schemas.documents import Decision, Verdict
from service.schemas.fields import Answer, Grade


class Matches(Answer):
    """Where the words are that were looked for: pairs of places in the text, counted in characters (Unicode code
    points), of the first one and after the last."""

    title: list[tuple[int, int]]
    snippet: list[tuple[int, int]]


class Found(Answer):
    document: str
    title: str
    snippet: str = Field(description="The text around words that were looked for, or its beginning.")
    matches: Matches
    source: str | None = Field(description="This and the fields up to `language` are as the document was sent.")
    published: str | None
    url: str | None
    author: str | None
    language: str | None
    at: datetime = Field(description="When the document first came.")
    score: float | None = Field(description="How well it fits the words, with `sort=best`; else null.")
    decision: Decision | None = Field(description="What the `topic` decided when it passed; null without one.")
    relevant: bool | None = Field(description="Its judgement in the `topic`; null without one.")


class FoundPage(Page[Found]):
    complete: bool = Field(
        description="false while the index is being built: documents that are remembered may be missing."
    )


class Delivered(Answer):
    """What a topic decided when the document passed, rules included."""

    topic: str
    decision: Decision
    score: float | None = Field(
        description="This and the fields below are null for a rejection, and when the topic's output has dropped it."
    )
    version: int | None
    certain: bool | None = Field(description="As in the answer of `POST /classify`; null without such a goal.")
    at: datetime | None


class EarlierJudgement(Answer):
    relevant: bool
    grade: Grade | None = Field(default=None, description="How relevant, 0 to 3, if a grade was given.")
    by: str | None
    at: datetime


class DocumentJudgement(Answer):
    topic: str
    relevant: bool
    grade: Grade | None = Field(default=None, description="How relevant, 0 to 3, if a grade was given.")
    by: str | None
    at: datetime
    version: int = Field(description="The version that this judgement led to.")
    corrects: EarlierJudgement | None = Field(
        description="The first judgement of the document, if this one is a correction of it; else null."
    )


class RememberedDocument(Answer):
    document: str
    title: str
    text: str
    source: str | None = Field(description="This and the fields up to `metadata` are as the document was sent.")
    published: str | None
    url: str | None
    author: str | None
    language: str | None
    metadata: dict[str, JsonValue] | None
    at: datetime = Field(description="When the document first came.")
    duplicate_of: str | None = Field(description="The document that this one is a near-duplicate of.")
    decisions: list[Delivered] = Field(
        description="As they were delivered, by topic; those that are not known any more are left out."
    )
    now: list[Verdict] | None = Field(description="What would be decided now, by topic; null unless asked for.")
    judgements: list[DocumentJudgement] = Field(description="Those in force, by topic.")
