"""The demonstration: news that drift, the same for the same seed, and a service that keeps up with them."""

import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator

import httpx
import pytest

from service.client import Client, ClientError
from service.demo.newswire import newswire
from service.demo.play import Play
from service.demo.readers import INTERESTS
from service.demo.screen import live as screen
from service.demo.screen import summary
from service.demo.stories import FILLERS, GAPS, THEMES
from service.store.redis.embedded import Embedded
from tests.support.live import Live, live


@pytest.fixture(scope="module")
def server(emptied: Embedded) -> Iterator[Live]:
    with live(emptied.url) as server:
        yield server


def test_the_same_seed_tells_the_same_stories() -> None:
    assert list(newswire(300, 20)) == list(newswire(300, 20)) != list(newswire(300, 21))


def test_stories_are_short_texts_without_gaps_and_hardly_two_are_alike() -> None:
    stories = list(newswire(2000, 20))
    assert len({story.text for story in stories}) > 1950
    for story in stories:
        assert "{" not in story.title + story.text
        assert 10 < len(story.title) < 60
        assert story.text.endswith(".")
        assert 15 <= len(story.text.split()) <= 100


def test_every_gap_can_be_filled() -> None:
    texts = [
        *FILLERS,
        *(text for chapters in THEMES.values() for chapter in chapters for part in chapter for text in part),
    ]
    for text in texts:
        text.format(**{gap: words[0] for gap, words in GAPS.items()})


def test_one_chapter_gives_way_to_the_next() -> None:
    stories = list(newswire(3000, 20))
    thirds = [Counter(s.chapter for s in stories[i : i + 1000] if s.theme == "oil") for i in (0, 1000, 2000)]
    for number, third in enumerate(thirds):
        assert third.most_common(1)[0][0] == number
        assert third[number] > 0.85 * third.total()
        assert set(third) <= {number, number + 1}


def test_topics_learn_what_the_readers_want_and_are_gone_in_the_end(server: Live) -> None:
    with Client(server.address) as sluice:
        play = Play(sluice, 600, seed=20, run="test")
        with play.topics(keep=False):
            for _ in play.steps():
                assert screen(play)
            judged = {topic.id: topic.status.judged for topic in sluice.topics()}
        assert list(sluice.topics()) == []
    for score in play.scores(0, play.done):
        assert score.stories == play.done == 600
        assert score.precision is not None
        assert score.precision > 0.8, score
        assert score.recall is not None
        assert score.recall > 0.4, score
        counts = judged[score.topic]
        assert counts.relevant + counts.irrelevant == score.judgements > 50
    assert summary(play)


def test_topics_are_kept_if_asked_and_a_second_demonstration_says_so(server: Live) -> None:
    with Client(server.address) as sluice:
        with Play(sluice, 100, 20, "kept").topics(keep=True):
            pass
        assert {topic.id for topic in sluice.topics()} == {interest.topic for interest in INTERESTS}
        with (
            pytest.raises(ClientError, match="delete them first: demo-energy"),
            Play(sluice, 100, 20, "x").topics(False),
        ):
            pass
        assert len(list(sluice.topics())) == len(INTERESTS)
        for interest in INTERESTS:
            sluice.delete(interest.topic)


class Interrupting(httpx.HTTPTransport):
    """Ends the program, as Ctrl-C does, when the last topic has been created and the reply is still on its way; or,
    with `early`, when the request has not been sent."""

    def __init__(self, early: bool) -> None:
        super().__init__()
        self._early = early

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        last = request.method == "POST" and INTERESTS[-1].topic.encode() in request.read()
        if last and self._early:
            raise KeyboardInterrupt
        response = super().handle_request(request)
        if last:
            response.read()
            raise KeyboardInterrupt
        return response


@pytest.mark.parametrize("early", [False, True])
def test_an_interrupt_while_topics_are_created_leaves_none(server: Live, early: bool) -> None:
    """The last topic was there, but not yet known to have been created."""
    with Client(server.address, transport=Interrupting(early)) as sluice:
        with pytest.raises(KeyboardInterrupt), Play(sluice, 100, 20, "interrupted").topics(keep=False):
            pass
        assert not list(sluice.topics())


def test_a_demonstration_that_is_ended_leaves_no_topic(server: Live) -> None:
    command = [sys.executable, "-m", "service.cli.main", "demo", "--url", server.address, "--json"]
    playing = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with Client(server.address) as sluice:
            while len(list(sluice.topics())) < len(INTERESTS):
                assert playing.poll() is None
                time.sleep(0.05)
            playing.send_signal(signal.SIGTERM)
            assert playing.wait(30) != 0
            assert not list(sluice.topics())
    finally:
        playing.kill()
        playing.wait()
