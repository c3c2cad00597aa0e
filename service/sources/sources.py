"""What users do with sources: add, list, change, delete, try, and poll now."""

import re
import secrets
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from service.addresses import may_be_public
from service.clock import now_ms, time_of
from service.config import Config
from service.errors import BadInput, Conflict, FieldError, NotFound
from service.schemas import Document
from service.schemas.sources import (
    AnySource,
    Format,
    FoundDocument,
    ImportedFeed,
    ImportedFeeds,
    NewSource,
    Polled,
    Source,
    SourceChange,
    SourceError,
    SourceState,
    SourceStatus,
    Tried,
    TrySource,
)
from service.sources.fetching import CannotRead
from service.sources.items import LINE_CHARS
from service.sources.opml import Outline
from service.sources.polling import Polling
from service.store.sources import Fields, SourceClaim, SourceRecord
from service.store.topics import Store

MAX_SHOWN, MAX_TRIED = 100, 20  # documents in an answer
SNIPPET_CHARS = 300
MAX_NAMES = 10  # that are tried for a source without an id, before one with a part of its address's hash
MAX_URL_CHARS = 2000  # of an address in an answer
KIND: TypeAdapter[Literal["feed", "file", "folder"]] = TypeAdapter(Literal["feed", "file", "folder"])
FORMAT: TypeAdapter[Format] = TypeAdapter(Format)
RESERVED = ("try", "opml")  # /sources/try and /sources/opml are calls
COMMON = {
    "http",
    "https",
    "www",
    "feeds",
    "feed",
    "rss",
    "com",
    "org",
    "net",
    "co",
    "uk",
    "xml",
    "atom",
    "json",
    "index",
    "html",
    "ndjson",
    "mbox",
    "txt",
}


class AddressTaken(Conflict):
    """Another source reads this address."""

    def __init__(self, source: str) -> None:
        super().__init__(f"The source {source!r} reads this address already.")
        self.source = source


