"""Feeds: from bytes to items. RSS 0.9x, 1.0 and 2.0 and Atom by feedparser, JSON Feed by a few lines.

feedparser is maintained, pure Python, and reads what publishers really send: wrong encodings, markup that is not well
formed, dates in dozens of forms, fields of several dialects. Of the alternatives, fastfeedparser is younger and takes
lxml along, atoma has had no release for years, and reading the elements ourselves would fail on every tenth feed.

XML can attack who reads it: entities that expand without end, or that stand for a file or an address. So a document is
first read with defusedxml, which refuses every entity it declares; the type it declares (RSS 0.91 had one) is never
loaded. feedparser then removes declarations once more, which covers what is not well formed. Its clean-up of HTML is
switched off: we want the text only, and get it from a parser that has no state to confuse.

Only the child process of parsing.py imports this: whatever a publisher sends, it can exhaust that process only.
"""

import calendar
import io
import json
import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urljoin
from xml.sax import SAXException, handler

import feedparser
from defusedxml import DefusedXmlException
from defusedxml import sax as defused

from service.schemas.fields import LANGUAGE, URL_CHARS, link
from service.sources.items import MAX_TAGS, Feed, Item
from service.sources.text import feeds_of_page, html_to_text, tidy

LANGUAGE_CHARS = 35
MAX_SHOWN = 3  # addresses of feeds in an error


class NotAFeed(Exception):
    """This is not a feed, or one that attacks; the message is a sentence for the user."""


def parse(content: bytes, url: str) -> Feed:
    """The feed that was found at this address."""
    start = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if not start:
        raise NotAFeed("The answer is empty.")
    return _from_json(content, url) if start == b"{" else _from_xml(content, url)


# -- RSS and Atom ------------------------------------------------------------------------------------------------------


def _from_xml(content: bytes, url: str) -> Feed:
    refuse_entities(content)
    # Without the address, because guids would be resolved against it, too, and change when the feed moves.
    parsed: Any = feedparser.parse(io.BytesIO(content), resolve_relative_uris=False, sanitize_html=False)
    if not parsed.version:
        raise NotAFeed(_not_a_feed(content, url))
    language = _language(parsed.feed.get("language"))
    items = tuple(_item(entry, url, language) for entry in parsed.entries)
    return Feed(title=_line(_text(parsed.feed, "title")), items=items)


def refuse_entities(content: bytes) -> None:
    """Refuses XML that declares entities. What is not well formed is left to who reads it next."""
    try:
        # Entities of every kind, external ones included. `forbid_external` would also refuse the mere name of a type.
        defused.parseString(content, handler.ContentHandler(), forbid_entities=True, forbid_external=False)
    except DefusedXmlException:
        raise NotAFeed("The XML declares entities, which can be used for attacks; it is not read.") from None
    except (SAXException, ValueError, LookupError):  # the latter two: unknown encodings
        return


def _item(entry: dict[str, Any], base: str, language: str) -> Item:
    updated = _parsed_time(dict.get(entry, "updated_parsed"))  # `entry.get` would give the time of publication
    return Item(
        guid=str(entry.get("id") or ""),
        url=_link(entry.get("link"), base),
        title=_line(_text(entry, "title")),
        text=_body(entry),
        author=_line(str(entry.get("author") or "")),
        language=_language(entry.get("language")) or language,
        published=_parsed_time(entry.get("published_parsed") or entry.get("created_parsed")) or updated,
        updated=updated,
        tags=tuple(term for tag in (entry.get("tags") or ())[:MAX_TAGS] if (term := _line(str(tag.get("term") or "")))),
    )


def _body(entry: Mapping[str, Any]) -> str:
    """The whole text where a feed has it, else the summary."""
    for part in entry.get("content") or ():
        if text := _plain(part):
            return text
    return _text(entry, "summary")


