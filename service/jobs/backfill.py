"""Backfill: documents that came before a topic did, or lie in a file, decided as the topics stand now.

    remembered    the documents in the store's memory; what is not rejected is offered for review
    an archive    an NDJSON file (plain, or .gz) in the directory of archives; every decision but rejections goes to a
                  file beside it, ARCHIVE.JOB.decisions.ndjson, a document a line

Models are those of the moment in which the job began. Nothing is counted as having passed: the figures of a topic are
about its stream.

An archive may be large, so a job that was interrupted goes on from its checkpoint: how much was read and how much was
written, noted after what was written is on disk. What lies behind that in the file of decisions is cut off; so every
line of the archive is decided once. The counts of the result are taken from that file in the end. What is remembered is
decided in seconds, and begins anew.
"""

import gzip
import heapq
import json
import math
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from pydantic import TypeAdapter

from service.errors import BadInput, NotFound, ServiceError
from service.jobs.context import JobContext
from service.schemas import ClassifyOptions, Document
from service.schemas.jobs import Backfill, Backfilled, BackfillHit, BackfillResult
from service.schemas.parsing import check_length, parse
from service.store.documents import unpacked
from service.store.review import Offered
from service.topics.features import analysis_of
from service.topics.published import PublishedModel
from service.topics.registry import Registry
from service.topics.results import classify

BATCH = 500
NOTE_S = 2.0  # between two checkpoints
BEST, SHOWN = 20, 1000
DOCUMENT = TypeAdapter(Document)


class Done(NamedTuple):
    """How far a job has come in an archive."""

    read: int = 0  # bytes of the archive
    written: int = 0  # bytes of the file of decisions
    documents: int = 0
    refused: int = 0


@dataclass(slots=True)
class BackfillCounts:
    """Of one topic."""

    accepted: int = 0
    abstained: int = 0
    best: list[tuple[float, str, str, str]] = field(default_factory=list)  # a heap: score, document, title, decision

    def add(self, document: str, title: str, score: float, decision: str) -> None:
        self.accepted += decision == "accept"
        self.abstained += decision == "abstain"
        one = (score, document, title, decision)
        if len(self.best) < BEST:
            heapq.heappush(self.best, one)
        else:
            heapq.heappushpop(self.best, one)


async def backfill(context: JobContext, asked: Backfill) -> BackfillResult:
    context.message = "Loads the topics."
    registry = await _registry(context, asked)
    if asked.archive is None:
        return await _remembered(context, asked, registry)
    try:
        return await _archive(context, asked.archive, registry)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput("The archive is no gzip file, or not a whole one.") from error
    except OSError as error:
        raise BadInput(f"The archive cannot be read, or no file written beside it: {error.strerror}.") from error


async def _registry(context: JobContext, asked: Backfill) -> Registry:
    registry = Registry(analysis_of(context.config))
    topics = asked.topics if asked.topics is not None else await context.store.topics()
    saved = await context.store.versions.load(topics)
    for topic, one in zip(topics, saved, strict=True):
        if one is None and asked.topics is not None:
            raise NotFound.topic(topic)
    registry.load(PublishedModel.from_bytes(one.blob, one.born) for one in saved if one)
    return registry


async def _remembered(context: JobContext, asked: Backfill, registry: Registry) -> BackfillResult:
    ids = await context.store.documents.newest(0, context.config.documents_kept)
    counts: dict[str, BackfillCounts] = {}
    seen = 0
    for start in range(0, len(ids), BATCH):
        context.part(start, len(ids), f"Decided about {start:,} of {len(ids):,} documents.")
        blobs = await context.store.documents.recall(ids[start : start + BATCH])
        documents = [unpacked(blob).document for blob in blobs if blob]
        rows = await context.work(decide, registry, documents, context)
        _count(counts, rows)
        seen += len(documents)
        if asked.review:
            await _offer(context, registry, rows)
    return _result(seen, 0, counts, None)


