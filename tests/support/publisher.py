"""A publisher of feeds on the loopback interface: honest, slow or hostile, as the test wants, and it keeps what it was
asked."""

import asyncio
import gzip
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from html import escape
from threading import Event, Thread

from tests.support.waiting import PATIENCE_S


@dataclass(frozen=True)
class Page:
    """An answer: sent whole, or `drip` bytes a moment, or never."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drip: int = 0
    silent: bool = False
    length: int | None = None  # that is declared, if it is not that of the body


Answer = Callable[[Mapping[str, str]], Page]
DRIP_S = 0.05


class Publisher:
    def __init__(self) -> None:
        self.pages: dict[str, Page | Answer] = {}
        self.asked: list[tuple[str, Mapping[str, str]]] = []  # path and headers of each request
        self.address = ""
        self._connections: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    def url(self, path: str) -> str:
        return f"{self.address}{path}"

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[asyncio.create_task(self._serve(reader, writer))] = writer

    async def close(self) -> None:
        for task, writer in self._connections.items():
            task.cancel()
            writer.close()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            headers: dict[str, str] = {}
            while (header := await reader.readline()) not in (b"\r\n", b""):
                name, _, value = header.decode().strip().partition(": ")
                headers[name.lower()] = value
            path = line.decode().split(" ")[1]
            self.asked.append((path, headers))
            page = self.pages.get(path, Page(b"no such page", 404))
            await self._send(page if isinstance(page, Page) else page(headers), writer)
        except (ConnectionError, IndexError):
            pass
        finally:
            writer.close()

    async def _send(self, page: Page, writer: asyncio.StreamWriter) -> None:
        if page.silent:
            await asyncio.Event().wait()
        length = len(page.body) if page.length is None else page.length
        head = {"Content-Length": str(length), "Connection": "close", **page.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
        writer.write(f"HTTP/1.1 {page.status} Status\r\n{lines}\r\n".encode())
        step = page.drip or len(page.body) or 1
        for start in range(0, len(page.body), step):
            writer.write(page.body[start : start + step])
            await writer.drain()
            if page.drip:
                await asyncio.sleep(DRIP_S)
        await writer.drain()


def rss(*titles: str, text: str = "About oil.", feed: str = "News") -> bytes:
    """A feed with an item for each title, whose guid is its title up to a colon."""
    items = "".join(
        f"<item><title>{escape(title)}</title><guid isPermaLink='false'>{escape(title.partition(':')[0])}</guid>"
        f"<link>https://example.org/{n}</link><description>{escape(text)}</description></item>"
        for n, title in enumerate(titles)
    )
    return f"<?xml version='1.0'?><rss version='2.0'><channel><title>{feed}</title>{items}</channel></rss>".encode()


def feed_page(*titles: str, **headers: str) -> Page:
    return Page(rss(*titles), headers={"Content-Type": "application/rss+xml", **headers})


def conditional(body: bytes) -> Answer:
    """A page that has not changed for who knows its ETag."""
    etag = f'"{blake2b(body, digest_size=8).hexdigest()}"'

    def answer(asked: Mapping[str, str]) -> Page:
        return Page(status=304) if asked.get("if-none-match") == etag else Page(body, headers={"ETag": etag})

    return answer


def in_turn(pages: Sequence[Page]) -> Answer:
    """One page after the other, and then the last for ever."""
    left = list(pages)
    return lambda asked: left.pop(0) if len(left) > 1 else left[0]


def bomb(size: int) -> Page:
    """A small page that is large when it is unpacked."""
    return Page(gzip.compress(b" " * size), headers={"Content-Encoding": "gzip"})


@asynccontextmanager
async def publishing() -> AsyncIterator[Publisher]:
    publisher = Publisher()
    server = await asyncio.start_server(publisher.connected, "127.0.0.1", 0)
    publisher.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield publisher
    finally:
        server.close()
        await publisher.close()


@contextmanager
def publishing_aside() -> Iterator[Publisher]:
    """The same in a thread of its own, for tests that are not coroutines."""
    loop, started = asyncio.new_event_loop(), Event()
    publisher, stopping = Publisher(), asyncio.Event()

    async def serve() -> None:
        async with publishing() as running:
            running.pages, running.asked = publisher.pages, publisher.asked
            publisher.address = running.address
            started.set()
            await stopping.wait()

    thread = Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(PATIENCE_S)
    try:
        yield publisher
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(PATIENCE_S)
        loop.close()
