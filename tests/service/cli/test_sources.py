"""`sluice sources` against a running service and a publisher of feeds."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from service.cli.sources import seconds
from service.cli.terminal import Misused
from service.client import Client
from service.sources.opml import Outline, write
from service.store.redis.embedded import Embedded
from tests.service.cli.test_commands import SLUICE, Runner
from tests.support.live import Live, live
from tests.support.publisher import Page, Publisher, feed_page, publishing_aside
from tests.support.terminal import Terminal


@pytest.fixture(scope="module")
def server(embedded: Embedded) -> Iterator[Live]:
    with Redis.from_url(embedded.url) as client:
        client.flushall()
    with live(embedded.url, sources_private="true") as server:
        yield server


@pytest.fixture
def sluice(server: Live) -> Iterator[Client]:
    """A client of a service without sources."""
    with Client(server.address) as client:
        for source in list(client.sources()):
            client.delete_source(source.id)
        yield client


@pytest.fixture
def publisher() -> Iterator[Publisher]:
    with publishing_aside() as publisher:
        publisher.pages["/feed"] = feed_page("OPEC meets", "Wheat falls")
        yield publisher


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, server: Live) -> Runner:
    return Runner(monkeypatch, server.address)


def test_a_source_lives_on_the_command_line(sluice: Client, run: Runner, publisher: Publisher) -> None:
    url = publisher.url("/feed")
    (tried,) = run("sources", "try", url).lines
    assert ([each["title"] for each in tried["documents"]], tried["found"]) == (["OPEC meets", "Wheat falls"], 2)
    (made,) = run("sources", "add", url, "--id", "news", "--every", "2h").lines
    assert (made["id"], made["every_s"], made["status"]["state"]) == ("news", 7200, "waiting")
    (polled,) = run("sources", "poll", "news").lines
    assert (polled["new"], polled["error"]) == (2, None)
    (paused,) = run("sources", "pause", "news").lines
    assert paused["status"]["state"] == "paused"
    (resumed,) = run("sources", "resume", "news", "--every", "30m").lines
    assert (resumed["every_s"], resumed["status"]["state"]) == (1800, "ok")
    (shown,) = run("sources", "show", "news").lines
    assert (shown["status"]["documents"], shown["status"]["title"]) == (2, "News")
    assert [source["id"] for source in run("sources").lines] == ["news"]
    assert run("sources", "list", "--state", "failing").lines == []
    assert run("sources", "remove", "news").code == 0
    assert run("sources").lines == []


def test_subscriptions_come_and_go_as_opml(sluice: Client, run: Runner, publisher: Publisher, tmp_path: Path) -> None:
    file = tmp_path / "feeds.opml"
    file.write_text(write([Outline("News", publisher.url("/feed")), Outline("", "gopher://example.org/")]))
    ran = run("sources", "import", str(file))
    assert (ran.code, ran.err) == (1, "sluice: 1 of 2 feeds were refused.\n")
    assert [feed["status"] for feed in ran.lines[0]["feeds"]] == ["added", "refused"]
    out = tmp_path / "out.opml"
    assert run("sources", "export", "--to", str(out)).code == 0
    assert run("sources", "export").out == out.read_text()
    (again,) = run("sources", "import", str(out)).lines
    assert (again["known"], again["added"]) == (1, 0)
    assert run("sources", "import", "-", stdin=b"nothing").code == 1


def test_a_file_is_added(run: Runner, embedded: Embedded, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("OPEC meets\n")
    with live(embedded.url, sources_files=tmp_path) as server:
        monkeypatch.setenv("SLUICE_URL", server.address)
        (made,) = run("sources", "add-file", "log", "--format", "text", "--id", "log", "--every", "1m").lines
        assert (made["path"], made["format"], made["every_s"]) == ("log", "text", 60)
        assert run("sources", "poll", "log").lines[0]["new"] == 1
        assert run("sources", "remove", "log").code == 0
    refused = run("sources", "add-file", "log", "--url", server.address)
    assert refused.code == 1


def test_a_feed_that_cannot_be_read_is_a_failure(sluice: Client, run: Runner, publisher: Publisher) -> None:
    url = publisher.url("/none")
    tried = run("sources", "try", url)
    assert (tried.code, tried.err) == (1, "sluice: The server answered 404 (Not Found).\n")
    run("sources", "add", url, "--id", "news")
    assert run("sources", "poll", "news").code == 1
    assert [source["id"] for source in run("sources", "list", "--state", "failing").lines] == ["news"]
    missing = run("sources", "poll", "other")
    assert (missing.code, "There is no source 'other'." in missing.err) == (1, True)
    assert run("sources", "add", url, "--every", "soon").code == 2


def test_people_are_shown_text(sluice: Client, server: Live, publisher: Publisher) -> None:
    publisher.pages["/broken"] = Page(status=500)
    sluice.create_source({"id": "news", "kind": "feed", "url": publisher.url("/feed")})
    sluice.create_source({"id": "broken", "kind": "feed", "url": publisher.url("/broken")})
    shown = []
    for arguments in (["poll", "news"], ["poll", "broken"], [], ["show", "broken"], ["try", publisher.url("/feed")]):
        terminal = Terminal([*SLUICE, "sources", *arguments], SLUICE_URL=server.address)
        terminal.end()
        shown.append(terminal.shown)
    polled, failed, listed, one, tried = shown
    assert failed.strip() == "sluice: The server answered 500 (Internal Server Error)."
    assert "OPEC meets" in polled
    assert "2 new of 2" in polled
    assert "https://example.org/0" in polled
    for word in ("broken", "failing", "answered 500", "news", "ok", "News"):
        assert word in listed
    assert "last error" in one
    assert "News: 2 items" in tried


@pytest.mark.parametrize(("text", "value"), [("90", 90), ("90s", 90), ("15m", 900), ("2h", 7200), ("1d", 86_400)])
def test_a_time_is_understood(text: str, value: float) -> None:
    assert seconds(text) == value


@pytest.mark.parametrize("text", ["", "m", "-5m", "1w", "1.5h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(Misused, match="90s, 15m, 2h or 1d"):
        seconds(text)
