"""Epochs follow one another, and are kept while a log names them."""

from service.store.topics import Store


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
