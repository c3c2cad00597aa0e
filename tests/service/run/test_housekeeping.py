"""Housekeeping: topics under an old background are refreshed, epochs that nobody needs are forgotten."""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest

from service.processes import HOUSEKEEPING, command
from service.run.housekeeping import keep_house
from service.run.replay import replay
from service.topics.background import KEPT_EPOCHS, STALE_EPOCHS, STALE_EPOCHS_OF_PROMISES, place_of
from tests.service.topics.test_background import count, texts
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.waiting import PATIENCE_S, wait_until

OLD = 13  # the place of an epoch that is no longer one of the first


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        await api.topic()
        await api.judge(OIL | {"id": "oil"}, True)
        await api.judge(GRAIN | {"id": "grain"}, False)
        yield api


async def advance(api: Api, epochs: int) -> None:
    for n in range(epochs):
        count(api.sluice.epochs, texts(f"{api.sluice.epochs.current.number}-{n}", 20))
        await api.sluice.epochs.publish()


async def kinds(api: Api, topic: str = "crude") -> list[str]:
    _, events = await api.sluice.store.logs.load(topic)
    return [event.kind for event in events]


async def test_a_topic_is_refreshed_when_its_background_is_old(api: Api) -> None:
    await advance(api, OLD)
    await keep_house(api.sluice)
    assert await kinds(api) == ["created", "judged", "judged", "refreshed"]
    await advance(api, STALE_EPOCHS - 1)
    await keep_house(api.sluice)
    assert (await kinds(api)).count("refreshed") == 1
    await advance(api, 1)
    await keep_house(api.sluice)
    assert place_of(api.sluice.registry.get("crude").epoch) == OLD + STALE_EPOCHS
    await keep_house(api.sluice)
    assert (await kinds(api)).count("refreshed") == 2
    (newest, *_) = (await api.ok("GET", "/topics/crude/versions"))["items"]
    assert newest["cause"] == "refresh"
    assert (await api.ok("GET", "/topics/crude"))["status"]["judged"] == {"relevant": 1, "irrelevant": 1}
    assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"


async def test_a_topic_from_the_beginning_of_a_stream_is_refreshed_as_soon_as_there_is_one(api: Api) -> None:
    places = []
    for _ in range(20):
        await advance(api, 1)
        await keep_house(api.sluice)
        places.append(place_of(api.sluice.registry.get("crude").epoch))
    assert sorted(set(places)) == [1, 2, 3, 4, 6, 9, 13, 19]


async def test_a_topic_that_promises_how_much_it_abstains_from_is_refreshed_sooner(api: Api) -> None:
    await advance(api, OLD)
    await keep_house(api.sluice)
    await api.topic("promising", goal={"max_abstain": 0.1})
    await advance(api, STALE_EPOCHS_OF_PROMISES)
    await keep_house(api.sluice)
    assert await kinds(api, "promising") == ["created", "refreshed"]
    assert (await kinds(api)).count("refreshed") == 1


async def test_two_workers_at_once_refresh_once(api: Api, redis_url: str) -> None:
    for n in range(5):
        await api.topic(f"t{n}")
    await advance(api, STALE_EPOCHS)
    async with running_api(redis_url) as other:
        await asyncio.gather(keep_house(api.sluice), keep_house(other.sluice))
    for n in range(5):
        assert await kinds(api, f"t{n}") == ["created", "refreshed"]


async def test_epochs_that_nobody_names_are_forgotten_but_for_the_newest(api: Api) -> None:
    await advance(api, KEPT_EPOCHS + 5)
    await keep_house(api.sluice)  # refreshes; the epochs of before are still named by what was served until now
    await keep_house(api.sluice)
    assert [place_of(number) for number in await api.sluice.store.epochs.numbers()] == list(range(6, KEPT_EPOCHS + 6))


async def test_an_epoch_that_a_topic_names_is_kept_however_old(api: Api) -> None:
    await advance(api, 1)
    await api.judge(OIL | {"id": "more"}, True)
    named = api.sluice.epochs.current.number
    await advance(api, KEPT_EPOCHS + 5)
    blob = await api.sluice.store.epochs.load(named)
    await keep_house(api.sluice)
    assert blob
    assert await api.sluice.store.epochs.load(named) == blob


async def test_a_version_whose_background_is_forgotten_is_restored_under_the_present_one(api: Api) -> None:
    await advance(api, 1)
    await api.judge(OIL | {"id": "more"}, True)
    named = api.sluice.epochs.current.number
    await advance(api, KEPT_EPOCHS + 2)
    for _ in range(2):
        await keep_house(api.sluice)
    assert named not in await api.sluice.store.epochs.numbers()
    restored = await api.ok("POST", "/topics/crude/versions/4/restore")
    assert restored["status"]["judged"] == {"relevant": 2, "irrelevant": 1}
    assert api.sluice.registry.get("crude").epoch == api.sluice.epochs.current.number
    assert (await replay(api.sluice.store, "crude", api.sluice.config, verify=True)).outcome == "equal"


async def test_the_process_does_its_work_and_ends_when_asked(api: Api, redis_url: str) -> None:
    await advance(api, KEPT_EPOCHS + STALE_EPOCHS)
    with housekeeper(redis_url) as process:

        async def done() -> bool:
            return "refreshed" in await kinds(api) and len(await api.sluice.store.epochs.numbers()) == KEPT_EPOCHS

        await wait_until(done)
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0

    async def in_sync() -> bool:
        return bool((await api.decide(OIL))["version"] == 4)

    await wait_until(in_sync)


@contextmanager
def housekeeper(redis_url: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = os.environ | {"SLUICE_REDIS": redis_url, "SLUICE_SWEEP_S": "0.1"}
    with subprocess.Popen(command(HOUSEKEEPING), env=environment) as process:
        try:
            yield process
        finally:
            process.kill()