async def _archive(context: JobContext, name: str, registry: Registry) -> BackfillResult:
    directory = context.config.archives
    if directory is None:
        raise NotFound("This Sluice reads no archives any more: SLUICE_ARCHIVES names no directory.")
    path = (directory / name).resolve()
    decisions = path.with_name(f"{path.name}.{context.job}.decisions.ndjson")
    done = Done(**json.loads(context.checkpoint)) if context.checkpoint else Done()
    with _opened(path) as archive, decisions.open("r+b" if done.written else "wb") as out:
        archive.seek(done.read)
        out.seek(done.written)
        out.truncate()
        noted = -math.inf  # so that the first part is noted at once
        while lines := archive.readlines(1_000_000):
            context.message = f"Decided about {done.documents:,} documents."
            context.tell(_share(archive, path))
            documents, refused = _documents(lines, context)
            for start in range(0, len(documents), BATCH):
                some = documents[start : start + BATCH]
                rows = await context.work(decide, registry, some, context)
                out.writelines(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows if row["decisions"])
            read = done.read + sum(map(len, lines))
            done = Done(read, out.tell(), done.documents + len(documents), done.refused + refused)
            if time.monotonic() - noted > NOTE_S:
                out.flush()
                os.fsync(out.fileno())
                await context.jobs.tell(context.job, checkpoint=json.dumps(done._asdict()))
                noted = time.monotonic()
        out.flush()
        os.fsync(out.fileno())
    counts: dict[str, BackfillCounts] = {}
    with decisions.open("rb") as written:
        _count(counts, (json.loads(line) for line in written))
    return _result(done.documents, done.refused, counts, decisions.name)


def decide(registry: Registry, documents: Sequence[Document], context: JobContext) -> list[dict[str, object]]:
    """What is not rejected, document by document."""
    results = classify(registry, documents, ClassifyOptions(store=False), context.epochs.current)
    return [result.to_dict() | {"title": document.title} for result, document in zip(results, documents, strict=True)]


async def _offer(context: JobContext, registry: Registry, rows: Iterable[Mapping[str, object]]) -> None:
    """Queues for review what is not rejected, without counting it."""
    likely: dict[str, list[str]] = {}
    uncertain: dict[str, list[str]] = {}
    for row in rows:
        for one in _decisions(row):
            if one["decided_by"] == "model":
                queue = likely if one["decision"] == "accept" else uncertain
                queue.setdefault(str(one["topic"]), []).append(str(row["document"]))
    offers = [
        Offered(topic, registry.topics[topic].born, likely.get(topic, ()), uncertain.get(topic, ()))
        for topic in likely.keys() | uncertain.keys()
    ]
    await context.store.review.queue(offers, context.config.review_kept)


def _documents(lines: Sequence[bytes], context: JobContext) -> tuple[list[Document], int]:
    """The documents of these lines, and how many lines are none."""
    documents: list[Document] = []
    refused = 0
    for line in lines:
        if not line.strip():
            continue
        try:
            document = parse(DOCUMENT, line, context.config)
            check_length(document, context.config.max_text_chars)
            documents.append(document)
        except ServiceError:
            refused += 1
    return documents, refused


def _opened(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")


def _share(archive: BinaryIO, path: Path) -> float:
    inner = getattr(archive, "fileobj", archive)  # of a compressed file, what was read of the file itself
    return min(1.0, inner.tell() / max(1, path.stat().st_size))


def _count(counts: dict[str, BackfillCounts], rows: Iterable[Mapping[str, object]]) -> None:
    for row in rows:
        for one in _decisions(row):
            found = counts.setdefault(str(one["topic"]), BackfillCounts())
            found.add(str(row["document"]), str(row["title"]), float(str(one["score"])), str(one["decision"]))


def _decisions(row: Mapping[str, object]) -> Iterator[dict[str, object]]:
    yield from cast(list[dict[str, object]], row["decisions"])


def _result(
    documents: int, refused: int, counts: Mapping[str, BackfillCounts], decisions: str | None
) -> BackfillResult:
    rows = [
        Backfilled(
            topic=topic,
            accepted=one.accepted,
            abstained=one.abstained,
            best=[
                BackfillHit.model_validate(dict(zip(("score", "document", "title", "decision"), best, strict=True)))
                for best in sorted(one.best, reverse=True)
            ],
        )
        for topic, one in sorted(counts.items())[:SHOWN]
    ]
    return BackfillResult(documents=documents, refused=refused, topics=rows, decisions=decisions)
