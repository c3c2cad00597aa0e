"""The lines of an exported topic as types, and how an event of the log becomes a line. Their meaning: file.py."""

import binascii
from base64 import b64decode, b64encode
from typing import Annotated, Literal, Self

import numpy as np
from pydantic import AfterValidator, Field, RootModel, model_validator

from service.schemas import Decision
from service.schemas.fields import (
    Canonical,
    DocumentId,
    Grade,
    Line,
    MaybeDocumentId,
    Millis,
    Number,
    Request,
    Share,
    TopicId,
)
from service.store import codec
from service.store.events import Event, Kind
from service.topics.published import Base
from service.topics.settings import TopicSettings

FORMAT: Literal["sluice-topic/1"] = "sluice-topic/1"
Count = Annotated[int, Field(ge=0, lt=2**53)]
Seq = Annotated[int, Field(ge=1, lt=10**12)]  # far below where Lua's numbers lose integers
Positive = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]


def _base64(text: str) -> str:
    try:
        b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("This is not base64.") from error
    return text


Base64 = Annotated[str, AfterValidator(_base64)]


class Words(Request):
    """The words of a text: its terms, how often each occurs, and the idf that was in force."""

    terms: list[Canonical]
    counts: list[Positive]
    idf: list[Positive]

    @model_validator(mode="after")
    def _equally_long(self) -> Self:
        if not len(self.terms) == len(self.counts) == len(self.idf):
            raise ValueError("`terms`, `counts` and `idf` must be equally long.")
        if len(set(self.terms)) < len(self.terms):
            raise ValueError("A term is listed twice.")
        return self

    @classmethod
    def of(cls, bag: bytes) -> "Words":
        words, counts, idf = codec.unpack_bag(bag)
        terms = words.decode().split("\n") if words else []
        return cls.model_construct(terms=terms, counts=counts.tolist(), idf=idf.tolist())

    def to_bag(self) -> bytes:
        return codec.pack_bag(self.terms, np.array(self.counts, np.float32), np.array(self.idf, np.float32))


class HeaderLine(Request):
    line: Literal["header"] = "header"
    format: Literal["sluice-topic/1"]
    topic: TopicId
    seq: Seq = Field(description="Number of the last event, which is the version.")
    floor: Count = Field(description="The oldest version that can be restored.")
    background: Count = Field(description="The epoch in force when the file was written.")


class ProjectionLine(Request):
    line: Literal["projection"] = "projection"
    number: Count
    zlib: Base64
    more: bool = Field(default=False, description="It continues on the next line.")


class EpochLine(Request):
    line: Literal["epoch"] = "epoch"
    number: Count
    zlib: Base64
    more: bool = Field(default=False, description="It continues on the next line.")


PackedLine = ProjectionLine | EpochLine


class EventLine(Request):
    """An event of the log, with only the fields that its kind needs."""

    line: Literal["event"] = "event"
    seq: Seq
    kind: Kind
    at_ms: Millis
    epoch: Count = 0
    document: MaybeDocumentId = ""
    relevant: bool = False
    grade: Grade | None = None
    regrades: bool = False
    words: Words | None = None
    title: Line = ""
    by: Line = ""
    decision: Literal[Decision, ""] = ""
    delivered: Literal[Decision, ""] = ""
    rule: Literal["accept_if", "reject_if", ""] = ""
    score: Number = 0.0
    probability: Share | None = None
    passed: bool = False
    came_ms: Millis = 0
    chance: Share = 0.0
    after: Count = 0
    settings: TopicSettings | None = None
    anew: bool = False
    model: Base64 = ""
    cause: Line = ""
    version: Count = 0
    kept: Count = 0

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Self:
        missing = {
            "created": self.settings is None or self.words is None,
            "edited": self.settings is None or self.words is None,
            "refreshed": self.settings is None or self.words is None,
            "restored": self.settings is None or self.words is None or not 1 <= self.version < self.seq,
            "judged": not self.document or self.words is None,
            "withdrawn": not self.document,
            "published": not self.model,
            "compacted": not self.kept,
        }
        if missing[self.kind]:
            raise ValueError(f"An event of kind {self.kind!r} lacks a field that it needs.")
        if self.grade is not None and bool(self.grade) != self.relevant:
            raise ValueError("The grade of a relevant document is 1 to 3, that of another 0.")
        if self.settings and self.kind not in ("created", "edited", "refreshed", "restored"):
            raise ValueError(f"An event of kind {self.kind!r} has no settings.")
        return self

    @classmethod
    def of(cls, event: Event) -> "EventLine":
        """The line of an event: its values by the names under which the log stores them, but `words` for `bag`."""
        values = {"seq": event.seq, **event.stored()}
        if bag := values.pop("bag", None):
            values["words"] = Words.of(bag)
        if event.settings:
            values["settings"] = TopicSettings.model_validate_json(event.settings)
        if event.model:
            values["model"] = b64encode(event.model).decode()
        return cls.model_construct(set(values) | {"line"}, **values)

    def to_event(self) -> Event:
        plain = self.model_fields_set - {"line", "seq", "words", "settings", "model"}
        values = {name: getattr(self, name) for name in plain}
        if self.words:
            values["bag"] = self.words.to_bag()
        if self.settings:
            values["settings"] = self.settings.model_dump_json()
        if self.model:
            values["model"] = b64decode(self.model)
            Base.from_bytes(values["model"])  # raises if it cannot be read
        return Event.from_stored(self.seq, values)


class VersionRecord(Request):
    created_ms: Millis
    cause: Line
    learner: Line
    metrics: dict[Line, float | int | None] | None = Field(max_length=100)
    digest: Line | None


class VersionLine(Request):
    line: Literal["version"] = "version"
    version: Count
    record: VersionRecord


class KnownLine(Request):
    line: Literal["known"] = "known"
    document: DocumentId
    title: Line
    words: Words


class SkippedLine(Request):
    line: Literal["skipped"] = "skipped"
    document: DocumentId
    at_ms: Millis


class PassedLine(Request):
    """Counts of documents, of those accepted and of those abstained on."""

    line: Literal["passed"] = "passed"
    ever: Annotated[list[Count], Field(min_length=3, max_length=3)]
    lately: Annotated[list[Count], Field(min_length=3, max_length=3)]
    as_now: Annotated[list[Count], Field(min_length=3, max_length=3)] | None = None


class EndLine(Request):
    line: Literal["end"] = "end"
    lines: Count
    digest: Line


AnyLine = HeaderLine | PackedLine | EventLine | VersionLine | KnownLine | SkippedLine | PassedLine | EndLine


class ArchiveLine(RootModel[Annotated[AnyLine, Field(discriminator="line")]]):
    """A line of an exported topic."""
