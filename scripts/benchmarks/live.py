"""A real API process on a real store, started as the supervisor starts it."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from typing import NamedTuple

from service.supervisor import APPLICATION

PATIENCE_S = 120.0
PAUSE_S = 0.01


class Live(NamedTuple):
    port: int
    ready_s: float  # how long it took to be ready


@contextmanager
def live(store: str) -> Iterator[Live]:
    """The process, ready, until the end of the block."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "service.server", str(listener.fileno()), APPLICATION],
            env=os.environ | {"SLUICE_REDIS": store, "SLUICE_LOG_LEVEL": "error"},
            pass_fds=[listener.fileno()],
        )
        port = int(listener.getsockname()[1])
    try:
        while not _ready(port):
            if process.poll() is not None or time.perf_counter() - began > PATIENCE_S:
                raise RuntimeError("the API process did not become ready")
            time.sleep(PAUSE_S)
        yield Live(port, time.perf_counter() - began)
    finally:
        process.terminate()
        process.wait()


def _ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
