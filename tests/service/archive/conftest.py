"""Two servers, each with a store of its own."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis import Redis

from service.store.redis.embedded import Embedded
from tests.support.api import Api, running_api


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Embedded]:
    """A second server's store."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as directory, Embedded(Path(directory)) as server:
        yield server


@pytest.fixture
async def here(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


@pytest.fixture
async def there(elsewhere: Embedded) -> AsyncIterator[Api]:
    with Redis.from_url(elsewhere.url) as client:
        client.flushall()
    async with running_api(elsewhere.url) as api:
        yield api
