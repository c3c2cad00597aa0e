"""Waiting for what another process or task will bring about.

The timeouts are long, because the machines that run this are shared; `scripts/bench` measures how fast Sluice is.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx
from redis.exceptions import RedisError

T = TypeVar("T")

PATIENCE_S = 240.0  # a process that starts in four seconds has taken a minute where thirty wanted two cores
STORE_S = 60.0  # the longest store timeout that the settings allow
POLL_S = 0.02


async def wait_until(
    condition: Callable[[], Awaitable[T | None]], within_s: float = PATIENCE_S, every_s: float = POLL_S
) -> T:
    """The first result of the condition that is true."""
    deadline = time.monotonic() + within_s
    while not (result := await condition()):
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(every_s)
    return result


def wait_until_sync(condition: Callable[[], T | None], within_s: float = PATIENCE_S) -> T:
    """The same outside of an event loop; a request that fails is one more reason to wait."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            if result := condition():
                return result
        except (httpx.HTTPError, RedisError):
            pass
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(POLL_S)
