"""One look at an address: what hostile and slow servers send is refused in time, and nobody is led astray."""

import asyncio
import gzip
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from service.sources.fetching import CannotRead, Fetcher, Marks
from tests.support.publisher import Page, Publisher, bomb, conditional, feed_page, in_turn, publishing, rss

LIMIT = 100_000
NOW_MS = 1_795_000_000_000


@pytest.fixture
async def publisher() -> AsyncIterator[Publisher]:
    async with publishing() as publisher:
        yield publisher


def fetcher(timeout_s: float = 60.0, private: bool = True) -> Fetcher:
    return Fetcher(timeout_s, LIMIT, private)


async def refusal(url: str, **options: Any) -> CannotRead:
    with pytest.raises(CannotRead) as refused:
        await fetcher(**options).fetch(url, Marks(), NOW_MS)
    assert str(refused.value).endswith(".")
    return refused.value


async def test_what_has_not_changed_is_not_sent_again(publisher: Publisher) -> None:
    publisher.pages["/feed"] = conditional(rss("a"))
    first = await fetcher().fetch(publisher.url("/feed"), Marks(), NOW_MS)
    assert first.content == rss("a")
    second = await fetcher().fetch(publisher.url("/feed"), first.marks, NOW_MS)
    assert (second.content, second.marks) == (None, first.marks)
    publisher.pages["/feed"] = conditional(rss("b"))
    assert (await fetcher().fetch(publisher.url("/feed"), second.marks, NOW_MS)).content == rss("b")
    known = [headers.get("if-none-match") for _, headers in publisher.asked]
    assert known == [None, first.marks.etag, first.marks.etag]


async def test_the_time_of_the_last_change_is_sent_back(publisher: Publisher) -> None:
    when = "Wed, 18 Nov 2026 10:00:00 GMT"
    publisher.pages["/feed"] = feed_page("a", **{"Last-Modified": when})
    marks = (await fetcher().fetch(publisher.url("/feed"), Marks(), NOW_MS)).marks
    await fetcher().fetch(publisher.url("/feed"), marks, NOW_MS)
    assert publisher.asked[1][1]["if-modified-since"] == when


async def test_redirects_are_followed_to_where_the_feed_is(publisher: Publisher) -> None:
    publisher.pages["/old"] = Page(status=301, headers={"Location": "/new#part", "Set-Cookie": "a=b"})
    publisher.pages["/new"] = feed_page("a")
    found = await fetcher().fetch(publisher.url("/old"), Marks(), NOW_MS)
    assert (found.content, found.url) == (rss("a"), publisher.url("/new"))
    assert "cookie" not in publisher.asked[1][1]


async def test_redirects_come_to_an_end(publisher: Publisher) -> None:
    publisher.pages["/round"] = Page(status=302, headers={"Location": "/round"})
    assert "more than 5 times" in str(await refusal(publisher.url("/round")))
    assert len(publisher.asked) == 6


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://example.org/", "http://me:you@127.0.0.1/", "http://", "//", "http://[::"]
)
async def test_a_redirect_leads_to_the_web_only(publisher: Publisher, target: str) -> None:
    publisher.pages["/x"] = Page(status=302, headers={"Location": target})
    await refusal(publisher.url("/x"), timeout_s=5)


