"""A topic as a file: NDJSON that holds everything about it, to keep or to move to another server.

    {"line": "header", "format": "sluice-topic/1", "topic": …, "seq": …, "floor": …, "background": …}
    {"line": "projection", "number": …, "zlib": base64, "more": …}   those that epochs name, in parts
    {"line": "epoch", "number": …, "zlib": base64, "more": …}     the background that events name, in parts
    {"line": "event", "seq": …, "kind": …, …}                     the log, in order: settings, words, labels
    {"line": "version", "version": …, "record": {…}}              the list of versions
    {"line": "known", "document": …, "title": …, "words": {…}}    known items
    {"line": "skipped", "document": …, "at_ms": …}                documents not to be offered again
    {"line": "passed", "ever": [n, accepted, abstained], "lately": […], "as_now": […]}       see topics/counts.py
    {"line": "end", "lines": …, "digest": …}                      how many lines came before, and their digest

The log is the truth, so an imported topic is folded again, to the same model bit for bit. The log depends on the hash
function and the background. The file holds words, not hashes, so it outlives the function and people can read it. As
for the background, each event names an epoch of the whole stream, and the other server has epochs of its own. But an
epoch's number is derived from what it holds (topics/background.py), so the epochs come along under their own numbers,
no event is rewritten, and topics from one server share them there. The same is true of the projections that epochs
name (topics/projections.py).

`background` is the epoch in force when the file was written. A server that has seen no stream yet continues from it,
and so weights the words of new documents as they were weighted here. If it has a stream already, the models are the
same, and new documents are weighted by that stream, like all documents there.

Not in the file: documents (their texts belong to the stream, not to the topic), what is queued for review, routes
(whose secrets are for one server), and the model; except models that were published as a base, in the form of
store/codec.py. Never pickle.

As long as nothing changes and no document passes, a topic gives the same bytes each time: they hold no time of export.
A file is imported as a whole or not at all. An error names the number of the line; a file that was cut short lacks its
end.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
from pydantic_core import to_json

from models.goals.reporting.volume import StreamCounts
from service.archive.lines import (
    FORMAT,
    AnyLine,
    ArchiveLine,
    EndLine,
    EpochLine,
    EventLine,
    HeaderLine,
    KnownLine,
    PackedLine,
    PassedLine,
    ProjectionLine,
    SkippedLine,
    VersionLine,
)
from service.errors import BadInput, ServiceError
from service.store import codec
from service.store.events import Event
from service.store.resolve import resolve
from service.topics import projections
from service.topics.background import Epoch, epoch_number, place_of
from service.topics.settings import TopicSettings, check

PART_BYTES = 1_000_000  # of an epoch or a projection, on one line
MAX_EPOCH_BYTES = 100_000_000  # unpacked: a thousand documents of a hundred pages each
MAX_PROJECTION_BYTES = 10_000_000  # unpacked; a projection has at most so many terms and columns
MAX_UNPACKED = 1_000_000_000  # of all epochs and projections together
MAX_BYTES = 500_000_000  # of a file: it is folded in memory, as every log is
_KINDS = ("projection", "epoch", "event", "version", "known", "skipped", "passed", "end")
_ORDER = {name: place for place, name in enumerate(_KINDS)}


@dataclass(slots=True)
class Archive:
    """The content of a file."""

    header: HeaderLine
    projections: dict[int, bytes] = field(default_factory=dict)
    epochs: dict[int, bytes] = field(default_factory=dict)
    projected: dict[int, int] = field(default_factory=dict)  # the projection that an epoch names, if it does
    events: list[Event] = field(default_factory=list)
    versions: dict[int, str] = field(default_factory=dict)
    known: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # title and bag
    skipped: dict[str, int] = field(default_factory=dict)
    ever: StreamCounts = field(default_factory=StreamCounts)
    lately: StreamCounts = field(default_factory=StreamCounts)
    as_now: StreamCounts | None = None  # None if all of `lately` was
    digest: str = ""


class ArchiveWriter:
    """Turns lines into bytes, and counts and digests them for the end line."""

    def __init__(self) -> None:
        self._lines, self._digest = 0, blake2b(digest_size=16)

    def line(self, line: AnyLine) -> bytes:
        raw = to_json({"line": line.line} | line.model_dump(mode="json", exclude_unset=True)) + b"\n"
        self._lines += 1
        self._digest.update(raw)
        return raw

    def packed(self, Line: type[PackedLine], number: int, blob: bytes) -> Iterator[bytes]:
        """The lines of an epoch or a projection."""
        packed = zlib.compress(blob)
        for start in range(0, len(packed), PART_BYTES):
            part = b64encode(packed[start : start + PART_BYTES]).decode()
            yield self.line(Line(number=number, zlib=part, more=start + PART_BYTES < len(packed)))

    def end(self) -> bytes:
        return self.line(EndLine(lines=self._lines, digest=self._digest.hexdigest()))


class ArchiveReader:
    """Reads the lines of a file in order. An error names the number of the line."""

    def __init__(self, parse: Callable[[bytes], ArchiveLine]) -> None:
        self._parse = parse
        self._archive: Archive | None = None
        self._line_number, self._digest = 0, blake2b(digest_size=16)
        self._place, self._ended = 0, False
        self._part: tuple[str, int, bytearray] | None = None  # kind, number: what continues on the next line
        self._unpacked = 0  # bytes

    def feed(self, lines: Iterable[bytes]) -> None:
        """Reads the next lines, given without their line ends."""
        for raw in lines:
            self._read(raw)

    def finish(self) -> Archive:
        """The content, once the last line has been read; raises BadInput if the end is missing."""
        if not self._line_number:
            raise BadInput("The file is empty.")
        if not self._archive or not self._ended:
            raise BadInput(f"The file was cut short: it stops after line {self._line_number}, without an end line.")
        return self._archive

    def _read(self, raw: bytes) -> None:
        self._line_number += 1
        try:
            self._check_and_put(self._parse(raw).root)
        except ServiceError as error:
            raise type(error)(f"Line {self._line_number}: {error.detail}", error.errors) from None
        except (codec.Corrupt, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            # Blobs in an old or a broken form. The message must not repeat what was sent.
            reason = str(error) if isinstance(error, codec.Corrupt | _Wrong) else "its content is broken"
            raise BadInput(f"Line {self._line_number}: {reason}.") from error
        self._digest.update(raw + b"\n")

    def _check_and_put(self, line: AnyLine) -> None:
        if self._archive is None:
            if not isinstance(line, HeaderLine):
                raise _Wrong(f"a file must begin with a header of the format {FORMAT}")
            self._archive = Archive(line)
            return
        if isinstance(line, HeaderLine):
            raise _Wrong("a second file begins here")
        if self._ended:
            raise _Wrong("there is a line after the end")
        if _ORDER[line.line] < self._place:
            raise _Wrong(f"a line of kind {line.line!r} is out of order")
        self._place = _ORDER[line.line]
        if self._part and self._part[:2] != (line.line, getattr(line, "number", None)):
            raise _Wrong(f"the {self._part[0]} before is not complete")
        self._put(self._archive, line)

    def _put(self, archive: Archive, line: AnyLine) -> None:
        match line:
            case ProjectionLine():
                if blob := self._unpack(line, MAX_PROJECTION_BYTES):
                    projections.from_bytes(line.number, blob)
                    archive.projections[line.number] = blob
            case EpochLine():
                if blob := self._unpack(line, MAX_EPOCH_BYTES):
                    self._epoch(archive, line.number, blob)
            case EventLine():
                if line.seq <= (archive.events[-1].seq if archive.events else 0) or line.seq > archive.header.seq:
                    raise _Wrong("its number is not above that of the event before, or is beyond the last version")
                if line.settings:
                    check(dict(line.settings))
                archive.events.append(line.to_event())
            case VersionLine():
                if line.version > archive.header.seq or line.version <= max(archive.versions, default=0):
                    raise _Wrong("its number is not above that of the version before, or is beyond the last version")
                archive.versions[line.version] = json.dumps(line.record.model_dump())
            case KnownLine():
                archive.known[line.document] = line.title, line.words.to_bag()
            case SkippedLine():
                archive.skipped[line.document] = line.at_ms
            case PassedLine():
                archive.ever, archive.lately = _counts(line.ever), _counts(line.lately)
                archive.as_now = _counts(line.as_now) if line.as_now else None
            case EndLine():
                self._end(archive, line)

    def _unpack(self, line: PackedLine, limit: int) -> bytes | None:
        """The content, once its last line has been read; until then None."""
        packed = self._part[2] if self._part else bytearray()
        packed += b64decode(line.zlib)
        self._part = (line.line, line.number, packed) if line.more else None
        if len(packed) > limit:
            raise _Wrong(f"the {line.line} is too large")
        if line.more:
            return None
        decompressor = zlib.decompressobj()
        try:
            blob = decompressor.decompress(packed, limit)
        except zlib.error as error:
            raise _Wrong(f"the {line.line} cannot be decompressed") from error
        self._unpacked += len(blob)
        if not decompressor.eof or self._unpacked > MAX_UNPACKED:
            raise _Wrong(f"the {line.line} is too large, or cut short")
        return blob

    def _epoch(self, archive: Archive, number: int, blob: bytes) -> None:
        if epoch_number(place_of(number), blob) != number:
            raise _Wrong("the epoch does not match its number")
        epoch = Epoch.from_bytes(number, blob)
        epoch.check()
        if epoch.named:
            if epoch.named.number not in archive.projections:
                raise _Wrong("the projection that the epoch names is missing")
            archive.projected[number] = epoch.named.number
        archive.epochs[number] = blob

    def _end(self, archive: Archive, line: EndLine) -> None:
        if (line.lines, line.digest) != (self._line_number - 1, self._digest.hexdigest()):
            raise _Wrong("lines are missing or were changed after the file was written")
        if not archive.events or archive.events[-1].seq != archive.header.seq:
            raise _Wrong("the last event is missing")
        if archive.header.floor > archive.header.seq or not any(event.settings for event in archive.events):
            raise _Wrong("no event holds the topic's settings")
        resolve(archive.events)
        archive.digest, self._ended = line.digest, True


class _Wrong(ValueError):
    """What is wrong with a line, in our own words."""


def _counts(counted: list[int]) -> StreamCounts:
    documents, accepted, abstained = counted
    if accepted + abstained > documents:
        raise _Wrong("it counts more decisions than documents")
    return StreamCounts(documents, accepted, abstained)


def example() -> list[dict[str, Any]]:
    """The lines of a topic with a query of two words: the example in `/docs`."""
    settings = TopicSettings(name="Moved", query="freight rates", created_ms=1_700_000_000_000)
    bag = codec.pack_bag(["freight", "rates"], np.ones(2, np.float32), np.full(2, 7.0, np.float32))
    created = Event("created", settings.created_ms, 0, 1, settings=settings.model_dump_json(), features=bag)
    header = HeaderLine(format=FORMAT, topic="moved", seq=1, floor=0, background=0)
    writer = ArchiveWriter()
    return [json.loads(raw) for raw in (writer.line(header), writer.line(EventLine.of(created)), writer.end())]
