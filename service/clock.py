"""What time it is, and how it is written: milliseconds since 1970 within, UTC for people."""

import time
from datetime import UTC, datetime


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def time_of(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
