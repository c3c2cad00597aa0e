"""A log has every event once, in order, whichever process appends."""

import asyncio
from dataclasses import replace

from service.store.counts import count_topic_cmd
from service.store.events import Event, Head
from service.store.topics import Step, Store

FIRST = Event("created", 1, 0, settings="{}", features=b"q")


def judged(document: str, relevant: bool = True) -> Event:
    return Event("judged", 2, 3, document=document, relevant=relevant, features=b"\x00\n\xff", score=0.1)


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


async def test_the_log_gives_back_what_was_appended(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    appended = await redis_store.logs.append("t", "one", [judged("a"), judged("b", False)])
    assert outcomes(appended) == [("learned", 2), ("learned", 3)]
    head, events = await redis_store.logs.load("t", after=1)
    assert events == [event for _, event in appended]
    assert head.seq == 3
    assert [(e.seq, e.document, e.relevant, e.features, e.score) for e in events] == [
        (2, "a", True, b"\x00\n\xff", 0.1),
        (3, "b", False, b"\x00\n\xff", 0.1),
    ]


async def test_the_same_judgement_twice_equals_once(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    sent = [judged("a"), judged("a"), judged("a", False), judged("a", False)]
    appended = await redis_store.logs.append("t", "one", sent)
    assert outcomes(appended) == [("learned", 2), ("known", 2), ("corrected", 3), ("known", 3)]
    assert len((await redis_store.logs.load("t"))[1]) == 3


async def test_another_grade_is_a_correction_and_saying_less_is_nothing_new(redis_store: Store) -> None:
    def graded(grade: int) -> Event:
        return replace(judged("a", grade > 0), grade=grade)

    await redis_store.create("t", "one", FIRST)
    sent = [judged("a"), graded(2), graded(2), judged("a"), graded(3), graded(0), judged("a", False), graded(1)]
    appended = await redis_store.logs.append("t", "one", sent)
    assert outcomes(appended) == [
        ("learned", 2),
        ("corrected", 3),
        ("known", 3),
        ("known", 3),
        ("corrected", 4),
        ("corrected", 5),
        ("known", 5),
        ("corrected", 6),
    ]
    events = (await redis_store.logs.load("t"))[1][1:]
    assert events == [event for status, event in appended if status != "known"]
    assert [(event.grade, event.regrades) for event in events] == [
        (None, False),
        (2, True),
        (3, True),
        (0, False),
        (1, False),
    ]


async def test_what_the_log_says_of_a_judgement_is_what_its_writer_folds(redis_store: Store) -> None:
    """How many documents have been accepted by then only the store knows; a fold without it would not be the replayed
    one."""
    await redis_store.create("t", "one", FIRST)
    await redis_store.run([seven_accepted("t", "one")])
    changed = [judged("a"), judged("a", False), Event("withdrawn", 2, 3, document="a"), judged("a")]
    appended = await redis_store.logs.append("t", "one", changed)
    assert [event.after for _, event in appended] == [7, 0, 0, 7]
    assert (await redis_store.logs.load("t", after=1))[1] == [event for _, event in appended]


async def test_a_withdrawal_counts_once(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    withdrawal = Event("withdrawn", 2, 3, document="a")
    appended = await redis_store.logs.append("t", "one", [judged("a"), withdrawal, withdrawal])
    assert outcomes(appended) == [("learned", 2), ("withdrawn", 3), ("absent", 3)]


async def test_a_log_longer_than_a_chunk_is_read_whole(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    for start in range(0, 2500, 500):
        await redis_store.logs.append("t", "one", [judged(f"d{i}") for i in range(start, start + 500)])
    assert [event.seq for event in (await redis_store.logs.load("t"))[1]] == list(range(1, 2502))


async def test_concurrent_appends_are_numbered_without_gaps(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    await asyncio.gather(*(redis_store.logs.append("t", "one", [judged(f"d{i % 40}")]) for i in range(120)))
    events = (await redis_store.logs.load("t"))[1]
    assert [event.seq for event in events] == list(range(1, 42))
    assert {event.document for event in events[1:]} == {f"d{i}" for i in range(40)}


async def test_an_amendment_loses_to_whoever_was_faster(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    await redis_store.logs.append("t", "one", [judged("a")])
    assert await redis_store.logs.amend("t", Head("one", 1, 0), FIRST) is None
    assert await redis_store.logs.amend("t", Head("one", 2, 0), FIRST) == 3


async def test_an_amendment_replaces_what_stands_and_drops_what_is_obsolete(redis_store: Store) -> None:
    await redis_store.create("t", "one", FIRST)
    await redis_store.logs.append("t", "one", [judged(f"d{i}") for i in range(1500)])
    standing = {f"d{i}": "1" for i in range(700, 1500)}
    event = Event("compacted", 9, 0, floor=1501)
    assert await redis_store.logs.amend(
        "t", Head("one", 1501, 0), event, floor=1501, judged=standing, obsolete=range(2, 702)
    )
    head, events = await redis_store.logs.load("t")
    assert head == Head("one", 1502, 1501)
    assert [e.seq for e in events] == [1, *range(702, 1503)]
    appended = await redis_store.logs.append("t", "one", [judged("d0"), judged("d700")])
    assert outcomes(appended) == [("learned", 1503), ("known", 1503)]
