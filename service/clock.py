"""Time: milliseconds since 1970 inside the service, UTC datetimes in answers."""

import time
from datetime import UTC, datetime


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def time_of(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
