"""Keeping the search index up to date with what the store remembers, in the background.

    the store's log of changes  →  the documents that it names  →  the index, with the place up to which it was read

Nothing is indexed until somebody searches for the first time: then all that is remembered is read once, and the log is
followed from then on, also after a restart, since the file is there. Where the log has been cut, or is not the one that
was read before, the partition is read from the start.

Of the API processes on a machine that share a directory one writes the index, the one that holds a lock on a file; when
it dies, the next one takes over. The writer works in a thread, a few documents at a time, and rests REST times as long
as it has worked, so that deciding does not wait for it; unless somebody is waiting for an answer.

Whoever searches waits until the index has what was remembered when the search came, at most WAIT_S.
"""

import asyncio
import fcntl
import os
import sqlite3
import time
from pathlib import Path

import structlog

from service.documents.index import Writer, delete, exists, reading
from service.errors import SearchUnavailable, StoreUnavailable
from service.store.stream.documents import START, DocumentStore, unpack
from service.store.stream.outbox import order
from service.tasks import Pool

BATCH = 100  # documents, or changes, that are read together
POLL_S = 0.25  # between two looks at the log
RETRY_S = 2.0  # after a failure
REST = 3  # times as long as was worked
WAIT_S = 1.0
LOCK = "lock"

log = structlog.get_logger("sluice.documents")


class Follower:
    def __init__(self, documents: DocumentStore, directory: Path) -> None:
        self.directory = directory
        self._documents = documents
        self._wanted = asyncio.Event()
        self._waiting = 0  # searches
        self._writer: Writer | None = None
        self._lock: int | None = None
        self._thread = Pool(1, "search")

    async def run(self) -> None:
        """Follows the log until it is cancelled, if this process is the one to write."""
        try:
            while True:
                if not exists(self.directory):
                    await self._wanted.wait()
                try:
                    if self._is_leader():
                        await self.catch_up()
                except StoreUnavailable as error:
                    log.warning("lost the store", detail=error.detail)
                    await asyncio.sleep(RETRY_S)
                except (sqlite3.Error, OSError) as error:
                    log.error("the search index cannot be written", error=str(error))
                    await self._close()
                    if not isinstance(error, sqlite3.OperationalError | OSError):  # the file is damaged
                        delete(self.directory)
                    await asyncio.sleep(RETRY_S)
                self._wanted.clear()
                await self._wait_for_search(POLL_S)
        finally:
            await self._close()
            self._thread.close()
            if self._lock is not None:
                os.close(self._lock)

    async def current(self) -> bool:
        """Waits until all is indexed that is remembered by now. False if that takes too long."""
        self._waiting += 1
        try:
            store = await self._documents.store_name()
            spans = await self._documents.change_spans()
            deadline_s = time.monotonic() + WAIT_S
            while not await asyncio.to_thread(self._has, store, spans):
                self._wanted.set()
                if time.monotonic() > deadline_s:
                    return False
                await asyncio.sleep(POLL_S / 10)
            return True
        finally:
            self._waiting -= 1

    async def catch_up(self) -> None:
        """Reads the log to its end."""
        store = await self._documents.store_name()
        if self._writer is None or self._writer.store != store or not self._writer.is_current:
            await self._close()
            self._writer = await self._thread.run(Writer, self.directory, store)
        writer = self._writer
        places = await self._thread.run(writer.places)
        for partition, (oldest, newest) in enumerate(await self._documents.change_spans()):
            place = places.get(partition)
            if place is None or not order(oldest) <= order(place) <= order(newest):
                await self._read_all(writer, partition, newest)
            elif place != newest:
                await self._read_changes(writer, partition, place)

    async def _read_all(self, writer: Writer, partition: int, place: str) -> None:
        """Reads a partition from its newest document to its oldest. What comes meanwhile is in the log after `place`;
        it moves the others towards the oldest, so some are read twice, and none is left out."""
        await self._thread.run(writer.clear, partition)
        start = 0
        while ids := await self._documents.newest_of(partition, start, start + BATCH):
            await self._put(writer, partition, ids, [], None)
            start += BATCH
        await self._thread.run(writer.apply, partition, [], [], place)

    async def _read_changes(self, writer: Writer, partition: int, place: str) -> None:
        while changes := await self._documents.changes_after(partition, place, BATCH):
            remembered: dict[str, bool] = {}  # by document, whether it is, going by the last that was said of it
            for change in changes:
                remembered |= dict.fromkeys(change.put, True) | dict.fromkeys(change.gone, False)
            ids = [id for id, put in remembered.items() if put]
            gone = [id for id, put in remembered.items() if not put]
            place = changes[-1].place
            await self._put(writer, partition, ids, gone, place)

    async def _put(self, writer: Writer, partition: int, ids: list[str], gone: list[str], place: str | None) -> None:
        """Indexes documents, BATCH at a time. Those that have been forgotten since are gone, too."""
        for start in range(0, max(1, len(ids)), BATCH):
            part, last = ids[start : start + BATCH], start + BATCH >= len(ids)
            blobs = await self._documents.load(part) if part else []
            missing = [id for id, blob in zip(part, blobs, strict=True) if not blob]
            began_s = time.monotonic()
            await self._thread.run(
                _apply, writer, partition, [blob for blob in blobs if blob], [*missing, *gone], place if last else None
            )
            if not self._waiting:
                await self._wait_for_search(REST * (time.monotonic() - began_s))

    async def _wait_for_search(self, timeout_s: float) -> None:
        """Waits so long, or until somebody searches."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._wanted.wait()
        except TimeoutError:
            return

    def _has(self, store: str, spans: list[tuple[str, str]]) -> bool:
        """Whether the index has been read up to the end of each log, as these spans say. Where a log was emptied, it
        must have been read again since."""
        try:
            with reading(self.directory, store) as reader:
                places = reader.places()
        except SearchUnavailable:
            return False
        if len(places) < len(spans):
            return False
        read = [order(place) for _, place in sorted(places.items())]
        ends = [order(newest) for _, newest in spans]
        return all(place >= end if end > order(START) else place == end for place, end in zip(read, ends, strict=True))

    def _is_leader(self) -> bool:
        """Whether this process writes the index; the lock ends with the process."""
        if self._lock is None:
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)  # it holds the texts of documents
            file = os.open(self.directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                return False
            self._lock = file
        return True

    async def _close(self) -> None:
        if self._writer:
            await self._thread.run(self._writer.close)  # after whatever the thread still does with it
            self._writer = None


def _apply(writer: Writer, partition: int, blobs: list[bytes], gone: list[str], place: str | None) -> None:
    writer.apply(partition, list(map(unpack, blobs)), gone, place)
