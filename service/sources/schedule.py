"""When a source is polled next.

    after n failures in a row      every · 2ⁿ⁻¹, at most MAX_BACKOFF_S or `every` if that is longer
    after success                  every
    in both cases                  · (0.9 … 1.1), and at least what the server asked for with Retry-After

The jitter keeps sources that were added together, or that failed together, from being polled together for ever.
"""

MAX_BACKOFF_S = 6 * 3600.0
JITTER = 0.1


def next_poll_s(every_s: float, failures: int, retry_after_s: float, chance: float) -> float:
    """Seconds until the next poll; `chance` is drawn from 0 to 1."""
    pause_s = every_s
    if failures:
        pause_s = min(every_s * 2.0 ** min(failures - 1, 30), max(MAX_BACKOFF_S, every_s))
    return max(retry_after_s, pause_s * (1 + JITTER * (2 * chance - 1)))
