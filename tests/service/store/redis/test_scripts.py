"""Steps are sent in bulk and done in order, each once."""

import pytest
from redis import Redis
from redis.exceptions import ResponseError

from service.store import known
from service.store.counts import count_cmds
from service.store.events import Event
from service.store.redis.scripts import Script, Step, topic_script
from service.store.topics import Store

FIRST = Event("created", 1, 0, settings="{}", features=b"q")


async def test_scripts_in_bulk_run_once_each_whether_the_store_knows_them_or_not(
    redis_store: Store, redis_url: str
) -> None:
    for topic in ("a", "b", "c"):
        await redis_store.create(topic, "one", FIRST)
    calls = [
        topic_script(known.ADD, topic, ("topic", "known"), "one", 9, "d", b"blob") for topic in ("a", "b", "none", "c")
    ]
    with Redis.from_url(redis_url) as client:
        for _ in range(2):
            client.script_flush()  # as a restarted store has
            counted, *_ = await redis_store.run([*count_cmds(5, {}), *calls])
            assert await redis_store.run(calls) == [[1, 0], [1, 0], None, [1, 0]]
    assert counted == await redis_store.counts.passed() == 10


async def test_steps_are_done_in_order_and_one_script_that_fails_keeps_no_other_from_its_turn(
    redis_store: Store, redis_url: str
) -> None:
    """Those with the same text in a row are sent as one."""
    push = "return redis.call('RPUSH', KEYS[1], unpack(ARGV))"
    nothing = "if ARGV[1] then return redis.call('INCRBY', KEYS[1], ARGV[1]) end"
    run = redis_store.connection.run
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
