"""Projections of the stream (models/text/projection.py): numbered and immutable, as epochs are, which name them.

    number = place of the epoch it was made from · 2²⁴ + its tag, which is derived from its content

So the number means the same on every server, and the tag in a model's latent features says whose they are. A topic is
folded under the projection of the epoch that its newest event names: none in old logs, which keep their digests.

The housekeeper makes the first projection once MIN_DOCUMENTS documents have been counted, and the next one whenever
there are twice as many, from the documents that were sampled in between; each continues the one before. Where counts
are halved (see background.py), MAX_EPOCHS_APART epochs do instead. It publishes an epoch with it, unless another
housekeeper was faster, and moves topics to it, some at a time. Where SLUICE_SEMANTIC is off it publishes one without.
"""

import asyncio
from typing import NamedTuple
from weakref import WeakValueDictionary

from models.core.names import TAG_BITS
from models.text.projection import Projection
from service.store import codec
from service.store.topics import Store

MIN_DOCUMENTS = 500  # before the first projection
MIN_GROWTH = 2  # of the number of documents, before the next one
MAX_EPOCHS_APART = 8  # at most, between two projections


class NumberedProjection(NamedTuple):
    """A projection of the stream, loaded."""

    number: int
    projection: Projection


def projection_number(place: int, projection: Projection) -> int:
    """The number of a projection that was made from the epoch at that place of its stream."""
    return place << TAG_BITS | projection.tag


def made_from(number: int) -> int:
    """The place of the epoch that a projection was made from."""
    return number >> TAG_BITS


def to_bytes(projection: Projection) -> bytes:
    return codec.pack(codec.PROJECTION, {}, {name: array.reshape(-1) for name, array in projection.arrays().items()})


def from_bytes(number: int, blob: bytes) -> Projection:
    """The projection with that number. Raises `Corrupt` if the bytes are none, or those of another: they may have been
    imported."""
    try:
        _, arrays = codec.unpack(codec.PROJECTION, blob)
        projection = Projection.of(arrays | {"rows": arrays["rows"].reshape(-1, max(1, len(arrays["centre"])))})
    except codec.Corrupt:
        raise
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise codec.Corrupt("this is no projection") from error
    if projection_number(made_from(number), projection) != number:
        raise codec.Corrupt("the projection does not match its number")
    return projection


class Projections:
    """The projections that something in this process uses, each in memory once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loaded: WeakValueDictionary[int, Projection] = WeakValueDictionary()

    async def load(self, number: int) -> NumberedProjection | None:
        """The projection with that number; None if the store does not have it."""
        projection = self._loaded.get(number)
        if projection is None:
            blob = await self._store.epochs.load_projection(number)
            if blob is None:
                return None
            projection = self._loaded.setdefault(number, await asyncio.to_thread(from_bytes, number, blob))
        return NumberedProjection(number, projection)

    def keep(self, numbered: NumberedProjection) -> None:
        """Keeps a projection that was made here, as if it had been loaded."""
        self._loaded.setdefault(numbered.number, numbered.projection)
