"""The bank: all topics of a process in a few inverted indexes, scored together.

    score(x) = bias + rest·Σ x_f + Σ w_f x_f         for every column; a topic has one, a committee several

Layers, from below: `table` finds the row of a feature, `index` keeps the rows of the columns that share a view, `scan`
scores documents against an index, `segment` knows which columns make up which topic. The bank keeps segments:

    large, at most CAP columns      the base: built by `load` and `merge`, in the background
    small, at the end of the list   the fresh ones: topics put since

A segment is immutable. `put` makes a segment of the one topic, joins it with small ones at the end of the list, each
at most RATIO times as large as what it is joined with (so that a weight is copied a few times, not once for every put),
and marks the topic's older columns dead; `merge` joins larger ones and sweeps out the dead. What readers get is a tuple
of segments: one attribute, replaced as a whole, so that they never wait and see a put entirely or not at all. Writers
wait for each other, never for a merge: what they do to its sources meanwhile is only to mark columns dead, and that is
repeated on its result before it takes their place.

CAP keeps a merge short and the scores of a document against a segment (64 KB) in the cache; between 4,096 and 65,536
columns the speed of scoring 50,000 topics was the same within what the machine's noise let us see.

Rejected: one base index (merging 100,000 topics copies 30 million weights to add a thousand); a mutable index under a
read lock (readers wait); each topic's weights beside the index, to merge from (twice the memory: merging reads the
index itself); a posting's column as a number over the whole bank (uint32, 8 bytes in place of 6).
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import compress
from threading import Lock
from typing import Generic

from models.bank.index import WIDEST
from models.bank.segment import COMMITTEE, Body, Entry, Segment, T, merge, segment_of
from models.bank.snapshot import Snapshot
from models.core.arrays import check

CAP = 1 << 14
AT_ONCE = 512  # columns that a put may copy: some milliseconds
RATIO = 8


class Bank(Generic[T]):
    """Topics that are scored together; segments have at most `cap` columns, and a put copies at most `at_once`."""

    def __init__(self, *, cap: int = CAP, at_once: int = AT_ONCE) -> None:
        check(COMMITTEE <= cap <= WIDEST, f"a segment has {COMMITTEE} to {WIDEST} columns")
        self._cap, self._at_once = cap, min(cap, at_once)
        self._snapshot: Snapshot[T] = Snapshot()
        self._writing = Lock()
        self._merging = Lock()
        self._claimed: frozenset[Body[T]] = frozenset()  # sources of the merge under way, which a put must not join

    def snapshot(self) -> Snapshot[T]:
        return self._snapshot

    def put(self, topic: Entry[T]) -> None:
        """Serve this topic from now on, in place of what was served under its name before."""
        new = segment_of([topic])
        with self._writing:
            segments = self._without([topic.name])
            joined, width = [new], new.live
            while segments and self._joins(segments[-1], width):
                joined.append(segments.pop())
                width += joined[-1].live
            self._snapshot = Snapshot((*segments, merge(joined[::-1]) if len(joined) > 1 else new))

    def load(self, topics: Iterable[Entry[T]]) -> None:
        """Put many topics: as many puts, in large segments."""
        for batch in _batches(topics, self._cap):
            new = segment_of(list(batch.values()))
            with self._writing:
                self._snapshot = Snapshot((new, *self._without(batch)))

    def remove(self, topic: str) -> None:
        """Serve this topic no longer; harmless if it was not served."""
        with self._writing:
            self._snapshot = Snapshot(tuple(self._without([topic])))

    def merge(self) -> bool:
        """Join segments and sweep out the dead where it pays: one step of it; False when there is nothing to do.

        Holds nobody up. The owner calls it in a thread of its own, now and then, until it is False.
        """
        with self._merging:
            with self._writing:
                sources = _worth_merging(self._snapshot.segments, self._cap, self._at_once)
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
        small = segment.live <= RATIO * width and segment.live + width <= self._at_once
        return small and segment.body not in self._claimed

    def _replace(self, sources: Sequence[Segment[T]], merged: Segment[T] | None) -> None:
        """Let the merged segment take the place of its sources, without the topics that have died in them since."""
        now = {s.body: s for s in self._snapshot.segments}
        for source in sources:
            died = compress(source.body.topics, source.alive & ~now.pop(source.body).alive)
            merged = merged and merged.without([topic.name for topic in died])
        self._snapshot = Snapshot((*([merged] if merged and merged.live else []), *now.values()))


def _worth_merging(segments: Iterable[Segment[T]], cap: int, at_once: int) -> list[Segment[T]]:
    """Segments that are small or have many dead, smallest first, as many as fit into one and pay; perhaps none."""
    thin = [s for s in segments if 2 * s.live < cap or 4 * s.live < 3 * s.body.width]
    sources: list[Segment[T]] = []
    live = 0
    for segment in sorted(thin, key=lambda s: s.live):
        if live + segment.live > cap:
            break
        sources.append(segment)
        live += segment.live
    while sources and not _pays(sources, at_once):
        sources.pop()
    return sources


def _pays(sources: Sequence[Segment[T]], at_once: int) -> bool:
    """A quarter of what they hold is dead; or what is added to the largest is at least 1/RATIO of it; or no more is
    copied than a put may copy. For a small segment, too, each word of a document is looked up: with two topics beside
    ninety others, deciding takes a quarter longer.
    """
    live = sum(s.live for s in sources)
    dead = sum(s.body.width for s in sources) - live
    added = live - sources[-1].live
    return 4 * dead > live + dead or (added > 0 and (RATIO * added >= live - added or live <= at_once))


def _batches(topics: Iterable[Entry[T]], cap: int) -> Iterator[dict[str, Entry[T]]]:
    """The topics by name, the last of each name, as many at a time as make a segment."""
    batch: dict[str, Entry[T]] = {}
    width = 0
    for topic in topics:
        if batch and width + len(topic.columns) > cap:
            yield batch
            batch, width = {}, 0
        batch[topic.name] = topic
        width += len(topic.columns)
    if batch:
        yield batch
