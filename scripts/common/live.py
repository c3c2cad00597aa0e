"""A real API process on a real store, started as the supervisor starts it, and a client of it."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple

import numpy as np

from service.run.supervisor import APPLICATION, ENGINE

PATIENCE_S = 120.0
PAUSE_S = 0.01
TIMEOUT_S = 120.0


class Live(NamedTuple):
    port: int
    ready_s: float  # how long it took to be ready
    process: int


@contextmanager
def live(store: str, application: str = APPLICATION) -> Iterator[Live]:
    """The process, ready, until the end of the block."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
        began = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "service.run.api", str(listener.fileno()), application],
            env=os.environ | {"SLUICE_REDIS": store, "SLUICE_LOG_LEVEL": "error"},
            pass_fds=[listener.fileno()],
        )
        port = int(listener.getsockname()[1])
    try:
        while not _ready(port):
            if process.poll() is not None or time.perf_counter() - began > PATIENCE_S:
                raise RuntimeError("the API process did not become ready")
            time.sleep(PAUSE_S)
        yield Live(port, time.perf_counter() - began, process.pid)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def working(store: str) -> Iterator[None]:
    """A process that does jobs, until the end of the block."""
    environment = os.environ | {"SLUICE_REDIS": store, "SLUICE_LOG_LEVEL": "error"}
    process = subprocess.Popen([sys.executable, "-m", ENGINE], env=environment)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


class Client(HTTPConnection):
    """One connection to the service."""

    def __init__(self, port: int) -> None:
        super().__init__("127.0.0.1", port, timeout=TIMEOUT_S)

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """The answer's JSON."""
        status, said = self._asked(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {said[:500]!r}")
        return json.loads(said) if said else None

    def refused(self, method: str, path: str, body: object = None) -> None:
        status, said = self._asked(method, path, body)
        if status != HTTPStatus.SERVICE_UNAVAILABLE:
            raise RuntimeError(f"{method} {path}: {status} {said[:500]!r}")

    def _asked(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        sent = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        self.request(method, path, sent, {"content-type": "application/json"} if sent else {})
        answer = self.getresponse()
        return answer.status, answer.read()


def quantiles(waited_s: Sequence[float]) -> dict[str, float]:
    p50, p99, longest = 1e3 * np.quantile(waited_s, [0.5, 0.99, 1.0])
    return {"requests": len(waited_s), "p50_ms": float(p50), "p99_ms": float(p99), "max_ms": float(longest)}


def _ready(port: int) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
