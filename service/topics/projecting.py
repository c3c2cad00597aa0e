"""Making a projection of the stream, and publishing it in an epoch (see projections.py).

Two housekeepers may do it at once: the first to publish wins, and what the other has made is thrown away. One that dies
before it has published leaves nothing behind, and the next round starts again.
"""

import asyncio
from collections.abc import Mapping, Sequence

from models.text.projection import Projection, fit
from service.store.stream.epochs import StoredProjection
from service.store.topics import Store
from service.topics import projections
from service.topics.background import Epoch, Epochs, Sampled, place_of, projected_epoch
from service.topics.projections import made_from


async def update_projection(store: Store, epochs: Epochs, semantic: bool) -> bool:
    """Publishes the next projection of the stream if it is time, or takes it away if there shall be none. True if this
    process did."""
    epoch = epochs.current
    if not semantic:
        return epoch.named is not None and await publish(epochs, epoch, None)
    if not epoch.wants_projection:
        return False
    projection = await asyncio.to_thread(next_projection, epoch, await sampled(store, epochs, epoch))
    return projection is not None and await publish(epochs, epoch, projection)


async def sampled(store: Store, epochs: Epochs, epoch: Epoch) -> list[Sampled]:
    """The documents that were sampled since the epoch's projection was made, as far as they are still stored."""
    lent = await store.epochs.lent()
    samples: dict[int, Sequence[Sampled]] = {}
    for number in await store.epochs.numbers():
        if number not in lent and last_used(epoch) <= place_of(number) < place_of(epoch.number):
            samples[place_of(number)] = (await epochs.read(number)).sample
    return sampled_since(epoch, samples)


def last_used(epoch: Epoch) -> int:
    """The place of the epoch that its projection was made from; 0 if it has none."""
    return made_from(epoch.named.number) if epoch.named and epoch.projection else 0


def sampled_since(epoch: Epoch, earlier: Mapping[int, Sequence[Sampled]]) -> list[Sampled]:
    """The documents in the sample of an epoch and of earlier ones, by place, back to the one that its projection was
    made from: each once, and none that was sampled then."""
    last, found = last_used(epoch), dict[str, Sampled]()
    for place, sample in sorted(earlier.items()):
        if last < place < place_of(epoch.number):
            found |= {s.document: s for s in sample}
    found |= {s.document: s for s in epoch.sample}
    used = {s.document for s in earlier.get(last, ())}
    return [s for document, s in found.items() if document not in used]


def next_projection(epoch: Epoch, sample: Sequence[Sampled]) -> Projection | None:
    """The projection that continues an epoch's with these documents; None if no word occurs in two of them."""
    return fit(epoch.projection.projection if epoch.projection else None, epoch.weighted(sample))


async def publish(epochs: Epochs, epoch: Epoch, projection: Projection | None) -> bool:
    """Publishes a projection that was made from that epoch, or none at all. False if another process has published
    one since then."""
    while True:
        await epochs.follow()
        current = epochs.current
        if current.named != epoch.named:
            return False
        successor, blob = await asyncio.to_thread(projected_epoch, current, epoch, projection)
        stored = None
        if projection and successor.named:
            stored = StoredProjection(successor.named.number, await asyncio.to_thread(projections.to_bytes, projection))
        if await epochs.advance(current, successor, blob, stored):
            return True
        # Another process has published an epoch: publish one after that.
