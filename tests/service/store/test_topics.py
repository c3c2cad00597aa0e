"""A topic is made once, and deleted whole."""

import pytest

from service.errors import NotFound
from service.store import topics
from service.store.events import Event, Head
from service.store.redis.keys import PARTS
from service.store.redis.scripts import topic_script
from service.store.stream import outbox
from service.store.stream.outbox import Entry
from service.store.topics import Store
from service.store.versions import Saved

FIRST = Event("created", 1, 0, settings="{}", features=b"q")


def judged(document: str, relevant: bool = True) -> Event:
    return Event("judged", 2, 3, document=document, relevant=relevant, features=b"\x00\n\xff", score=0.1)


async def test_a_topic_is_made_once(redis_store: Store) -> None:
    assert await redis_store.create("t", "one", FIRST)
    assert not await redis_store.create("t", "two", FIRST)
    assert await redis_store.topics() == ["t"]
    assert (await redis_store.logs.load("t"))[0] == Head("one", 1, 0)


async def test_a_deleted_topic_cannot_be_written_by_who_still_holds_it(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    assert await redis_store.delete("t", "one")
    await redis_store.create("t", "two", FIRST)
    with pytest.raises(NotFound):
        await redis_store.logs.append("t", "one", [judged("a")])
    with pytest.raises(NotFound):
        await redis_store.logs.amend("t", Head("one", 1, 0), FIRST)
    with pytest.raises(NotFound):
        await redis_store.versions.save("t", Saved("one", 5, b"m"), "{}", 10)
    assert not await redis_store.delete("t", "one")
    assert await redis_store.versions.load(["t"]) == [None]


async def test_a_topic_is_deleted_at_the_version_that_was_read_or_not_at_all(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    await redis_store.logs.append("t", "one", [judged("a")])
    assert not await redis_store.delete("t", "one", 1)
    assert (await redis_store.logs.load("t"))[0].seq == 2
    assert await redis_store.delete("t", "one", 2)


async def test_a_deletion_that_was_cut_short_is_finished_by_the_next(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    await redis_store.connection.run(
        outbox.append_cmds("t", "one", [Entry("0" * 32, "accept", 1.0, 1, "d", "", "secret")], 10)
    )
    await redis_store.run(
        [topic_script(topics.DELETE, "t", PARTS, "one", "nobody", "", "")]
    )  # and here the process died
    assert await redis_store.topics() == ["t"]
    assert await redis_store.clear("t")
    assert await redis_store.topics() == []
    assert await redis_store.outbox.newest("t", None, 1) == []
    assert not await redis_store.clear("t")
    await redis_store.create("t", "two", FIRST)
    assert not await redis_store.clear("t")  # that is another one, and whole
    assert await redis_store.connection.run(
        outbox.append_cmds("t", "two", [Entry("0" * 32, "accept", 1.0, 1, "d", "", "")], 10)
    ) == [1]
