"""Backfill: decides documents that came before a topic was created, or that lie in a file.

    remembered    the documents that the store remembers; those that are not rejected are offered for review
    an archive    an NDJSON file (plain, or .gz) in the directory of archives; all decisions but rejections go to a file
                  beside it, ARCHIVE.JOB.decisions.ndjson, one document a line

The models are those served when the job began. Nothing is counted as passed: a topic's figures are about its stream.

An archive may be large, so an interrupted job continues from its checkpoint: how much was read, how much was written,
and the counts of the topics, saved after what was written is on disk. Whatever the file of decisions holds beyond that
is cut off, so each line of the archive is decided once. Remembered documents take seconds; there an interrupted job
starts over.
"""

import gzip
import heapq
import json
import math
import os
import time
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from pydantic import TypeAdapter

from service.errors import BadInput, NotFound, ServiceError
from service.jobs.context import JobContext
from service.schemas import ClassifyOptions, Decision, Document
from service.schemas.jobs import Backfill, Backfilled, BackfillHit, BackfillResult
from service.schemas.parsing import check_length, parse
from service.store.review import Offered
from service.store.stream.documents import unpack
from service.topics.decisions.registry import Registry
from service.topics.decisions.results import DocumentResult, classify
from service.topics.features import analysis_of
from service.topics.published import DIGITS, PublishedModel
from service.topics.sync import load_model

BATCH_SIZE = 500
CHUNK_BYTES = 1_000_000  # of an archive, read at once
CHECKPOINT_S = 2.0
MAX_HITS = 20  # best documents of a topic in the result
MAX_TOPICS = 1000  # in the result
DOCUMENT = TypeAdapter(Document)


class Hit(NamedTuple):
    """A document that a topic did not reject; the first field orders them."""

    score: float
    document: str
    title: str
    decision: Decision


@dataclass(slots=True)
class BackfillCounts:
    """Counts and best documents of one topic."""

    accepted: int = 0
    abstained: int = 0
    best: list[Hit] = field(default_factory=list)  # a heap

    def add(self, hit: Hit) -> None:
        self.accepted += hit.decision == "accept"
        self.abstained += hit.decision == "abstain"
        if len(self.best) < MAX_HITS:
            heapq.heappush(self.best, hit)
        else:
            heapq.heappushpop(self.best, hit)


Counts = dict[str, BackfillCounts]  # by topic


@dataclass(slots=True)
class Checkpoint:
    """How far a job has come in an archive, and what it has found until there."""

    read: int = 0  # bytes of the archive
    written: int = 0  # bytes of the file of decisions
    documents: int = 0
    refused: int = 0
    counts: Counts = field(default_factory=dict)

    def to_text(self) -> str:
        return json.dumps(asdict(self), ensure_ascii=False)

    @classmethod
    def from_text(cls, text: str) -> "Checkpoint":
        fields = json.loads(text)
        if "counts" not in fields:  # saved by an earlier version: the job starts over
            return cls()
        counts = {
            topic: BackfillCounts(saved["accepted"], saved["abstained"], [Hit(*hit) for hit in saved["best"]])
            for topic, saved in fields.pop("counts").items()
        }
        return cls(**fields, counts=counts)


async def backfill(context: JobContext, request: Backfill) -> BackfillResult:
    context.message = "Loading the topics."
    registry = await _registry(context, request)
    if request.archive is None:
        return await _remembered(context, request, registry)
    try:
        return await _archive(context, request.archive, registry, request.topics)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadInput("The archive is not a gzip file, or is incomplete.") from error
    except OSError as error:
        raise BadInput(f"The archive cannot be read, or no file written beside it: {error.strerror}.") from error


async def _registry(context: JobContext, request: Backfill) -> Registry:
    registry = Registry(analysis_of(context.config))
    topics = request.topics if request.topics is not None else await context.store.topics()
    models = await context.store.versions.load(topics)
    for topic, saved in zip(topics, models, strict=True):
        if saved is None and request.topics is not None:
            raise NotFound.topic(topic)
    loaded = [await load_model(saved, context.epochs.projections) for saved in models if saved]
    if groups := {model.settings.group.name for model in loaded if model.settings.group}:
        loaded += await _others_in(groups, {model.topic for model in loaded}, context)
    registry.load(loaded)
    return registry


async def _others_in(groups: Collection[str], topics: Collection[str], context: JobContext) -> list[PublishedModel]:
    """Those in these groups besides the given topics, which cannot be decided without them."""
    rest = [topic for topic in await context.store.topics() if topic not in topics]
    saved = [model for model in await context.store.versions.load(rest) if model]
    models = [await load_model(each, context.epochs.projections) for each in saved]
    return [model for model in models if model.settings.group and model.settings.group.name in groups]


