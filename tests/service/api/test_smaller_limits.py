"""Limits that a setting moves: the answer names what was set."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx

from service.store.embedded import Embedded
from tests.support.api import OIL, serving
from tests.support.refusals import JSON, NDJSON, refused, send, well_formed


def numbered(count: int) -> bytes:
    return b"\n".join(b'{"id":"d%d","text":"crude oil"}' % i for i in range(count))


def lines(answer: httpx.Response) -> list[Any]:
    return [json.loads(line) for line in answer.text.splitlines()]


async def test_a_body_that_does_not_say_its_length_is_limited_too(redis_url: str) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        while True:
            sent += 100_000
            yield b" " * 100_000

    async with serving(redis_url, max_stream_bytes=2_000_000, max_body_bytes=1_000_000) as api:
        for headers, limit in ((JSON, 1_000_000), (NDJSON, 2_000_000)):
            sent = 0
            assert (
                f"{limit:,}" in refused(await api.post("/feedback", content=endless(), headers=headers), 413)["detail"]
            )
            assert sent == limit + 100_000


async def test_topics_have_a_limit(redis_url: str) -> None:
    async with serving(redis_url, max_topics=2) as api:
        await api.topic("a")
        await api.topic("b")
        assert "2 topics" in refused(await send(api, "POST", "/topics", {"id": "c"}), 413)["detail"]
        refused(await send(api, "POST", "/topics", {"id": "a"}), 409)
        await api.request("DELETE", "/topics/a")
        await api.topic("c")


async def test_documents_and_their_length_have_limits(redis_url: str) -> None:
    async with serving(redis_url, max_documents=2, max_text_chars=100) as api:
        await api.topic()
        full = {"documents": [OIL, {"text": "x" * 100}]}
        await api.ok("POST", "/classify", full)
        for much, limit in (([*full["documents"], OIL], " 2 "), ([{"text": "x" * 101}], " 100 ")):
            assert limit in refused(await send(api, "POST", "/classify", {"documents": much}), 413)["detail"]
        line = json.dumps({"text": "", "title": "x" * 101})
        (answer,) = (await api.post("/classify", content=line, headers=NDJSON)).text.splitlines()
        assert json.loads(answer)["status"] == 413


async def test_a_stream_may_have_as_many_lines_as_the_setting_says_and_not_one_more(redis_url: str) -> None:
    async with serving(redis_url, max_stream_lines=300) as api:
        for count, more in ((299, []), (300, []), (301, [413]), (900, [413])):
            answer = await api.post("/classify?store=false", content=numbered(count), headers=NDJSON)
            answers = lines(answer)
            assert [a["document"] for a in answers[:300]] == [f"d{i}" for i in range(min(count, 300))]
            assert [well_formed(a)["status"] for a in answers[300 if more else count :]] == more


async def test_a_stream_may_have_as_many_bytes_as_the_setting_says(redis_url: str) -> None:
    async def in_pieces(content: bytes) -> AsyncIterator[bytes]:
        for start in range(0, len(content), 1000):
            yield content[start : start + 1000]

    content = numbered(100)
    async with serving(redis_url, max_stream_bytes=len(content)) as api:
        path = "/classify?store=false"
        assert len(lines(await api.post(path, content=content, headers=NDJSON))) == 100
        refused(await api.post(path, content=content + b"\n", headers=NDJSON), 413)  # it says its length: 413 at once
        answers = lines(await api.post(path, content=in_pieces(content + b"\n" * 2000), headers=NDJSON))
        assert [a.get("document") for a in answers[:99]] == [f"d{i}" for i in range(99)]
        assert answers[-1]["status"] == 413


async def test_answers_that_wait_have_the_same_limit(redis_url: str) -> None:
    async with serving(redis_url, max_stream_bytes=100_000) as api:
        for n in range(10):
            await api.topic(f"t{n}")
        path = "/classify?store=false&include=all"
        answer = await api.post(path, content=numbered(1000), headers=NDJSON)
        *answers, last = lines(answer)
        assert well_formed(last)["status"] == 413
        assert len(answer.content) < 500_000
        assert [a["document"] for a in answers] == [f"d{i}" for i in range(len(answers))]
        assert len(lines(await api.post(f"{path}&duplex=true", content=numbered(1000), headers=NDJSON))) == 1000


async def test_a_store_that_is_gone_ends_the_stream(tmp_path: Path) -> None:
    """To wait for it once a batch would keep the client of a long stream for hours."""
    judgements = [{"topic": "crude", "document": {"text": f"oil {i}"}, "relevant": True} for i in range(600)]
    with Embedded(tmp_path) as store:
        async with serving(store.url) as api:
            await api.topic()
            store.stop()
            for path, content in (
                ("/classify", numbered(600)),
                ("/feedback", "\n".join(map(json.dumps, judgements)).encode()),
            ):
                answer = await api.post(path, content=content, headers=NDJSON)
                refused(answer, 503)
                assert answer.headers["retry-after"] == "1"
