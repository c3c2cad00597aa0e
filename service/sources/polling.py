"""Polling: looks at sources that are due, and passes on what is new.

    claim → fetch → parse → compare with what was seen → append to sluice:in → commit       a feed
    claim → read on from the position → append to sluice:in → commit                        a file
    claim → list → compare with what was seen → append to sluice:in → commit                a folder

Every housekeeper runs this, and each source is polled by one process at a time, which holds a lease on it (see
store/sources.py, which also says why a process that dies in between loses nothing and repeats nothing).

Documents go to the stream `sluice:in`, and not through `Classifier`: appending is one durable write, after which
consumers decide, store and acknowledge them as all others, however many there are and whoever dies; their backlog is
shown by `GET /flow`, and a poll never waits for it. It also keeps the kernels out of those who only fetch.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import structlog
from pydantic import TypeAdapter

from service.clock import now_ms
from service.config import Config
from service.errors import StoreUnavailable
from service.schemas import Document
from service.schemas.sources import FileFormat, FolderFormat
from service.sources.fetching import CannotRead, Fetcher, Marks
from service.sources.files import Position, read
from service.sources.folders import content, list_files, mailbox, take
from service.sources.items import LINE_CHARS, Feed, Keyed, document, keyed
from service.sources.parsing import Parsing
from service.sources.records import from_ndjson, from_text
from service.sources.schedule import next_poll_s
from service.sources.seen import Change, Fresh, compare
from service.sources.text import tidy
from service.store.sources import Fields, SourceClaim, SourceRecord
from service.store.topics import Store
from service.tasks import cancel_all

CONCURRENT = 8  # polls of a process
IDLE_S = 1.0  # between two looks whether a source is due
RANDOM = secrets.SystemRandom()
UNCHANGED = Change((), {}, ())
MAX_WAITING, WAIT_S = 10_000, 5.0  # undecided documents, above which files wait; for how long
FILE_FORMAT: TypeAdapter[FileFormat] = TypeAdapter(FileFormat)
FOLDER_FORMAT: TypeAdapter[FolderFormat] = TypeAdapter(FolderFormat)

log = structlog.get_logger("sluice.sources")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a poll has found; `fresh` was passed on."""

    found: int = 0
    fresh: Sequence[Document] = ()
    error: str = ""


