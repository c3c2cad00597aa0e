"""`sluice serve`: the store, the API processes and those that work in the background or on streams, started in this
order and kept running.

Every API process has a listening socket of its own on the same port (SO_REUSEPORT), opened here, so that the kernel
deals out connections evenly: from one shared socket, the first process to wake takes all that wait (of 48 clients, 3
processes got 4, 14 and 30). When a process dies, the others get the connections that would have been its own.
A process that dies is started again after `BACKOFF_S`, and after twice as long each time it does not last;
before the service was ready for the first time, an API process that dies ends the start instead, since it would only
die again. Every process is tethered to this one (see `tether`), so nothing outlives it, however it ends.

Signals are noticed in `Signals.pause` only, so that none can fall between starting a process and remembering it.
"""

import errno
import http
import http.client
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType, TracebackType
from typing import Self

import structlog

from service.config import METRICS_DIR_VAR, PREFIX, PROCESS_VAR, Config, StartError
from service.store.embedded import Embedded
from service.tether import tethered

APPLICATION = "service.api.app:create_app"
WORKER = "service.run.housekeeping"
ENGINE = "service.jobs.queue"
CONSUMER = "service.run.consumer"
BACKOFF_S = 0.1
LONGEST_BACKOFF_S = 5.0
STEADY_S = 10.0  # a process that lived this long is not failing for a lasting reason
STOP_S = 5.0
LET_GO_S = 2.0
WATCH_S = 0.5
BACKLOG = 2048
PATIENCE_S = 15.0  # until we say what we are waiting for

log = structlog.stdlib.get_logger("sluice")


class PortTaken(StartError):
    """Somebody else listens where we should."""


class Stopped(BaseException):
    """A signal asked us to end. Not an Exception: nothing on the way may take it for a failure."""


