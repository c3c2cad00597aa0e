"""Waiting, in tests that run in an event loop, for what another process or task will bring about.

Whoever waits, waits long: the machines that run this are shared, and how fast Sluice is, `scripts/bench` tells.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE_S = 240.0  # a process that starts in four seconds has taken a minute where thirty wanted two cores
STORE_S = 60.0  # the most that can be set


async def soon(found: Callable[[], Awaitable[T | None]], within_s: float = PATIENCE_S, every_s: float = 0.02) -> T:
    """What is found in the end."""
    deadline = time.monotonic() + within_s
    while not (result := await found()):
        assert time.monotonic() < deadline, "it did not happen"
        await asyncio.sleep(every_s)
    return result
