"""Too much, or not what it says it is: refused with a short sentence, early, and nobody else waits meanwhile."""

import json

import pytest

from tests.support.api import OIL, Api
from tests.support.refusals import NDJSON, refused, send, well_formed

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