def _text(fields: Mapping[str, Any], name: str) -> str:
    detail = fields.get(f"{name}_detail")
    return _plain(detail) if detail else ""


def _plain(part: Mapping[str, Any]) -> str:
    value = str(part.get("value") or "")
    return tidy(value) if part.get("type") == "text/plain" else html_to_text(value)


def _parsed_time(parsed: time.struct_time | None) -> datetime | None:
    return _at(calendar.timegm(parsed)) if parsed else None


def _not_a_feed(content: bytes, url: str) -> str:
    page = content.decode(errors="replace")
    named = [found for address in feeds_of_page(page) if (found := _link(address, url))][:MAX_SHOWN]
    if named:
        feeds = "these feeds" if named[1:] else "this feed"
        return f"This is a web page, not a feed. It names {feeds}: {' '.join(named)}"
    if "<html" in page[:10_000].lower():
        return "This is a web page, not a feed, and it names none."
    return "This is not a feed: neither RSS, nor Atom, nor JSON Feed."


# -- JSON Feed ---------------------------------------------------------------------------------------------------------


def _from_json(content: bytes, url: str) -> Feed:
    try:
        feed = json.loads(content)
    except (ValueError, RecursionError):
        raise NotAFeed("This is not valid JSON.") from None
    if "jsonfeed.org/version/" not in str(feed.get("version", "")) or not isinstance(feed.get("items"), list):
        raise NotAFeed("This is JSON, but not a JSON Feed: it lacks its version or its items.")
    language = _language(feed.get("language"))
    items = tuple(_json_item(item, url, language) for item in feed["items"] if isinstance(item, dict))
    return Feed(title=_line(_string(feed, "title")), items=items)


def _json_item(item: Mapping[str, Any], base: str, language: str) -> Item:
    guid = item.get("id")
    authors = item.get("authors") if isinstance(item.get("authors"), list) else [item.get("author")]
    names = [_string(author, "name") for author in authors or () if isinstance(author, dict)]
    tags = item.get("tags") if isinstance(item.get("tags"), list) else []
    html, updated = _string(item, "content_html"), _iso_time(_string(item, "date_modified"))
    return Item(
        guid=str(guid) if isinstance(guid, str | int | float) else "",
        url=_link(_string(item, "url") or _string(item, "external_url"), base),
        title=_line(_string(item, "title")),
        text=html_to_text(html) if html else tidy(_string(item, "content_text") or _string(item, "summary")),
        author=_line(", ".join(filter(None, names))),
        language=_language(item.get("language")) or language,
        published=_iso_time(_string(item, "date_published")) or updated,
        updated=updated,
        tags=tuple(term for tag in (tags or ())[:MAX_TAGS] if isinstance(tag, str) and (term := _line(tag))),
    )


def _string(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    return _whole(value) if isinstance(value, str) else ""


def _iso_time(text: str) -> datetime | None:
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


# -- both --------------------------------------------------------------------------------------------------------------


def _at(seconds: float) -> datetime | None:
    """The time, unless it is outside of what a calendar has."""
    if not math.isfinite(seconds) or not 0 < seconds < 4_102_444_800:  # from 1970 to 2100
        return None
    return datetime.fromtimestamp(seconds, UTC)


def _link(address: object, base: str) -> str:
    """The address of the original, if it is one that a reader may be led to."""
    try:
        url = link(urljoin(base, str(address or "").strip()))
    except ValueError:
        return ""
    return url if address and len(url) <= URL_CHARS else ""


def _line(text: str) -> str:
    return " ".join(_whole(text).split())


def _whole(text: str) -> str:
    """The text without halves of surrogate pairs, which cannot be encoded."""
    return text.encode(errors="replace").decode()


def _language(tag: object) -> str:
    """The tag of a language, if it is well formed."""
    text = str(tag or "").strip().replace("_", "-")
    return text if re.fullmatch(LANGUAGE, text) and len(text) <= LANGUAGE_CHARS else ""
