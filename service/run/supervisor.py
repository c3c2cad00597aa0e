"""`sluice serve`: starts the store, the API processes, the housekeeper, job workers and consumers, in this order, and
keeps them running.

Every API process has a listening socket of its own on the same port (SO_REUSEPORT), opened here, so that the kernel
spreads connections evenly: from one shared socket, the first process to wake takes all that wait (of 48 clients, 3
processes got 4, 14 and 30). When a process dies, the others get the connections that would have been its own.
A process that dies is started again after `BACKOFF_S`, and after twice as long each time it does not last;
before the service was ready for the first time, an API process that dies ends the start instead, since it would only
die again. Every process is tethered to this one (see `tether`), so none outlives it, however it ends.

Signals take effect in `Signals.pause` only, so that none can come between starting a process and recording it.
"""

import errno
import http
import http.client
import os
import select
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType, TracebackType
from typing import Self

import structlog

from service.config import METRICS_DIR_VAR, PREFIX, PROCESS_VAR, Config, StartError
from service.processes import API, APPLICATION, CONSUMER, HOUSEKEEPING, JOB_QUEUE, command
from service.store.redis.embedded import Embedded
from service.tether import tethered

BACKOFF_S = 0.1
MAX_BACKOFF_S = 5.0
STEADY_S = 10.0  # a process that lived this long is not failing for a lasting reason
STOP_S = 5.0  # for processes to end after SIGTERM
PORT_S = 2.0  # for processes of a killed service to release the port
WATCH_S = 0.5
BACKLOG = 2048
PATIENCE_S = 15.0  # before a warning says what a start is waiting for

log = structlog.stdlib.get_logger("sluice")


class PortTaken(StartError):
    """Another process listens on the port."""


class Stopped(BaseException):
    """A signal asked for the end. Not an Exception, so that no handler takes it for a failure."""


class Signals:
    """Pauses that a signal cuts short: when a child ends, or at a request to stop, which raises `Stopped`."""

    def __init__(self) -> None:
        self.stopping = False
        self.woken, self.waker = socket.socketpair()

    def __enter__(self) -> Self:
        self.woken.setblocking(False)
        self.waker.setblocking(False)
        signal.set_wakeup_fd(self.waker.fileno(), warn_on_full_buffer=False)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)  # only to wake up
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
    """Decides when something that keeps failing is tried again."""

    def __init__(self) -> None:
        self.delay_s = BACKOFF_S
        self.due = 0.0

    def failed(self, lasted_s: float) -> float:
        """Returns the delay before the next attempt, given how long this one lasted."""
        self.delay_s = BACKOFF_S if lasted_s > STEADY_S else min(2 * self.delay_s, MAX_BACKOFF_S)
        self.due = time.monotonic() + self.delay_s
        return self.delay_s


class Child:
    """A child process that is started again when it ends."""

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
        """Starts the process if it is not running and the delay is over."""
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
                process_group=0,  # Ctrl-C reaches only the supervisor, which stops the others in order
            )

    def _forget(self, process: int) -> None:
        """Deletes the process's gauges but not its counters, as prometheus_client does, which takes 50 ms to import."""
        for file in Path(self.environment[METRICS_DIR_VAR]).glob(f"gauge_live*_{process}.db"):
            file.unlink()

    def _turn_away(self) -> None:
        """Stops listening, so that no client waits here whom another process could serve. The next process listens
        again when it is ready."""
        # Only a socket that listens: on one that does not, because the process died while it started, the shutdown
        # would stick, and break every connection made once it listens again.
        if self.listener and all(map(self._has, (socket.SO_REUSEPORT, socket.SO_ACCEPTCONN))):
            with suppress(OSError):  # where a listening socket cannot be shut down, clients have to wait
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
            log.warning("a process does not stop; killing it", process=self.name)
            self.process.kill()
            self.process.wait()
        self.process = None


