"""Epochs follow one another, and are kept while a log names them."""

from service.store.stream.epochs import StoredProjection
from service.store.topics import Store

PROJECTION = 3 << 24 | 5  # made from the third epoch, with the tag 5


async def test_an_epoch_follows_exactly_one(redis_store: Store) -> None:
    assert await redis_store.epochs.advance(0, 11, b"one")
    assert not await redis_store.epochs.advance(0, 12, b"other")
    assert await redis_store.epochs.advance(11, 22, b"two")
    assert (
        await redis_store.epochs.current(),
        await redis_store.epochs.load(11),
        await redis_store.epochs.numbers(),
    ) == (
        22,
        b"one",
        [11, 22],
    )


async def test_old_epochs_are_forgotten_unless_they_are_named_or_have_just_come_from_elsewhere(
    redis_store: Store,
) -> None:
    for number in range(1, 5):
        assert await redis_store.epochs.advance(number - 1, number, b"own")
    await redis_store.epochs.lend(1_000_000, b"lent", current=1_000_000)
    await redis_store.epochs.lend(2, b"own", current=1_000_000)
    await redis_store.epochs.forget(4, named=[1])
    assert await redis_store.epochs.numbers() == [1, 2, 4, 1_000_000]
    assert (await redis_store.epochs.current(), await redis_store.epochs.lent()) == (4, {2: 4, 1_000_000: 4})
    assert await redis_store.epochs.advance(4, 5, b"own")
    await redis_store.epochs.forget(5, named=[])
    assert (await redis_store.epochs.numbers(), await redis_store.epochs.lent()) == ([5], {})


async def test_a_store_without_a_background_takes_the_one_that_comes(redis_store: Store) -> None:
    await redis_store.epochs.lend(7, b"in force there", current=7)
    await redis_store.epochs.lend(3, b"older", current=7)
    assert (await redis_store.epochs.current(), await redis_store.epochs.lent()) == (7, {7: 7, 3: 7})


async def test_a_projection_comes_with_the_first_epoch_that_names_it(redis_store: Store) -> None:
    epochs = redis_store.epochs
    assert await epochs.advance(0, 1, b"one", StoredProjection(PROJECTION, b"projection"))
    assert await epochs.advance(1, 2, b"two", StoredProjection(PROJECTION))
    assert await epochs.advance(2, 3, b"three")
    assert await epochs.projected() == {1: PROJECTION, 2: PROJECTION}
    assert await epochs.load_projection(PROJECTION) == b"projection"
    assert await epochs.load_projection(PROJECTION + 1) is None


async def test_whoever_is_too_late_leaves_no_projection(redis_store: Store) -> None:
    epochs = redis_store.epochs
    assert await epochs.advance(0, 1, b"one")
    assert not await epochs.advance(0, 2, b"other", StoredProjection(PROJECTION, b"projection"))
    assert (await epochs.projections(), await epochs.projected()) == ([], {})


async def test_a_projection_is_forgotten_with_the_last_epoch_that_names_it(redis_store: Store) -> None:
    epochs = redis_store.epochs
    other = PROJECTION + 1
    assert await epochs.advance(0, 1, b"one", StoredProjection(PROJECTION, b"projection"))
    assert await epochs.advance(1, 2, b"two", StoredProjection(PROJECTION))
    assert await epochs.advance(2, 3, b"three", StoredProjection(other, b"other"))
    await epochs.forget(3, named=[2])
    assert (await epochs.projections(), await epochs.projected()) == ([PROJECTION, other], {2: PROJECTION, 3: other})
    await epochs.forget(3, named=[])
    assert (await epochs.projections(), await epochs.projected()) == ([other], {3: other})


async def test_a_projection_of_another_server_replaces_none_of_ours(redis_store: Store) -> None:
    """Models name a projection by its tag: one with the tag of another would be mistaken for it."""
    epochs = redis_store.epochs
    assert await epochs.advance(0, 1, b"one", StoredProjection(PROJECTION, b"ours"))
    assert await epochs.lend(7, b"lent", 7, StoredProjection(PROJECTION, b"theirs"))
    assert await epochs.load_projection(PROJECTION) == b"ours"
    assert not await epochs.lend(8, b"lent", 7, StoredProjection(4 << 24 | 5, b"of the same tag"))
    assert await epochs.numbers() == [1, 7]
    assert await epochs.lend(9, b"lent", 7, StoredProjection(4 << 24 | 6, b"of another tag"))
    assert await epochs.projected() == {1: PROJECTION, 7: PROJECTION, 9: 4 << 24 | 6}
