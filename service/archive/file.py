"""A topic as a file: NDJSON, a line for each thing that is known of it, for keeping or for moving to another server.

    {"line": "header", "format": "sluice-topic/1", "topic": …, "seq": …, "floor": …, "background": …}
    {"line": "epoch", "number": …, "zlib": base64, "more": …}     the background that events name, in parts
    {"line": "event", "seq": …, "kind": …, …}                     the log, in order: settings, words, labels
    {"line": "version", "version": …, "record": {…}}              the list of versions
    {"line": "known", "document": …, "title": …, "words": {…}}    known items
    {"line": "skipped", "document": …, "at_ms": …}                documents not to be offered again
    {"line": "passed", "ever": [n, accepted, abstained], "lately": […]}
    {"line": "end", "lines": …, "digest": …}                      how many lines came before, and the digest of them

The log is the truth, so a topic that is imported is folded anew, to the bit the model that it was. Two things stand
outside the log. Words, not hashes, are in it, so the file outlives the hash function and can be read by people. And
each event names the background in force, an epoch of the whole stream, of which the other server has others: but an
epoch's number says what it holds (topics/background.py), so the epochs come along under their own numbers, no event is
written anew, and topics from one server share them there. `background` is the one in force when the file was written; a
server that has seen no stream yet goes on from it, and so weighs the words of new documents as they were weighed here.
Where there is a stream already, models are the same, and new documents are weighed by that stream, as all documents
there.

What is not in the file: documents (their texts are the stream's, not the topic's), what waits for review, routes (whose
secrets are for one server), and the model, but for models that were published as a base, in the form of store/codec.py.
Never pickle.

While nothing changes, nor any document passes, a topic gives the same bytes each time: there is no time of export in
them. A file is taken as a whole or not at all. What is wrong with it is said with the number of the line; one that was
cut short lacks its end.
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

from models.goals.volume import StreamCounts
from service.archive.lines import (
    FORMAT,
    AnyLine,
    ArchiveLine,
    EndLine,
    EpochLine,
    EventLine,
    HeaderLine,
    KnownLine,
    PassedLine,
    SkippedLine,
    VersionLine,
)
from service.errors import BadInput, ServiceError
from service.store import codec
from service.store.events import Event
from service.store.resolve import resolve
from service.topics.background import Epoch, epoch_number, place_of
from service.topics.settings import TopicSettings, check

PART = 1_000_000  # bytes of an epoch on one line
LARGEST_EPOCH = 100_000_000  # bytes, unpacked: a thousand documents of a hundred pages each
MOST_BYTES = 500_000_000  # of a file: it is folded in memory, as every log is
_ORDER = {name: place for place, name in enumerate(("epoch", "event", "version", "known", "skipped", "passed", "end"))}


@dataclass(slots=True)
class Archive:
    """What a file holds."""

    header: HeaderLine
    epochs: dict[int, bytes] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    versions: dict[int, str] = field(default_factory=dict)
    known: dict[str, tuple[str, bytes]] = field(default_factory=dict)  # title and bag
    skipped: dict[str, int] = field(default_factory=dict)
    ever: StreamCounts = field(default_factory=StreamCounts)
    lately: StreamCounts = field(default_factory=StreamCounts)
    digest: str = ""


class Writer:
    """Turns lines into bytes, and knows how to end."""

    def __init__(self) -> None:
        self._lines, self._digest = 0, blake2b(digest_size=16)

    def line(self, line: AnyLine) -> bytes:
        raw = to_json({"line": line.line} | line.model_dump(mode="json", exclude_unset=True)) + b"\n"
        self._lines += 1
        self._digest.update(raw)
        return raw

    def epoch(self, number: int, blob: bytes) -> Iterator[bytes]:
        packed = zlib.compress(blob)
        for start in range(0, len(packed), PART):
            part = b64encode(packed[start : start + PART]).decode()
            yield self.line(EpochLine(number=number, zlib=part, more=start + PART < len(packed)))

    def end(self) -> bytes:
        return self.line(EndLine(lines=self._lines, digest=self._digest.hexdigest()))


class ArchiveReader:
    """Takes the lines of a file, one after the other; what is wrong is said with the line's number."""

    def __init__(self, parse: Callable[[bytes], ArchiveLine]) -> None:
        self._parse = parse
        self._archive: Archive | None = None
        self._at, self._digest = 0, blake2b(digest_size=16)
        self._place, self._ended = 0, False
        self._part: tuple[int, bytearray] | None = None  # of an epoch that goes on

    def take(self, lines: Iterable[bytes]) -> None:
        """The next lines, without their ends."""
        for raw in lines:
            self._line(raw)

    def finish(self) -> Archive:
        """The whole of it, if it is whole."""
        if not self._archive or not self._ended:
            raise BadInput(f"The file ends after line {self._at}, before its end: it was cut short.")
        return self._archive

    def _line(self, raw: bytes) -> None:
        self._at += 1
        try:
            self._take(self._parse(raw).root)
        except ServiceError as error:
            raise type(error)(f"Line {self._at}: {error.detail}", error.errors) from None
        except (codec.Corrupt, KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
            # Blobs in an old or a broken form; sentences that do not repeat what was sent.
            said = str(error) if isinstance(error, codec.Corrupt | _Wrong) else "what it holds is broken"
            raise BadInput(f"Line {self._at}: {said}.") from error
        self._digest.update(raw + b"\n")

    def _take(self, line: AnyLine) -> None:
        if self._archive is None:
            if not isinstance(line, HeaderLine):
                raise _Wrong(f"a file begins with a header of the format {FORMAT}")
            self._archive = Archive(line)
            return
        if isinstance(line, HeaderLine) or self._ended:
            raise _Wrong("a second file begins here" if isinstance(line, HeaderLine) else "there is more after the end")
        if _ORDER[line.line] < self._place:
            raise _Wrong(f"a line of the kind {line.line!r} cannot stand here")
        self._place = _ORDER[line.line]
        if self._part and not isinstance(line, EpochLine):
            raise _Wrong("an epoch should go on here")
        self._put(self._archive, line)

    def _put(self, archive: Archive, line: AnyLine) -> None:
        match line:
            case EpochLine():
                self._epoch(archive, line)
            case EventLine():
                if line.seq <= (archive.events[-1].seq if archive.events else 0) or line.seq > archive.header.seq:
                    raise _Wrong("its number does not follow that of the event before, or is beyond the last")
                if line.settings:
                    check(dict(line.settings))
                archive.events.append(line.to_event())
            case VersionLine():
                if line.version > archive.header.seq or line.version <= max(archive.versions, default=0):
                    raise _Wrong("its number does not follow that of the version before, or is beyond the last")
                archive.versions[line.version] = json.dumps(line.record.model_dump())
            case KnownLine():
                archive.known[line.document] = line.title, line.words.to_bag()
            case SkippedLine():
                archive.skipped[line.document] = line.at_ms
            case PassedLine():
                archive.ever, archive.lately = _counts(line.ever), _counts(line.lately)
            case EndLine():
                self._end(archive, line)

    def _epoch(self, archive: Archive, line: EpochLine) -> None:
        if self._part and self._part[0] != line.number:
            raise _Wrong("another epoch should go on here")
        packed = self._part[1] if self._part else bytearray()
        packed += b64decode(line.zlib)
        self._part = (line.number, packed) if line.more else None
        if len(packed) > LARGEST_EPOCH:
            raise _Wrong("the epoch is too large")
        if line.more:
            return
        unpacking = zlib.decompressobj()
        try:
            blob = unpacking.decompress(packed, LARGEST_EPOCH)
        except zlib.error as error:
            raise _Wrong("the epoch cannot be unpacked") from error
        if not unpacking.eof:
            raise _Wrong("the epoch is too large, or cut short")
        if epoch_number(place_of(line.number), blob) != line.number:
            raise _Wrong("the epoch is not what its number says")
        Epoch.from_bytes(line.number, blob).check()
        archive.epochs[line.number] = blob

    def _end(self, archive: Archive, line: EndLine) -> None:
        if (line.lines, line.digest) != (self._at - 1, self._digest.hexdigest()):
            raise _Wrong("lines are missing, or have been changed, since the file was written")
        if not archive.events or archive.events[-1].seq != archive.header.seq:
            raise _Wrong("the last event is missing")
        if archive.header.floor > archive.header.seq or not any(event.settings for event in archive.events):
            raise _Wrong("no event holds the topic's settings")
        resolve(archive.events)
        archive.digest, self._ended = line.digest, True


class _Wrong(ValueError):
    """What is wrong with a line, in words of our own."""


def _counts(counted: list[int]) -> StreamCounts:
    documents, accepted, abstained = counted
    if accepted + abstained > documents:
        raise _Wrong("more documents were accepted and abstained from than came")
    return StreamCounts(documents, accepted, abstained)


def example() -> list[dict[str, Any]]:
    """The lines of a topic that was made from two words."""
    settings = TopicSettings(name="Moved", query="freight rates", created_ms=1_700_000_000_000)
    bag = codec.pack_bag(["freight", "rates"], np.ones(2, np.float32), np.full(2, 7.0, np.float32))
    created = Event("created", settings.created_ms, 0, 1, settings=settings.model_dump_json(), features=bag)
    header = HeaderLine(format=FORMAT, topic="moved", seq=1, floor=0, background=0)
    writer = Writer()
    return [json.loads(raw) for raw in (writer.line(header), writer.line(EventLine.of(created)), writer.end())]
