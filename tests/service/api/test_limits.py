"""Too much, or not what it says it is: refused with a short sentence, early, and nobody else waits meanwhile."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from service.store.redis.embedded import Embedded
from tests.support.api import OIL, Api, running_api
from tests.support.refusals import JSON, NDJSON, refused, send, well_formed

pytestmark = pytest.mark.asyncio(loop_scope="module")

DEEP = b"[" * 900 + b"]" * 900


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b"{} {}",
        b"nonsense",
        b'{"documents": [{"text": "\xff\xfe"}]}',
        b'\xef\xbb\xbf{"documents": [{"text": "oil"}]}',
        '{"documents": [{"text": "oil"}]}'.encode("utf-16"),
        '{"documents": [{"text": "oil"}]}'.encode("utf-16-le"),
        '{"documents": [{"text": "oil"}]}'.encode("utf-32"),
        b'{"documents": [{"text": "\\ud800"}]}',
        b'{"documents": [{"text": "\\udc00 oil"}]}',
        b'{"documents": [{"text": "x", "metadata": {"\\ud800": 1}}]}',
        b'{"documents": [{"text": "a raw \x0b control character"}]}',
        b'{"documents": [{"text": "x", "metadata": {"a": ' + DEEP + b"}}]}",
        b'{"documents": [{"text": "x", "metadata": {"a": ' + b"9" * 5000 + b"}}]}",
        b'{"id": "x", "name": "\\ud83d"}',
        b'{"id": "x", "query": "\\ud83d"}',
    ],
    ids=lambda body: ascii(body[:40]),
)
async def test_what_is_not_json_in_utf_8_is_refused(shared: Api, body: bytes) -> None:
    for method, path in (
        ("POST", "/classify"),
        ("POST", "/feedback"),
        ("POST", "/topics"),
        ("PATCH", "/topics/crude"),
        ("PUT", "/topics/crude/model"),
    ):
        refused(await send(shared, method, path, body), 400)
    if body.strip():
        answer = await shared.post("/classify?store=false", content=body, headers=NDJSON)
        assert [well_formed(json.loads(line))["status"] for line in answer.text.splitlines()] == [400]


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        (None, 415),
        ("", 415),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/json, text/plain", 415),
        ("application/json; charset=latin-1", 415),
        ("application/json; charset=utf-16", 415),
        ("application/json", 200),
        ("Application/JSON; charset=UTF-8", 200),
        ('application/json;charset="utf-8"; profile=x', 200),
        ("application/json; profile=x", 200),
    ],
)
async def test_media_types(shared: Api, content_type: str | None, status: int) -> None:
    content = json.dumps({"documents": [OIL]}).encode()
    headers = {} if content_type is None else {"content-type": content_type}
    answer = await shared.request("POST", "/classify", content=content, headers=headers)
    assert answer.status_code == status
    if status == 415:
        detail = refused(answer, 415)["detail"]
        assert "application/json" in detail or "UTF-8" in detail


async def test_compressed_bodies_are_refused(shared: Api) -> None:
    refused(await send(shared, "POST", "/classify", b"\x1f\x8b\x08", **{"content-encoding": "gzip"}), 415)


async def test_bodies_texts_and_lists_have_limits_and_the_answer_names_them(shared: Api) -> None:
    long = {"text": "a " * 500_000 + "a"}
    judged = {"topic": "crude", "document": "d", "relevant": True}
    for path, body, limit in (
        ("/classify", b" " * 10_000_001, "10,000,000"),
        ("/classify", {"documents": [long]}, "1,000,000"),
        ("/feedback", judged | {"document": long}, "1,000,000"),
        ("/classify", {"documents": [{"text": "oil"}] * 1001}, "1,000"),
        ("/feedback", {"judgements": [judged] * 1001}, "1,000"),
    ):
        assert limit in refused(await send(shared, "POST", path, body), 413)["detail"]
    full = {"documents": [{"text": "oil"}] * 1000, "store": False}
    assert len((await shared.ok("POST", "/classify", full))["results"]) == 1000
    assert (await send(shared, "POST", "/classify", {"documents": [{"text": "a " * 500_000}]})).is_success


@pytest.mark.parametrize(
    "body",
    [
        b'{"documents": [{"text": "x", "metadata": {"a": [' + b",".join([b"[]"] * 3_000_000) + b"]}}]}",
        b'{"documents": [' + b",".join([b"{}"] * 3_000_000) + b"]}",
        b'{"documents": [' + b",".join([b"1"] * 4_000_000) + b"]}",
        b'{"documents": [' + b",".join([b'{"text":"x"}'] * 700_000) + b"]}",
        b'{"nonsense": [' + b",".join([b"0"] * 4_000_000) + b"]}",
    ],
    ids=["lists", "empty", "numbers", "documents", "unknown"],
)
async def test_a_body_of_millions_of_values_is_refused_before_it_is_parsed(shared: Api, body: bytes) -> None:
    """Parsing these held the whole process for one to nine seconds each; nobody else was answered meanwhile."""
    refused(await send(shared, "POST", "/classify", body), 413)
    refused(await send(shared, "POST", "/feedback", body), 413)
    (line,) = (await shared.post("/classify", content=body, headers=NDJSON)).text.splitlines()
    assert json.loads(line)["status"] == 413


# -- limits that a setting moves: the answer names what was set; these empty the store that the tests above share ------


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

    async with running_api(redis_url, max_stream_bytes=2_000_000, max_body_bytes=1_000_000) as api:
        for headers, limit in ((JSON, 1_000_000), (NDJSON, 2_000_000)):
            sent = 0
            assert (
                f"{limit:,}" in refused(await api.post("/feedback", content=endless(), headers=headers), 413)["detail"]
            )
            assert sent == limit + 100_000


async def test_topics_have_a_limit(redis_url: str) -> None:
    async with running_api(redis_url, max_topics=2) as api:
        await api.topic("a")
        await api.topic("b")
        assert "2 topics" in refused(await send(api, "POST", "/topics", {"id": "c"}), 413)["detail"]
        refused(await send(api, "POST", "/topics", {"id": "a"}), 409)
        await api.request("DELETE", "/topics/a")
        await api.topic("c")


async def test_documents_and_their_length_have_limits(redis_url: str) -> None:
    async with running_api(redis_url, max_documents=2, max_text_chars=100) as api:
        await api.topic()
        full = {"documents": [OIL, {"text": "x" * 100}]}
        await api.ok("POST", "/classify", full)
        for much, limit in (([*full["documents"], OIL], " 2 "), ([{"text": "x" * 101}], " 100 ")):
            assert limit in refused(await send(api, "POST", "/classify", {"documents": much}), 413)["detail"]
        line = json.dumps({"text": "", "title": "x" * 101})
        (answer,) = (await api.post("/classify", content=line, headers=NDJSON)).text.splitlines()
        assert json.loads(answer)["status"] == 413


async def test_a_stream_may_have_as_many_lines_as_the_setting_says_and_not_one_more(redis_url: str) -> None:
    async with running_api(redis_url, max_stream_lines=300) as api:
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
    async with running_api(redis_url, max_stream_bytes=len(content)) as api:
        path = "/classify?store=false"
        assert len(lines(await api.post(path, content=content, headers=NDJSON))) == 100
        refused(await api.post(path, content=content + b"\n", headers=NDJSON), 413)  # it says its length: 413 at once
        answers = lines(await api.post(path, content=in_pieces(content + b"\n" * 2000), headers=NDJSON))
        assert [a.get("document") for a in answers[:99]] == [f"d{i}" for i in range(99)]
        assert answers[-1]["status"] == 413


async def test_answers_that_wait_have_the_same_limit(redis_url: str) -> None:
    async with running_api(redis_url, max_stream_bytes=100_000) as api:
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
        async with running_api(store.url) as api:
            await api.topic()
            store.stop()
            for path, content in (
                ("/classify", numbered(600)),
                ("/feedback", "\n".join(map(json.dumps, judgements)).encode()),
            ):
                answer = await api.post(path, content=content, headers=NDJSON)
                refused(answer, 503)
                assert answer.headers["retry-after"] == "1"
