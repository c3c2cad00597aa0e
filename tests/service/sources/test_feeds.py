"""Feeds of every kind become items; what attacks, or is no feed, is refused with a sentence."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from service.sources.feeds import NotAFeed, parse
from service.sources.items import Item
from tests.support.publisher import rss

URL = "https://example.org/news/feed.xml"
NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)

RSS = """<?xml version="1.0"?>
<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://127.0.0.1:1/rss-0.91.dtd">
<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/">
<channel><title>News &amp; views</title><language>en-GB</language><item>
  <title>OPEC &lt;b&gt;meets&lt;/b&gt;</title><link>/opec?a=1&amp;b=2</link><guid isPermaLink="false">opec-1</guid>
  <pubDate>Wed, 18 Nov 2026 13:00:00 +0100</pubDate><dc:creator>Jane Doe</dc:creator><category>oil</category>
  <description>Short.</description>
  <content:encoded><![CDATA[<p>Output&nbsp;falls.</p><script>alert(1)</script>
    <p>Prices rise &amp; rise.</p>]]></content:encoded>
</item></channel></rss>"""

ATOM = """<?xml version="1.0" encoding="utf-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en-GB"><title>News &amp; views</title><entry>
  <id>opec-1</id><title type="html">OPEC &lt;b&gt;meets&lt;/b&gt;</title><link href="https://example.org/opec?a=1&amp;b=2"/>
  <published>2026-11-18T12:00:00Z</published><updated>2026-11-18T12:00:00Z</updated>
  <author><name>Jane Doe</name></author><category term="oil"/>
  <content type="html">&lt;p&gt;Output falls.&lt;/p&gt;&lt;p&gt;Prices rise &amp;amp; rise.&lt;/p&gt;</content>
</entry></feed>"""

RDF = """<?xml version="1.0"?>
<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
  xmlns:dc="http://purl.org/dc/elements/1.1/"><channel rdf:about="x"><title>News &amp; views</title>
  <dc:language>en-GB</dc:language></channel>
<item rdf:about="opec-1"><title>OPEC meets</title><link>https://example.org/opec?a=1&amp;b=2</link>
  <description>Output falls.&lt;br&gt;Prices rise &amp;amp; rise.</description><dc:creator>Jane Doe</dc:creator>
  <dc:date>2026-11-18T12:00:00Z</dc:date><dc:subject>oil</dc:subject></item></rdf:RDF>"""

JSON: dict[str, Any] = {
    "version": "https://jsonfeed.org/version/1.1",
    "title": "News & views",
    "language": "en-GB",
    "items": [
        {
            "id": "opec-1",
            "url": "https://example.org/opec?a=1&b=2",
            "title": "OPEC meets",
            "content_html": "<p>Output falls.</p><p>Prices rise &amp; rise.</p>",
            "date_published": "2026-11-18T12:00:00Z",
            "authors": [{"name": "Jane Doe"}],
            "tags": ["oil"],
        }
    ],
}


@pytest.mark.parametrize("content", [RSS, ATOM, RDF, json.dumps(JSON)], ids=["rss", "atom", "rdf", "json"])
def test_the_same_story_reads_the_same_in_every_format(content: str) -> None:
    feed = parse(content.encode(), URL)
    (item,) = feed.items
    assert feed.title == "News & views"
    assert item.guid == "opec-1"
    assert item.model_copy(update={"guid": "", "updated": None, "language": item.language.lower()}) == Item(
        url="https://example.org/opec?a=1&b=2",
        title="OPEC meets",
        text="Output falls.\nPrices rise & rise.",
        author="Jane Doe",
        language="en-gb",
        published=NOON,
        tags=("oil",),
    )


@pytest.mark.parametrize(
    "declared",
    [
        '<!DOCTYPE x [<!ENTITY a "lol"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
        '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
        '<!DOCTYPE x [<!ENTITY % a SYSTEM "http://127.0.0.1:1/x.dtd"> %a;]>',
        f'<!DOCTYPE x [<!ENTITY a "{"x" * 100_000}">]>',
    ],
    ids=["laughs", "file", "parameter", "quadratic"],
)
def test_entities_are_refused(declared: str) -> None:
    body = f"{declared}<rss version='2.0'><channel><title>&a;</title></channel></rss>"
    with pytest.raises(NotAFeed, match="entities"):
        parse(body.encode(), URL)
    with pytest.raises(NotAFeed, match="entities"):
        parse(body.encode("utf-16"), URL)


def test_entities_of_what_is_not_well_formed_name_nothing() -> None:
    """The check stops at the first error, so what comes after it must be harmless by itself."""
    body = "<?xml version='1.0'?>&<!DOCTYPE x [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>" + rss("&a;").decode()
    assert "root:" not in parse(body.encode(), URL).model_dump_json()


def test_a_feed_that_is_not_well_formed_is_read_as_far_as_it_can_be() -> None:
    body = b"<rss version='2.0'><channel><title>News</title><item><title>Oil & gas</title><guid>1</guid></item>"
    (item,) = parse(body, URL).items
    assert (item.title, item.guid) == ("Oil & gas", "1")


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"  ", "The answer is empty."),
        (b"hello", "This is not a feed: neither RSS, nor Atom, nor JSON Feed."),
        (b"{", "This is not valid JSON."),
        (b"{" + b'"a":[' * 100_000, "This is not valid JSON."),
        (b'{"items": []}', "This is JSON, but not a JSON Feed: it lacks its version or its items."),
        (b"<html><body>Hello</body></html>", "This is a web page, not a feed, and it names none."),
        (
            b'<html><head><link rel="alternate" type="application/rss+xml" href="/rss"><link rel=alternate '
            b'type=application/atom+xml href="javascript:alert(1)"></head></html>',
            "This is a web page, not a feed. It names this feed: https://example.org/rss",
        ),
    ],
)
def test_what_is_no_feed_is_refused_with_a_sentence(body: bytes, sentence: str) -> None:
    with pytest.raises(NotAFeed) as refused:
        parse(body, URL)
    assert str(refused.value) == sentence


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "https://me:you@example.org/", "http://[::1", "data:,x", 'https://a"b/']
)
def test_a_link_that_nobody_should_follow_is_dropped(link: str) -> None:
    item = {"id": "1", "title": "x", "url": link}
    (found,) = parse(json.dumps(JSON | {"items": [item]}).encode(), URL).items
    assert found.url == ""


@pytest.mark.parametrize(
    "item",
    [
        {"id": 7, "title": None, "content_text": "a", "authors": "x", "tags": {"a": 1}, "date_published": "soon"},
        {"id": [], "title": "a\ud800", "author": {"name": 1}, "tags": [1, "x"], "language": "../..", "url": 5},
        {"title": "a", "date_published": "0001-01-01T00:00:00+14:00"},
    ],
)
def test_a_json_feed_with_fields_of_other_types_does_no_harm(item: dict[str, Any]) -> None:
    feed = parse(json.dumps(JSON | {"items": [item, "no item", None]}).encode(), URL)
    assert len(feed.items) == 1
    feed.model_dump_json()