class SupervisedStore:
    """The embedded store, started again when it dies, however often: the API answers 503 meanwhile."""

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
    config: Config,
    *,
    api: bool = True,
    jobs: bool = True,
    consumers: int = 0,
    application: str = APPLICATION,
    housekeeper: str = HOUSEKEEPING,
) -> None:
    """Serves until a signal asks to stop; by then every process started here has ended. Raises StartError if the
    service cannot start."""
    if api:
        config.check_access()
    with suppress(Stopped), Signals() as signals, ExitStack() as started:
        environment = _environment(config)
        stores: list[SupervisedStore] = []
        children: list[Child] = []
        if api:
            listeners = _listen_soon(config, signals)
            started.callback(_close, listeners)
        if config.redis is None:
            embedded = started.enter_context(Embedded(config.data, pause=signals.pause))
            environment[f"{PREFIX}REDIS"] = embedded.url
            stores.append(SupervisedStore(embedded))
        environment[METRICS_DIR_VAR] = started.enter_context(TemporaryDirectory(prefix="sluice-counts-"))
        started.callback(_stop, children)
        if api:
            for n, listener in enumerate(listeners, 1):
                api_command = command(API, str(listener.fileno()), application)
                children.append(Child(f"api-{n}", api_command, environment | {PROCESS_VAR: f"api-{n}"}, listener))
            _await_ready(stores, children, listeners, signals)
            print(f"Sluice is ready on {_address(listeners[0])} (Ctrl-C stops it).", flush=True)
        if jobs:  # only now: nobody waits for these, and they would slow down the start of the API
            children.append(Child("housekeeper", command(housekeeper), environment))
            children += [Child(f"jobs-{n}", command(JOB_QUEUE), environment) for n in range(1, config.job_workers + 1)]
        children += [Child(f"consumer-{n}", command(CONSUMER), environment) for n in range(1, consumers + 1)]
        processes: list[SupervisedStore | Child] = [*stores, *children]
        while True:
            for process in processes:
                process.tend()
            signals.pause(BACKOFF_S / 2 if any(process.down for process in processes) else WATCH_S)


def listen(host: str, port: int, count: int) -> list[socket.socket]:
    """Opens listening sockets on one port; raises StartError with a sentence if that is impossible."""
    listeners: list[socket.socket] = []
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        ip = str(address[0])
        with socket.create_server((ip, port), family=family) as probe:  # fails if the port is taken, shared or not
            port = probe.getsockname()[1]
        while len(listeners) < count:
            listeners.append(socket.create_server((ip, port), family=family, backlog=BACKLOG, reuse_port=count > 1))
    except OSError as error:
        _close(listeners)
        if error.errno == errno.EADDRINUSE:
            sentence = f"Port {port} of {host} is taken. Stop what uses it, or choose another with --port."
            raise PortTaken(sentence) from error
        raise StartError(f"Cannot listen on port {port} of {host}: {error.strerror}.") from error
    return listeners


def _listen_soon(config: Config, signals: Signals) -> list[socket.socket]:
    """Listens as `listen` does, but gives a service that was just killed a moment to release the port."""
    deadline = time.monotonic() + PORT_S
    while True:
        try:
            return listen(config.host, config.port, config.workers)
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
    begun_s = time.monotonic()
    warned = False
    # The kernel chooses which process gets a request; with so many requests, hardly any process is left out.
    wanted = 1 if len(listeners) == 1 else 5 * len(listeners)
    while wanted:
        if (reason := _why_not_ready(listeners[0])) is None:
            wanted -= 1
            continue
        if any(api.process is None or api.process.poll() is not None for api in apis):
            raise StartError("The API ended while it was starting; the reason is above.")
        if not warned and time.monotonic() - begun_s > PATIENCE_S:
            log.warning("still not ready", reason=reason)
            warned = True
        for store in stores:
            store.tend()
        signals.pause(0.05)


def _why_not_ready(listener: socket.socket) -> str | None:
    host, port = listener.getsockname()[:2]
    connection = http.client.HTTPConnection(host, port, timeout=1)  # 0.0.0.0 can be connected to, too
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


def _environment(config: Config) -> dict[str, str]:
    """Returns the environment for child processes, with all settings that were given here, also as options."""
    given = {name: getattr(config, name) for name in config.model_fields_set}
    return os.environ | {f"{PREFIX}{name.upper()}": str(value) for name, value in given.items() if value is not None}


def _stop(children: Sequence[Child]) -> None:
    for child in children:
        child.ask_to_stop()
    deadline = time.monotonic() + STOP_S
    for child in children:
        child.await_end(deadline)
