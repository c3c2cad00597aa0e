"""Feeds for feed readers: Atom (RFC 4287) and JSON Feed 1.1, of the same items.

What people have written stands in a feed as text, never as markup: in Atom with `type="text"`, which is the default,
and in JSON Feed as `content_text`. Characters that XML does not allow are left out. Ids are UUIDs that are made of the
topic and the document, so they stay the same wherever the feed is read, and when a document is decided again.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import blake2b
from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID
from xml.etree.ElementTree import Element, SubElement, tostring

from fastapi import Request
from starlette.responses import Response

from service.clock import time_of
from service.schemas.feeds import FeedAuthor, FeedItem, JsonFeed
from service.schemas.flow import Passed
from service.schemas.remembered import Found

ATOM_TYPE, JSON_FEED_TYPE = "application/atom+xml", "application/feed+json"
NAMESPACE = "http://www.w3.org/2005/Atom"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
IN_URLS = "!#$%&'()*+,/:;=?@[]~"  # all that may stand in a URL as it is
TITLE_CHARS = 80  # of the text, where a document has no title
NEVER = time_of(0)


class Feed(NamedTuple):
    id: str
    title: str
    subtitle: str
    address: str  # its own
    updated: datetime  # if there are no items
    items: Sequence[FeedItem]


def passed_item(passed: Passed) -> FeedItem:
    return _item(passed.id, passed, passed.text, passed.at, [passed.decision])


def found_item(found: Found) -> FeedItem:
    return _item(_digest(f"document\0{found.document}"), found, found.snippet, found.at, [])


def feed_id(*about: str) -> str:
    """The id of a feed about this."""
    return _urn(_digest("\0".join(("feed", *about))))


def atom(feed: Feed) -> bytes:
    root = Element("feed", {"xmlns": NAMESPACE})
    _text(root, "id", feed.id)
    _text(root, "title", feed.title)
    _text(root, "subtitle", feed.subtitle)
    _text(root, "updated", _stamp(max((item.date_modified for item in feed.items), default=feed.updated)))
    SubElement(root, "link", {"rel": "self", "type": ATOM_TYPE, "href": _iri(feed.address)})
    _text(SubElement(root, "author"), "name", "Sluice")
    for item in feed.items:
        _entry(SubElement(root, "entry"), item)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def json_feed(feed: Feed) -> bytes:
    shown = JsonFeed(title=feed.title, description=feed.subtitle, feed_url=_iri(feed.address), items=list(feed.items))
    return shown.model_dump_json(exclude_none=True).encode()


def answer(request: Request, body: bytes, media_type: str) -> Response:
    """The feed, or 304 if the reader has it already."""
    etag = f'"{blake2b(body, digest_size=16).hexdigest()}"'
    known = {tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")}
    if known & {etag, "*"}:
        return Response(status_code=304, headers={"ETag": etag})
    return Response(body, headers={"ETag": etag, "Content-Type": media_type})


def _item(id: str, document: Passed | Found, text: str, at: datetime, tags: list[str]) -> FeedItem:
    return FeedItem(
        id=_urn(id),
        url=_iri(document.url) if document.url else None,
        title=document.title.strip() or text.strip()[:TITLE_CHARS],
        content_text=text.strip() or document.title,
        date_published=_time(document.published),
        date_modified=at,
        authors=[FeedAuthor(name=document.author)] if document.author and document.author.strip() else None,
        language=document.language,
        tags=tags or None,
    )


def _entry(entry: Element, item: FeedItem) -> None:
    if item.language:
        entry.set(XML_LANG, item.language)
    _text(entry, "id", item.id)
    _text(entry, "title", item.title)
    _text(entry, "updated", _stamp(item.date_modified))
    if item.date_published:
        _text(entry, "published", _stamp(item.date_published))
    if item.url:
        SubElement(entry, "link", {"rel": "alternate", "href": item.url})
    for author in item.authors or ():
        _text(SubElement(entry, "author"), "name", author.name)
    for tag in item.tags or ():
        SubElement(entry, "category", {"term": tag})
    _text(entry, "content", item.content_text)


def _text(parent: Element, name: str, text: str) -> None:
    SubElement(parent, name).text = NOT_XML.sub("", text)


def _time(published: str | None) -> datetime | None:
    """The time that was sent, if it is one, with a zone."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            time = read(published or "")
            return time.astimezone(UTC) if time.tzinfo else None
        except (ValueError, OverflowError):  # no time, or one that is too early or too late for UTC
            continue
    return None


def _stamp(time: datetime) -> str:
    return time.isoformat()


def _iri(url: str) -> str:
    """The URL as ASCII, whatever is in it."""
    return quote(url, safe=IN_URLS)


def _urn(digest: str) -> str:
    return UUID(digest).urn


def _digest(about: str) -> str:
    return blake2b(about.encode(), digest_size=16).hexdigest()
