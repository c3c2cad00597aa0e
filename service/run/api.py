"""An API process: uvicorn, with the limits to slow clients that it lacks.

    python -m service.run.api FD APPLICATION

serves the application, a factory such as `service.api.app:create_app`, on a listening socket inherited as descriptor
FD.

uvicorn waits forever for half-sent headers and bodies, and does not limit the length of headers. Here a client has
`HEADERS_S` seconds and `MAX_HEADER_BYTES` for its headers. For its body it has a budget of `BODY_S` seconds: each
second costs one, and each `BODY_BYTES_PER_S` bytes that arrive give one back, up to `BODY_S`. So a body that stalls is
dropped after a minute, one that trickles a little later, one that flows never; seconds in which the server itself does
not read, because the application has not caught up, cost nothing. What is left of a body after the response was sent (a
413, say) has `LINGER_S`: closing at once would reset the connection and destroy the response on its way. A client that
does not read its response for `READ_S` is dropped, too.

Requests beyond `max_requests` at once are answered 503. Whatever is refused here is a problem document, too, and is
counted if the application's state has a function for that (`answered`, see api/telemetry.py).
"""

import asyncio
import gc
import json
import resource
import socket
import sys
from http import HTTPStatus
from typing import Any, Literal, cast

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from service import logs
from service.config import Config

HEADERS_S = 5.0
MAX_HEADER_BYTES = 64 * 1024
BODY_S = 60.0
BODY_BYTES_PER_S = 1000
LINGER_S = 5.0
READ_S = 60.0
TICK_S = 1.0
KEEP_ALIVE_S = 30
GRACE_S = 3
MAX_DESCRIPTORS = 65536
UNREAD = "other"  # method and route of requests that are refused before they are read
# How long a thread with a large request may keep the interpreter from the event loop, which needs it several times for
# each small request. Python's default is ten times as long.
SWITCH_S = 0.0005


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 with deadlines. A timer runs only for requests that did not arrive whole; others cost nothing more."""

    max_requests = 1000

    awaited: Literal["headers", "body"] | None = "headers"  # the part of the current request that is still to come
    timed: Literal["headers", "body"] | None = None  # what the timer is for
    timer: asyncio.TimerHandle | None = None
    unread: asyncio.TimerHandle | None = None
    header_bytes = 0
    body_bytes = 0  # since the last tick
    budget_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.awaited is None:
            self.awaited = "headers"  # what follows a whole request begins another, even if with empty lines
        elif self.awaited == "headers":
            self.header_bytes += len(data)
        else:
            self.body_bytes += len(data)
        super().data_received(data)
        if self.awaited == "headers" and self.header_bytes > MAX_HEADER_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Send shorter headers.")
        elif self.awaited != self.timed:
            self._start_timer()

    def on_message_begin(self) -> None:
        self.awaited = "headers"
        self.header_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.app = _busy if len(self.tasks) >= self.max_requests else self.config.loaded_app
        super().on_headers_complete()
        self.awaited = "body"
        self.body_bytes = 0

    def on_message_complete(self) -> None:
        self.awaited = None
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(HTTPStatus.BAD_REQUEST, "This is not a valid HTTP/1.1 request.")

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread = self.loop.call_later(READ_S, self.transport.abort)

    def resume_writing(self) -> None:
        if self.unread is not None:
            self.unread.cancel()
            self.unread = None
        super().resume_writing()

    def _start_timer(self) -> None:
        self._stop_timer()
        self.timed = self.awaited
        if self.awaited == "headers":
            self.timer = self.loop.call_later(HEADERS_S, self._too_slow)
        elif self.awaited == "body":
            self.budget_s = BODY_S
            self.timer = self.loop.call_later(TICK_S, self._tick)

    def _stop_timer(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        self.timed = None

    def _tick(self) -> None:
        if self.cycle.response_complete:
            self.budget_s = min(LINGER_S, self.budget_s) - TICK_S
        elif not self.flow.read_paused:
            self.budget_s = min(BODY_S, self.budget_s + self.body_bytes / BODY_BYTES_PER_S) - TICK_S
        self.body_bytes = 0
        if self.budget_s <= 0:
            self._too_slow()
        else:
            self.timer = self.loop.call_later(TICK_S, self._tick)

    def _too_slow(self) -> None:
        if self.awaited == "headers" and self._answering():
            self._start_timer()  # just a stray line after a request that is being served: let that finish
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request did not arrive in time.")

    def _answering(self) -> bool:
        """Whether an earlier request is still being answered, or about to be."""
        if self.awaited == "body":
            return bool(self.pipeline)
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Closes the connection, after a problem document if one can still be sent for this request."""
        self._stop_timer()
        if self.transport.is_closing():
            return
        begun = self.awaited == "body" and self.cycle.response_started
        if not begun and not self._answering():
            _count(self.app_state, UNREAD, status)
            body = _problem(status, detail)
            head = f"HTTP/1.1 {status.value} {status.phrase}\r\nconnection: close\r\n"
            fields = "".join(f"{name.decode()}: {value.decode()}\r\n" for name, value in _headers(body))
            self.transport.write(f"{head}{fields}\r\n".encode() + body)
        self.transport.close()


def _problem(status: HTTPStatus, detail: str) -> bytes:
    return json.dumps(
        {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    ).encode()


def _headers(body: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"content-type", b"application/problem+json"), (b"content-length", str(len(body)).encode())]


def _count(state: dict[str, Any], method: str, status: HTTPStatus) -> None:
    if answered := state.get("answered"):
        answered(method, UNREAD, status.value, 0.0)


async def _busy(scope: Any, receive: Any, send: Any) -> None:
    _count(scope["state"], scope["method"], HTTPStatus.SERVICE_UNAVAILABLE)
    body = _problem(HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests are in progress; try again in a second.")
    await send({"type": "http.response.start", "status": 503, "headers": [*_headers(body), (b"retry-after", b"1")]})
    await send({"type": "http.response.body", "body": body})


class _Server(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts, and excludes what is loaded by now from garbage collection, which held up every request for a quarter
        of a second, each time that large ones had triggered it."""
        self.lifespan.state["stopping"] = asyncio.Event()
        await super().startup(sockets)
        gc.collect()
        gc.freeze()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends requests that would never end by themselves (see api/sse.py), then waits for all."""
        self.lifespan.state["stopping"].set()
        await super().shutdown(sockets)


def server(application: Any, config: Config) -> uvicorn.Server:
    """Returns a server that serves until a signal; requests in progress then have `GRACE_S` to finish."""
    return _Server(
        uvicorn.Config(
            application,
            factory=True,
            http=type("Protocol", (PatientProtocol,), {"max_requests": config.max_requests}),
            ws="none",
            loop="uvloop",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=GRACE_S,
        )
    )


def _allow_connections() -> None:
    """Raises the limit of open sockets to `MAX_DESCRIPTORS`; the usual 1024 is fewer than one process can serve."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(MAX_DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main(descriptor: str, application: str) -> None:
    config = Config.from_env()
    logs.configure(config.log_level)
    _allow_connections()
    sys.setswitchinterval(SWITCH_S)
    server(application, config).run(sockets=[socket.socket(fileno=int(descriptor))])


if __name__ == "__main__":
    main(*sys.argv[1:])
