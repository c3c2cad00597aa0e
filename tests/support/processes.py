"""Processes for tests: a whole `sluice serve`, and functions that wait for a process to start or to end."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
from redis import Redis

from service.config import PREFIX
from service.run import supervisor
from service.store.redis.embedded import socket_path
from tests.support.waiting import PATIENCE_S, wait_until_sync

SERVE_PROGRAM = """
import sys
from service.cli import main
from service.run import supervisor
supervisor.supervise.__kwdefaults__.update(application=sys.argv.pop(1), housekeeper=sys.argv.pop(1))
supervisor.STEADY_S = float(sys.argv.pop(1))
supervisor.PATIENCE_S = supervisor.STOP_S = float(sys.argv.pop(1))
main.main()
"""
APPLICATION, HOUSEKEEPER = "tests.support.stub_app:create_app", "tests.support.stub_app"
DEFAULTS = {"SLUICE_JOB_WORKERS": "0", "SLUICE_CONSUMERS": "0"}  # they take seconds to start


def environment(**settings: object) -> dict[str, str]:
    """The environment of this process, and the variables of these settings."""
    return os.environ | {f"{PREFIX}{name.upper()}": str(value) for name, value in settings.items()}


def end(process: "subprocess.Popen[bytes]") -> None:
    """Asks a process to end, and kills it if it does not."""
    process.terminate()
    try:
        process.wait(PATIENCE_S)
    finally:
        process.kill()
        process.wait()


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def children(pid: int) -> dict[int, str]:
    """The running child processes of a process, with their command lines."""
    commands: dict[int, str] = {}
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        try:
            commands[int(child)] = Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ")
        except OSError:
            continue  # ended meanwhile
    return {child: command for child, command in commands.items() if not has_ended(child)}


class ServeProcess:
    """A running `sluice serve`, with stubs for the application and the housekeeper unless others are given.

    There are only the consumers that the settings ask for. `steady_s` is how long a process must have lived to be
    started again without a growing delay.
    """

    def __init__(
        self,
        directory: Path,
        *options: str,
        data: Path | None = None,
        application: str = APPLICATION,
        housekeeper: str = HOUSEKEEPER,
        steady_s: float = supervisor.STEADY_S,
        **settings: object,
    ) -> None:
        self.data = data or directory / "data"
        self.output = directory / f"output-{time.monotonic_ns()}"
        self.errors = directory / f"errors-{time.monotonic_ns()}"
        command = ["serve", "--port", "0", "--data", str(self.data), *options]
        program = [sys.executable, "-c", SERVE_PROGRAM, application, housekeeper, str(steady_s), str(PATIENCE_S)]
        with self.output.open("w") as out, self.errors.open("w") as err:
            env = DEFAULTS | environment(**settings)
            self.process = subprocess.Popen(
                [*program, *command], env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err
            )

    @property
    def address(self) -> str:
        """Where it serves, once it has printed that it is ready."""
        ready = re.compile(r"^Sluice is ready on (http://\S+)", re.MULTILINE)
        line = wait_until_sync(lambda: ready.search(self.output.read_text()))
        return str(line[1])

    def api_pid(self) -> int:
        """The process that answers a request; the stub does so with its id."""
        return int(httpx.get(f"{self.address}/pid", timeout=10).text)

    def housekeeper_pid(self) -> int:
        """The newest housekeeper; the stub prints its id."""
        printed = wait_until_sync(lambda: re.findall(r"^housekeeper (\d+)$", self.output.read_text(), re.MULTILINE))
        return int(printed[-1])

    def store_pid(self) -> int:
        with Redis(unix_socket_path=str(socket_path(self.data))) as client:
            return int(client.info("server")["process_id"])

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)

    def refusal(self) -> str:
        """What it has written to stderr when it refused to start."""
        assert self.process.wait(PATIENCE_S) == 1
        return self.errors.read_text()