class Sources:
    def __init__(self, store: Store, config: Config) -> None:
        self._store = store.sources
        self._config = config
        self.polling = Polling(store, config)

    async def create(self, new: AnySource, title: str = "") -> Source:
        """Adds a source, which is polled at once unless it is paused."""
        address = new.url if isinstance(new, NewSource) else new.path
        if isinstance(new, NewSource):
            self._check_address(address)
        elif self._config.sources_files is None:
            detail = "No files are read here; SLUICE_SOURCES_FILES names the directory of those that may be."
            raise BadInput("Some fields are not valid.", [FieldError(pointer="/path", detail=detail)])
        if new.id in RESERVED:
            detail = f"No source can be called {new.id}: there is a call of that name."
            raise BadInput("Some fields are not valid.", [FieldError(pointer="/id", detail=detail)])
        for id in [new.id] if new.id else _ids(address):
            now, every_s = now_ms(), new.every_s or self._config.sources_every_s
            asked: Fields = {"kind": new.kind, "url": address, "every_s": every_s, "paused": int(new.paused)}
            format = "" if isinstance(new, NewSource) else new.format
            made: Fields = {"created_ms": now, "next_ms": now, "title": title[:LINE_CHARS], "format": format}
            created = await self._store.create(id, address, self._config.sources_kept, {**asked, **made})
            if created.outcome == "same":
                raise AddressTaken(created.same)
            if created.outcome == "full":
                limit = f"{self._config.sources_kept:,}"
                raise Conflict(f"There are {limit} sources already (SLUICE_SOURCES_KEPT); delete one first.")
            if created.outcome == "created":
                return await self.find(id)
        raise Conflict(f"There is a source {new.id!r} already." if new.id else "Give the source an id of its own.")

    async def add_all(self, outlines: Sequence[Outline]) -> ImportedFeeds:
        """Adds a source for each feed, but for those that have one."""
        feeds = [await self._add(outline) for outline in outlines]
        count = Counter(feed.status for feed in feeds)
        return ImportedFeeds(added=count["added"], known=count["known"], refused=count["refused"], feeds=feeds)

    async def _add(self, outline: Outline) -> ImportedFeed:
        url, source, reason = outline.url, None, None
        status: Literal["added", "known", "refused"] = "added"
        try:
            source = (await self.create(NewSource(kind="feed", url=url), outline.title)).id
        except AddressTaken as taken:
            status, source = "known", taken.source
        except (ValidationError, BadInput):
            status, reason = "refused", "This is not the address of a feed that may be called."
        except Conflict as error:
            status, reason = "refused", error.detail
        return ImportedFeed(url=url[:MAX_URL_CHARS], status=status, source=source, reason=reason)

    async def outlines(self) -> list[Outline]:
        """All feeds, as feed readers list them."""
        records = await self._store.load(await self._store.ids())
        return [Outline(record.title, record.url) for record in records if record and record.kind == "feed"]

    async def find(self, id: str) -> Source:
        return _source(await self._record(id))

    async def page(self, after: str, limit: int, state: SourceState | None) -> tuple[list[Source], str | None]:
        """Sources by id, those after the given one that are in this state, and where the next page begins."""
        page: list[Source] = []
        while len(page) <= limit and (ids := await self._store.ids(after, limit + 1)):
            records = [record for record in await self._store.load(ids) if record]
            page += [_source(record) for record in records if state in (None, record.state)]
            after = ids[-1]
        return page[:limit], page[limit - 1].id if page[limit:] else None

    async def change(self, id: str, change: SourceChange) -> Source:
        """Applies the fields that are given. A source that goes on is due at once; with another pace, when the new one
        says so."""
        record = await self._record(id)
        fields: dict[str, str | int | float] = {}
        due_ms: int | None = None
        if change.every_s is not None and change.every_s != record.every_s:
            fields["every_s"] = change.every_s
            due_ms = max(0, (record.last_ms or 0) + int(1000 * change.every_s) - now_ms())
        if change.paused is not None and change.paused != record.paused:
            fields["paused"] = int(change.paused)
            due_ms = 0
        if fields:
            due = {} if due_ms is None else {"next_ms": now_ms() + due_ms}
            if not await self._store.change(id, due_ms, fields | due):
                raise _missing(id)
        return await self.find(id)

    async def delete(self, id: str) -> None:
        if not await self._store.delete(id):
            raise _missing(id)

    async def poll(self, id: str) -> Polled:
        """Polls a source now, even if it is paused."""
        token = secrets.token_hex(8)
        claimed = await self._store.claim(id, token, self._config.take_over_s)
        if claimed == "gone":
            raise _missing(id)
        if claimed == "busy":
            raise Conflict(f"The source {id!r} is being polled just now.")
        outcome = await self.polling.poll(SourceClaim(id, token))
        return Polled(
            source=id,
            found=outcome.found,
            new=len(outcome.fresh),
            documents=_shown(outcome.fresh[:MAX_SHOWN]),
            error=outcome.error or None,
        )

    async def look(self, asked: TrySource) -> Tried:
        """Fetches a source and shows what it offers; nothing is stored."""
        self._check_address(asked.url)
        try:
            feed = await self.polling.look(asked.url)
        except CannotRead as error:
            return Tried(title=None, found=0, documents=[], error=str(error))
        documents = self.polling.documents("try", feed)
        newest = documents[::-1][:MAX_TRIED]
        return Tried(title=feed.title or None, found=len(documents), documents=_shown(newest), error=None)

    async def _record(self, id: str) -> SourceRecord:
        (record,) = await self._store.load([id])
        if record is None:
            raise _missing(id)
        return record

    def _check_address(self, url: str) -> None:
        if not self._config.sources_private and not may_be_public(url):
            detail = "This address is not public; SLUICE_SOURCES_PRIVATE=true allows it."
            raise BadInput("Some fields are not valid.", [FieldError(pointer="/url", detail=detail)])


def _missing(id: str) -> NotFound:
    return NotFound(f"There is no source {id!r}.")


def _ids(address: str) -> list[str]:
    """Ids for a source without one, made of the words of its address: `bbci-news-world`, then `bbci-news-world-2` …"""
    words = re.findall(r"[a-z0-9]+", address.partition("?")[0].lower())
    name = "-".join(dict.fromkeys(word for word in words if word not in COMMON))[:60].strip("-") or "feed"
    return [
        name,
        *(f"{name}-{n}" for n in range(2, MAX_NAMES)),
        f"{name}-{blake2b(address.encode(), digest_size=6).hexdigest()}",
    ]


def _source(record: SourceRecord) -> Source:
    at = record.error_ms
    error = SourceError(reason=record.error, at=time_of(at)) if record.error and at is not None else None
    following = None if record.paused else record.next_ms
    status = SourceStatus(
        state=record.state,
        title=record.title or None,
        documents=record.documents,
        last_poll=None if record.last_ms is None else time_of(record.last_ms),
        next_poll=None if following is None else time_of(following),
        failures=record.failures,
        last_error=error,
    )
    feed = record.kind == "feed"
    return Source(
        id=record.id,
        kind=KIND.validate_python(record.kind),
        url=record.url if feed else None,
        path=None if feed else record.url,
        format=FORMAT.validate_python(record.format) if record.format else None,
        every_s=record.every_s,
        paused=record.paused,
        created=time_of(record.created_ms),
        status=status,
    )


def _shown(documents: Sequence[Document]) -> list[FoundDocument]:
    return [
        FoundDocument(
            document=document.id or "",
            title=document.title,
            snippet=document.text[:SNIPPET_CHARS],
            url=document.url,
            published=document.published,
            update=bool((document.metadata or {}).get("update")),
        )
        for document in documents
    ]