class Signals:
    """Waiting that a signal cuts short: the end of a child, or a request to stop, which raises `Stopped`."""

    def __init__(self) -> None:
        self.stopping = False
        self.woken, self.waker = socket.socketpair()

    def __enter__(self) -> Self:
        self.woken.setblocking(False)
        self.waker.setblocking(False)
        signal.set_wakeup_fd(self.waker.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # only to be woken
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        self.woken.close()
        self.waker.close()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True

    def pause(self, seconds: float) -> None:
        if not self.stopping:
            select.select([self.woken], [], [], seconds)
            with suppress(BlockingIOError):
                self.woken.recv(4096)
        if self.stopping:
            raise Stopped


class Backoff:
    """When something that keeps failing may be tried again."""

    def __init__(self) -> None:
        self.delay_s = BACKOFF_S
        self.due = 0.0

    def failed(self, lasted_s: float) -> float:
        self.delay_s = BACKOFF_S if lasted_s > STEADY_S else min(2 * self.delay_s, LONGEST_BACKOFF_S)
        self.due = time.monotonic() + self.delay_s
        return self.delay_s


class Child:
    """A process of ours that is started again when it ends."""

    def __init__(
        self, name: str, command: Sequence[str], environment: dict[str, str], listener: socket.socket | None = None
    ) -> None:
        self.name = name
        self.command = command
        self.environment = environment
        self.listener = listener
        self.backoff = Backoff()
        self.started = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def tend(self) -> None:
        if self.process is not None and (code := self.process.poll()) is not None:
            delay_s = self.backoff.failed(time.monotonic() - self.started)
            log.warning("a process ended; starting it again", process=self.name, code=code, after_s=delay_s)
            self._forget(self.process.pid)
            self.process = None
            self._turn_away()
        if self.process is None and time.monotonic() >= self.backoff.due:
            self.started = time.monotonic()
            self.process = subprocess.Popen(
                tethered(*self.command),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                pass_fds=[self.listener.fileno()] if self.listener else [],
                process_group=0,  # Ctrl-C is for us; we pass it on in order
            )

    def _forget(self, process: int) -> None:
        """Strikes out what it held, not what it counted; as prometheus_client does, which takes 50 ms to import."""
        for file in Path(self.environment[METRICS_DIR_VAR]).glob(f"gauge_live*_{process}.db"):
            file.unlink()

    def _turn_away(self) -> None:
        """Nobody is left waiting for us whom another process could serve. The next one listens when it is ready."""
        # Once only: one that does not listen, because the process died while it began, would keep the mark of it, and
        # so would every connection that is made when it listens again.
        if self.listener and all(map(self._has, (socket.SO_REUSEPORT, socket.SO_ACCEPTCONN))):
            with suppress(OSError):  # where a listening socket cannot be silenced, those who come have to wait
                self.listener.shutdown(socket.SHUT_RD)

    def _has(self, option: int) -> bool:
        return self.listener is not None and self.listener.getsockopt(socket.SOL_SOCKET, option) != 0

    @property
    def down(self) -> bool:
        return self.process is None

    def ask_to_stop(self) -> None:
        if self.process is not None:
            self.process.terminate()

    def await_end(self, deadline: float) -> None:
        if self.process is None:
            return
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            log.warning("a process does not stop; ending it", process=self.name)
            self.process.kill()
            self.process.wait()
        self.process = None


class SupervisedStore:
    """The embedded store, served again when it dies. It does not give up: the API answers 503 meanwhile."""

    def __init__(self, embedded: Embedded) -> None:
        self.embedded = embedded
        self.backoff = Backoff()
        self.started = time.monotonic()
        self.down = False

    def tend(self) -> None:
        if not self.embedded.alive and not self.down:
            self.down = True
            delay_s = self.backoff.failed(time.monotonic() - self.started)
            log.error("the store ended; starting it again", after_s=delay_s)
        if self.down and time.monotonic() >= self.backoff.due:
            self.started = time.monotonic()
            try:
                self.embedded.start()
                self.down = False
            except StartError as error:
                log.error("the store does not start", reason=str(error), again_after_s=self.backoff.failed(0))


def supervise(
    settings: Config,
    *,
    api: bool = True,
    jobs: bool = True,
    consumers: int = 0,
    application: str = APPLICATION,
    worker: str = WORKER,
) -> None:
    """Serve until a signal says to stop; everything started here is then gone. Raises StartError if it cannot begin."""
    with suppress(Stopped), Signals() as signals, ExitStack() as started:
        environment = _environment(settings)
        stores: list[SupervisedStore] = []
        children: list[Child] = []
        if api:
            listeners = _listen_soon(settings, signals)
            started.callback(_close, listeners)
        if settings.redis is None:
            embedded = started.enter_context(Embedded(settings.data, pause=signals.pause))
            environment[f"{PREFIX}REDIS"] = embedded.url
            stores.append(SupervisedStore(embedded))
        environment[METRICS_DIR_VAR] = started.enter_context(TemporaryDirectory(prefix="sluice-counts-"))
        started.callback(_stop, children)
        if api:
            for n, listener in enumerate(listeners, 1):
                command = [sys.executable, "-m", "service.run.api", str(listener.fileno()), application]
                children.append(Child(f"api-{n}", command, environment | {PROCESS_VAR: f"api-{n}"}, listener))
            _await_ready(stores, children, listeners, signals)
            print(f"Sluice is ready on {_address(listeners[0])} (Ctrl-C stops it).", flush=True)
        if jobs:  # only now: nobody waits for it, and it would take time from those that are waited for
            children.append(Child("worker", [sys.executable, "-m", worker], environment))
            engine = [sys.executable, "-m", ENGINE]
            children += [Child(f"jobs-{n}", engine, environment) for n in range(1, settings.job_workers + 1)]
        consuming = [sys.executable, "-m", CONSUMER]
        children += [Child(f"consumer-{n}", consuming, environment) for n in range(1, consumers + 1)]
        kept: list[SupervisedStore | Child] = [*stores, *children]
        while True:
            for each in kept:
                each.tend()
            signals.pause(BACKOFF_S / 2 if any(each.down for each in kept) else WATCH_S)


def listen(host: str, port: int, count: int) -> list[socket.socket]:
    """Listening sockets on one port, or a sentence why there can be none."""
    listeners: list[socket.socket] = []
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        at = str(address[0])
        with socket.create_server((at, port), family=family) as alone:  # fails if anybody has the port, sharing or not
            port = alone.getsockname()[1]
        while len(listeners) < count:
            listeners.append(socket.create_server((at, port), family=family, backlog=BACKLOG, reuse_port=count > 1))
    except OSError as error:
        _close(listeners)
        if error.errno == errno.EADDRINUSE:
            sentence = f"Port {port} of {host} is taken. Stop what uses it, or choose another with --port."
            raise PortTaken(sentence) from error
        raise StartError(f"Cannot listen on port {port} of {host}: {error.strerror}.") from error
    return listeners


def _listen_soon(settings: Config, signals: Signals) -> list[socket.socket]:
    """As `listen`, but the processes of a service that was just killed have a moment to let go of the port."""
    deadline = time.monotonic() + LET_GO_S
    while True:
        try:
            return listen(settings.host, settings.port, settings.workers)
        except PortTaken:
            if time.monotonic() > deadline:
                raise
            signals.pause(0.1)


def _close(listeners: Sequence[socket.socket]) -> None:
    for listener in listeners:
        listener.close()


def _await_ready(
    stores: Sequence[SupervisedStore], apis: Sequence[Child], listeners: Sequence[socket.socket], signals: Signals
) -> None:
    for api in apis:
        api.tend()
    begun = time.monotonic()
    said = False
    # Whom a request reaches is for the kernel to choose; asked this often, hardly a process is left out.
    wanted = 1 if len(listeners) == 1 else 5 * len(listeners)
    while wanted:
        if (reason := _why_not_ready(listeners[0])) is None:
            wanted -= 1
            continue
        if any(api.process is None or api.process.poll() is not None for api in apis):
            raise StartError("The API ended while it was starting; its reason stands above.")
        if not said and time.monotonic() - begun > PATIENCE_S:
            log.warning("still not ready", reason=reason)
            said = True
        for store in stores:
            store.tend()
        signals.pause(0.05)


def _why_not_ready(listener: socket.socket) -> str | None:
    host, port = listener.getsockname()[:2]
    connection = http.client.HTTPConnection(host, port, timeout=1)  # "any address" is a way to ourselves, too
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        return None if response.status == http.HTTPStatus.OK else response.read(2000).decode(errors="replace")
    except (OSError, http.client.HTTPException) as error:
        return str(error)
    finally:
        connection.close()


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _environment(settings: Config) -> dict[str, str]:
    """What we were told, by the environment or the command line, as the processes we start will read it."""
    told = {name: getattr(settings, name) for name in settings.model_fields_set}
    return os.environ | {f"{PREFIX}{name.upper()}": str(value) for name, value in told.items() if value is not None}


def _stop(children: Sequence[Child]) -> None:
    for child in children:
        child.ask_to_stop()
    deadline = time.monotonic() + STOP_S
    for child in children:
        child.await_end(deadline)
