"""Epochs: counted once by everybody together, immutable, and named by the log."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from itertools import pairwise

import numpy as np
import pytest

from models.text.analysis import Analysis, bags
from models.text.idf import Counter
from service.run.replay import replay
from service.store.topics import Store
from service.topics.background import (
    MAX_DOCUMENTS,
    MIN_NEW_DOCUMENTS,
    SAMPLE_SIZE,
    Epoch,
    Epochs,
    epoch_number,
    place_of,
)
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.readers import JudgingClient
from tests.support.waiting import PATIENCE_S, wait_until


@pytest.fixture
async def store(redis_url: str) -> AsyncIterator[Store]:
    store = Store(redis_url, PATIENCE_S)
    yield store
    await store.close()


def texts(who: str, n: int) -> dict[str, str]:
    reader = JudgingClient(who, [], seed=20)
    return {document["id"]: document["text"] for document in (reader.document() for _ in range(n))}


def count(epochs: Epochs, documents: dict[str, str]) -> None:
    epochs.count(list(documents), bags([("", text) for text in documents.values()], Analysis()), documents)


def frequencies_of(documents: Sequence[str]) -> Counter:
    counter = Counter()
    counter.add_all(bags([("", text) for text in documents], Analysis()))
    return counter


async def test_an_epoch_survives_the_store(store: Store) -> None:
    epochs, documents = Epochs(store), texts("a", 30)
    count(epochs, documents)
    await epochs.publish()
    read = await Epochs(store).load(epochs.current.number)
    assert read.number == epochs.current.number == epoch_number(1, read.to_bytes())
    assert read.to_bytes() == epochs.current.to_bytes()
    assert read.frequencies.documents == 30
    assert [sampled.document for sampled in read.sample] == list(documents)
    assert read.background.size == 30


async def test_nothing_knows_nothing(store: Store) -> None:
    """Before the first epoch, and where one was deleted."""
    for epoch in (Epochs(store).current, await Epochs(store).load(7)):
        assert (epoch.frequencies.documents, epoch.background.size) == (0, 0)
        assert Epoch.from_bytes(epoch.number, epoch.to_bytes()).to_bytes() == epoch.to_bytes()


async def test_what_several_processes_count_at_once_is_counted_once(store: Store) -> None:
    several = [Epochs(store) for _ in range(4)]
    everything: list[str] = []
    for step in range(3):
        for n, epochs in enumerate(several):
            documents = texts(f"p{n}-{step}", 20 + n)
            everything += documents.values()
            count(epochs, documents)
        await asyncio.gather(*(epochs.publish() for epochs in several))
    for epochs in several:
        await epochs.follow()
        assert place_of(epochs.current.number) == 12
    newest = several[0].current.frequencies
    buckets, df = frequencies_of(everything).nonzero()
    assert newest.documents == len(everything)
    assert np.array_equal(newest.nonzero()[0], buckets)
    assert np.array_equal(newest.nonzero()[1], df)
    assert {epochs.current.to_bytes() for epochs in several} == {several[0].current.to_bytes()}


async def test_the_sample_holds_the_newest_documents_each_once(store: Store) -> None:
    epochs = Epochs(store)
    first, second = texts("a", SAMPLE_SIZE - 10), texts("b", 100)
    count(epochs, first)
    await epochs.publish()
    count(epochs, second)
    await epochs.publish()
    sampled = [s.document for s in epochs.current.sample]
    assert sampled == [*first, *second][-SAMPLE_SIZE:]
    assert len(set(sampled)) == SAMPLE_SIZE


async def test_epochs_come_more_rarely_as_the_stream_grows(store: Store) -> None:
    epochs = Epochs(store)
    published = []
    for n in range(2000):
        count(epochs, texts(f"d{n}", 1))
        if epochs.due:
            await epochs.publish()
            published.append(n + 1)
    assert published[:2] == [MIN_NEW_DOCUMENTS, 2 * MIN_NEW_DOCUMENTS]
    assert 10 < len(published) < 30
    assert all(later - sooner >= sooner // 4 for sooner, later in pairwise(published))


async def test_old_documents_fade(store: Store) -> None:
    epochs = Epochs(store)
    counted = frequencies_of(["oil"])
    counted.documents = MAX_DOCUMENTS
    aged = epochs.current.plus(counted, ()).plus(frequencies_of(["wheat"]), ())
    assert aged.frequencies.documents < MAX_DOCUMENTS


async def test_documents_are_counted_as_they_come_once_each(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await api.topic()
        documents = [{"id": name, "text": text} for name, text in texts("a", MIN_NEW_DOCUMENTS).items()]
        await api.ok("POST", "/classify", {"documents": documents[:-1] + documents[:5]})
        await api.ok("POST", "/classify", {"documents": documents, "store": False})
        assert api.sluice.epochs.current.number == 0
        await api.ok("POST", "/classify", {"documents": documents})
        await wait_until(lambda: at_epoch(api, 1))
        assert api.sluice.epochs.current.frequencies.documents == MIN_NEW_DOCUMENTS


async def test_a_model_keeps_the_background_its_last_event_names(redis_url: str) -> None:
    """What comes later in the stream changes nothing until the topic's next event; a replay knows which it was."""
    async with running_api(redis_url) as api:
        await api.topic()
        for document, relevant in ((OIL, True), (GRAIN, False)):
            await api.judge(document, relevant)
        before = await api.ok("GET", "/topics/crude")
        count(api.sluice.epochs, texts("a", 50))
        await api.sluice.epochs.publish()
        assert await api.ok("GET", "/topics/crude") == before
        assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"
        await api.judge(OIL | {"id": "again"}, True)
        assert place_of(api.sluice.registry.get("crude").epoch) == 1
        count(api.sluice.epochs, texts("b", 50))
        await api.sluice.epochs.publish()
        assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"


async def at_epoch(api: Api, place: int) -> bool:
    return place_of(api.sluice.epochs.current.number) == place
