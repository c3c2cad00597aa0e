"""Real processes of the service on a real store, started as the supervisor starts them, and connections to the API."""

import json
import os
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from service.processes import API, APPLICATION, CONSUMER, JOB_QUEUE, command
from service.store.redis.embedded import Embedded

HOST = "127.0.0.1"
START_S = 120.0  # in which a process must become ready
POLL_S = 0.01
TIMEOUT_S = 120.0


class ApiProcess(NamedTuple):
    port: int
    ready_s: float  # how long it took to become ready
    pid: int


@contextmanager
def temporary_store() -> Iterator[Embedded]:
    """An embedded store that is deleted at the end of the block."""
    with tempfile.TemporaryDirectory(prefix="sluice-bench-") as folder, Embedded(Path(folder)) as store:
        yield store


@contextmanager
def api_process(store: str, application: str = APPLICATION) -> Iterator[ApiProcess]:
    """An API process, ready, until the end of the block."""
    with socket.create_server((HOST, 0), backlog=100) as listener:
        began = time.perf_counter()
        process = _start(store, API, str(listener.fileno()), application, inherit=[listener.fileno()])
        port = int(listener.getsockname()[1])
    try:
        while not _ready(port):
            if process.poll() is not None or time.perf_counter() - began > START_S:
                raise RuntimeError("the API process did not become ready")
            time.sleep(POLL_S)
        yield ApiProcess(port, time.perf_counter() - began, process.pid)
    finally:
        _stop([process])


@contextmanager
def job_process(store: str) -> Iterator[None]:
    """A process that runs jobs, until the end of the block."""
    process = _start(store, JOB_QUEUE)
    try:
        yield
    finally:
        _stop([process])


@contextmanager
def consumer_processes(store: str, count: int) -> Iterator[list[int]]:
    """Ids of processes that consume the stream of documents, until the end of the block."""
    processes = [_start(store, CONSUMER) for _ in range(count)]
    try:
        yield [process.pid for process in processes]
    finally:
        _stop(processes)


class ApiConnection(HTTPConnection):
    """One connection to the service, which sends JSON and receives JSON."""

    def __init__(self, port: int, timeout_s: float = TIMEOUT_S) -> None:
        super().__init__(HOST, port, timeout=timeout_s)

    def call(self, method: str, path: str, body: object = None) -> Any:
        """The JSON of a successful response."""
        status, content = self._call(method, path, body)
        if status >= 300:
            raise RuntimeError(f"{method} {path}: {status} {content[:500]!r}")
        return json.loads(content) if content else None

    def expect_unavailable(self, method: str, path: str, body: object = None) -> None:
        """Makes a call that must be refused with 503."""
        status, content = self._call(method, path, body)
        if status != HTTPStatus.SERVICE_UNAVAILABLE:
            raise RuntimeError(f"{method} {path}: {status} {content[:500]!r}")

    def _call(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body)
        self.request(method, path, content, {"content-type": "application/json"} if content else {})
        response = self.getresponse()
        return response.status, response.read()


def latencies(waited_s: Sequence[float]) -> dict[str, float]:
    """Their number, median, 99th percentile and maximum, in milliseconds."""
    p50, p99, longest = 1e3 * np.quantile(waited_s, [0.5, 0.99, 1.0])
    return {"requests": len(waited_s), "p50_ms": float(p50), "p99_ms": float(p99), "max_ms": float(longest)}


def _start(store: str, module: str, *arguments: str, inherit: Sequence[int] = ()) -> "subprocess.Popen[bytes]":
    environment = os.environ | {"SLUICE_REDIS": store, "SLUICE_LOG_LEVEL": "error"}
    return subprocess.Popen(command(module, *arguments), env=environment, pass_fds=inherit)


def _stop(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.wait()


def _ready(port: int) -> bool:
    connection = HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == HTTPStatus.OK
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
