"""The bank as its readers hold it: the segments at one moment, and scoring against them.

Documents are scored a few at a time against one segment after the other, so that the rows of a segment and the scores
of a document stay in the cache.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from types import MappingProxyType
from typing import Generic

import numpy as np

from models.bank.scan import Hits, Places
from models.bank.seen import NO_TAG, Matrix, Space, ViewedBatch, space_batches
from models.bank.segment import IndexedTopic, Segment, T, ranges
from models.core.vectors import Singles
from models.text.analysis import Bags

MAX_CELLS = 1 << 20  # scores against a segment that are held at a time: 4 MB


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot(Generic[T]):
    """The bank at one moment. Immutable: any number of threads may score with it."""

    segments: tuple[Segment[T], ...] = ()
    _first: Places = field(init=False)  # the number of each segment's first topic, and that of the one after the last

    def __post_init__(self) -> None:
        object.__setattr__(self, "_first", np.cumsum([0, *(len(s.alive) for s in self.segments)]))

    def __len__(self) -> int:
        return sum(int(np.count_nonzero(s.alive)) for s in self.segments)

    def __iter__(self) -> Iterator[IndexedTopic[T]]:
        for segment in self.segments:
            yield from compress(segment.body.topics, segment.alive.tolist())

    def get(self, name: str) -> IndexedTopic[T] | None:
        """The topic of this name, if it is served."""
        number = self._number(name)
        return None if number is None else self.topic(number)

    def topic(self, number: int) -> IndexedTopic[T]:
        """The topic that has this number in `Hits.topics`."""
        at = int(np.searchsorted(self._first, number, side="right")) - 1
        return self.segments[at].body.topics[number - int(self._first[at])]

    @property
    def projections(self) -> frozenset[int]:
        """The tags of the projections that its models need."""
        return frozenset(space.tag for space in self._spaces() if space.tag != NO_TAG)

    def score(
        self,
        bags: Bags,
        idf: Singles,
        topics: Sequence[str] | None = None,
        latent: Mapping[int, Matrix] = MappingProxyType({}),
    ) -> Matrix:
        """Scores, documents × columns: of these topics in their order, or of all topics in the order of iteration.

        `latent` has the documents' latent values (`Projection.latent_batch`) for each tag in `projections`. Raises
        KeyError for a topic that is not served, and for latent values that are missing.
        """
        numbers = self._numbers(topics)
        sizes = np.concatenate([np.empty(0, np.int64), *(s.body.sizes for s in self.segments)])[numbers]
        places = np.cumsum(sizes) - sizes
        batches = space_batches(self._spaces(), bags, idf, latent)
        out = np.empty((len(bags), int(sizes.sum())), np.float32)
        for at, segment in enumerate(self.segments):
            here = np.flatnonzero((self._first[at] <= numbers) & (numbers < self._first[at + 1]))
            if not len(here):
                continue
            columns = segment.columns_of(numbers[here] - self._first[at])
            into = ranges(places[here], sizes[here])
            for start, stop in _chunks(len(out), segment.body.width):
                segment.choose_into(_slice(batches, start, stop), columns, into, out[start:stop])
        return out

    def hits(self, bags: Bags, idf: Singles, latent: Mapping[int, Matrix] = MappingProxyType({})) -> Hits:
        """For each document the topics that do not reject it; a committee rejects when all its columns do. `latent` is
        as above."""
        batches = space_batches(self._spaces(), bags, idf, latent)
        widest = max((s.body.width for s in self.segments), default=0)
        room = np.empty(min(len(bags) * widest, max(MAX_CELLS, widest)), np.float32)
        parts = []
        for segment, first in zip(self.segments, self._first, strict=False):
            for start, stop in _chunks(len(bags), segment.body.width):
                size = (stop - start, segment.body.width)
                hits = segment.hits(_slice(batches, start, stop), room[: size[0] * size[1]].reshape(size))
                if len(hits.topics):
                    parts.append(hits._replace(documents=hits.documents + start, topics=hits.topics + first))
        return _gather(parts)

    def _numbers(self, names: Sequence[str] | None) -> Places:
        if names is None:
            return np.flatnonzero(np.concatenate([np.empty(0, np.bool_), *(s.alive for s in self.segments)]))
        numbers = []
        for name in names:
            number = self._number(name)
            if number is None:
                raise KeyError(name)
            numbers.append(number)
        return np.array(numbers, np.int64)

    def _number(self, name: str) -> int | None:
        for segment, first in zip(self.segments, self._first.tolist(), strict=False):
            number = segment.find(name)
            if number is not None:
                return int(first) + number
        return None

    def _spaces(self) -> set[Space]:
        return {part.space for segment in self.segments for part in segment.body.parts}


def _gather(parts: Sequence[Hits]) -> Hits:
    """The hits of several segments as one, by document."""
    if not parts:
        none = np.empty(0, np.int64)
        return Hits(none, none, np.zeros(1, np.int64), np.empty(0, np.float32))
    if len(parts) == 1:
        return parts[0]
    documents = np.concatenate([hits.documents for hits in parts])
    topics = np.concatenate([hits.topics for hits in parts])
    sizes = np.concatenate([np.diff(hits.starts) for hits in parts])
    scores = np.concatenate([hits.scores for hits in parts])
    order = np.argsort(documents, kind="stable")
    starts = np.cumsum(np.append(0, sizes[order]))
    moved = ranges((np.cumsum(sizes) - sizes)[order], sizes[order])
    return Hits(documents[order], topics[order], starts, scores[moved])


def _slice(batches: dict[Space, ViewedBatch], start: int, stop: int) -> dict[Space, ViewedBatch]:
    return {space: batch.slice(start, stop) for space, batch in batches.items()}


def _chunks(size: int, width: int) -> Iterator[tuple[int, int]]:
    step = max(1, MAX_CELLS // width)
    for start in range(0, size, step):
        yield start, min(size, start + step)