async def _remembered(context: JobContext, request: Backfill, registry: Registry) -> BackfillResult:
    ids = await context.store.documents.newest(0, context.config.documents_kept)
    counts: Counts = {}
    seen = 0
    for start in range(0, len(ids), BATCH_SIZE):
        context.begin_part(start, len(ids), f"Decided {start:,} of {len(ids):,} documents.")
        blobs = await context.store.documents.load(ids[start : start + BATCH_SIZE])
        documents = [unpack(blob).document for blob in blobs if blob]
        results = await context.in_thread(decide, registry, documents, request.topics, context)
        count(counts, documents, results)
        seen += len(documents)
        if request.review:
            await _offer(context, registry, results)
    return _result(seen, 0, counts, None)


async def _archive(
    context: JobContext, name: str, registry: Registry, topics: Collection[str] | None
) -> BackfillResult:
    directory = context.config.archives
    if directory is None:
        raise NotFound("This service no longer reads archives: SLUICE_ARCHIVES is not set.")
    path = (directory / name).resolve()
    decisions = path.with_name(f"{path.name}.{context.job}.decisions.ndjson")
    done = Checkpoint.from_text(context.checkpoint) if context.checkpoint else Checkpoint()
    with _opened(path) as archive, decisions.open("r+b" if done.written else "wb") as out:
        archive.seek(done.read)
        out.seek(done.written)
        out.truncate()
        saved_s = -math.inf  # so that the first checkpoint is saved at once
        while lines := archive.readlines(CHUNK_BYTES):
            context.message = f"Decided {done.documents:,} documents."
            context.report(_share(archive, path))
            documents, refused = _documents(lines, context)
            for start in range(0, len(documents), BATCH_SIZE):
                batch = documents[start : start + BATCH_SIZE]
                results = await context.in_thread(decide, registry, batch, topics, context)
                out.writelines(_line(document, result) for document, result in _decided(batch, results))
                count(done.counts, batch, results)
            done.read += sum(map(len, lines))
            done.written = out.tell()
            done.documents += len(documents)
            done.refused += refused
            if time.monotonic() - saved_s > CHECKPOINT_S:
                out.flush()
                os.fsync(out.fileno())
                await context.save_checkpoint(done.to_text())
                saved_s = time.monotonic()
        out.flush()
        os.fsync(out.fileno())
    return _result(done.documents, done.refused, done.counts, decisions.name)


def decide(
    registry: Registry, documents: Sequence[Document], topics: Collection[str] | None, context: JobContext
) -> list[DocumentResult]:
    """Returns the decisions of these topics (None: all) on each document, without rejections."""
    results = classify(registry, documents, ClassifyOptions(store=False), context.epochs.current)
    if topics is None:
        return results
    wanted = set(topics)
    return [
        result._replace(decisions=[each for each in result.decisions if each[1].topic.name in wanted])
        for result in results
    ]


def _decided(
    documents: Sequence[Document], results: Sequence[DocumentResult]
) -> Iterable[tuple[Document, DocumentResult]]:
    """The documents that not all topics rejected."""
    return ((document, result) for document, result in zip(documents, results, strict=True) if result.decisions)


def _line(document: Document, result: DocumentResult) -> bytes:
    return json.dumps(result.to_dict() | {"title": document.title}, ensure_ascii=False).encode() + b"\n"


async def _offer(context: JobContext, registry: Registry, results: Iterable[DocumentResult]) -> None:
    """Queues documents for review, without counting them as passed."""
    likely: dict[str, list[str]] = {}
    uncertain: dict[str, list[str]] = {}
    for result in results:
        for decision, verdict in result.decisions:
            if not verdict.rule and not verdict.group:
                queue = likely if decision == "accept" else uncertain
                queue.setdefault(verdict.topic.name, []).append(result.document)
    offers = [
        Offered(topic, registry.topics[topic].born, likely.get(topic, ()), uncertain.get(topic, ()))
        for topic in likely.keys() | uncertain.keys()
    ]
    await context.store.review.queue(offers, context.config.review_kept)


def _documents(lines: Sequence[bytes], context: JobContext) -> tuple[list[Document], int]:
    """Parses the lines; returns the documents, and how many lines were refused."""
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
    inner = getattr(archive, "fileobj", archive)  # for a compressed file, the position in the file itself
    return min(1.0, inner.tell() / max(1, path.stat().st_size))


def count(counts: Counts, documents: Sequence[Document], results: Sequence[DocumentResult]) -> None:
    """Counts decisions. Of more topics than a result lists, the first by name are kept, so that a checkpoint is
    bounded."""
    for document, result in _decided(documents, results):
        for decision, verdict in result.decisions:
            hit = Hit(round(verdict.score, DIGITS), result.document, document.title, decision)
            counts.setdefault(verdict.topic.name, BackfillCounts()).add(hit)
    for topic in sorted(counts)[MAX_TOPICS:]:
        del counts[topic]


def _result(
    documents: int, refused: int, counts: Mapping[str, BackfillCounts], decisions: str | None
) -> BackfillResult:
    rows = [
        Backfilled(
            topic=topic,
            accepted=count.accepted,
            abstained=count.abstained,
            best=[BackfillHit.model_validate(hit._asdict()) for hit in sorted(count.best, reverse=True)],
        )
        for topic, count in sorted(counts.items())
    ]
    return BackfillResult(documents=documents, refused=refused, topics=rows, decisions=decisions)
