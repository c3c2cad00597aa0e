"""The stream as a whole, in numbered epochs: how common each word is, a sample of unjudged documents, and a projection.

An epoch is immutable. A process counts the documents it sees; when enough of them are new, it adds its counts to the
newest epoch and publishes the sum as the next one, by compare-and-set: several processes may count at the same time,
and nothing is counted twice. Epochs grow geometrically (by a quarter each). Once MAX_DOCUMENTS documents are counted
all counts are halved, so that frequencies follow a stream that changes and there is always a next epoch.

    number = place in its stream · 2³² + the first 32 bits of the digest of its bytes

Each event of a topic's log names the epoch in force, so a replay chooses its thresholds against the same documents. The
number determines both the order and the content of an epoch, so it means the same on every server: a topic that moves
to another (see archive/file.py) brings the epochs that its log names, and its events stay as they are.

Epoch 0 has seen nothing: its frequencies are the prior's, its sample is empty. An epoch that was deleted reads as that.

An epoch names the projection under which topics are folded, if there is one (see projections.py). Each has that of the
one before it, until the housekeeper publishes another.
"""

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import structlog
from numpy.typing import NDArray

from models.core.vectors import Bag, Features, Singles
from models.learners.documents import Background
from models.text.analysis import Bags
from models.text.idf import Counter, Frequencies
from models.text.projection import Projection
from service.store import codec
from service.store.stream.epochs import StoredProjection
from service.store.topics import Store
from service.topics import projections
from service.topics.projections import NumberedProjection, Projections, made_from, projection_number

SAMPLE_SIZE = 1000  # documents; with fewer, thresholds of rare topics would depend on chance
MIN_NEW_DOCUMENTS = 16  # before the next epoch
MIN_GROWTH = 0.25  # the same as a share of the documents counted so far; the greater of the two applies
MAX_DOCUMENTS = 200_000  # counted, before all counts are halved
MAX_LOADED = 8  # epochs kept in memory
STALE_EPOCHS = 6  # a topic this many epochs behind (about four times the documents) is moved to the newest one ...
# ... the same for a topic with a goal for how much it abstains: half as many documents again
STALE_EPOCHS_OF_PROMISES = 2
KEPT_EPOCHS = 16  # newest epochs that are never deleted: versions that can be restored name them
_DIGEST_BITS = 32

log = structlog.get_logger("sluice.topics")


def place_of(number: int) -> int:
    """The place of an epoch in its stream, which is how many came before it."""
    return number >> _DIGEST_BITS


