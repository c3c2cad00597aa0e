"""Listeners get the decisions of a topic at once, resume where they were, and never hold up each other."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.errors import NotFound
from service.flow.subscribers import MAX_QUEUED, Queue
from service.store.redis.embedded import Embedded
from tests.service.api.test_openapi import check
from tests.support.api import OIL, Api, running_api
from tests.support.live import Live, live
from tests.support.streaming import classify, oil
from tests.support.waiting import PATIENCE_S, wait_until


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, out_kept=50) as api:
        await api.topic()
        yield api


@pytest.fixture(scope="module")
def server(emptied: Embedded) -> Iterator[Live]:
    with live(emptied.url, max_listeners=20) as server:
        yield server


@pytest.fixture
async def remote(server: Live) -> AsyncIterator[Api]:
    """A client of a live process, with a topic that nobody has used yet."""
    async with Api(base_url=server.address, timeout=PATIENCE_S) as api:
        await api.topic()
        yield api
        await api.ok("DELETE", "/topics/crude")


class EventReader:
    """Server-sent events as a browser reads them."""

    def __init__(self, answer: httpx.Response) -> None:
        assert answer.headers["content-type"].startswith("text/event-stream")
        self._lines = answer.aiter_lines()
        self.last = "0"

    async def next(self) -> tuple[str, Any]:
        """The next event that is not a heartbeat: its name and its data."""
        fields: dict[str, str] = {}
        async with asyncio.timeout(PATIENCE_S):
            async for line in self._lines:
                name, _, value = line.partition(": ")
                if line and not line.startswith(":"):
                    fields[name] = value
                elif not line and "data" in fields:
                    self.last = fields.get("id", self.last)
                    return fields.get("event", "message"), json.loads(fields["data"])
                elif not line:
                    fields = {}
        raise EOFError

    async def take(self, n: int) -> list[str]:
        return [(await self.next())[1]["document"] for _ in range(n)]


@asynccontextmanager
async def listening(api: Api, last: str | None = None) -> AsyncIterator[EventReader]:
    headers = {} if last is None else {"Last-Event-ID": last}
    async with api.stream("GET", "/topics/crude/stream", headers=headers) as answer:
        assert answer.status_code == 200, await answer.aread()
        yield EventReader(answer)


async def test_whoever_listens_is_told_where_it_begins_before_anything_comes(remote: Api) -> None:
    """So that it can go on from there, should the connection break before the first event."""
    assert await classify_passed(remote, oil(1, "before"))
    fields: dict[str, str] = {}
    async with remote.stream("GET", "/topics/crude/stream") as answer:
        async for line in answer.aiter_lines():
            if not line:
                break
            name, _, fields[name] = line.partition(": ")
    async with listening(remote, fields["id"]) as listener:
        assert await classify_passed(remote, oil(1, "after")) == await listener.take(1)


async def classify_passed(api: Api, documents: list[dict[str, Any]]) -> list[str]:
    """Classifies documents; returns the ids of those that were not rejected."""
    return [r["document"] for r in await classify(api, documents) if r["decisions"]]


async def test_every_listener_hears_what_passes_from_when_it_came(remote: Api) -> None:
    await classify_passed(remote, oil(3, "before"))
    async with listening(remote) as first, listening(remote) as second:
        sent = await classify_passed(remote, oil(5))
        assert await first.take(len(sent)) == sent
        assert await second.take(len(sent)) == sent
        async with listening(remote) as third:
            more = await classify_passed(remote, oil(2, "more"))
            assert await third.take(2) == await first.take(2) == more
    document = await remote.ok("GET", "/openapi.json")
    declared = document["paths"]["/topics/{topic}/stream"]["get"]["responses"]["200"]["content"]["text/event-stream"]
    async with listening(remote, "0") as again:
        check(document, declared["x-event"], (await again.next())[1])


async def test_whoever_resumes_misses_nothing_and_hears_nothing_twice(remote: Api) -> None:
    sent = await classify_passed(remote, oil(250))  # more than is read at once
    async with listening(remote, "0") as first:
        assert await first.take(100) == sent[:100]
        place = first.last
    sending = asyncio.create_task(classify_passed(remote, oil(50, "meanwhile")))
    async with listening(remote, place) as second:
        sent += await sending
        received = await second.take(len(sent) - 100)
    assert received == sent[100:]


async def test_a_place_that_is_none_is_refused(remote: Api) -> None:
    for place in ("x", "-1", "1-2-3", "1" * 30):
        assert (await remote.get("/topics/crude/stream", headers={"Last-Event-ID": place})).status_code == 422
    assert (await remote.get("/topics/none/stream")).status_code == 404


async def test_more_listeners_than_allowed_are_told_to_come_back(remote: Api) -> None:
    async with httpx.AsyncClient(base_url=remote.base_url, timeout=PATIENCE_S) as client:
        answers = [
            await client.send(client.build_request("GET", "/topics/crude/stream"), stream=True) for _ in range(20)
        ]
        refused = await remote.get("/topics/crude/stream")
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        for answer in answers:
            await answer.aclose()

    async def free_again() -> bool:
        async with remote.stream("GET", "/topics/crude/stream") as answer:
            return answer.status_code == 200

    await wait_until(free_again)


async def test_whoever_does_not_read_is_sent_away_and_holds_up_nobody(remote: Api, server: Live) -> None:
    """Its socket is full, then its queue; the others hear everything, and what it missed is there when it resumes."""
    await remote.ok("PATCH", "/topics/crude", {"rules": {"accept_if": "report", "reject_if": None}})
    with closing(socket.socket()) as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", server.port))
        slow.settimeout(PATIENCE_S)
        slow.sendall(b"GET /topics/crude/stream HTTP/1.1\r\nhost: x\r\n\r\n")
        assert slow.recv(15) == b"HTTP/1.1 200 OK"
        async with listening(remote) as quick:
            batches = [
                [document | {"text": "and so on " * 1200} for document in oil(200, f"long{n}-")] for n in range(8)
            ]
            assert sum(map(len, batches)) > 1.5 * MAX_QUEUED
            received = asyncio.create_task(quick.take(sum(map(len, batches))))
            sent = [document for batch in batches for document in await classify_passed(remote, batch)]
            assert await received == sent

        def rest() -> bytes:
            tail = b""
            while not tail.endswith(b"0\r\n\r\n"):
                tail = (tail + slow.recv(1 << 16))[-2000:]
            return tail

        assert b"event: problem" in await asyncio.to_thread(rest)


def test_a_queue_takes_no_more_than_it_may_and_keeps_what_it_took() -> None:
    async def fill() -> None:
        queue = Queue()
        events = [(f"{n}-0", b"") for n in range(MAX_QUEUED)]
        queue.put(events)
        assert not queue.overflowed
        queue.put(events[:1])
        queue.put(events[:1])
        assert queue.overflowed
        assert await queue.take(1) == events

    asyncio.run(fill())


async def last(events: AsyncIterator[bytes]) -> None:
    async for _ in events:
        continue


async def test_a_listener_who_left_while_nothing_came_leaves_no_trouble_behind(
    api: Api, capfd: pytest.CaptureFixture[str]
) -> None:
    """The reading that goes on meanwhile still asks for its topic."""
    await api.topic("other")
    async with api.sluice.subscribers.subscribe("other", None) as events:
        async with api.sluice.subscribers.subscribe("crude", None):
            await asyncio.sleep(0.7)  # longer than one reading waits for something to come
        await classify(api, oil(5), topics=["crude"])
        await classify(api, oil(5, "p"), topics=["other"])
        received = [await anext(events), await anext(events)]  # how long to wait before coming back, then an event
        assert b'"topic":"other"' in received[1]
    assert "failed" not in "".join(capfd.readouterr())


async def test_a_listener_to_a_topic_that_is_deleted_is_told(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.flow.subscribers.HEARTBEAT_S", 0.05)
    joined = api.sluice.subscribers.subscribe("crude", None)
    async with joined as events:
        await anext(events)
        assert await anext(events) == b":\n\n"
        await api.ok("DELETE", "/topics/crude")
        with pytest.raises(NotFound):
            await last(events)


async def test_a_listener_hears_nothing_of_the_next_topic_of_that_name(api: Api) -> None:
    async with api.sluice.subscribers.subscribe("crude", None) as events:
        await anext(events)
        await api.ok("DELETE", "/topics/crude")
        await api.topic()
        await classify(api, oil(5))
        with pytest.raises(NotFound):
            await anext(events)


async def test_listeners_go_on_when_the_store_comes_back_and_are_let_go_when_the_server_stops(tmp_path: Path) -> None:
    with Embedded(tmp_path / "data") as store, live(store.url) as server:
        async with Api(base_url=server.address, timeout=PATIENCE_S) as api:
            await api.topic()
            async with listening(api) as listener:
                assert await classify_passed(api, [OIL | {"id": "one"}]) == await listener.take(1)
                assert store.server is not None
                store.server.kill()
                store.server.wait()
                store.start()

                async def sent() -> bool:
                    answer = await api.post("/classify", json={"documents": [OIL | {"id": "two"}]})
                    return answer.is_success

                await wait_until(sent)
                assert await listener.take(1) == ["two"]
                os.kill(server.process, signal.SIGTERM)
                with pytest.raises(EOFError):  # the answer's own end: a connection that is cut off raises another error
                    await listener.next()
