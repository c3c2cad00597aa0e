"""A live API process on a real store, for what only shows over sockets: streams, disconnects, who waits for whom."""

import os
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import httpx

from service.processes import API, APPLICATION, command
from tests.support.processes import end, environment
from tests.support.waiting import wait_until_sync


class Live(NamedTuple):
    address: str
    process: int

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @property
    def resident_bytes(self) -> int:
        """The memory that the process holds."""
        fields = Path(f"/proc/{self.process}/statm").read_text().split()
        return int(fields[1]) * os.sysconf("SC_PAGESIZE")


@contextmanager
def live(redis_url: str, **settings: object) -> Iterator[Live]:
    """An API process, as the supervisor starts it, until the end of the block."""
    with TemporaryDirectory() as directory:
        yield from _live({"redis": redis_url, "log_level": "warning", "search": directory} | settings)


def _live(settings: Mapping[str, object]) -> Iterator[Live]:
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        fd = listener.fileno()
        process = subprocess.Popen(
            command(API, str(fd), APPLICATION),
            env=environment(**settings),
            pass_fds=[fd],
        )
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:

        def ready() -> bool:
            assert process.poll() is None, "the server ended while it was starting"
            return httpx.get(f"{address}/readyz", timeout=10).is_success

        wait_until_sync(ready)
        yield Live(address, process.pid)
    finally:
        end(process)
