"""The newest model is published, whichever process saves it, and all processes are notified."""

from service.store.events import Event
from service.store.topics import Store
from service.store.versions import ModelChange, Saved

FIRST = Event("created", 1, 0, settings="{}", features=b"q")


async def test_an_older_model_never_replaces_a_newer_one(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    assert await redis_store.versions.save("t", Saved("one", 2, b"new"), '{"n": 2}', 10)
    assert not await redis_store.versions.save("t", Saved("one", 1, b"old"), '{"n": 1}', 10)
    assert await redis_store.versions.load(["t", "none"]) == [Saved("one", 2, b"new"), None]
    assert await redis_store.versions.published(["t", "none"]) == [2, None]


async def test_versions_are_listed_newest_first_and_bounded(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    for version in range(1, 8):
        await redis_store.versions.save("t", Saved("one", version, b"m"), f'"{version}"', 3)
    assert await redis_store.versions.records("t", 0, 10) == [(7, '"7"'), (6, '"6"'), (5, '"5"')]
    assert await redis_store.versions.records("t", 6, 10) == [(5, '"5"')]


async def test_all_processes_are_notified_of_publications(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    changes = redis_store.versions.changes()
    assert await anext(changes) is None
    await redis_store.versions.save("t", Saved("one", 1, b"m"), "{}", 3)
    await redis_store.delete("t", "one")
    assert [await anext(changes), await anext(changes)] == [ModelChange("t", "one", 1), ModelChange("t", "one", 0)]
    await changes.aclose()
