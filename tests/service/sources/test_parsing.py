"""Parsing in a process of its own: a feed that exhausts it, or breaks it, is an error of that feed."""

import sys

import pytest

from service.sources.fetching import CannotRead
from service.sources.parsing import Parsing
from tests.support.publisher import rss

URL = "https://example.org/feed"


async def test_a_feed_is_parsed() -> None:
    feed = await Parsing().parse(rss("OPEC meets"), URL)
    assert (feed.title, feed.items[0].title) == ("News", "OPEC meets")


async def test_what_is_no_feed_says_so() -> None:
    with pytest.raises(CannotRead, match="This is not a feed"):
        await Parsing().parse(b"hello", URL)


async def test_a_feed_that_takes_too_long_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.sources.parsing.WALL_S", 0.01)
    with pytest.raises(CannotRead, match="too much time or memory"):
        await Parsing().parse(rss("OPEC meets"), URL)


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "too much time or memory"),
        ("raise AttributeError('a bug')", "the log of the service says why"),
    ],
)
async def test_a_child_that_dies_is_an_error_of_the_feed(
    monkeypatch: pytest.MonkeyPatch, program: str, sentence: str
) -> None:
    monkeypatch.setattr("service.sources.parsing.command", lambda *_: [sys.executable, "-c", program])
    with pytest.raises(CannotRead, match=sentence):
        await Parsing().parse(rss("OPEC meets"), URL)


async def test_the_child_limits_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    limited = "import service.sources.child as child; child.CPU_S = 1; child.main()"
    monkeypatch.setattr(
        "service.sources.parsing.command", lambda _, *arguments: [sys.executable, "-c", limited, *arguments]
    )
    many = rss(*map(str, range(60_000)))
    with pytest.raises(CannotRead, match="too much time or memory"):
        await Parsing().parse(many, URL)
