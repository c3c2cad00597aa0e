"""Projections: made from the stream by the first process, named by epochs, and the same wherever they are loaded."""

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.text.idf import Frequencies
from models.text.projection import Projection, fit
from service.store import codec
from service.store.topics import Store
from service.topics.background import Epoch, Epochs, NamedProjection, Sampled, epoch_number, place_of
from service.topics.projecting import next_projection, publish, sampled, update_projection
from service.topics.projections import (
    MAX_EPOCHS_APART,
    MIN_DOCUMENTS,
    NumberedProjection,
    Projections,
    from_bytes,
    made_from,
    projection_number,
    to_bytes,
)
from tests.support.projected import count, stream
from tests.support.waiting import PATIENCE_S

FEATURES = np.arange(1, 40, dtype=np.uint64) << np.uint64(44)


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    store = Store(redis_url, PATIENCE_S)
    yield store
    await store.close()


def small_projection(seed: int = 0) -> Projection:
    rng = np.random.default_rng(seed)
    sample = [
        Sampled(str(i), np.sort(rng.choice(FEATURES, 8, replace=False)), np.ones(8, np.float32)) for i in range(30)
    ]
    projection = fit(None, Epoch(0, Frequencies.prior(), ()).weighted(sample), columns=6)
    assert projection
    return projection


