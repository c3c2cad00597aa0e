"""Work by turns: one at a time for a key, and to its end."""

import asyncio

import pytest

from service.tasks import Exclusive


async def test_work_for_one_key_takes_turns_and_for_another_does_not_wait() -> None:
    exclusive, running, most = Exclusive(), 0, 0
    gate = asyncio.Event()

    async def work(key: str) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return key

    async def wait(key: str) -> str:
        await gate.wait()
        return key

    waiting = asyncio.create_task(exclusive.run("blocked", wait))
    await asyncio.sleep(0)
    assert await asyncio.gather(*(exclusive.run("free", work) for _ in range(5))) == ["free"] * 5
    assert most == 1
    gate.set()
    assert await waiting == "blocked"


async def test_work_runs_to_its_end_when_its_caller_is_cancelled() -> None:
    exclusive, gate, steps = Exclusive(), asyncio.Event(), list[str]()

    async def first(key: str) -> None:
        await gate.wait()
        steps.append("first")

    async def second(key: str) -> None:
        steps.append("second")

    caller = asyncio.create_task(exclusive.run("topic", first))
    await asyncio.sleep(0)
    next_caller = asyncio.create_task(exclusive.run("topic", second))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    gate.set()
    await next_caller
    assert steps == ["first", "second"]
