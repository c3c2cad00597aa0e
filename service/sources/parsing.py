"""Parsing a feed, or mail, in a process of its own, which may be killed: see child.py.

A parser cannot be interrupted in a thread, and Python's regular expressions can be made to run for hours. A child costs
a quarter of a second of one core, for each feed that has changed; those that have not are never parsed.
"""

import asyncio
import os
from contextlib import suppress

import structlog
from pydantic import ValidationError

from service.processes import FEED_CHILD, command
from service.sources.fetching import CannotRead
from service.sources.items import Feed, Parsed

CHILDREN = 2  # at a time: more would only share the cores
WALL_S = 60.0  # the limit of its time by the clock; child.py has that of its time on a processor
PASSED_ON = ("PATH", "PYTHONPATH", "LD_LIBRARY_PATH")  # of the environment: what a feed is read by knows no secrets
MAX_LOGGED = 4000  # characters of what it wrote to stderr

log = structlog.get_logger("sluice.sources")


class Parsing:
    """Parses feeds and mail, a few at a time."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(CHILDREN)

    async def parse(self, content: bytes, url: str, format: str = "feed") -> Feed:
        """The feed, or the messages of an mbox; CannotRead if it is none, or takes too much time or memory."""
        async with self._slots:
            status, answer, errors = await _run(content, url, format)
        if status < 0:
            raise CannotRead("Reading the feed took too much time or memory.")
        try:
            parsed = Parsed.model_validate_json(answer)
        except ValidationError:
            log.error("a feed could not be parsed", status=status, errors=errors.decode()[-MAX_LOGGED:])
            raise CannotRead("The feed could not be parsed; the log of the service says why.") from None
        if parsed.feed is None:
            raise CannotRead(parsed.refused)
        return parsed.feed


async def _run(content: bytes, url: str, format: str) -> tuple[int, bytes, bytes]:
    """The exit status of the child, and what it wrote; a negative status if it was killed."""
    child = await asyncio.create_subprocess_exec(
        *command(FEED_CHILD, format, url),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={name: os.environ[name] for name in PASSED_ON if name in os.environ},
    )
    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(WALL_S):
                answer, errors = await child.communicate(content)
                return child.returncode or 0, answer, errors
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    return -1, b"", b""