async def grown(store: Store, documents: int, epochs: int = 1) -> Epochs:
    """So many documents, counted in so many epochs."""
    counted = Epochs(store)
    for n in range(epochs):
        count(counted, stream(f"e{n}", documents // epochs))
        await counted.publish()
    return counted


def test_a_projection_survives_the_store() -> None:
    projection = small_projection()
    number = projection_number(7, projection)
    again = from_bytes(number, to_bytes(projection))
    assert (made_from(number), again.tag) == (7, projection.tag)
    assert to_bytes(again) == to_bytes(projection)


@given(data=st.data())
def test_bytes_that_are_no_projection_of_that_number_are_refused(data: st.DataObject) -> None:
    projection = small_projection()
    number, blob = projection_number(7, projection), bytearray(to_bytes(projection))
    place = data.draw(st.integers(0, len(blob) - 1))
    blob[place] ^= data.draw(st.integers(1, 255))
    with pytest.raises(codec.Corrupt):
        from_bytes(number, bytes(blob))
    with pytest.raises(codec.Corrupt):
        from_bytes(number + 1, to_bytes(projection))


@pytest.mark.parametrize(
    "broken",
    [
        {"scales": np.full(39, np.nan, np.float32)},
        {"scales": np.full(39, 1e30, np.float32)},
        {"features": FEATURES[::-1].copy()},
        {"rows": np.ones((3, 6), np.int8)},
        {"centre": np.zeros(0, np.int32)},
        {"singular": np.full(6, np.inf, np.float32)},
        {"alpha": np.nan},
    ],
    ids=lambda broken: next(iter(broken)),
)
def test_a_projection_that_no_stream_gives_is_refused(broken: dict[str, Any]) -> None:
    """Though its number matches: anyone who writes a file can compute that."""
    hostile = replace(small_projection(), **broken)
    with pytest.raises(codec.Corrupt):
        from_bytes(projection_number(1, hostile), to_bytes(hostile))


async def test_it_is_in_memory_once_and_while_it_is_used(store: Store) -> None:
    projection = small_projection()
    epochs = Epochs(store)
    await publish(epochs, epochs.current, projection)
    assert epochs.current.projection
    number, loaded = epochs.current.projection.number, Projections(store)
    first, second = await asyncio.gather(loaded.load(number), loaded.load(number))
    assert first
    assert second
    assert first.projection is second.projection
    assert first.projection.tag == projection.tag
    del first, second
    gc.collect()
    await store.connection.redis.flushall()
    assert await loaded.load(number) is None


async def test_the_first_projection_waits_for_enough_documents(store: Store) -> None:
    epochs = await grown(store, MIN_DOCUMENTS - 4)
    assert not await update_projection(store, epochs, semantic=True)
    count(epochs, stream("more", 4))
    await epochs.publish()
    before = epochs.current
    assert await update_projection(store, epochs, semantic=True)
    after = epochs.current
    assert (place_of(after.number), after.frequencies.documents) == (place_of(before.number) + 1, MIN_DOCUMENTS)
    assert after.sample == before.sample
    assert after.named == NamedProjection(after.projection.number, MIN_DOCUMENTS) if after.projection else None
    assert not await update_projection(store, epochs, semantic=True)


async def test_epochs_carry_the_projection_on_until_there_are_twice_as_many_documents(store: Store) -> None:
    epochs = await grown(store, 600)
    await update_projection(store, epochs, semantic=True)
    first = epochs.current.projection
    for n, size in enumerate((300, 200)):
        count(epochs, stream(f"later{n}", size))
        await epochs.publish()
        assert not await update_projection(store, epochs, semantic=True)
        assert epochs.current.projection == first
    read = await Epochs(store).load(epochs.current.number)
    assert (read.named, read.to_bytes()) == (epochs.current.named, epochs.current.to_bytes())
    assert read.number == epoch_number(place_of(read.number), read.to_bytes())
    count(epochs, stream("last", 100))
    await epochs.publish()
    assert await update_projection(store, epochs, semantic=True)
    assert epochs.current.projection != first


def test_where_counts_are_halved_a_number_of_epochs_does_instead() -> None:
    named = NamedProjection(5 << 24 | 1, 150_000)
    for place, wanted in ((5 + MAX_EPOCHS_APART - 1, False), (5 + MAX_EPOCHS_APART, True)):
        epoch = Epoch(epoch_number(place), Frequencies(120_000, Frequencies.prior().df), (), named)
        epoch.projection = NumberedProjection(named.number, small_projection())
        assert epoch.wants_projection is wanted


async def test_it_is_made_from_what_was_sampled_since_the_last_one(store: Store) -> None:
    epochs = await grown(store, 600, epochs=3)
    first = await sampled(store, epochs, epochs.current)
    assert len(first) == 600
    await update_projection(store, epochs, semantic=True)
    for n in range(2):
        count(epochs, stream(f"later{n}", 700))
        await epochs.publish()
    since = await sampled(store, epochs, epochs.current)
    assert {s.document for s in since} == {each["id"] for n in range(2) for each in stream(f"later{n}", 700)}


async def test_two_at_once_publish_one_and_nothing_is_left_of_the_other(store: Store) -> None:
    await grown(store, 600)
    both = [Epochs(store) for _ in range(2)]
    await asyncio.gather(*(epochs.follow() for epochs in both))
    published = await asyncio.gather(*(update_projection(store, epochs, semantic=True) for epochs in both))
    assert sorted(published) == [False, True]
    assert len(await store.epochs.projections()) == 1
    await asyncio.gather(*(epochs.follow() for epochs in both))
    assert both[0].current.named == both[1].current.named


async def test_an_epoch_that_comes_in_between_is_kept_and_followed(store: Store) -> None:
    epochs, other = await grown(store, 600), Epochs(store)
    before = epochs.current
    projection = next_projection(before, await sampled(store, epochs, before))
    count(other, stream("between", 50))
    await other.publish()
    assert await publish(epochs, before, projection)
    assert epochs.current.frequencies.documents == 650
    assert epochs.current.named
    assert (epochs.current.named.documents, place_of(epochs.current.number)) == (600, 3)
    assert made_from(epochs.current.named.number) == place_of(before.number)


async def test_where_it_is_switched_off_the_next_epoch_has_none(store: Store) -> None:
    epochs = await grown(store, 600)
    await update_projection(store, epochs, semantic=True)
    assert await update_projection(store, epochs, semantic=False)
    assert (epochs.current.named, epochs.current.projection) == (None, None)
    assert not await update_projection(store, epochs, semantic=False)
    assert await update_projection(store, epochs, semantic=True)


async def test_a_stream_without_a_word_in_common_has_none(store: Store) -> None:
    epochs = Epochs(store)
    count(epochs, [{"id": str(n), "text": f"word{n}"} for n in range(MIN_DOCUMENTS)])
    await epochs.publish()
    assert not await update_projection(store, epochs, semantic=True)
    assert epochs.current.named is None


async def test_a_projection_that_the_store_has_lost_is_made_again(store: Store) -> None:
    epochs = await grown(store, 600)
    await update_projection(store, epochs, semantic=True)
    await store.connection.redis.delete("sluice:{background}:projections")
    again = Epochs(store)
    await again.follow()
    assert (again.current.named is not None, again.current.projection) == (True, None)
    assert await update_projection(store, again, semantic=True)
    assert again.current.projection
