"""The stream as a whole, in numbered epochs: how common each word is, and a sample of unjudged documents.

An epoch is immutable. A process counts the documents it sees, and when enough are new it adds its counts to the newest
epoch and publishes the sum as the next one, by compare-and-set: several processes may count at once and nothing is
counted twice. Epochs come geometrically (a quarter more documents each), and once MAX_DOCUMENTS documents are counted
all counts are halved, so that frequencies follow a stream that changes and an epoch never lasts for ever.

    number = place in its stream · 2³² + the first 32 bits of the digest of its bytes

Each event of a topic's log names the epoch in force, so a replay chooses its thresholds against the same documents. A
number says both how late an epoch is and what it holds, so it means the same on every server: a topic that moves to
another (see archive/file.py) takes along the epochs that its log names, and no event has to be written anew.

Epoch 0 has seen nothing: frequencies are the prior's, the sample is empty. An epoch that is gone counts as that.
"""

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.core.vectors import Bag, Features, Singles
from models.learners.documents import Background
from models.text.analysis import Bags
from models.text.idf import Counter, Frequencies
from service.store import codec
from service.store.topics import Store

SAMPLE_SIZE = 1000  # documents; with fewer, thresholds of rare topics are left to chance
MIN_NEW_DOCUMENTS, MIN_GROWTH = (
    16,
    0.25,
)  # new documents before the next epoch: this many, or this share of those counted
MIN_INTERVAL_S = 5.0  # at least so long between two epochs of one process
MAX_DOCUMENTS = 200_000
MAX_LOADED = 8  # epochs kept in memory
STALE_EPOCHS = 6  # epochs behind, which is about four times the documents: a topic is put under the newest
STALE_EPOCHS_OF_PROMISES = 2  # the same for a topic that promises how much it abstains from: half as many again
KEPT_EPOCHS = 16  # newest epochs that are never forgotten: versions that can be restored name them
_DIGEST_BITS = 32


def place_of(number: int) -> int:
    """How many epochs of its stream came before this one."""
    return number >> _DIGEST_BITS


