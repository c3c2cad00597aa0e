"""Limits that a setting moves: the answer names what was set."""

import json
from collections.abc import AsyncIterator

from tests.refusals import JSON, NDJSON, refused, send
from tests.serving import OIL, serving


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
