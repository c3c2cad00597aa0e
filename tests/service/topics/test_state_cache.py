"""The states of topics that a process keeps: as many as have room, the newest always."""

from models.text.analysis import Analysis
from models.text.idf import Frequencies
from service.store.events import Event, Head
from service.topics.background import Epoch
from service.topics.features import log_features
from service.topics.settings import TopicSettings
from service.topics.state import TopicState
from service.topics.state_cache import StateCache


def state(topic: str) -> TopicState:
    query = log_features("", "crude oil", Analysis(), Epoch(0, Frequencies.prior(), ()))
    created = Event("created", 0, 0, 1, settings=TopicSettings(created_ms=0).model_dump_json(), features=query)
    return TopicState(topic, Head("", 1, 0), [created], weights=100)


def test_the_state_that_was_put_longest_ago_is_dropped_first() -> None:
    a, b, c = map(state, "abc")
    cache = StateCache(max_bytes=a.nbytes + b.nbytes)
    for topic in (a, b, a, c):
        cache.put(topic)
    assert [cache.get(topic) for topic in "abc"] == [a, None, c]


def test_a_state_that_is_too_large_is_kept_alone() -> None:
    a, b = map(state, "ab")
    cache = StateCache(max_bytes=1)
    cache.put(a)
    cache.put(b)
    assert [cache.get(topic) for topic in "ab"] == [None, b]


def test_what_is_removed_makes_room() -> None:
    a, b, c = map(state, "abc")
    cache = StateCache(max_bytes=a.nbytes + b.nbytes)
    for topic in (a, b):
        cache.put(topic)
    cache.remove("a")
    cache.remove("nobody")
    cache.put(c)
    assert [cache.get(topic) for topic in "abc"] == [None, b, c]
    cache.clear()
    cache.put(a)
    cache.put(b)
    assert [cache.get(topic) for topic in "abc"] == [a, b, None]