async def test_no_address_that_is_not_public_is_called_at_any_hop(
    publisher: Publisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first hop is a name that is public, as far as names go; the second is ours."""
    publisher.pages["/inside"] = feed_page("secret")
    resolve = asyncio.get_running_loop().getaddrinfo

    async def public(host: str, port: int, **options: Any) -> Any:
        return await resolve("93.184.216.34" if host == "public.example" else host, port, **options)

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", public)
    assert "not public" in str(await refusal(publisher.url("/inside"), private=False))

    assert publisher.asked == []
    for inside in (
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "http://169.254.169.254/",
        "http://[::ffff:127.0.0.1]/",
        "http://0/",
    ):
        assert "not public" in str(await refusal(inside, private=False))


async def test_the_second_hop_is_checked_like_the_first(publisher: Publisher, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher.pages["/x"] = Page(status=302, headers={"Location": "http://127.0.0.2/inside"})
    port = publisher.address.rpartition(":")[2]
    monkeypatch.setattr("service.addresses.is_public", lambda address: address == "127.0.0.1")
    refused = await refusal(f"http://127.0.0.1:{port}/x", private=False)
    assert "not public" in str(refused)
    assert len(publisher.asked) == 1


async def test_a_bomb_stops_at_the_limit(publisher: Publisher) -> None:
    publisher.pages["/bomb"] = bomb(500_000_000)
    assert "longer than 100,000 bytes" in str(await refusal(publisher.url("/bomb")))


async def test_what_is_too_long_is_not_read_to_its_end(publisher: Publisher) -> None:
    publisher.pages["/long"] = Page(b"x" * (LIMIT + 1), length=10**12)
    assert "longer than 100,000 bytes" in str(await refusal(publisher.url("/long")))


async def test_compressed_content_is_unpacked(publisher: Publisher) -> None:
    packed = gzip.compress(rss("a"))
    publisher.pages["/packed"] = Page(packed, headers={"Content-Encoding": "gzip"}, drip=7)
    assert (await fetcher().fetch(publisher.url("/packed"), Marks(), NOW_MS)).content == rss("a")
    publisher.pages["/cut"] = Page(packed[:-9], headers={"Content-Encoding": "gzip"})
    assert "the end is missing" in str(await refusal(publisher.url("/cut")))
    publisher.pages["/wrong"] = Page(b"not packed", headers={"Content-Encoding": "gzip"})
    assert "cannot be decompressed" in str(await refusal(publisher.url("/wrong")))
    publisher.pages["/other"] = Page(b"x", headers={"Content-Encoding": "br"})
    assert "not asked for" in str(await refusal(publisher.url("/other")))


@pytest.mark.parametrize("page", [Page(silent=True), Page(b"x" * 100_000, drip=1)], ids=["silent", "drip"])
async def test_a_server_that_takes_its_time_gets_no_more_than_the_limit(publisher: Publisher, page: Page) -> None:
    publisher.pages["/slow"] = page
    began = time.monotonic()
    assert "within 0.5 seconds" in str(await refusal(publisher.url("/slow"), timeout_s=0.5))
    assert time.monotonic() - began < 60  # not the hour and a half that it would take


async def test_a_server_that_breaks_off_is_an_error(publisher: Publisher) -> None:
    publisher.pages["/short"] = Page(b"<rss>", length=1000)
    assert "broke off" in str(await refusal(publisher.url("/short")))
    assert "could not be reached" in str(await refusal("http://127.0.0.1:1/"))


@pytest.mark.parametrize(
    ("status", "header", "wait_s"),
    [
        (429, "120", 120),
        (503, "Wed, 18 Nov 2026 11:08:20 GMT", 1_795_000_100 - NOW_MS / 1000),
        (503, "999999999999999", 86_400),
        (429, "soon", 0),
        (404, "-5", 0),
        (500, "Wed, 99 Nov 2026", 0),
    ],
)
async def test_what_the_server_says_about_the_next_time_is_understood(
    publisher: Publisher, status: int, header: str, wait_s: float
) -> None:
    publisher.pages["/busy"] = Page(status=status, headers={"Retry-After": header})
    refused = await refusal(publisher.url("/busy"))
    assert f"answered {status}" in str(refused)
    assert refused.retry_after_s == pytest.approx(wait_s)


async def test_what_is_gone_says_so(publisher: Publisher) -> None:
    publisher.pages["/gone"] = Page(status=410)
    assert (await refusal(publisher.url("/gone"))).gone
    publisher.pages["/later"] = in_turn([Page(status=500), feed_page("a")])
    assert not (await refusal(publisher.url("/later"))).gone
