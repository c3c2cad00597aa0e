"""What is promised of the store, against a real server."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import redis.asyncio as aredis
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis
from redis.exceptions import ResponseError

from service.errors import GroupGone, NotFound, StoreUnavailable
from service.store import known, outbox, topics
from service.store.connection import Packing
from service.store.counts import count_cmds, count_topic_cmd
from service.store.documents import PARTITIONS, RememberCall
from service.store.events import Event, Head
from service.store.keys import PARTS
from service.store.outbox import Entry
from service.store.redis_errors import translated_errors
from service.store.scripts import Script, Step, topic_script
from service.store.topics import Store
from service.store.versions import ModelChange, Saved
from tests.support.waiting import PATIENCE_S

FIRST = Event("created", 1, 0, settings="{}", features=b"q")


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    store = Store(redis_url, PATIENCE_S)
    yield store
    await store.close()


def judged(document: str, relevant: bool = True) -> Event:
    return Event("judged", 2, 3, document=document, relevant=relevant, features=b"\x00\n\xff", score=0.1)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.binary() | st.integers() | st.floats()))
def test_commands_are_packed_as_redis_py_packs_them(args: list[Any]) -> None:
    for name in ("SET", "CONFIG SET"):
        slow = b"".join(aredis.Connection().pack_command(name, *args))
        assert b"".join(Packing().pack_command(name, *args)) == slow


def seven_accepted(topic: str, born: str) -> Step:
    return count_topic_cmd(
        topic,
        born,
        passed=0,
        bucket=0,
        slot=0,
        named=0,
        accepted=7,
        abstained=0,
        likely=(),
        uncertain=(),
        kept=10,
    )


def outcomes(appended: list[tuple[str, Event]]) -> list[tuple[str, int]]:
    return [(status, event.seq) for status, event in appended]


async def test_a_topic_is_made_once(store: Store) -> None:
    assert await store.create("t", "one", FIRST)
    assert not await store.create("t", "two", FIRST)
    assert await store.topics() == ["t"]
    assert (await store.logs.load("t"))[0] == Head("one", 1, 0)


async def test_the_log_gives_back_what_was_appended(store: Store) -> None:
    await store.create("t", "one", FIRST)
    appended = await store.logs.append("t", "one", [judged("a"), judged("b", False)])
    assert outcomes(appended) == [("learned", 2), ("learned", 3)]
    head, events = await store.logs.load("t", after=1)
    assert events == [event for _, event in appended]
    assert head.seq == 3
    assert [(e.seq, e.document, e.relevant, e.features, e.score) for e in events] == [
        (2, "a", True, b"\x00\n\xff", 0.1),
        (3, "b", False, b"\x00\n\xff", 0.1),
    ]


async def test_the_same_judgement_twice_equals_once(store: Store) -> None:
    await store.create("t", "one", FIRST)
    sent = [judged("a"), judged("a"), judged("a", False), judged("a", False)]
    appended = await store.logs.append("t", "one", sent)
    assert outcomes(appended) == [("learned", 2), ("known", 2), ("corrected", 3), ("known", 3)]
    assert len((await store.logs.load("t"))[1]) == 3


async def test_what_the_log_says_of_a_judgement_is_what_its_writer_folds(store: Store) -> None:
    """How many documents have been accepted by then only the store knows; a fold without it would not be the replayed
    one."""
    await store.create("t", "one", FIRST)
    await store.run([seven_accepted("t", "one")])
    changed = [judged("a"), judged("a", False), Event("withdrawn", 2, 3, document="a"), judged("a")]
    appended = await store.logs.append("t", "one", changed)
    assert [event.after for _, event in appended] == [7, 0, 0, 7]
    assert (await store.logs.load("t", after=1))[1] == [event for _, event in appended]


async def test_a_withdrawal_counts_once(store: Store) -> None:
    await store.create("t", "one", FIRST)
    withdrawal = Event("withdrawn", 2, 3, document="a")
    appended = await store.logs.append("t", "one", [judged("a"), withdrawal, withdrawal])
    assert outcomes(appended) == [("learned", 2), ("withdrawn", 3), ("absent", 3)]


async def test_a_log_longer_than_a_chunk_is_read_whole(store: Store) -> None:
    await store.create("t", "one", FIRST)
    for start in range(0, 2500, 500):
        await store.logs.append("t", "one", [judged(f"d{i}") for i in range(start, start + 500)])
    assert [event.seq for event in (await store.logs.load("t"))[1]] == list(range(1, 2502))


async def test_concurrent_appends_are_numbered_without_gaps(store: Store) -> None:
    await store.create("t", "one", FIRST)
    await asyncio.gather(*(store.logs.append("t", "one", [judged(f"d{i % 40}")]) for i in range(120)))
    events = (await store.logs.load("t"))[1]
    assert [event.seq for event in events] == list(range(1, 42))
    assert {event.document for event in events[1:]} == {f"d{i}" for i in range(40)}


async def test_a_deleted_topic_cannot_be_written_by_who_still_holds_it(store: Store) -> None:
    await store.create("t", "one", FIRST)
    assert await store.delete("t", "one")
    await store.create("t", "two", FIRST)
    with pytest.raises(NotFound):
        await store.logs.append("t", "one", [judged("a")])
    with pytest.raises(NotFound):
        await store.logs.amend("t", Head("one", 1, 0), FIRST)
    with pytest.raises(NotFound):
        await store.versions.save("t", Saved("one", 5, b"m"), "{}", 10)
    assert not await store.delete("t", "one")
    assert await store.versions.load(["t"]) == [None]


async def test_a_topic_is_deleted_at_the_version_that_was_read_or_not_at_all(store: Store) -> None:
    await store.create("t", "one", FIRST)
    await store.logs.append("t", "one", [judged("a")])
    assert not await store.delete("t", "one", 1)
    assert (await store.logs.load("t"))[0].seq == 2
    assert await store.delete("t", "one", 2)


async def test_a_deletion_that_was_cut_short_is_finished_by_the_next(store: Store) -> None:
    await store.create("t", "one", FIRST)
    await store.connection.run(
        outbox.append_cmds("t", "one", [Entry("0" * 32, "accept", 1.0, 1, "d", "", "secret")], 10)
    )
    await store.run([topic_script(topics.DELETE, "t", PARTS, "one", "nobody", "", "")])  # and here the process died
    assert await store.topics() == ["t"]
    assert await store.clear("t")
    assert await store.topics() == []
    assert await store.outbox.newest("t", None, 1) == []
    assert not await store.clear("t")
    await store.create("t", "two", FIRST)
    assert not await store.clear("t")  # that is another one, and whole
    assert await store.connection.run(
        outbox.append_cmds("t", "two", [Entry("0" * 32, "accept", 1.0, 1, "d", "", "")], 10)
    ) == [1]


async def test_an_amendment_loses_to_whoever_was_faster(store: Store) -> None:
    await store.create("t", "one", FIRST)
    await store.logs.append("t", "one", [judged("a")])
    assert await store.logs.amend("t", Head("one", 1, 0), FIRST) is None
    assert await store.logs.amend("t", Head("one", 2, 0), FIRST) == 3


async def test_an_amendment_replaces_what_stands_and_drops_what_is_obsolete(store: Store) -> None:
    await store.create("t", "one", FIRST)
    await store.logs.append("t", "one", [judged(f"d{i}") for i in range(1500)])
    standing = {f"d{i}": True for i in range(700, 1500)}
    event = Event("compacted", 9, 0, floor=1501)
    assert await store.logs.amend("t", Head("one", 1501, 0), event, floor=1501, judged=standing, obsolete=range(2, 702))
    head, events = await store.logs.load("t")
    assert head == Head("one", 1502, 1501)
    assert [e.seq for e in events] == [1, *range(702, 1503)]
    appended = await store.logs.append("t", "one", [judged("d0"), judged("d700")])
    assert outcomes(appended) == [("learned", 1503), ("known", 1503)]


async def test_an_older_model_never_replaces_a_newer_one(store: Store) -> None:
    await store.create("t", "one", FIRST)
    assert await store.versions.save("t", Saved("one", 2, b"new"), '{"n": 2}', 10)
    assert not await store.versions.save("t", Saved("one", 1, b"old"), '{"n": 1}', 10)
    assert await store.versions.load(["t", "none"]) == [Saved("one", 2, b"new"), None]
    assert await store.versions.published(["t", "none"]) == [2, None]


async def test_versions_are_listed_newest_first_and_bounded(store: Store) -> None:
    await store.create("t", "one", FIRST)
    for version in range(1, 8):
        await store.versions.save("t", Saved("one", version, b"m"), f'"{version}"', 3)
    assert await store.versions.records("t", 0, 10) == [(7, '"7"'), (6, '"6"'), (5, '"5"')]
    assert await store.versions.records("t", 6, 10) == [(5, '"5"')]


async def test_publications_are_heard(store: Store) -> None:
    await store.create("t", "one", FIRST)
    heard = store.versions.changes()
    assert await anext(heard) is None
    await store.versions.save("t", Saved("one", 1, b"m"), "{}", 3)
    await store.delete("t", "one")
    assert [await anext(heard), await anext(heard)] == [ModelChange("t", "one", 1), ModelChange("t", "one", 0)]
    await heard.aclose()


async def remember(store: Store, documents: dict[str, bytes], kept: int) -> set[str]:
    """Which ones are new."""
    remembering = RememberCall(documents, kept)
    new, _ = remembering.results(await store.run(remembering.cmds))
    return new


async def test_documents_are_remembered_once_and_the_oldest_are_forgotten(store: Store) -> None:
    first = {f"d{i}": b"%d" % i for i in range(200)}
    assert await remember(store, first, 10_000) == set(first)
    assert await remember(store, first, 10_000) == set()
    assert await store.documents.load(["d7", "none"]) == [b"7", None]
    await remember(store, {f"e{i}": b"e" for i in range(3000)}, 320)
    assert await store.documents.load(["d7"]) == [None]
    kept = [blob for blob in await store.documents.load([f"e{i}" for i in range(3000)]) if blob]
    assert len(kept) == 320
    assert 320 % PARTITIONS == 0


async def test_very_many_documents_at_once_are_remembered_and_the_newest_of_them_kept(store: Store) -> None:
    """More in a partition than a command may have arguments; among them some that came before, at an earlier time."""
    early, late = (1).to_bytes(8), (2).to_bytes(8)
    many = {f"d{i}": late + b"%d" % i for i in range(150_000)}
    again = [f"d{i}" for i in range(0, 150_000, 1000)]
    await remember(store, dict.fromkeys(again, early + b"before"), 1_000_000)
    assert await remember(store, many, 1_000_000) == many.keys() - set(again)
    assert await store.documents.load(["d1000", "d1001"]) == [early + b"1000", late + b"1001"]
    newer = [f"e{i}" for i in range(150_000)]
    await remember(store, dict.fromkeys(newer, late), 20 * PARTITIONS)
    assert not any(await store.documents.load(list(many)))
    kept = [i for i, blob in enumerate(await store.documents.load(newer)) if blob]
    assert len(kept) == 20 * PARTITIONS
    assert min(kept) > 149_000


async def test_scripts_in_bulk_run_once_each_whether_the_store_knows_them_or_not(store: Store, redis_url: str) -> None:
    for topic in ("a", "b", "c"):
        await store.create(topic, "one", FIRST)
    calls = [
        topic_script(known.ADD, topic, ("topic", "known"), "one", 9, "d", b"blob") for topic in ("a", "b", "none", "c")
    ]
    with Redis.from_url(redis_url) as client:
        for _ in range(2):
            client.script_flush()  # as a restarted store has
            counted, *_ = await store.run([*count_cmds(5, {}), *calls])
            assert await store.run(calls) == [[1, 0], [1, 0], None, [1, 0]]
    assert counted == await store.counts.passed() == 10


async def test_an_epoch_follows_exactly_one(store: Store) -> None:
    assert await store.epochs.advance(0, 11, b"one")
    assert not await store.epochs.advance(0, 12, b"other")
    assert await store.epochs.advance(11, 22, b"two")
    assert (await store.epochs.current(), await store.epochs.load(11), await store.epochs.numbers()) == (
        22,
        b"one",
        [11, 22],
    )


async def test_old_epochs_are_forgotten_unless_they_are_named_or_have_just_come_from_elsewhere(store: Store) -> None:
    for number in range(1, 5):
        assert await store.epochs.advance(number - 1, number, b"own")
    await store.epochs.lend(1_000_000, b"lent", current=1_000_000)
    await store.epochs.lend(2, b"own", current=1_000_000)
    await store.epochs.forget(4, named=[1])
    assert await store.epochs.numbers() == [1, 2, 4, 1_000_000]
    assert (await store.epochs.current(), await store.epochs.lent()) == (4, {2: 4, 1_000_000: 4})
    assert await store.epochs.advance(4, 5, b"own")
    await store.epochs.forget(5, named=[])
    assert (await store.epochs.numbers(), await store.epochs.lent()) == ([5], {})


async def test_a_store_without_a_background_takes_the_one_that_comes(store: Store) -> None:
    await store.epochs.lend(7, b"in force there", current=7)
    await store.epochs.lend(3, b"older", current=7)
    assert (await store.epochs.current(), await store.epochs.lent()) == (7, {7: 7, 3: 7})


async def test_a_store_that_is_not_there_is_unavailable() -> None:
    store = Store("unix:///nonexistent/socket")
    with pytest.raises(StoreUnavailable):
        await store.ping()
    await store.close()


async def test_steps_are_done_in_order_and_one_script_that_fails_keeps_no_other_from_its_turn(
    store: Store, redis_url: str
) -> None:
    """Those with the same text in a row are sent as one."""
    push = "return redis.call('RPUSH', KEYS[1], unpack(ARGV))"
    nothing = "if ARGV[1] then return redis.call('INCRBY', KEYS[1], ARGV[1]) end"
    run = store.connection.run
    steps: list[Step] = [Script(push, ["{s}list"], [n]) for n in range(3)]
    steps += [("RPUSH", "{s}list", 3), Script(push, ["{s}list"], [4, 5])]
    steps += [Script(nothing, ["{s}count"], []), Script(nothing, ["{s}count"], [7]), Script(nothing, ["{s}count"], [])]
    assert await run(steps) == [1, 2, 3, 4, 6, None, 7, None]
    with Redis.from_url(redis_url) as client:
        assert client.lrange("{s}list", 0, -1) == [b"0", b"1", b"2", b"3", b"4", b"5"]
        failing: list[Step] = [Script(push, [key], ["x"]) for key in ("{s}before", "{s}count", "{s}after")]
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            await run([*failing, ("RPUSH", "{s}then", 1)])
        assert client.exists("{s}before", "{s}after", "{s}then") == 3
    with pytest.raises(ResponseError, match="boom"):
        await run([Script("error('boom')", ["{s}x"], []), Script("error('boom')", ["{s}x"], [])])
    assert await run([]) == []


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'. script: f0, on @user_script:3.", StoreUnavailable),
        (
            "Error running script (call to f_0): @user_script:3: @user_script: 3: -OOM command not allowed when used "
            "memory > 'maxmemory'.",
            StoreUnavailable,
        ),
        ("@user_script: 3: -MISCONF Errors writing to the AOF file", StoreUnavailable),
        ("NOGROUP No such key 'sluice:in' or consumer group 'sluice'", GroupGone),
        ("Error running script (call to f_0): @user_script:1: NOGROUP No such key 'sluice:in'", GroupGone),
        ("@user_script: 3: -READONLY You can't write against a read only replica.", StoreUnavailable),
        ("BUSYGROUP Consumer Group name already exists", ResponseError),
        ("ERR value is not an integer: OOM and BUSY are not meant", ResponseError),
    ],
)
def test_trouble_is_told_from_bugs_also_as_redis_6_2_says_it(said: str, error: type[Exception]) -> None:
    with pytest.raises(error) as raised, translated_errors():
        raise ResponseError(said)
    assert type(raised.value) is error
