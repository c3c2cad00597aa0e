"""One look at an address: conditional, bounded in time and size, and to allowed addresses only, at every redirect.

    If-None-Match, If-Modified-Since   what the last answer was marked with; 304 says that nothing has changed
    Accept-Encoding: gzip              decompressed here, a piece at a time, so that a bomb stops at the limit
    Retry-After                        passed on to schedule.py, with 429 and 503 and with other refusals

Each look has a client of its own: no cookies, no proxies, no connections that outlive it. Redirects are followed by
hand, since the address of each hop must be checked before anything is sent to it (see addresses.py).
"""

import asyncio
import ssl
import zlib
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import httpx

from service.addresses import NoAddress, checked_address
from service.clock import ms_of

MAX_REDIRECTS = 5
MAX_RETRY_AFTER_S = 86_400.0
MAX_HEADER_CHARS = 1000  # of a validator; a longer one is not sent back
MOVED = (301, 302, 303, 307, 308)
GONE = 410
REASONS = {status.value: f" ({status.phrase})" for status in HTTPStatus}
ACCEPTED = "application/atom+xml, application/rss+xml, application/feed+json, application/xml;q=0.9, */*;q=0.5"
AGENT = "sluice (feed reader)"


class CannotRead(Exception):
    """A source could not be read; the message is a sentence for the user."""

    def __init__(self, sentence: str, retry_after_s: float = 0.0, gone: bool = False) -> None:
        super().__init__(sentence)
        self.retry_after_s = retry_after_s  # before it may be asked again
        self.gone = gone  # for good, as it says itself


@dataclass(frozen=True, slots=True)
class Marks:
    """By which a server knows what we have seen of it."""

    etag: str = ""
    last_modified: str = ""


@dataclass(frozen=True, slots=True)
class Fetched:
    url: str  # after all redirects
    content: bytes | None  # None: as it was the last time
    marks: Marks


class Fetcher:
    def __init__(self, timeout_s: float, max_bytes: int, private: bool) -> None:
        self._timeout_s = timeout_s
        self._max_bytes = max_bytes
        self._private = private
        self._tls = ssl.create_default_context()

    async def fetch(self, url: str, marks: Marks, now_ms: int) -> Fetched:
        """What is at the address; CannotRead if it cannot be had within the limits."""
        try:
            async with asyncio.timeout(self._timeout_s), self._client() as client:
                return await self._follow(client, httpx.URL(url), marks, now_ms)
        except (TimeoutError, httpx.TimeoutException):
            raise CannotRead(f"The server did not send everything within {self._timeout_s:g} seconds.") from None
        except NoAddress as error:
            raise CannotRead(str(error)) from None
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise CannotRead(f"The server could not be reached, or broke off: {type(error).__name__}.") from None

    def _client(self) -> httpx.AsyncClient:
        headers = {"User-Agent": AGENT, "Accept": ACCEPTED, "Accept-Encoding": "gzip"}
        return httpx.AsyncClient(
            verify=self._tls, trust_env=False, follow_redirects=False, timeout=self._timeout_s, headers=headers
        )

    async def _follow(self, client: httpx.AsyncClient, url: httpx.URL, marks: Marks, now_ms: int) -> Fetched:
        for _ in range(MAX_REDIRECTS + 1):
            if url.scheme not in ("http", "https") or not url.host or url.userinfo:
                raise CannotRead("It redirects to an address that is not http:// or https://, or that names a user.")
            target = url.copy_with(host=await checked_address(url, self._private, "SLUICE_SOURCES_PRIVATE"))
            headers = {"Host": url.netloc.decode(), **_conditions(marks)}
            client.cookies.clear()  # they would go to whoever has the same address
            extensions = {"sni_hostname": url.host} if url.scheme == "https" else {}
            async with client.stream("GET", target, headers=headers, extensions=extensions) as response:
                if response.status_code in MOVED and "location" in response.headers:
                    url = url.join(response.headers["location"]).copy_with(fragment=None)
                    continue
                if response.status_code == 304:
                    return Fetched(str(url), None, marks)
                if response.status_code != 200:
                    raise _refusal(response, now_ms)
                return Fetched(str(url), await self._content(response), _marks(response))
        raise CannotRead(f"It redirects more than {MAX_REDIRECTS} times.")

    async def _content(self, response: httpx.Response) -> bytes:
        """The whole content, unpacked; CannotRead as soon as it is longer than allowed."""
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("gzip", "x-gzip", "identity", ""):
            raise CannotRead("The server sent it in an encoding that was not asked for.")
        unpacking = zlib.decompressobj(wbits=31) if "gzip" in encoding else None
        content, sent = bytearray(), 0
        async for packed in response.aiter_raw():
            sent += len(packed)
            try:
                room = self._max_bytes + 1 - len(content)
                content += unpacking.decompress(packed, room) if unpacking else packed
            except zlib.error:
                raise CannotRead("The server sent it compressed, and it cannot be decompressed.") from None
            if len(content) > self._max_bytes or sent > self._max_bytes:
                raise CannotRead(f"It is longer than {self._max_bytes:,} bytes (SLUICE_SOURCES_MAX_BYTES).")
        if unpacking and not unpacking.eof:
            raise CannotRead("The server sent it compressed, and the end is missing.")
        return bytes(content)


def _conditions(marks: Marks) -> dict[str, str]:
    headers = {"If-None-Match": marks.etag, "If-Modified-Since": marks.last_modified}
    return {name: value for name, value in headers.items() if value}


def _marks(response: httpx.Response) -> Marks:
    etag, modified = response.headers.get("etag", ""), response.headers.get("last-modified", "")
    return Marks(*(value if value.isascii() and len(value) <= MAX_HEADER_CHARS else "" for value in (etag, modified)))


def _refusal(response: httpx.Response, now_ms: int) -> CannotRead:
    status = response.status_code
    wait_s = _retry_after_s(response.headers.get("retry-after", ""), now_ms)
    if status == GONE:
        return CannotRead("The server says that this feed is gone for good (410).", wait_s, gone=True)
    return CannotRead(f"The server answered {status}{REASONS.get(status, '')}.", wait_s)


def _retry_after_s(value: str, now_ms: int) -> float:
    """Seconds, or those until a date; at most a day, and none if it is neither."""
    if value.isascii() and value.isdecimal():
        wait_s = float(value[:9])
    else:
        try:
            wait_s = (ms_of(parsedate_to_datetime(value)) - now_ms) / 1000
        except (ValueError, OverflowError):
            return 0.0
    return min(MAX_RETRY_AFTER_S, max(0.0, wait_s))
