"""Following a topic: nothing is missed when a connection ends, and nothing is waited for in vain."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice

import httpx
import pytest

from service.client import AsyncClient, Client, Refused, Retries, UnexpectedReply, Unreachable
from service.store.redis.embedded import Embedded
from tests.support.api import QUERY
from tests.support.live import Live, live
from tests.support.streaming import oil

QUICK = Retries(attempts=3, first_s=0.001)
PASSED = {"id": "x", "topic": "crude", "decision": "accept", "score": 0.5, "version": 1, "title": "", "text": "oil"}
Handler = Callable[[httpx.Request], httpx.Response]


def event(n: int) -> bytes:
    passed = PASSED | {"document": f"d{n}", "at": "2026-11-16T15:00:00Z"}
    return f"id: {n}-0\ndata: {json.dumps(passed)}\n\n".encode()


def events(*parts: bytes) -> httpx.Response:
    return httpx.Response(
        200, headers={"content-type": "text/event-stream"}, content=b"retry: 10\n\n" + b"".join(parts)
    )


def listening(handler: Handler) -> Client:
    return Client("http://sluice", retries=QUICK, transport=httpx.MockTransport(handler))


def test_whoever_is_cut_off_goes_on_where_it_was() -> None:
    resumed: list[str | None] = []
    slow = b'event: problem\ndata: {"title": "Busy", "status": 503, "detail": "You read too slowly."}\n\n'
    responses = [
        lambda: events(event(1), b":\n\n", event(2), b"id: 3-0\ndata: {"),  # broken off in the middle of the third
        lambda: events(event(3), slow),
        lambda: httpx.Response(503, json={"title": "Busy", "status": 503, "detail": "Later."}),
        lambda: events(event(4)),
    ]

    def respond(request: httpx.Request) -> httpx.Response:
        resumed.append(request.headers.get("last-event-id"))
        return responses[len(resumed) - 1]()

    with listening(respond) as client:
        assert [passed.document for passed in islice(client.tail("crude"), 4)] == ["d1", "d2", "d3", "d4"]
    assert resumed == [None, "2-0", "3-0", "3-0"]


def test_whoever_is_cut_off_before_anything_came_goes_on_where_it_began() -> None:
    resumed: list[str | None] = []
    responses = [lambda: events(b"id: 7-0\n\n"), lambda: events(event(8))]

    def respond(request: httpx.Request) -> httpx.Response:
        resumed.append(request.headers.get("last-event-id"))
        return responses[len(resumed) - 1]()

    with listening(respond) as client:
        assert next(client.tail("crude")).document == "d8"
    assert resumed == [None, "7-0"]


def test_lines_end_where_the_stream_says_not_where_a_text_does() -> None:
    text = "one\u2028two\u2029three\u0085four"
    passed = PASSED | {"document": "d1", "at": "2026-11-16T15:00:00Z", "text": text}
    raw = f"id: 1-0\ndata: {json.dumps(passed, ensure_ascii=False)}\n\n".encode()
    with listening(lambda _: events(raw)) as client:
        assert next(client.tail("crude")).text == text


def test_an_event_that_nobody_can_read_is_an_error_of_the_client() -> None:
    with listening(lambda _: events(b"data: {}\n\n")) as client, pytest.raises(UnexpectedReply):
        next(client.tail("crude"))


def test_a_topic_that_is_gone_is_not_waited_for() -> None:
    gone = b'event: problem\ndata: {"title": "Not found", "status": 404, "detail": "There is no topic any more."}\n\n'
    with listening(lambda _: events(event(1), gone)) as client:
        events_of_topic = client.tail("crude")
        assert next(events_of_topic).document == "d1"
        with pytest.raises(Refused, match="any more"):
            next(events_of_topic)


def test_nobody_is_listened_to_for_ever_without_a_sign_of_life() -> None:
    requests = 0

    def fail(request: httpx.Request) -> httpx.Response:
        nonlocal requests
        requests += 1
        raise httpx.ReadTimeout("silent")

    with listening(fail) as client, pytest.raises(Unreachable):
        next(client.tail("crude"))
    assert requests == 3


@pytest.fixture(scope="module")
def server(emptied: Embedded) -> Iterator[Live]:
    with live(emptied.url) as server:
        yield server


async def test_what_a_topic_lets_through_is_heard_as_it_happens(server: Live) -> None:
    async with AsyncClient(server.address) as client:
        await client.create({"id": "followed", "query": QUERY})
        first = asyncio.ensure_future(anext(client.tail("followed")))
        while not first.done():  # an event that comes before it listens is not for it
            await client.classify([oil(1, f"now-{id(first)}-{asyncio.get_running_loop().time()}-")[0]], ["followed"])
            await asyncio.wait([first], timeout=0.1)
        assert first.result().topic == "followed"
        before = [passed.document async for passed in client.accepted("followed", limit=2)]
        again = client.tail("followed", "0")
        assert [(await anext(again)).document for _ in before] == before[::-1]
        arguments = ["tail", "followed", "--all", "--most", "1", "--url", server.address]
        ran = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "service.cli.main", *arguments],
            capture_output=True,
            timeout=60,
            check=True,
        )
        assert json.loads(ran.stdout)["document"] == before[-1]
        await client.delete("followed")