def epoch_number(place: int, blob: bytes | None = None) -> int:
    """The number of the epoch that these bytes are, at that place of its stream; without any, the least there."""
    digest = blake2b(blob, digest_size=_DIGEST_BITS // 8).digest() if blob else b""
    return place << _DIGEST_BITS | int.from_bytes(digest)


@dataclass(frozen=True, slots=True)
class Sampled:
    """A document of the sample: no words, no text, only what a threshold needs."""

    document: str
    features: Features
    counts: Singles


class Epoch:
    def __init__(self, number: int, frequencies: Frequencies, sample: Sequence[Sampled]) -> None:
        self.number = number
        self.frequencies = frequencies
        self.sample = tuple(sample)

    @cached_property
    def background(self) -> Background:
        """The sample, ready to be scored; made when it is first needed, which is in a thread."""
        bags = [Bag(s.features, s.counts, self.frequencies.idf(s.features)) for s in self.sample]
        return Background(bags, [s.document for s in self.sample])

    def to_bytes(self) -> bytes:
        buckets, df = self.frequencies.nonzero()
        lengths = np.array([len(s.features) for s in self.sample], np.int64)
        meta = {"documents": self.frequencies.documents, "ids": [s.document for s in self.sample]}
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
            raise codec.Corrupt("the sample is not as long as it says")
        ends = np.cumsum(arrays["lengths"])[:-1]
        parts = zip(meta["ids"], np.split(arrays["features"], ends), np.split(arrays["counts"], ends), strict=True)
        sample = [Sampled(document, features, counts) for document, features, counts in parts] if meta["ids"] else []
        return cls(number, Frequencies.of(meta["documents"], arrays["buckets"], arrays["df"]), sample)

    def check(self) -> None:
        """Raises where this cannot have been counted: what comes from elsewhere may hold anything."""
        documents, ids = self.frequencies.documents, [s.document for s in self.sample]
        counted = (
            isinstance(documents, int) and 0 <= documents <= MAX_DOCUMENTS and self.frequencies.df.max() <= documents
        )
        named = all(isinstance(name, str) for name in ids) and len(set(ids)) == len(ids) <= SAMPLE_SIZE
        if not counted or not named or not all(map(_in_order, self.sample)):
            raise codec.Corrupt("the epoch holds what no stream can have given")

    def plus(self, counted: Counter, recent: Sequence[Sampled]) -> "Epoch":
        """The next epoch, but for its number: these counts added, and the newest documents of both samples."""
        fresh = {s.document for s in recent}
        sample = [s for s in self.sample if s.document not in fresh] + list(recent)
        return Epoch(
            epoch_number(place_of(self.number) + 1),
            self.frequencies.plus(counted, age=MAX_DOCUMENTS),
            sample[-SAMPLE_SIZE:],
        )


class Epochs:
    """The epochs this process knows, and its count of what has come since the newest."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: OrderedDict[int, Epoch] = OrderedDict({0: Epoch(0, Frequencies.prior(), ())})
        self.current = self._held[0]
        self._counting = Lock()
        self._counter = Counter()
        self._recent: deque[Sampled] = deque(maxlen=SAMPLE_SIZE)
        self._published_s = -MIN_INTERVAL_S

    async def load(self, number: int) -> Epoch:
        """That epoch, or one that knows nothing if it is gone."""
        if number not in self._held:
            blob = await self._store.epochs.load(number)
            self._hold(Epoch.from_bytes(number, blob) if blob else Epoch(number, Frequencies.prior(), ()))
        self._held.move_to_end(number)
        return self._held[number]

    async def reload(self) -> None:
        """As `follow`, believing nothing that was read before: the store may not be what it was."""
        self._held.clear()
        self.current = await self.load(await self._store.epochs.current())

    async def follow(self) -> None:
        """Makes the newest epoch the current one."""
        newest = await self._store.epochs.current()
        if newest != self.current.number:
            self.current = await self.load(newest)

    def count(self, documents: Sequence[str], bags: Bags, new: Collection[str]) -> None:
        """Counts those of the documents that are new, each once; it has its bag at its place. Called from threads."""
        first: dict[str, int] = {}
        places = [i for i, document in enumerate(documents) if document in new and first.setdefault(document, i) == i]
        newest = bags.take(places[-SAMPLE_SIZE:])
        sampled = [Sampled(documents[i], *newest[k]) for k, i in enumerate(places[-SAMPLE_SIZE:])]
        with self._counting:
            self._counter.add_all(bags if len(places) == len(documents) else bags.take(places))
            self._recent.extend(sampled)

    @property
    def due(self) -> bool:
        waited = time.monotonic() - self._published_s >= MIN_INTERVAL_S
        return waited and self._counter.documents >= max(
            MIN_NEW_DOCUMENTS, MIN_GROWTH * self.current.frequencies.documents
        )

    async def publish(self) -> None:
        """Adds what this process has counted to the newest epoch."""
        self._published_s = time.monotonic()
        with self._counting:
            counted, recent = self._counter, tuple(self._recent)
            self._counter = Counter()
        while True:
            await self.follow()
            current = self.current
            following, blob = await asyncio.to_thread(_following, current, counted, recent)
            if await self._store.epochs.advance(current.number, following.number, blob):
                self._hold(following)
                self.current = following
                return
            # Another process was faster: add ours to what it published.

    def _hold(self, epoch: Epoch) -> None:
        self._held[epoch.number] = epoch
        while len(self._held) > MAX_LOADED:
            self._held.popitem(last=False)


def _in_order(sampled: Sampled) -> bool:
    features, counts = sampled.features, sampled.counts
    ascending = features.dtype == np.uint64 and bool((features[1:] > features[:-1]).all())
    return ascending and counts.dtype == np.float32 and bool(((counts > 0) & (counts < np.inf)).all())


def _following(epoch: Epoch, counted: Counter, recent: Sequence[Sampled]) -> tuple[Epoch, bytes]:
    following = epoch.plus(counted, recent)
    blob = following.to_bytes()
    following.number = epoch_number(place_of(following.number), blob)
    return following, blob
