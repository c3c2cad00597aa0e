"""What a source offers, whatever its format: items, and the documents that they become.

    key    =  blake2b(guid)        if it has one, else of its link, else of its title and text
    id     =  SOURCE-key           of the document: the same at every poll
    print  =  blake2b(title, text) which shows that a story has changed

A publisher who gives several items of a feed the same guid does not tell them apart by it; their links and titles are
then hashed, too.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any

from pydantic import BaseModel, ConfigDict

from service.schemas import Document

KEY_BYTES, PRINT_BYTES = 12, 8
LINE_CHARS = 1000  # of a title or an author, and of other fields that are one line
MAX_TAGS = 20


class Item(BaseModel):
    model_config = ConfigDict(frozen=True)

    guid: str = ""
    url: str = ""
    title: str = ""
    text: str = ""
    author: str = ""
    language: str = ""
    published: datetime | None = None
    updated: datetime | None = None
    tags: tuple[str, ...] = ()


class Feed(BaseModel):
    """What was read: its own title, and its items in its own order."""

    model_config = ConfigDict(frozen=True)

    title: str = ""
    items: tuple[Item, ...] = ()


class Parsed(BaseModel):
    """What the process that parses answers: a feed, or a sentence that says why there is none."""

    feed: Feed | None = None
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Keyed:
    """An item with what identifies it, and what shows that it has changed."""

    key: str
    print: str
    item: Item


def keyed(items: Sequence[Item]) -> list[Keyed]:
    """The items that have any words, each once, oldest first as far as their dates are known."""
    offered = [item for item in items if item.title.strip() or item.text.strip()]
    names = Counter(map(_name, offered))
    found: dict[str, Keyed] = {}
    for item in offered:
        name = _name(item)
        key = _hash(KEY_BYTES, name, item.url, item.title) if names[name] > 1 else _hash(KEY_BYTES, name)
        found.setdefault(key, Keyed(key, _hash(PRINT_BYTES, item.title, item.text), item))
    newest_last = list(reversed(found.values()))
    if all(each.item.published for each in newest_last):
        newest_last.sort(key=lambda each: each.item.published or datetime.min)
    return newest_last


def document(source: str, feed: str, offered: Keyed, max_chars: int, update: bool = False) -> Document:
    """The item as a document; what is too long for one is cut."""
    item = offered.item
    about: dict[str, Any] = {"feed": feed[:LINE_CHARS]} if feed else {}
    about |= {"tags": [tag[:LINE_CHARS] for tag in item.tags[:MAX_TAGS]]} if item.tags else {}
    about |= {"updated": _time(item.updated)} if item.updated and item.updated != item.published else {}
    about |= {"update": True} if update else {}
    return Document(
        id=f"{source}-{offered.key}",
        title=item.title[:LINE_CHARS],
        text=item.text[:max_chars],
        source=source,
        published=_time(item.published),
        url=item.url or None,
        author=item.author[:LINE_CHARS] or None,
        language=item.language or None,
        metadata=about or None,
    )


def _name(item: Item) -> str:
    return item.guid or item.url or f"{item.title}\n{item.text}"


def _hash(size: int, *parts: str) -> str:
    return blake2b("\0".join(parts).encode(), digest_size=size).hexdigest()


def _time(time: datetime | None) -> str | None:
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z") if time else None
