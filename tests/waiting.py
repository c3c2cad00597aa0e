"""Waiting for other processes, in tests."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx
from redis.exceptions import RedisError

T = TypeVar("T")


def eventually(found: Callable[[], T | None], within_s: float = 20) -> T:
    """What is found in the end; a request that fails meanwhile is one more reason to wait."""
    deadline = time.monotonic() + within_s
    while True:
        try:
            if result := found():
                return result
        except (httpx.HTTPError, RedisError):
            pass
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True
