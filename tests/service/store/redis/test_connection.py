"""A connection packs commands as redis-py does, and says when nobody answers."""

from typing import Any

import pytest
import redis.asyncio as aredis
from hypothesis import given
from hypothesis import strategies as st

from service.errors import StoreUnavailable
from service.store.redis.connection import Packing
from service.store.topics import Store


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])) | st.binary() | st.integers() | st.floats()))
def test_commands_are_packed_as_redis_py_packs_them(args: list[Any]) -> None:
    for name in ("SET", "CONFIG SET"):
        slow = b"".join(aredis.Connection().pack_command(name, *args))
        assert b"".join(Packing().pack_command(name, *args)) == slow


async def test_a_store_that_is_not_there_is_unavailable() -> None:
    store = Store("unix:///nonexistent/socket")
    with pytest.raises(StoreUnavailable):
        await store.ping()
    await store.close()
