"""Time: milliseconds since 1970 inside the service, UTC datetimes in answers."""

import time
from datetime import UTC, datetime


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def ms_of(time: datetime) -> int:
    """Milliseconds since 1970, at least 0; a time without a zone is in UTC."""
    zoned = time if time.tzinfo else time.replace(tzinfo=UTC)
    return max(0, int(zoned.timestamp() * 1000))


def time_of(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, UTC)
