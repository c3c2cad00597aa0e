"""From HTML to text: what a reader would see, with a line for each block.

Scripts, styles and other things that nobody reads are dropped, entities become characters, blocks begin a new line, and
white space is collapsed. Python's own parser never fails on bad markup, and runs in linear time but for a few
constructs; parsing.py limits the time in any case.
"""

import re
from html.parser import HTMLParser

DROPPED = {"script", "style", "template", "noscript", "iframe", "object", "svg", "math", "head", "select", "textarea"}
BLOCKS = {
    *("address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "div", "dl", "dt", "fieldset"),
    *(
        "figcaption",
        "figure",
        "footer",
        "form",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "header",
        "hr",
        "li",
        "main",
        "nav",
    ),
    *("ol", "option", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul"),
}
CELLS = {"td", "th"}
MARKUP = re.compile(r"<[a-zA-Z/!]|&[#a-zA-Z]")
CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), *range(127, 160)), " ")
FEED_TYPES = {"application/rss+xml", "application/atom+xml", "application/feed+json"}


def html_to_text(html: str) -> str:
    """The text of a piece of HTML."""
    if not MARKUP.search(html):
        return tidy(html)
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return tidy("".join(reader.parts))


def tidy(text: str) -> str:
    """The text without control characters, empty lines, and more than one space in a row."""
    lines = (" ".join(line.split()) for line in text.translate(CONTROLS).splitlines())
    return "\n".join(line for line in lines if line)


def feeds_of_page(html: str) -> list[str]:
    """The addresses of feeds that a web page names, as they stand there."""
    finder = _FeedFinder()
    finder.feed(html)
    return list(dict.fromkeys(finder.found))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._dropping: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in DROPPED:
            self._dropping.append(tag)
        self._space(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._space(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._dropping:
            while self._dropping.pop() != tag:
                pass
        self._space(tag)

    def handle_data(self, data: str) -> None:
        if not self._dropping:
            self.parts.append(data)

    def _space(self, tag: str) -> None:
        if tag in BLOCKS:
            self.parts.append("\n")
        elif tag in CELLS:
            self.parts.append(" ")


class _FeedFinder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        href, kind = given.get("href"), (given.get("type") or "").lower()
        if tag == "link" and href and kind in FEED_TYPES and "alternate" in (given.get("rel") or "").lower().split():
            self.found.append(href)
