"""A few thousand topics that are served together: an index for each space they use, and what is known of each topic.

A space is a view and, if that is semantic, a projection. Columns are numbered through the segment: those of the first
space, then those of the next. A topic has one column or, if it is a committee, several, in any spaces.

A segment never changes. Taking a topic out gives a segment that shares everything except two small arrays: which
topics are alive, and the score below which a column is ignored, +∞ for a dead one.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from models.bank.index import Index, index_of, join
from models.bank.scan import Hits, Members, Places, find, probe_into, score_into
from models.bank.seen import Matrix, Space, ViewedBatch
from models.core.arrays import check
from models.core.measures import Bools
from models.core.names import VIEWS
from models.core.vectors import Linear, Reals, Singles

PROBE_COST = 256  # columns that a pass scores in the time of probing one: they share the lookup of rows
MAX_TOPIC_COLUMNS = 64

T = TypeVar("T")


class BankEntry(NamedTuple, Generic[T]):
    """A topic as its owner puts it into the bank. The bank does not read the payload."""

    name: str
    columns: tuple[Linear, ...]
    reject_below: float
    payload: T


class IndexedTopic(NamedTuple, Generic[T]):
    """What the bank keeps of an entry besides its weights, which are in the index."""

    name: str
    columns: int
    reject_below: float
    payload: T


@dataclass(frozen=True, slots=True, eq=False)
class SpaceIndex:
    """The columns that share a space, numbered from `first` on."""

    space: Space
    first: int
    index: Index


@dataclass(frozen=True, slots=True, eq=False)
class Body(Generic[T]):
    """What segments that differ only in which topics are alive have in common."""

    topics: tuple[IndexedTopic[T], ...]
    number: dict[str, int]
    parts: tuple[SpaceIndex, ...]
    members: Members
    sizes: Places  # columns of each topic
    reject_below: Singles  # by column

    @property
    def width(self) -> int:
        return len(self.reject_below)


@dataclass(frozen=True, slots=True, eq=False)
class Segment(Generic[T]):
    body: Body[T]
    alive: Bools  # by topic
    cut: Singles  # by column: lower scores are ignored
    live: int  # columns of topics that are alive

    def find(self, name: str) -> int | None:
        """The number of this topic, if it is alive here."""
        number = self.body.number.get(name)
        return number if number is not None and self.alive[number] else None

    def columns_of(self, numbers: Places) -> Places:
        """The columns of these topics, one topic after the other."""
        return self.body.members.columns[ranges(self.body.members.first[numbers], self.body.sizes[numbers])]

    def without(self, names: Collection[str]) -> "Segment[T]":
        """This segment with these topics, if it has them, dead."""
        numbers = [n for n in map(self.find, names) if n is not None]
        if not numbers:
            return self
        alive = self.alive.copy()
        alive[numbers] = False
        return _alive(self.body, alive)

    def score_into(self, batches: dict[Space, ViewedBatch], out: Matrix) -> None:
        """Score documents in all columns, dead ones too."""
        for part in self.body.parts:
            score_into(part.index, batches[part.space], part.first, out)

    def hits(self, batches: dict[Space, ViewedBatch], scores: Matrix) -> Hits:
        """The topics that do not reject these documents; `scores` is scratch space, documents × columns."""
        self.score_into(batches, scores)
        return find(scores, self.cut, self.body.members)

    def choose_into(self, batches: dict[Space, ViewedBatch], columns: Places, places: Places, out: Matrix) -> None:
        """Score documents in these columns, and write to these places of `out`."""
        if len(columns) * PROBE_COST > max(PROBE_COST, self.body.width):
            scores = np.empty((len(out), self.body.width), np.float32)
            self.score_into(batches, scores)
            out[:, places] = scores[:, columns]
            return
        for part in self.body.parts:
            here = (columns >= part.first) & (columns < part.first + part.index.width)
            if here.any():
                probe_into(part.index, batches[part.space], columns[here] - part.first, places[here], out)


def segment_of(topics: Sequence[BankEntry[T]]) -> Segment[T]:
    """A segment of these topics, which have different names."""
    for topic in topics:
        check(0 < len(topic.columns) <= MAX_TOPIC_COLUMNS, f"a topic has 1 to {MAX_TOPIC_COLUMNS} columns")
        check(topic.reject_below == topic.reject_below, "reject_below must be a number")
    linears = [linear for topic in topics for linear in topic.columns]
    spaces = [Space.of(linear) for linear in linears]
    distinct = _ordered(spaces)
    number = np.array([distinct.index(space) for space in spaces])
    order = np.argsort(number, kind="stable")
    columns = np.empty(len(linears), np.int64)
    columns[order] = np.arange(len(linears))
    parts = []
    for n, space in enumerate(distinct):
        here = np.flatnonzero(number == n)
        parts.append(SpaceIndex(space, int(columns[here[0]]), index_of([linears[i] for i in here])))
    indexed = tuple(IndexedTopic(t.name, len(t.columns), t.reject_below, t.payload) for t in topics)
    body = _body(indexed, tuple(parts), columns)
    return _alive(body, np.ones(len(topics), np.bool_))


def merge(segments: Sequence[Segment[T]]) -> Segment[T]:
    """One segment of all topics that are alive in these segments."""
    stays = [s.alive[s.body.members.owner] for s in segments]
    moves = [np.full(s.body.width, -1, np.int64) for s in segments]
    parts, first = [], 0
    for space in _ordered([part.space for segment in segments for part in segment.body.parts]):
        sources, width = [], 0
        for segment, stay, move in zip(segments, stays, moves, strict=True):
            for part in segment.body.parts:
                if part.space == space:
                    span = slice(part.first, part.first + part.index.width)
                    local = np.where(stay[span], width + np.cumsum(stay[span]) - 1, -1).astype(np.int32)
                    move[span] = np.where(stay[span], first + local, -1)
                    width += int(np.count_nonzero(stay[span]))
                    sources.append((part.index, local))
        if width:
            parts.append(SpaceIndex(space, first, join(sources, width)))
            first += width
    topics = tuple(chain.from_iterable(compress(s.body.topics, s.alive.tolist()) for s in segments))
    moved = [move[s.body.members.columns] for s, move in zip(segments, moves, strict=True)]
    columns = np.concatenate([m[m >= 0] for m in moved])
    body = _body(topics, tuple(parts), columns)
    return _alive(body, np.ones(len(topics), np.bool_))


def _ordered(spaces: Sequence[Space]) -> list[Space]:
    """The distinct spaces, in an order that does not depend on theirs."""
    return sorted(set(spaces), key=lambda space: (VIEWS.index(space.view), space.tag))


def _body(topics: tuple[IndexedTopic[T], ...], parts: tuple[SpaceIndex, ...], columns: Places) -> Body[T]:
    sizes = np.array([t.columns for t in topics], np.int64)
    owner = np.empty(len(columns), np.int64)
    owner[columns] = np.repeat(np.arange(len(topics)), sizes)
    first = np.cumsum(np.append(0, sizes))
    number = {topic.name: i for i, topic in enumerate(topics)}
    reject_below = _at_least(np.array([t.reject_below for t in topics]))[owner]
    return Body(topics, number, parts, Members(first, columns, owner), sizes, reject_below)


def _alive(body: Body[T], alive: Bools) -> Segment[T]:
    stays = alive[body.members.owner]
    cut = np.where(stays, body.reject_below, np.float32(np.inf))
    return Segment(body, alive, cut, int(np.count_nonzero(stays)))


def _at_least(thresholds: Reals) -> Singles:
    """Thresholds in the precision of scores, rounded up: s ≥ t exactly when s ≥ _at_least(t)."""
    with np.errstate(over="ignore"):
        near = thresholds.astype(np.float32)
        return np.where(near < thresholds, np.nextafter(near, np.float32(np.inf)), near)


def ranges(starts: Places, sizes: Places) -> Places:
    """starts[0], starts[0] + 1, … (sizes[0] numbers), then starts[1], … : the places of pieces of unequal size."""
    shifts: Places = np.repeat(starts - (np.cumsum(sizes) - sizes), sizes)
    return shifts + np.arange(len(shifts))