class Polling:
    def __init__(self, store: Store, config: Config) -> None:
        self._store = store.sources
        self._inbox = store.inbox
        self._config = config
        self._parsing = Parsing()

    @cached_property
    def _fetcher(self) -> Fetcher:
        """Made when it is needed: loading the certificates takes a while."""
        config = self._config
        return Fetcher(config.sources_timeout_s, config.sources_max_bytes, config.sources_private)

    async def run(self) -> None:
        """Polls what is due until it is cancelled."""
        polls: set[asyncio.Task[None]] = set()
        try:
            while True:
                polls = {poll for poll in polls if not poll.done()}
                if len(polls) == CONCURRENT:
                    await asyncio.wait(polls, return_when=asyncio.FIRST_COMPLETED)
                elif claim := await self._claim_due():
                    polls.add(asyncio.create_task(self._poll_claimed(claim)))
                else:
                    await asyncio.sleep(IDLE_S)
        finally:
            await cancel_all(polls)

    async def _claim_due(self) -> SourceClaim | None:
        try:
            return await self._store.claim_due(secrets.token_hex(8), self._config.take_over_s)
        except StoreUnavailable as error:
            log.warning("lost the store", detail=error.detail)
            return None

    async def _poll_claimed(self, claim: SourceClaim) -> None:
        try:
            await self.poll(claim)
        except StoreUnavailable as error:  # the lease ends, and the source is polled again
            log.warning("a poll was given up", source=claim.source, detail=error.detail)

    async def poll(self, claim: SourceClaim) -> Outcome:
        """Polls a source that has been claimed."""
        (record,) = await self._store.load([claim.source])
        if record is None:
            return Outcome()  # deleted just now
        async with self._renewed(claim):
            try:
                return await self._look(claim, record)
            except CannotRead as error:
                return await self._failed(claim, record, error)
            except StoreUnavailable:
                raise
            except Exception:
                log.exception("a poll failed", source=claim.source)
                return await self._failed(
                    claim, record, CannotRead("The poll failed; the log of the service says why.")
                )

    async def look(self, url: str) -> Feed:
        """What is at an address now; CannotRead if it cannot be read."""
        fetched = await self._fetcher.fetch(url, Marks(), now_ms())
        return await self._parsing.parse(fetched.content or b"", fetched.url)

    def documents(self, source: str, feed: Feed) -> list[Document]:
        """What would be passed on of a feed that is new."""
        return [document(source, feed.title, each, self._config.max_text_chars) for each in keyed(feed.items)]

    async def _look(self, claim: SourceClaim, record: SourceRecord) -> Outcome:
        if record.kind == "feed":
            return await self._read_feed(claim, record)
        if self._config.sources_files is None:
            raise CannotRead("No files are read here (SLUICE_SOURCES_FILES).")
        if await self._inbox.waiting() > MAX_WAITING:
            await self._commit(claim, record, {}, UNCHANGED, 0, WAIT_S)
            return Outcome()
        read = self._read_file if record.kind == "file" else self._read_folder
        return await read(claim, record, self._config.sources_files)

    async def _read_feed(self, claim: SourceClaim, record: SourceRecord) -> Outcome:
        fetched = await self._fetcher.fetch(record.url, Marks(record.etag, record.last_modified), now_ms())
        digest = blake2b(fetched.content, digest_size=16).hexdigest() if fetched.content is not None else record.print
        fields: Fields = {"etag": fetched.marks.etag, "last_modified": fetched.marks.last_modified, "print": digest}
        if digest == record.print:
            await self._commit(claim, record, fields, UNCHANGED, 0)
            return Outcome()
        feed = await self._parsing.parse(fetched.content or b"", fetched.url)
        offered = await asyncio.to_thread(keyed, feed.items)
        change = compare(await self._store.load_seen(record.id), offered, now_ms())
        limit = self._config.max_text_chars
        fresh = [document(record.id, feed.title, each.offered, limit, each.update) for each in change.fresh]
        await self._inbox.add(fresh)
        title: Fields = {"title": feed.title[:LINE_CHARS]} if feed.title else {}
        await self._commit(claim, record, {**fields, **title}, change, len(fresh))
        return Outcome(len(offered), fresh)

    async def _read_file(self, claim: SourceClaim, record: SourceRecord, root: Path) -> Outcome:
        """Passes on the next records of a file; if there are more, it goes on at once. What is read twice because a
        process died has the same ids (see records.py)."""
        position, format = Position.from_text(record.position), FILE_FORMAT.validate_python(record.format)
        limit = self._config.sources_max_bytes
        piece = await asyncio.to_thread(read, root, record.url, format, position, limit)
        records = await self._records(record, format, piece.content)
        await self._inbox.add(records)
        fields: Fields = {"position": piece.position.to_text()}
        await self._commit(claim, record, fields, UNCHANGED, len(records), 0.0 if piece.more else None)
        return Outcome(len(records), [each for each in records if isinstance(each, Document)])

    async def _read_folder(self, claim: SourceClaim, record: SourceRecord, root: Path) -> Outcome:
        """Passes on the files of a folder that are new or have changed, some at a time."""
        format = FOLDER_FORMAT.validate_python(record.format)
        files = {each.keyed.key: each for each in await asyncio.to_thread(list_files, root, record.url, format)}
        seen = await self._store.load_seen(record.id)
        change = compare(seen, [each.keyed for each in files.values()], now_ms())
        taken, limit = take(change.fresh, files, self._config.sources_max_bytes), self._config.sources_max_bytes
        paths = [files[each.offered.key].path for each in taken]
        if format == "maildir":
            mails = await asyncio.to_thread(mailbox, paths, limit)
            messages = (await self._parsing.parse(mails, "", "mbox")).items if mails else ()
            documents = [document(record.id, "", each, self._config.max_text_chars) for each in keyed(messages)]
        else:
            documents = await asyncio.to_thread(self._texts, record.id, taken, paths)
        await self._inbox.add(documents)
        left = {each.offered.key for each in change.fresh[len(taken) :]}
        put = {key: value for key, value in change.put.items() if key not in left}
        noted = Change(taken, put, change.drop)
        await self._commit(claim, record, {}, noted, len(documents), 0.0 if left else None)
        return Outcome(len(change.fresh), documents)

    def _texts(self, source: str, files: Sequence[Fresh], paths: Sequence[Path]) -> list[Document]:
        limit = self._config.max_text_chars
        offered = [
            (
                Keyed(each.offered.key, each.offered.print, each.offered.item.model_copy(update={"text": words})),
                each.update,
            )
            for each, path in zip(files, paths, strict=True)
            if (words := tidy(content(path, self._config.sources_max_bytes).decode(errors="replace")))
        ]
        return [document(source, "", each, limit, update) for each, update in offered]

    async def _records(self, record: SourceRecord, format: FileFormat, content: bytes) -> Sequence[Document | bytes]:
        limit = self._config.max_text_chars
        if format == "ndjson":
            return await asyncio.to_thread(from_ndjson, content, record.id)
        if format == "text":
            return await asyncio.to_thread(from_text, content, record.id, limit)
        messages = (await self._parsing.parse(content, "", "mbox")).items if content else ()
        return [document(record.id, "", each, limit) for each in keyed(messages)]

    async def _commit(
        self,
        claim: SourceClaim,
        record: SourceRecord,
        fields: Fields,
        change: Change,
        documents: int,
        next_s: float | None = None,
    ) -> None:
        pause_s = next_poll_s(record.every_s, 0, 0, RANDOM.random()) if next_s is None else next_s
        written: Fields = {"failures": 0, **fields}
        await self._store.commit(
            claim, pause_s, written, failed=False, documents=documents, put=change.put, drop=change.drop
        )

    async def _failed(self, claim: SourceClaim, record: SourceRecord, error: CannotRead) -> Outcome:
        log.info("a source could not be read", source=record.id, reason=str(error))
        failures = record.failures + 1
        pause_s = next_poll_s(record.every_s, failures, error.retry_after_s, RANDOM.random())
        paused: Fields = {"paused": 1} if error.gone else {}
        await self._store.commit(claim, pause_s, {"failures": failures, "error": str(error), **paused}, failed=True)
        return Outcome(error=str(error))

    @asynccontextmanager
    async def _renewed(self, claim: SourceClaim) -> AsyncIterator[None]:
        """Keeps the lease while the block runs."""

        lease_s = self._config.take_over_s

        async def renew() -> None:
            while True:
                await asyncio.sleep(lease_s / 3)
                try:
                    await self._store.renew(claim, lease_s)
                except StoreUnavailable as error:
                    log.warning("a lease was not renewed", source=claim.source, detail=error.detail)

        renewing = asyncio.create_task(renew())
        try:
            yield
        finally:
            await cancel_all([renewing])