def max_epochs_behind(place: int, max_abstain: float | None) -> int:
    """How many epochs a topic under the epoch at this place, with this limit to its abstentions, if any, may be behind
    before it is refreshed. Under one of the first epochs it knows little of the stream or nothing, so none or few."""
    stale = STALE_EPOCHS if max_abstain is None else STALE_EPOCHS_OF_PROMISES
    return max(1, min(stale, place // 2)) - 1


def epoch_number(place: int, blob: bytes | None = None) -> int:
    """The number of the epoch with these bytes at that place of its stream; without bytes, the lowest one there."""
    digest = blake2b(blob, digest_size=_DIGEST_BITS // 8).digest() if blob else b""
    return place << _DIGEST_BITS | int.from_bytes(digest)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A document of the sample: neither words nor text, only what choosing a threshold needs."""

    document: str
    features: Features
    counts: Singles


class NamedProjection(NamedTuple):
    """The number of the projection that an epoch names, and how many documents were counted when it was made."""

    number: int
    documents: int


class Epoch:
    def __init__(
        self, number: int, frequencies: Frequencies, sample: Sequence[Sampled], named: NamedProjection | None = None
    ) -> None:
        self.number = number
        self.frequencies = frequencies
        self.sample = tuple(sample)
        self.named = named
        self.projection: NumberedProjection | None = None  # the named one, once it is loaded

    @cached_property
    def background(self) -> Background:
        """The sample, ready to be scored; computed when it is first needed, which is in a thread."""
        return Background(self.weighted(self.sample), [s.document for s in self.sample])

    def weighted(self, sample: Sequence[Sampled]) -> list[Bag]:
        """The documents of a sample, weighted as documents are in this epoch."""
        return [Bag(s.features, s.counts, self.frequencies.idf(s.features)) for s in sample]

    @property
    def wants_projection(self) -> bool:
        """Whether it is time for the first projection, or for another one."""
        documents, named = self.frequencies.documents, self.named
        if documents < projections.MIN_DOCUMENTS:
            return False
        if named is None or self.projection is None:  # none was made, or the store has lost it
            return True
        apart = place_of(self.number) - made_from(named.number)
        return documents >= projections.MIN_GROWTH * named.documents or apart >= projections.MAX_EPOCHS_APART

    def to_bytes(self) -> bytes:
        buckets, df = self.frequencies.nonzero()
        lengths = np.array([len(s.features) for s in self.sample], np.int64)
        meta: dict[str, object] = {
            "documents": self.frequencies.documents,
            "ids": [s.document for s in self.sample],
        }
        if self.named:
            meta["projection"] = self.named
        arrays: dict[str, NDArray[Any]] = {
            "buckets": buckets,
            "df": df,
            "lengths": lengths,
            "features": np.concatenate([s.features for s in self.sample] or [np.empty(0, np.uint64)]),
            "counts": np.concatenate([s.counts for s in self.sample] or [np.empty(0, np.float32)]),
        }
        return codec.pack(codec.EPOCH, meta, arrays)

    @classmethod
    def from_bytes(cls, number: int, blob: bytes) -> "Epoch":
        meta, arrays = codec.unpack(codec.EPOCH, blob)
        if not arrays["lengths"].sum() == len(arrays["features"]) == len(arrays["counts"]):
            raise codec.Corrupt("the sample does not have the stated length")
        ends = np.cumsum(arrays["lengths"])[:-1]
        parts = zip(meta["ids"], np.split(arrays["features"], ends), np.split(arrays["counts"], ends), strict=True)
        sample = [Sampled(document, features, counts) for document, features, counts in parts] if meta["ids"] else []
        named = NamedProjection(*meta["projection"]) if "projection" in meta else None
        return cls(number, Frequencies.of(meta["documents"], arrays["buckets"], arrays["df"]), sample, named)

    def check(self) -> None:
        """Raises `Corrupt` if no stream can have given this epoch: an imported one may hold anything."""
        documents, ids = self.frequencies.documents, [s.document for s in self.sample]
        counts_fit = (
            isinstance(documents, int) and 0 <= documents <= MAX_DOCUMENTS and self.frequencies.df.max() <= documents
        )
        ids_fit = all(isinstance(name, str) for name in ids) and len(set(ids)) == len(ids) <= SAMPLE_SIZE
        named_fits = all(isinstance(number, int) and 0 <= number < 2**53 for number in self.named or ())
        if not counts_fit or not ids_fit or not named_fits or not all(map(_is_valid, self.sample)):
            raise codec.Corrupt("no stream can have given this epoch")

    def plus(self, counted: Counter, recent: Sequence[Sampled]) -> "Epoch":
        """The next epoch: these counts added, and the newest documents of both samples. Its number lacks the digest."""
        fresh = {s.document for s in recent}
        sample = [s for s in self.sample if s.document not in fresh] + list(recent)
        successor = Epoch(
            epoch_number(place_of(self.number) + 1),
            self.frequencies.plus(counted, age=MAX_DOCUMENTS),
            sample[-SAMPLE_SIZE:],
            self.named,
        )
        successor.projection = self.projection
        return successor


class NewDocuments:
    """What was counted since the last epoch. Any thread may add to it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counter = Counter()
        self._recent: deque[Sampled] = deque(maxlen=SAMPLE_SIZE)

    def add(self, documents: Sequence[str], bags: Bags, new: Collection[str]) -> None:
        """Counts those of the documents that are `new`, each once; `bags` has their features in the same order."""
        first: dict[str, int] = {}
        places = [i for i, document in enumerate(documents) if document in new and first.setdefault(document, i) == i]
        newest = bags.take(places[-SAMPLE_SIZE:])
        sampled = [Sampled(documents[i], *newest[k]) for k, i in enumerate(places[-SAMPLE_SIZE:])]
        with self._lock:
            self._counter.add_all(bags if len(places) == len(documents) else bags.take(places))
            self._recent.extend(sampled)

    def suffice(self, current: Epoch) -> bool:
        """Whether there are enough of them for an epoch after this one."""
        return self._counter.documents >= max(MIN_NEW_DOCUMENTS, MIN_GROWTH * current.frequencies.documents)

    def take(self) -> tuple[Counter, tuple[Sampled, ...]]:
        """The counts, which start over, and the newest documents of all."""
        with self._lock:
            counted, self._counter = self._counter, Counter()
            return counted, tuple(self._recent)


class Epochs:
    """The epochs that this process has loaded, and its counts of documents since it last published one."""

    def __init__(self, store: Store, interval_s: float = 0.0) -> None:
        """`interval_s`: least time between two epochs that this process publishes."""
        self._store = store
        self.projections = Projections(store)
        self._interval_s = interval_s
        self._loaded: OrderedDict[int, Epoch] = OrderedDict({0: Epoch(0, Frequencies.prior(), ())})
        self.current = self._loaded[0]
        self._new = NewDocuments()
        self._published_s = -math.inf

    async def load(self, number: int) -> Epoch:
        """The epoch of this number; if it was deleted, one that has seen nothing."""
        epoch = self._loaded.get(number)
        if epoch is None:
            epoch = await self.read(number)
            if epoch.named:
                epoch.projection = await self.projections.load(epoch.named.number)
                if epoch.projection is None:
                    log.error("the store has lost a projection", epoch=number, projection=epoch.named.number)
        self._keep(epoch)
        return epoch

    async def reload(self) -> None:
        """Does what `follow` does, without what was loaded before: the store may have been replaced."""
        self._loaded.clear()
        self.current = await self.load(await self._store.epochs.current())

    async def follow(self) -> None:
        """Makes the newest epoch the current one."""
        newest = await self._store.epochs.current()
        if newest != self.current.number:
            self.current = await self.load(newest)

    async def follow_to(self, number: int) -> None:
        """Does the same if an epoch is newer than the current one. Else a judgement given to this process would put a
        topic that another one has moved to a newer epoch back under an old one, and under its projection."""
        if place_of(number) > place_of(self.current.number):
            await self.follow()

    def count(self, documents: Sequence[str], bags: Bags, new: Collection[str]) -> None:
        """Counts those of the documents that are `new`; see `NewDocuments.add`."""
        self._new.add(documents, bags, new)

    @property
    def due(self) -> bool:
        """Whether it is time to publish the next epoch."""
        return time.monotonic() - self._published_s >= self._interval_s and self._new.suffice(self.current)

    async def publish(self) -> None:
        """Publishes the next epoch: the newest one, with what this process has counted."""
        self._published_s = time.monotonic()
        counted, recent = self._new.take()
        while True:
            await self.follow()
            current = self.current
            successor, blob = await asyncio.to_thread(next_epoch, current, counted, recent)
            if await self.advance(current, successor, blob):
                return
            # Another process was faster: add these counts to what it published.

    async def advance(
        self, current: Epoch, successor: Epoch, blob: bytes, projection: StoredProjection | None = None
    ) -> bool:
        """Publishes the epoch after the current one; False if another process has. `projection` is the one that it
        names, unless the current one does, too."""
        if projection is None and successor.named:
            projection = StoredProjection(successor.named.number)
        if not await self._store.epochs.advance(current.number, successor.number, blob, projection):
            return False
        if successor.projection:
            self.projections.keep(successor.projection)
        self._keep(successor)
        self.current = successor
        return True

    async def read(self, number: int) -> Epoch:
        """The epoch of this number, without its projection; it is not kept in memory."""
        blob = await self._store.epochs.load(number)
        return Epoch.from_bytes(number, blob) if blob else Epoch(number, Frequencies.prior(), ())

    def _keep(self, epoch: Epoch) -> None:
        self._loaded[epoch.number] = epoch
        self._loaded.move_to_end(epoch.number)
        while len(self._loaded) > MAX_LOADED:
            self._loaded.popitem(last=False)


def _is_valid(sampled: Sampled) -> bool:
    """Whether features are strictly ascending and counts positive, both of the right type."""
    features, counts = sampled.features, sampled.counts
    ascending = features.dtype == np.uint64 and bool((features[1:] > features[:-1]).all())
    return ascending and counts.dtype == np.float32 and bool(((counts > 0) & (counts < np.inf)).all())


def next_epoch(epoch: Epoch, counted: Counter, recent: Sequence[Sampled]) -> tuple[Epoch, bytes]:
    """The epoch after this one, and its bytes."""
    return _numbered(epoch.plus(counted, recent))


def projected_epoch(epoch: Epoch, made_from: Epoch, projection: Projection | None) -> tuple[Epoch, bytes]:
    """The epoch after this one, which counts nothing more but names a projection that was made from an earlier one, or
    none; and its bytes."""
    successor = epoch.plus(Counter(), ())
    successor.named = successor.projection = None
    if projection:
        number = projection_number(place_of(made_from.number), projection)
        successor.named = NamedProjection(number, made_from.frequencies.documents)
        successor.projection = NumberedProjection(number, projection)
    return _numbered(successor)


def _numbered(epoch: Epoch) -> tuple[Epoch, bytes]:
    blob = epoch.to_bytes()
    epoch.number = epoch_number(place_of(epoch.number), blob)
    return epoch, blob
