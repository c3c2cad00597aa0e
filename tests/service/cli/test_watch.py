"""`sluice watch`: from nothing to a feed that is filtered, and back to nothing."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from redis import Redis

from service.cli.watch import topic_id
from service.store.redis.embedded import Embedded
from tests.service.cli.test_commands import SLUICE, Runner
from tests.support.live import Live, live
from tests.support.publisher import Publisher, feed_page, publishing_aside
from tests.support.terminal import Terminal

QUERY = "crude oil OPEC output price"


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with publishing_aside() as publisher:
        publisher.pages["/feed"] = feed_page("OPEC crude oil output price", "Cup final tonight")
        yield publisher


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.mark.timeout(900)
def test_one_command_starts_everything_and_ends_it(
    publisher: Publisher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"http://127.0.0.1:{free_port()}"
    for name, value in (("URL", address), ("SOURCES_PRIVATE", "true"), ("JOB_WORKERS", "0")):
        monkeypatch.setenv(f"SLUICE_{name}", value)
    command = [*SLUICE, "watch", publisher.url("/feed"), "--query", QUERY, "--data", str(tmp_path / "data")]
    terminal = Terminal(command, directory=tmp_path)
    terminal.wait_for("Watching 1 feed for the topic crude-oil-opec-output-price")
    terminal.wait_for("News, 2 stories so far")
    terminal.wait_for("https://example.org/0")
    assert "OPEC crude oil output price" in terminal.shown
    os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 0
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{address}/healthz")
    again = Terminal([*command, "--most", "1"], directory=tmp_path)  # goes on where it ended
    assert again.end() == 0
    assert "accepted" in again.shown


@pytest.fixture(scope="module")
def server(embedded: Embedded) -> Iterator[Live]:
    with Redis.from_url(embedded.url) as client:
        client.flushall()
    with live(embedded.url, sources_private="true") as server:
        yield server


def test_what_cannot_be_watched_is_said_in_a_sentence(
    server: Live, monkeypatch: pytest.MonkeyPatch, publisher: Publisher
) -> None:
    run = Runner(monkeypatch, server.address)
    feed = publisher.url("/feed")
    assert run("watch", feed).code == 2
    missing = run("watch", feed, "--topic", "none")
    assert (missing.code, "give --query" in missing.err) == (1, True)
    httpx.post(f"{server.address}/topics", json={"id": "taken", "query": "wheat"}).raise_for_status()
    taken = run("watch", feed, "--topic", "taken", "--query", QUERY)
    assert (taken.code, "another query: 'wheat'" in taken.err) == (1, True)
    refused = run("watch", "gopher://example.org", "--query", QUERY)
    assert (refused.code, "https:// or http://" in refused.err) == (1, True)
    away = run("watch", feed, "--query", QUERY, "--url", "http://service.example.invalid")
    assert (away.code, "only an address of this machine" in away.err) == (1, True)


def test_topics_are_named_by_their_queries() -> None:
    assert topic_id("Crude oil: OPEC & prices!") == "crude-oil-opec-prices"
    assert topic_id("原油") == ""
    assert len(topic_id("word " * 100)) <= 60
