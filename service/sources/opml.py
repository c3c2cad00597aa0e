"""OPML, in which feed readers exchange their subscriptions: outlines with the address of a feed, in folders or not.

A file from elsewhere can attack whoever reads it, as a feed can (see feeds.py): one that declares a type or entities is
refused, which no feed reader writes. What is written is our own, and needs no library.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from xml.sax import SAXException, handler, xmlreader

from defusedxml import DefusedXmlException
from defusedxml import sax as defused

from service.errors import BadRequest, TooLarge
from service.sources.text import tidy

MAX_OUTLINES = 10_000
NOT_IN_XML = re.compile("[\ud800-\udfff\ufffe\uffff]")
MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class Outline:
    title: str
    url: str


def read(content: bytes) -> list[Outline]:
    """The feeds that a file names, each address once, in its order."""
    reader = _Reader()
    try:
        defused.parseString(content, reader, forbid_dtd=True)
    except DefusedXmlException:
        raise BadRequest(
            "The OPML declares a type or entities, which can be used for attacks; it is not read."
        ) from None
    except (SAXException, ValueError, LookupError):  # the latter two: unknown encodings
        raise BadRequest("This is not valid OPML: its XML is not well formed.") from None
    if not reader.is_opml:
        raise BadRequest("This is not OPML: its outermost element is not `opml`.")
    return list(reader.found.values())


def write(outlines: Iterable[Outline]) -> str:
    """A file that other feed readers can import."""
    pairs = ((_attribute(each.title), _attribute(each.url)) for each in outlines)
    lines = "".join(f'    <outline type="rss" text="{title or url}" xmlUrl="{url}"/>\n' for title, url in pairs)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<opml version="2.0">\n'
        f"  <head><title>Sluice</title></head>\n  <body>\n{lines}  </body>\n</opml>\n"
    )


class _Reader(handler.ContentHandler):
    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, Outline] = {}
        self.is_opml = False
        self._depth = 0

    def startElement(self, name: str, attrs: xmlreader.AttributesImpl) -> None:  # noqa: N802 - the parser calls it by this name
        if self._depth == 0:
            self.is_opml = name.lower() == "opml"
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooLarge(f"The outlines may be nested at most {MAX_DEPTH} levels deep.")
        given = {key.lower(): str(attrs.getValue(key)) for key in attrs.getNames()}
        if name.lower() == "outline" and (url := given.get("xmlurl", "").strip()):
            self.found.setdefault(url, Outline(tidy(given.get("title") or given.get("text") or ""), url))
            if len(self.found) > MAX_OUTLINES:
                raise TooLarge(f"A file may name at most {MAX_OUTLINES:,} feeds; send the rest in another.")

    def endElement(self, name: str) -> None:  # noqa: N802 - the parser calls it by this name
        self._depth -= 1


def _attribute(text: str) -> str:
    """The text as the value of an attribute, without the characters that XML does not have."""
    return escape(tidy(NOT_IN_XML.sub("", text)).replace("\n", " "), quote=True)
