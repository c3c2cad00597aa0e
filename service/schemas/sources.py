"""Sources: where documents are fetched from."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from service.schemas.fields import FEED, FILE, FOLDER, Answer, Request, TopicId
from service.schemas.flow import web_address
from service.schemas.jobs import UNKNOWN_KIND

MIN_EVERY_S, MAX_EVERY_S = 10, 2_592_000

SourceId = Annotated[TopicId, Field(examples=["example"])]
FeedAddress = Annotated[str, Field(max_length=2000), AfterValidator(web_address)]
Every = Annotated[
    float,
    Field(ge=MIN_EVERY_S, le=MAX_EVERY_S, allow_inf_nan=False, description="Seconds between two polls, about."),
]
FileFormat = Literal["ndjson", "text", "mbox"]
FolderFormat = Literal["maildir", "text"]
Format = Literal["ndjson", "text", "mbox", "maildir"]
PATH = "Within the directory of SLUICE_SOURCES_FILES."
SourceState = Literal["waiting", "ok", "failing", "paused"]


def _below(path: str) -> str:
    if not path.isprintable() or path.startswith("/") or ".." in path.split("/"):
        raise ValueError("This must be a path within the directory, without `..` and control characters.")
    return path


BelowPath = Annotated[str, Field(min_length=1, max_length=1000), AfterValidator(_below)]


class NewSource(Request):
    """A feed to read: RSS, Atom or JSON Feed."""

    id: SourceId | None = Field(default=None, description="Made from the address if absent.")
    kind: Literal["feed"]
    url: FeedAddress
    every_s: Every | None = Field(default=None, description="Seconds between two polls, about; null: the default.")
    paused: bool = False


class NewFile(Request):
    """A file to read as it grows, below the directory of SLUICE_SOURCES_FILES."""

    id: SourceId | None = Field(default=None, description="Made from the path if absent.")
    kind: Literal["file"]
    path: BelowPath = Field(description=PATH, examples=["wire/news.ndjson"])
    format: FileFormat = Field(description="`ndjson`, `text`: a document on each line; `mbox`: messages.")
    every_s: Every | None = Field(default=None, description="Seconds between two looks, about; null: the default.")
    paused: bool = False


class NewFolder(Request):
    """A folder to read as it fills, below the directory of SLUICE_SOURCES_FILES."""

    id: SourceId | None = Field(default=None, description="Made from the path if absent.")
    kind: Literal["folder"]
    path: BelowPath = Field(description=PATH, examples=["mail"])
    format: FolderFormat = Field(description="`maildir`: messages; `text`: each file is a document.")
    every_s: Every | None = Field(default=None, description="Seconds between two looks, about; null: the default.")
    paused: bool = False


def _kind(asked: object) -> str | None:
    """The tag of a source's kind; None if there is no such kind. What is no object is refused as a feed."""
    kind = asked.get("kind") if isinstance(asked, dict) else getattr(asked, "kind", "feed")
    return {"feed": FEED, "file": FILE, "folder": FOLDER}.get(str(kind))


AnySource = Annotated[
    Annotated[NewSource, Tag(FEED)] | Annotated[NewFile, Tag(FILE)] | Annotated[NewFolder, Tag(FOLDER)],
    Discriminator(_kind, custom_error_type=UNKNOWN_KIND, custom_error_message="This must be feed, file or folder."),
]


class SourceChange(Request):
    every_s: Every | None = None
    paused: bool | None = Field(default=None, description="A paused source is polled only when asked.")


class TrySource(Request):
    """A feed to look at."""

    kind: Literal["feed"]
    url: FeedAddress


class SourceError(Answer):
    reason: str
    at: datetime


class SourceStatus(Answer):
    """`waiting`: not polled yet; `ok`: the last poll succeeded; `failing`: it failed; `paused`."""

    state: SourceState
    title: str | None = Field(description="What the source calls itself.")
    documents: int = Field(description="Documents that it has given so far, updates included.")
    last_poll: datetime | None
    next_poll: datetime | None = Field(description="null if it is paused.")
    failures: int = Field(description="Polls that have failed since one succeeded.")
    last_error: SourceError | None = Field(description="The last one, even if polls have succeeded since.")


class Source(Answer):
    id: str
    kind: Literal["feed", "file", "folder"]
    url: str | None = Field(description="Of a feed.")
    path: str | None = Field(description="Of a file or folder, as is its format.")
    format: Format | None
    every_s: float
    paused: bool
    created: datetime
    status: SourceStatus


class FoundDocument(Answer):
    document: str
    title: str
    snippet: str = Field(description="The beginning of the text.")
    url: str | None
    published: str | None
    update: bool = Field(description="Whether the source has given it before, with other words.")


class ImportedFeed(Answer):
    """`added`; `known`, if a source reads it already; or `refused`, for the reason that is given."""

    url: str
    status: Literal["added", "known", "refused"]
    source: str | None = Field(description="The source that reads it; null if it was refused.")
    reason: str | None


class ImportedFeeds(Answer):
    added: int
    known: int
    refused: int
    feeds: list[ImportedFeed]


class Polled(Answer):
    source: str
    found: int = Field(description="Items that the source offers; 0 also if it has not changed since the last poll.")
    new: int = Field(description="Documents that were passed on to be decided.")
    documents: list[FoundDocument] = Field(description="Those that are new; the first 100.")
    error: str | None = Field(description="Why the source could not be read; null if it could.")


class Tried(Answer):
    title: str | None = Field(description="What the source calls itself.")
    found: int = Field(description="Items that the source offers.")
    documents: list[FoundDocument] = Field(description="The first 20, as they would be passed on.")
    error: str | None = Field(description="Why it could not be read; null if it could.")
