"""JSON Feed 1.1 (https://www.jsonfeed.org/version/1.1/), as far as feeds of topics and searches use it."""

from datetime import datetime

from pydantic import Field

from service.schemas.fields import Answer

VERSION = "https://jsonfeed.org/version/1.1"


class FeedAuthor(Answer):
    name: str


class FeedItem(Answer):
    id: str
    url: str | None = Field(default=None, description="Where the original is; absent if that is not known.")
    title: str
    content_text: str
    date_published: datetime | None = Field(default=None, description="As sent, if it is a time with a zone.")
    date_modified: datetime = Field(description="When it passed the topic; in a search, when it came.")
    authors: list[FeedAuthor] | None = None
    language: str | None = None
    tags: list[str] | None = None


class JsonFeed(Answer):
    version: str = VERSION
    title: str
    description: str
    feed_url: str
    items: list[FeedItem]
