"""A receiver of webhooks on the loopback interface, which answers as the test wants and keeps what it accepted."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from service.flow.webhooks import signature_headers

SECRET = "whsec_" + "c2x1aWNl" * 4


class Receiver:
    def __init__(self) -> None:
        self.answer: Callable[[int], int | None] = lambda n: 200  # status of the n-th response; None: no response
        self.requests = 0
        self.accepted: list[dict[str, Any]] = []  # bodies that were answered with 200
        self.ids: list[str] = []  # webhook-id of every request
        self.url = ""
        self._closing = asyncio.Event()
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[asyncio.create_task(self._serve(reader, writer))] = writer

    async def close(self) -> None:
        self._closing.set()
        for writer in self._connections.values():
            writer.close()
        if self._connections:
            await asyncio.wait(self._connections)

    def documents(self) -> list[str]:
        return [body["data"]["document"] for body in self.accepted]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                await self._respond(line, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _respond(self, line: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert line == b"POST /hook?x=1 HTTP/1.1\r\n"
        headers: dict[str, str] = {}
        while (header := await reader.readline()) != b"\r\n":
            name, _, value = header.decode().strip().partition(": ")
            headers[name.lower()] = value
        body = await reader.readexactly(int(headers["content-length"]))
        self.requests += 1
        self.ids.append(headers["webhook-id"])
        status = self.answer(self.requests)
        if status is None:
            await self._closing.wait()
            return
        signature = {name: headers[name] for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
        assert signature == signature_headers(SECRET, headers["webhook-id"], body, int(headers["webhook-timestamp"]))
        if status == 200:
            self.accepted.append(json.loads(body))
        location = "location: http://127.0.0.1:1/elsewhere\r\n" if status == 302 else ""
        writer.write(f"HTTP/1.1 {status} Status\r\n{location}content-length: 2\r\n\r\nok".encode())
        await writer.drain()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    receiver = Receiver()
    server = await asyncio.start_server(receiver.connected, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook?x=1"
    try:
        yield receiver
    finally:
        server.close()
        await receiver.close()
