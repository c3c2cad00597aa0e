"""The bank: all topics of a process in a few inverted indexes, scored together.

    score(x) = bias + rest·Σ x_f + Σ w_f x_f         for every column; a topic has one, a committee several

The bank keeps its topics in segments, each of which is an index of some thousand columns:

    large, up to SEGMENT_COLUMNS    the base: built by `load` and `merge`, in the background
    small, at the end of the list   the fresh ones: topics put since

A segment is immutable. `put` builds a segment of the one topic, joins it with small ones at the end of the list, each
at most MAX_RATIO times as large as what it is joined with (so that a weight is copied a few times, not at every put),
and marks the topic's older columns dead; `merge` joins larger ones and drops the dead columns. Readers get a tuple of
segments: one attribute, replaced as a whole, so that they never wait and see a put entirely or not at all. Writers
wait for each other, never for a merge: all they do to its sources meanwhile is to mark columns dead, and the same
columns are marked in its result before it replaces the sources.

SEGMENT_COLUMNS keeps a merge short and the scores of a document against a segment (64 KB) in the cache; between 4,096
and 65,536 columns the speed of scoring 50,000 topics did not differ measurably.

Rejected: one base index (merging 100,000 topics copies 30 million weights to add a thousand); a mutable index under a
read lock (readers wait); a copy of each topic's weights beside the index, to merge from (twice the memory: a merge
reads the index itself); columns numbered over the whole bank (a posting has a uint32 then, 8 bytes in place of 6).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import compress
from threading import Lock
from typing import Generic

from models.bank.index import MAX_COLUMNS
from models.bank.segment import MAX_TOPIC_COLUMNS, BankEntry, Body, Segment, T, merge, segment_of
from models.bank.snapshot import Snapshot
from models.core.arrays import check

SEGMENT_COLUMNS = 1 << 14
PUT_COLUMNS = 512  # copied by a put at most: some milliseconds
MAX_RATIO = 8


class Bank(Generic[T]):
    """Topics that are scored together. A segment has at most `segment_columns`; a put copies at most `put_columns`."""

    def __init__(self, *, segment_columns: int = SEGMENT_COLUMNS, put_columns: int = PUT_COLUMNS) -> None:
        low, high = MAX_TOPIC_COLUMNS, MAX_COLUMNS
        check(low <= segment_columns <= high, f"a segment has {low} to {high} columns")
        self._segment_columns, self._put_columns = segment_columns, min(segment_columns, put_columns)
        self._snapshot: Snapshot[T] = Snapshot()
        self._writing = Lock()
        self._merging = Lock()
        self._claimed: frozenset[Body[T]] = frozenset()  # sources of the merge in progress, which a put must not join

    def snapshot(self) -> Snapshot[T]:
        return self._snapshot

    def put(self, topic: BankEntry[T]) -> None:
        """Serve this topic from now on, in place of what was served under its name before."""
        new = segment_of([topic])
        with self._writing:
            segments = self._without([topic.name])
            joined, width = [new], new.live
            while segments and self._joins(segments[-1], width):
                joined.append(segments.pop())
                width += joined[-1].live
            self._snapshot = Snapshot((*segments, merge(joined[::-1]) if len(joined) > 1 else new))

    def load(self, topics: Iterable[BankEntry[T]]) -> None:
        """Put many topics at once, into large segments."""
        for batch in _batches(topics, self._segment_columns):
            new = segment_of(list(batch.values()))
            with self._writing:
                self._snapshot = Snapshot((new, *self._without(batch)))

    def remove(self, topic: str) -> None:
        """Stop serving this topic; harmless if it was not served."""
        with self._writing:
            self._snapshot = Snapshot(tuple(self._without([topic])))

    def merge(self) -> bool:
        """Join segments and drop dead columns where it pays: one step; False if there was nothing to do.

        Blocks neither readers nor writers. The owner calls it in a thread, now and then, until it returns False.
        """
        with self._merging:
            with self._writing:
                sources = _worth_merging(self._snapshot.segments, self._segment_columns, self._put_columns)
                self._claimed = frozenset(s.body for s in sources)
            try:
                merged = merge(sources) if sources else None
                with self._writing:
                    self._replace(sources, merged)
            finally:
                self._claimed = frozenset()
        return bool(sources)

    def _without(self, topics: Collection[str]) -> list[Segment[T]]:
        segments = [s.without(topics) for s in self._snapshot.segments]
        return [s for s in segments if s.live or s.body in self._claimed]

    def _joins(self, segment: Segment[T], width: int) -> bool:
        small = segment.live <= MAX_RATIO * width and segment.live + width <= self._put_columns
        return small and segment.body not in self._claimed

    def _replace(self, sources: Sequence[Segment[T]], merged: Segment[T] | None) -> None:
        """Put the merged segment in the place of its sources, without the topics that have died in them since."""
        current = {s.body: s for s in self._snapshot.segments}
        for source in sources:
            died = compress(source.body.topics, source.alive & ~current.pop(source.body).alive)
            merged = merged and merged.without([topic.name for topic in died])
        self._snapshot = Snapshot((*([merged] if merged and merged.live else []), *current.values()))


def _worth_merging(segments: Iterable[Segment[T]], segment_columns: int, put_columns: int) -> list[Segment[T]]:
    """Segments that are small or have many dead columns, smallest first: as many as fit into one and pay."""
    candidates = [s for s in segments if 2 * s.live < segment_columns or 4 * s.live < 3 * s.body.width]
    sources: list[Segment[T]] = []
    live = 0
    for segment in sorted(candidates, key=lambda s: s.live):
        if live + segment.live > segment_columns:
            break
        sources.append(segment)
        live += segment.live
    while sources and not _pays(sources, put_columns):
        sources.pop()
    return sources


def _pays(sources: Sequence[Segment[T]], put_columns: int) -> bool:
    """Whether a quarter of their columns is dead, or what is added to the largest is at least 1/MAX_RATIO of it, or no
    more is copied than a put may copy. The last, because each word of a document is looked up in a small segment, too:
    with two topics beside ninety others, scoring takes a quarter longer.
    """
    live = sum(s.live for s in sources)
    dead = sum(s.body.width for s in sources) - live
    added = live - sources[-1].live
    return 4 * dead > live + dead or (added > 0 and (MAX_RATIO * added >= live - added or live <= put_columns))


def _batches(topics: Iterable[BankEntry[T]], segment_columns: int) -> Iterator[dict[str, BankEntry[T]]]:
    """The topics by name, the last of each name, in batches that make a segment each."""
    batch: dict[str, BankEntry[T]] = {}
    width = 0
    for topic in topics:
        if batch and width + len(topic.columns) > segment_columns:
            yield batch
            batch, width = {}, 0
        batch[topic.name] = topic
        width += len(topic.columns)
    if batch:
        yield batch
