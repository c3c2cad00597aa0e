"""One API process: uvicorn, with the patience that its defaults lack.

    python -m service.run.api FD APPLICATION

serves the application, a factory such as `service.api.app:create_app`, on a listening socket inherited as descriptor
FD.

uvicorn waits forever for half-sent headers and bodies, and sets no bound to the length of headers. Here a client has
`HEADERS_S` seconds and `MAX_HEADER_BYTES` for its headers. For its body it has a purse of `BODY_S` seconds: every
second costs one, and every `BODY_BYTES_PER_S` bytes that arrive put one back, up to the brim. So a body that stalls is
dropped after a minute, one that drips a little later, one that flows never; the seconds in which we ourselves do not
read, because the application has not caught up, cost nothing. What is left of a body when the answer has been sent
(a 413, say) has `LINGER_S`: closing at once would reset the connection and destroy the answer on its way. A client that
does not read its answer for `READ_S` is dropped too.

Requests beyond `max_requests` at once are told to come back. Whatever is refused here is a problem document, too, and
counted, where the application's state has a function for that (`answered`, see api/telemetry.py).
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
DESCRIPTORS = 65536
UNREAD = "other"  # method and route of what was refused before it was read
# Seconds that a thread with a large request may keep the interpreter from the event loop, which wants it several times
# for each small one. By default ten times as long.
TURN_S = 0.0005


class PatientProtocol(HttpToolsProtocol):
    """HTTP/1.1 with deadlines. A clock is wound only for a request that did not arrive whole, so others pay nothing."""

    max_requests = 1000

    awaited: Literal["headers", "body"] | None = "headers"  # what of the current request is still to come
    clocked: Literal["headers", "body"] | None = None  # what the clock is for
    clock: asyncio.TimerHandle | None = None
    unread: asyncio.TimerHandle | None = None
    header_bytes = 0
    body_bytes = 0  # since the last tick
    purse_s = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))
        self._wind()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwind()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.awaited is None:
            self.awaited = "headers"  # whatever follows a whole request begins another, be it with empty lines
        elif self.awaited == "headers":
            self.header_bytes += len(data)
        else:
            self.body_bytes += len(data)
        super().data_received(data)
        if self.awaited == "headers" and self.header_bytes > MAX_HEADER_BYTES:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Send shorter headers.")
        elif self.awaited != self.clocked:
            self._wind()

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
        self._refuse(HTTPStatus.BAD_REQUEST, "This is not HTTP/1.1 as we understand it.")

    def pause_writing(self) -> None:
        super().pause_writing()
        self.unread = self.loop.call_later(READ_S, self.transport.abort)

    def resume_writing(self) -> None:
        if self.unread is not None:
            self.unread.cancel()
            self.unread = None
        super().resume_writing()

    def _wind(self) -> None:
        self._unwind()
        self.clocked = self.awaited
        if self.awaited == "headers":
            self.clock = self.loop.call_later(HEADERS_S, self._too_slow)
        elif self.awaited == "body":
            self.purse_s = BODY_S
            self.clock = self.loop.call_later(TICK_S, self._tick)

    def _unwind(self) -> None:
        if self.clock is not None:
            self.clock.cancel()
            self.clock = None
        self.clocked = None

    def _tick(self) -> None:
        if self.cycle.response_complete:
            self.purse_s = min(LINGER_S, self.purse_s) - TICK_S
        elif not self.flow.read_paused:
            self.purse_s = min(BODY_S, self.purse_s + self.body_bytes / BODY_BYTES_PER_S) - TICK_S
        self.body_bytes = 0
        if self.purse_s <= 0:
            self._too_slow()
        else:
            self.clock = self.loop.call_later(TICK_S, self._tick)

    def _too_slow(self) -> None:
        if self.awaited == "headers" and self._answering():
            self._wind()  # no more than a stray line after a request that is being served: let that finish
        else:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The request did not arrive in time.")

    def _answering(self) -> bool:
        """Something is being answered, or about to be, that came before what is awaited."""
        if self.awaited == "body":
            return bool(self.pipeline)
        return self.cycle is not None and not self.cycle.response_complete

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """The connection ends, with a problem document if one can still be sent for this request."""
        self._unwind()
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
        """Starts, and spares the garbage collector from looking through all that is there by now again and again: it
        held every request up for a quarter of a second, each time that large ones had made it look."""
        self.lifespan.state["stopping"] = asyncio.Event()
        await super().startup(sockets)
        gc.collect()
        gc.freeze()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Tells those whose requests have no end of their own (see api/sse.py), then waits for all."""
        self.lifespan.state["stopping"].set()
        await super().shutdown(sockets)


def server(application: Any, settings: Config) -> uvicorn.Server:
    """A server that, once run, serves until a signal; requests in progress then have `GRACE_S` to finish."""
    return _Server(
        uvicorn.Config(
            application,
            factory=True,
            http=type("Protocol", (PatientProtocol,), {"max_requests": settings.max_requests}),
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
    """Up to `DESCRIPTORS` open sockets; the usual limit of 1024 is less than the clients one process can hold."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def main(descriptor: str, application: str) -> None:
    settings = Config.from_env()
    logs.configure(settings.log_level)
    _allow_connections()
    sys.setswitchinterval(TURN_S)
    server(application, settings).run(sockets=[socket.socket(fileno=int(descriptor))])


if __name__ == "__main__":
    main(*sys.argv[1:])
