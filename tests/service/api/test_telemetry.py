"""What Prometheus reads: from any process, about all of them, and never less than before."""

import os
import re
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from redis import Redis

from service.processes import API, APPLICATION
from service.run import housekeeping
from service.store.redis.embedded import Embedded
from service.store.stream.inbox import ConsumerStats
from tests.support import ROOT
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.live import live
from tests.support.processes import ServeProcess, children
from tests.support.streaming import classify, grain, oil
from tests.support.waiting import PATIENCE_S, wait_until_sync

PAGES = "".join(path.read_text() for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")))
Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


def parsed(text: str) -> Series:
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(found) == len(samples), "a series is there twice"
    return found


def value(series: Series, name: str, **labels: str) -> float | None:
    return series.get((name, frozenset(labels.items())))


def counters(text: str) -> Series:
    """What may only grow: counters, and the parts of histograms."""
    growing = {one.name for one in text_string_to_metric_families(text) if one.type in ("counter", "histogram")}
    ends = ("_total", "_bucket", "_count", "_sum")
    return {key: n for key, n in parsed(text).items() if key[0].endswith(ends) and key[0].rpartition("_")[0] in growing}


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


async def scraped(api: Api) -> Series:
    answer = await api.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parsed(answer.text)


async def test_documents_decisions_and_judgements_are_counted(api: Api) -> None:
    await api.topic()
    await api.topic("wheat", query="zither", goal={"min_precision": 0.9})
    results = await classify(api, [*oil(5), *grain(5)])
    await classify(api, oil(3, "named"), topics=["crude"])
    await classify(api, oil(2, "unkept"), store=False)
    await api.judge(OIL, True)
    await api.judge(OIL, True)
    await api.judge(GRAIN, False)
    await housekeeping.save_goals(api.sluice)
    found = await scraped(api)
    tally = (await api.ok("GET", "/topics/crude"))["status"]["passed"]
    assert len(results) == 10
    assert tally["accepted"] > 0
    assert value(found, "sluice_documents_total") == 13
    assert value(found, "sluice_http_documents_total") == 15
    assert value(found, "sluice_decisions_total", decision="accept") == tally["accepted"]
    assert value(found, "sluice_decisions_total", decision="abstain") == tally["abstained"]
    assert value(found, "sluice_topic_documents_total", topic="crude") == 13
    assert value(found, "sluice_topic_decisions_total", topic="crude", decision="accept") == tally["accepted"]
    assert value(found, "sluice_http_judgements_total", status="learned") == 2
    assert value(found, "sluice_http_judgements_total", status="known") == 1
    assert value(found, "sluice_judgements", label="relevant") == 1
    assert value(found, "sluice_topic_judgements", topic="crude", label="irrelevant") == 1
    assert value(found, "sluice_goals", state="learning") == 1
    assert value(found, "sluice_topic_goal", topic="wheat", state="learning") == 1
    assert value(found, "sluice_topics") == value(found, "sluice_process_topics", process="api") == 2
    assert value(found, "sluice_build_info", version="0.1.0") == value(found, "sluice_store_up") == 1
    for name in ("sluice_process_bank_bytes", "sluice_process_resident_bytes", "sluice_process_start_time_seconds"):
        assert (value(found, name, process="api") or 0) > 0, name
    assert (value(found, "sluice_store_memory_bytes") or 0) > 0


async def test_every_metric_is_documented_and_every_one_that_is_documented_is_a_metric(api: Api) -> None:
    text = (await api.get("/metrics")).text
    named = set(re.findall(r"^# TYPE (\w+)", text, flags=re.MULTILINE))
    assert named == set(re.findall(r"`(sluice_\w+)", PAGES))


async def test_requests_are_counted_by_template_method_and_status(api: Api) -> None:
    """Nobody makes series by asking for what is not there."""
    await api.topic()
    for topic in ("crude", "none", "nothing"):
        await api.get(f"/topics/{topic}")
    for path in ("/nowhere", "/else/where"):
        await api.get(path)
    await api.request("BREW", "/classify")
    found = await scraped(api)
    requests = {key[1]: n for key, n in found.items() if key[0] == "sluice_http_requests_total"}
    assert requests == {
        frozenset({"method": method, "route": route, "status": status}.items()): n
        for method, route, status, n in (
            ("POST", "/topics", "201", 1),
            ("GET", "/topics/{topic}", "200", 1),
            ("GET", "/topics/{topic}", "404", 2),
            ("GET", "other", "404", 2),
            ("other", "/classify", "405", 1),
        )
    }
    assert value(found, "sluice_http_request_seconds_count", method="GET", route="/topics/{topic}") == 3
    assert value(found, "sluice_http_request_seconds_bucket", method="GET", route="/topics/{topic}", le="+Inf") == 3


async def test_what_fails_is_counted_as_what_it_was_answered_with(api: Api, redis_url: str) -> None:
    await api.topic()
    with Redis.from_url(redis_url) as client:
        client.set("sluice:routes", "what should not be there")
        transport = httpx.ASGITransport(api.app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://sluice") as other:
            assert (await other.get("/topics/crude/routes")).status_code == 500
        client.delete("sluice:routes")
    found = await scraped(api)
    assert value(found, "sluice_http_requests_total", method="GET", route="/topics/{topic}/routes", status="500") == 1


def test_what_the_server_refuses_before_it_is_read_is_counted(redis_url: str) -> None:
    with live(redis_url, max_requests=1) as server:

        def sent(content: bytes) -> socket.socket:
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE_S)
            connection.sendall(content)
            return connection

        with sent(b"this is not HTTP\r\n\r\n") as garbage:
            assert garbage.recv(65536).startswith(b"HTTP/1.1 400")
        head = b"POST /classify HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n"
        with sent(head) as waiting:

            def refused() -> bool:
                return httpx.get(f"{server.address}/healthz", timeout=PATIENCE_S).status_code == 503

            wait_until_sync(refused)
            waiting.sendall(b"{}")
            assert waiting.recv(65536).startswith(b"HTTP/1.1 422")
        found = parsed(httpx.get(f"{server.address}/metrics", timeout=PATIENCE_S).raise_for_status().text)
    assert value(found, "sluice_http_requests_total", method="other", route="other", status="400") == 1
    assert (value(found, "sluice_http_requests_total", method="GET", route="other", status="503") or 0) >= 1
    assert value(found, "sluice_http_requests_total", method="POST", route="/classify", status="422") == 1


async def test_topics_with_series_of_their_own_are_bounded_and_stay_the_same(redis_url: str) -> None:
    async with running_api(redis_url, metrics_topics=2) as api:
        for topic in ("zebra", "yak", "ant"):
            await api.topic(topic)
        found = await scraped(api)
        assert value(found, "sluice_topics") == 3
        shown = {dict(key[1])["topic"] for key in found if key[0] == "sluice_topic_documents_total"}
        assert shown == {"zebra", "yak"}


async def test_what_was_counted_stays_when_topics_and_routes_go(api: Api, redis_url: str) -> None:
    await api.topic()
    await api.ok("PUT", "/topics/crude/routes", {"routes": [{"to": "stream", "key": "elsewhere"}]})
    await classify(api, oil(5))
    before = (await api.get("/metrics")).text
    assert counters(before)[("sluice_documents_total", frozenset())] == 5
    assert value(parsed(before), "sluice_routes", state="waiting") == 1
    await api.ok("DELETE", "/topics/crude")
    after = counters((await api.get("/metrics")).text)
    for key, n in counters(before).items():
        assert after.get(key, 0) >= n or key[0].startswith("sluice_topic_"), key


async def test_the_stream_its_consumers_jobs_and_deliveries_are_told(api: Api, redis_url: str) -> None:
    await api.topic()
    with Redis.from_url(redis_url) as client:
        client.xadd("sluice:in", {"text": "crude oil"})
        client.hset("sluice:deliveries", mapping={"delivered": 7, "failed": 2})
    await api.sluice.inbox.group.open()
    await api.ok("POST", "/jobs", {"kind": "retrain", "method": "svm"})
    await api.sluice.inbox.report(ConsumerStats(started_ms=1, documents=41, dead=2, taken_over=3, per_s=4.5))
    name = api.sluice.inbox.name
    found = await scraped(api)
    assert value(found, "sluice_in_lag") == 1
    assert (value(found, "sluice_in_lag_seconds") or 0) >= 0
    assert value(found, "sluice_in_pending") == value(found, "sluice_in_dead") == 0
    assert value(found, "sluice_consumers") == 1
    assert value(found, "sluice_consumer_documents_total", consumer=name) == 41
    assert value(found, "sluice_consumer_dead_total", consumer=name) == 2
    assert value(found, "sluice_consumer_taken_over_total", consumer=name) == 3
    assert value(found, "sluice_consumer_documents_per_second", consumer=name) == 4.5
    assert value(found, "sluice_jobs", state="queued") == 1
    assert value(found, "sluice_jobs", state="failed") == 0
    assert value(found, "sluice_deliveries_total", result="delivered") == 7
    assert value(found, "sluice_deliveries_given_up_total") == 0


async def test_a_store_that_is_gone_leaves_what_the_process_knows(tmp_path: Path) -> None:
    with Embedded(tmp_path / "data") as server:
        async with running_api(server.url) as api:
            await api.topic()
            await api.decide(OIL)
            assert value(await scraped(api), "sluice_store_up") == 1
            assert server.server is not None
            server.server.kill()
            server.server.wait()
            found = await scraped(api)
            assert value(found, "sluice_store_up") == 0
            assert value(found, "sluice_http_documents_total") == 1
            assert value(found, "sluice_process_topics", process="api") == 1
            assert value(found, "sluice_documents_total") is None


def test_any_process_tells_of_all_and_none_forgets_what_the_dead_have_counted(tmp_path: Path) -> None:
    sluice = ServeProcess(tmp_path, application=APPLICATION, workers=2)

    def scrape() -> str:
        return httpx.get(f"{sluice.address}/metrics", timeout=30).raise_for_status().text

    def counted() -> float:
        return value(parsed(scrape()), "sluice_http_requests_total", method="GET", route="/healthz", status="200") or 0

    def processes() -> set[str]:
        return {dict(key[1])["process"] for key in parsed(scrape()) if key[0] == "sluice_process_resident_bytes"}

    try:
        for _ in range(40):  # each on a connection of its own, so that both get some
            httpx.get(f"{sluice.address}/healthz", timeout=30).raise_for_status()
        assert [counted() for _ in range(10)] == [40] * 10
        assert processes() == {"api-1", "api-2"}
        before = counters(scrape())
        running_api = [pid for pid, command in children(sluice.process.pid).items() if API in command]
        assert len(running_api) == 2
        os.kill(running_api[0], signal.SIGKILL)

        def restarted() -> bool:
            now = [pid for pid, command in children(sluice.process.pid).items() if API in command]
            return len(now) == 2 and running_api[0] not in now and processes() == {"api-1", "api-2"}

        wait_until_sync(restarted)
        after = counters(scrape())
        assert all(after[key] >= n for key, n in before.items())
        (counts,) = {
            Path(line.removeprefix("PROMETHEUS_MULTIPROC_DIR="))
            for line in Path(f"/proc/{running_api[1]}/environ").read_text().split("\0")
            if line.startswith("PROMETHEUS_MULTIPROC_DIR=")
        }
        assert not list(counts.glob(f"gauge_*_{running_api[0]}.db"))
        assert list(counts.glob(f"counter_{running_api[0]}.db"))
    finally:
        sluice.end()
    assert not counts.exists()
