"""Fixtures for every test: a real store, emptied before each test, and no settings from the environment.

`scripts/test` runs the tests in two processes; each has a store of its own.
"""

import os
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio
from hypothesis import HealthCheck, settings
from redis import Redis

from service.config import PREFIX
from service.store.redis.embedded import Embedded
from tests.support.api import Api, running_api
from tests.support.waiting import STORE_S

# The same examples on every run, and no deadline: the machines that run this are shared, and a kernel may be compiled.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Starts the longest test first, so that neither of two processes waits for it at the end."""
    items.sort(key=lambda item: item.path.stem != "test_crash")


@pytest.fixture(scope="session", autouse=True)
def _plain_environment() -> None:
    for name in [name for name in os.environ if name.startswith(PREFIX)]:
        del os.environ[name]
    os.environ[f"{PREFIX}STORE_TIMEOUT_S"] = str(STORE_S)  # for the tests that are not about a slow store


@pytest.fixture(scope="session")
def embedded() -> Iterator[Embedded]:
    """One embedded store for the whole run. A test that stops or kills a store starts its own."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as directory, Embedded(Path(directory)) as server:
        yield server


@pytest.fixture(scope="module")
def emptied(embedded: Embedded) -> Embedded:
    """The same store, emptied before the tests of a module, for what they share."""
    with Redis.from_url(embedded.url) as client:
        client.flushall()
    return embedded


@pytest.fixture
def redis_url(embedded: Embedded) -> str:
    """The address of an empty store."""
    with Redis.from_url(embedded.url) as client:
        client.flushall()
    return embedded.url


@pytest.fixture
def store(embedded: Embedded) -> Iterator["Redis"]:
    """A Redis client of the store, for tests that look at keys themselves."""
    with Redis.from_url(embedded.url, decode_responses=True) as client:
        yield client


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(emptied: Embedded) -> AsyncIterator[Api]:
    """One app for all tests of a module, with the topic `crude`: for tests that only read, or that are refused."""
    async with running_api(emptied.url) as api:
        await api.topic()
        yield api
