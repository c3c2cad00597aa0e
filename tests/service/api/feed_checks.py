"""Feeds, checked line by line against what RFC 4287 and JSON Feed 1.1 demand."""

import json
import re
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from xml.etree.ElementTree import Element, XMLParser, fromstring

ATOM = "{http://www.w3.org/2005/Atom}"
XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"
RFC_3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[!#$%&'()*+,/:;=?@\[\]~A-Za-z0-9_.-]+")
ONCE = {"id", "title", "updated"}
AT_MOST_ONCE = {
    "feed": {"generator", "icon", "logo", "id", "rights", "subtitle", "title", "updated"},
    "entry": {"content", "id", "published", "rights", "source", "summary", "title", "updated"},
}
MANY = {"feed": {"author", "category", "contributor", "link", "entry"}}
MANY["entry"] = MANY["feed"] - {"entry"}
ATTRIBUTES = {"link": {"href", "rel", "type", "hreflang", "title", "length"}, "category": {"term", "scheme", "label"}}


def check_atom(raw: bytes) -> Element:
    """The feed, if it is one that RFC 4287 allows."""
    assert raw.startswith(b"<?xml version='1.0' encoding='utf-8'?>")
    feed = fromstring(raw, XMLParser(encoding="utf-8"))  # noqa: S314 - what our own service has written
    assert feed.tag == f"{ATOM}feed"
    _check_container(feed, "feed")
    links = feed.findall(f"{ATOM}link")
    assert [link.get("rel") for link in links] == ["self"]  # 4.1.1: it should have one
    entries = feed.findall(f"{ATOM}entry")
    for entry in entries:
        _check_container(entry, "entry")
        # 4.1.2: an author in the entry or the feed, and content or an alternate link; at most one of the latter
        assert entry.find(f"{ATOM}author") is not None or feed.find(f"{ATOM}author") is not None
        alternates = [link for link in entry.findall(f"{ATOM}link") if link.get("rel", "alternate") == "alternate"]
        assert len(alternates) <= 1
        assert alternates or entry.find(f"{ATOM}content") is not None
    ids = [entry.findtext(f"{ATOM}id") for entry in entries]
    assert len(set(ids)) == len(ids)
    return feed


def _check_container(container: Element, kind: str) -> None:
    assert container.attrib.keys() <= {XML_LANG}
    assert not (container.text or "").strip()
    names = [child.tag.removeprefix(ATOM) for child in container]
    assert {name for name in names if name not in MANY[kind]} <= AT_MOST_ONCE[kind]
    for name in AT_MOST_ONCE[kind]:
        assert names.count(name) <= 1, name
    assert set(names) >= ONCE
    for child, name in zip(container, names, strict=True):
        if name == "entry":
            continue
        if name == "id":
            assert URI.fullmatch(child.text or ""), child.text
        elif name in ("updated", "published"):
            assert RFC_3339.fullmatch(child.text or ""), child.text
            datetime.fromisoformat(child.text or "")
        elif name in ("title", "subtitle", "content", "summary"):
            assert child.attrib.get("type", "text") == "text"
        elif name == "author":
            assert [part.tag for part in child] == [f"{ATOM}name"]
            assert (child[0].text or "").strip()
            continue
        elif name == "link":
            assert URI.fullmatch(child.attrib["href"]), child.attrib["href"]
            assert urlsplit(child.attrib["href"]).scheme in ("http", "https")
        elif name == "category":
            assert child.attrib["term"]
        assert child.attrib.keys() <= ATTRIBUTES.get(name, set())
        assert len(child) == 0  # text, no markup


def check_json_feed(raw: bytes) -> Any:
    """The feed, if it is one that JSON Feed 1.1 allows."""
    feed = json.loads(raw)
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert isinstance(feed["title"], str)
    assert URI.fullmatch(feed["feed_url"])
    assert feed.keys() <= {"version", "title", "description", "feed_url", "items"}
    for item in feed["items"]:
        assert URI.fullmatch(item["id"])
        assert isinstance(item["content_text"], str)
        assert isinstance(item.get("title", ""), str)
        assert "url" not in item or URI.fullmatch(item["url"])
        for name in ("date_published", "date_modified"):
            assert name not in item or RFC_3339.fullmatch(item[name])
        for author in item.get("authors", ()):
            assert author["name"].strip()
        assert all(isinstance(tag, str) for tag in item.get("tags", ()))
        known = {"id", "url", "title", "content_text", "date_published", "date_modified", "authors", "language", "tags"}
        assert item.keys() <= known
    assert len({item["id"] for item in feed["items"]}) == len(feed["items"])
    return feed
