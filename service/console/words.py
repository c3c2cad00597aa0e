"""The words that people read, and text made ready for them: ages, links, passages with marked words.

The contract says `abstain`; people read *unsure*. Whatever comes from a document is escaped here or by the template.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any
from urllib.parse import urlsplit

from markupsafe import Markup, escape

DECISIONS = {"accept": "accepted", "abstain": "unsure", "reject": "rejected"}
GOALS = {"learning": "still learning", "met": "met", "at_risk": "at risk", "unreachable": "out of reach"}
NO_GOAL = "no goal"
PAGES = {
    "/": "Inbox",
    "/console/topics": "Topics",
    "/console/search": "Search",
    "/console/sources": "Sources",
    "/console/operation": "Operation",
    "/docs": "API",
}
SNIPPET_CHARS = 320
LEAD_CHARS = 80  # before the first marked word, if that is far down
TITLE_CHARS = 100  # of a text that has no title
LINK_FIELDS = ("url", "link", "href")  # of metadata
AGES = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (30 * 86_400, 86_400, "d"))  # below, unit, its name


def key_of(*parts: str) -> str:
    """A name for these that can be the id of an element."""
    return blake2b("/".join(parts).encode(), digest_size=8).hexdigest()


def age(then: datetime, now: datetime) -> str:
    """How long ago it was, in one unit; the date, if it is over a month."""
    seconds = max(0.0, (now - then).total_seconds())
    for below, unit, name in AGES:
        if seconds < below:
            return "just now" if name == "s" else f"{int(seconds // unit)} {name}"
    return f"{then:%Y-%m-%d}"


def percent(share: float) -> str:
    """A share in percent, with as many digits as say something."""
    return f"{100 * share:.3g} %" if share < 0.9995 or share == 1 else "99.9+ %"


def time_in(text: str | None) -> datetime | None:
    """The time that a document says it was published, if it is written as ISO 8601."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def link(*candidates: Any) -> str | None:
    """The first of these that is an address to open: http or https, with a host, and nothing but printable text."""
    for candidate in candidates:
        if isinstance(candidate, str) and candidate.isprintable() and " " not in candidate:
            try:
                parts = urlsplit(candidate)
            except ValueError:
                continue
            if parts.scheme.lower() in ("http", "https") and parts.hostname and parts.username is None:
                return candidate
    return None


def title_of(title: str, text: str) -> str:
    """The title, or the beginning of the text if there is none."""
    if title.strip():
        return title.strip()
    begin = " ".join(text[: 2 * TITLE_CHARS].split())
    return begin if len(begin) <= TITLE_CHARS else begin[:TITLE_CHARS].rsplit(" ", 1)[0] + " …"


def marked(text: str, terms: Sequence[str]) -> Markup:
    """The text, escaped, with these words marked."""
    pattern = _pattern(terms)
    if pattern is None:
        return escape(text)
    parts, at = [], 0
    for found in pattern.finditer(text):
        parts += [escape(text[at : found.start()]), Markup("<mark>{}</mark>").format(found[0])]
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])


def at_places(text: str, places: Sequence[tuple[int, int]]) -> Markup:
    """The text, escaped, with what lies between these places marked."""
    parts, at = [], 0
    for start, end in places:
        parts += [escape(text[at:start]), Markup("<mark>{}</mark>").format(text[start:end])]
        at = end
    return Markup("").join([*parts, escape(text[at:])])


def snippet(text: str, terms: Sequence[str]) -> Markup:
    """A passage of the text around the first of these words, with all of them marked."""
    pattern = _pattern(terms)
    first = pattern.search(text) if pattern else None
    start = max(0, first.start() - LEAD_CHARS) if first and first.end() > SNIPPET_CHARS else 0
    if start:
        start = text.find(" ", start, start + LEAD_CHARS) + 1 or start
    end = start + SNIPPET_CHARS
    if end < len(text):
        end = max(text.rfind(" ", start, end), start + SNIPPET_CHARS // 2)
    passage = marked(text[start:end], terms)
    return Markup("{}{}{}").format("… " if start else "", passage, " …" if end < len(text) else "")


def _pattern(terms: Sequence[str]) -> re.Pattern[str] | None:
    words = sorted(filter(None, set(terms)), key=len, reverse=True)
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, words))})(?!\w)", re.IGNORECASE) if words else None
