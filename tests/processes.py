"""Other processes, in tests: starting a whole `sluice serve`, waiting for one to come, or to be gone."""

import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import httpx
from redis import Redis
from redis.exceptions import RedisError

from service.embedded import socket_path

T = TypeVar("T")

SERVE = """
import sys
from service import cli, supervisor
supervisor.supervise.__kwdefaults__.update(application=sys.argv.pop(1), worker="tests.tiny")
cli.main()
"""
APPLICATION = "tests.tiny:create_app"


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


class Serve:
    """A running `sluice serve`, with the tiny application and worker in place of the real ones."""

    def __init__(
        self, directory: Path, *options: str, data: Path | None = None, application: str = APPLICATION
    ) -> None:
        self.data = data or directory / "data"
        self.output = directory / f"output-{time.monotonic_ns()}"
        self.errors = directory / f"errors-{time.monotonic_ns()}"
        command = [sys.executable, "-c", SERVE, application, "serve", "--port", "0", "--data", str(self.data), *options]
        with self.output.open("w") as out, self.errors.open("w") as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    @property
    def address(self) -> str:
        line = eventually(lambda: re.search(r"^Sluice is ready on (http://\S+)", self.output.read_text(), re.MULTILINE))
        return str(line[1])

    def api(self) -> int:
        return int(httpx.get(f"{self.address}/pid", timeout=2).text)

    def worker(self) -> int:
        """The newest worker that has said its number."""
        said = eventually(lambda: re.findall(r"^worker (\d+)$", self.output.read_text(), re.MULTILINE))
        return int(said[-1])

    def store(self) -> int:
        with Redis(unix_socket_path=str(socket_path(self.data))) as client:
            return int(client.info("server")["process_id"])

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(15)

    def refused(self) -> str:
        assert self.process.wait(30) == 1
        return self.errors.read_text()
