"""A store of the test's own, on a real server."""

from collections.abc import AsyncIterator

import pytest

from service.store.topics import Store
from tests.support.waiting import PATIENCE_S


@pytest.fixture
async def redis_store(redis_url: str) -> AsyncIterator[Store]:
    store = Store(redis_url, PATIENCE_S)
    yield store
    await store.close()
