"""The index is derived: deleted, damaged, cut off from the log or made from another store, it is soon what it was."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from redis import Redis

from service.documents.following import Follower
from service.documents.index import FILE, exists
from service.store.redis.keys import documents_changes_key
from service.store.stream.documents import PARTITIONS
from service.store.topics import Store
from service.tasks import cancel_all
from tests.support.api import Api, running_api
from tests.support.streaming import classify, oil
from tests.support.waiting import wait_until


@pytest.fixture
async def api(redis_url: str, tmp_path: Path) -> AsyncIterator[Api]:
    async with running_api(redis_url, documents_kept=1600, search=tmp_path) as api:
        await api.topic()
        yield api


async def found(api: Api, **params: Any) -> set[str]:
    """What a search finds once the index is complete."""
    page: Any = {}

    async def complete() -> bool:
        answer = await api.get("/documents", params={"limit": "1000"} | params)
        page.update(answer.json())
        return answer.is_success and page["complete"]

    await wait_until(complete)
    return {item["document"] for item in page["items"]}


@asynccontextmanager
async def followed(follower: Follower) -> AsyncIterator[None]:
    task = asyncio.create_task(follower.run())
    try:
        yield
    finally:
        await cancel_all([task])


async def test_nothing_is_indexed_until_somebody_searches(api: Api, tmp_path: Path) -> None:
    await classify(api, oil(3))
    assert not exists(tmp_path)
    assert await found(api) == {"o0", "o1", "o2"}
    assert exists(tmp_path)


async def test_only_its_owner_may_read_the_index(redis_url: str, tmp_path: Path) -> None:
    async with running_api(redis_url, search=tmp_path / "search") as api:
        await classify(api, oil(1))
        assert await found(api) == {"o0"}
    assert (tmp_path / "search").stat().st_mode & 0o777 == 0o700


async def test_a_process_that_starts_later_goes_on_where_the_last_one_stopped(
    api: Api, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await classify(api, oil(300))  # some in each partition
    assert len(await found(api)) == 300
    places = sqlite3.connect(tmp_path / FILE).execute("SELECT * FROM places").fetchall()
    assert len(places) == PARTITIONS

    async def no_reading(*_: object) -> list[str]:
        raise AssertionError("all was read again")

    await api.sluice.search.follower._close()
    await classify(api, oil(3, "p"))
    monkeypatch.setattr(api.sluice.store.documents, "newest_of", no_reading)
    assert len(await found(api)) == 303


@pytest.mark.parametrize("damage", ["deleted", "emptied", "scribbled", "of another format"])
async def test_a_file_that_is_lost_or_damaged_is_made_again(api: Api, tmp_path: Path, damage: str) -> None:
    await classify(api, oil(20))
    assert len(await found(api)) == 20
    if damage == "deleted":
        (tmp_path / FILE).unlink()
    elif damage == "emptied":
        (tmp_path / FILE).write_bytes(b"")
    elif damage == "scribbled":
        (tmp_path / FILE).write_bytes(b"no database " * 1000)
    else:
        with sqlite3.connect(tmp_path / FILE) as db:
            db.execute("UPDATE about SET value = '0' WHERE name = 'format'")
        await api.sluice.search.follower._close()
    await classify(api, oil(5, "p"))
    assert len(await found(api)) == 25


async def test_a_log_that_was_cut_is_no_loss(api: Api, store: "Redis") -> None:
    await classify(api, oil(40))
    assert len(await found(api)) == 40
    await api.sluice.search.follower._close()
    await classify(api, oil(40, "p"))
    for partition in range(PARTITIONS):
        store.xtrim(documents_changes_key(partition), maxlen=0, approximate=False)
    await classify(api, oil(40, "q"))
    assert len(await found(api)) == 120


async def test_documents_from_before_there_was_a_log_are_found(api: Api, store: "Redis") -> None:
    await classify(api, oil(40))
    store.delete(*(documents_changes_key(partition) for partition in range(PARTITIONS)))
    assert len(await found(api)) == 40


async def test_an_index_of_another_store_is_of_no_use(api: Api, store: "Redis") -> None:
    await classify(api, oil(5))
    assert len(await found(api)) == 5
    store.flushall()
    await api.topic()
    await classify(api, oil(3, "other"))
    assert await found(api) == {"other0", "other1", "other2"}


async def test_one_process_writes_and_when_it_ends_another_does(api: Api, redis_url: str, tmp_path: Path) -> None:
    await classify(api, oil(5))
    assert len(await found(api)) == 5
    store = Store(redis_url, 1.0)
    second = Follower(store.documents, tmp_path)
    async with followed(second):
        await classify(api, oil(5, "p"))
        assert len(await found(api)) == 10
        assert await second.current()
        assert second._writer is None
    await store.close()
    async with running_api(redis_url, documents_kept=1600, search=tmp_path) as other:
        await classify(other, oil(5, "q"))
        assert len(await found(other)) == 15
        assert other.sluice.search.follower._writer is None


async def test_a_directory_that_cannot_be_written_is_said_and_stops_nothing(redis_url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    async with running_api(redis_url, search=tmp_path / "file") as api:
        await api.topic()
        await classify(api, oil(1))
        answer = await api.get("/documents")
        assert (answer.status_code, answer.json()["title"]) == (503, "Search unavailable")
        assert (await api.get("/documents/o0")).is_success
