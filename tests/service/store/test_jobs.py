"""The queue of jobs, as the store keeps it: who may claim what, and whose writes count."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from redis import Redis

from service.clock import now_ms
from service.store.jobs import Claim, JobStore
from service.store.redis.keys import ALL_JOBS, JOB, UNFINISHED_JOBS
from service.store.topics import Store

LEASE_S = 60.0
EXPIRED_S = -1.0  # a lease that is over when it begins: its worker died long ago


@pytest_asyncio.fixture
async def jobs(redis_url: str) -> AsyncIterator[JobStore]:
    store = Store(redis_url, 60)
    yield store.jobs
    await store.close()


async def submit(jobs: JobStore, *ids: str) -> None:
    for id in ids:
        assert await jobs.submit(id, "compare", "{}", 1, kept=1000, open=1000)


async def claim(jobs: JobStore, worker: str = "me", lease_s: float = LEASE_S) -> str | None:
    claimed = await jobs.claim(worker, now_ms(), lease_s, max_tries=3)
    return claimed and claimed.job


async def state(jobs: JobStore, id: str) -> str:
    (record,) = await jobs.load([id])
    assert record
    return record.state


async def test_jobs_are_claimed_in_the_order_of_submission_and_once_each(jobs: JobStore) -> None:
    ids = [f"{n:020x}" for n in range(30)]
    await submit(jobs, *ids)
    assert [await claim(jobs, f"w{n}") for n in range(10)] == ids[:10]
    rest = await asyncio.gather(*(claim(jobs, f"w{n}") for n in range(10, 40)))
    assert sorted(filter(None, rest)) == ids[10:]
    assert await claim(jobs) is None


async def test_a_lease_that_is_renewed_is_kept_and_one_that_is_not_is_taken_over(jobs: JobStore) -> None:
    await submit(jobs, "a", "b")
    assert await claim(jobs, "first", EXPIRED_S) == "a"
    first = Claim("a", "first")
    assert await jobs.renew(first, LEASE_S) == "held"  # late, but nobody has noticed
    assert await claim(jobs, "second") == "b"
    assert await jobs.renew(first, EXPIRED_S) == "held"
    assert await claim(jobs, "second") == "a"
    assert await jobs.renew(first, LEASE_S) == "lost"


async def test_a_worker_that_comes_back_after_its_job_was_taken_over_changes_nothing(jobs: JobStore) -> None:
    await submit(jobs, "a")
    assert await claim(jobs, "first", EXPIRED_S) == "a"
    assert await claim(jobs, "second") == "a"
    first, second = Claim("a", "first"), Claim("a", "second")
    assert not await jobs.update(first, checkpoint="{}")
    assert not await jobs.requeue(first, "again")
    assert not await jobs.end(first, "failed", now_ms())
    assert await state(jobs, "a") == "running"
    assert await jobs.update(second, progress=0.5)
    assert await jobs.end(second, "succeeded", now_ms(), result="{}")
    assert not await jobs.end(second, "failed", now_ms())
    assert await state(jobs, "a") == "succeeded"
    assert await jobs.renew(second, LEASE_S) == "lost"
    assert await claim(jobs) is None


async def test_a_job_that_is_given_back_comes_before_all_that_were_submitted_later(jobs: JobStore) -> None:
    await submit(jobs, "a", "b")
    assert await claim(jobs, "first") == "a"
    assert await jobs.requeue(Claim("a", "first"), "again")
    assert await state(jobs, "a") == "queued"
    assert await claim(jobs, "second") == "a"


async def test_a_job_that_ends_every_worker_is_given_up(jobs: JobStore) -> None:
    await submit(jobs, "a", "b")
    assert [await claim(jobs, f"w{n}", EXPIRED_S) for n in range(3)] == ["a"] * 3
    assert await claim(jobs) == "b"
    (record,) = await jobs.load(["a"])
    assert record
    assert record.state == "failed"
    assert "died 3 times" in record.message


async def test_a_running_job_that_is_cancelled_tells_its_worker_and_ends_also_without_it(jobs: JobStore) -> None:
    await submit(jobs, "a", "b", "c")
    assert await claim(jobs, "alive") == "a"
    assert await claim(jobs, "dead", EXPIRED_S) == "b"
    for id in ("a", "b", "c"):
        await jobs.cancel(id, now_ms())
    assert [await state(jobs, id) for id in ("a", "b", "c")] == ["running", "running", "cancelled"]
    assert await jobs.renew(Claim("a", "alive"), LEASE_S) == "cancelled"
    assert await jobs.end(Claim("a", "alive"), "cancelled", now_ms())
    assert await claim(jobs) is None
    assert [await state(jobs, id) for id in ("a", "b", "c")] == ["cancelled"] * 3


@pytest.mark.parametrize("state", ["queued", "running"])
async def test_jobs_that_an_earlier_version_had_handed_to_its_queue_are_adopted(
    jobs: JobStore, store: "Redis", state: str
) -> None:
    """It kept in the set only those that it had not handed over, and no leases."""
    await submit(jobs, "a", "b", "c")
    store.hset(JOB + "a", mapping={"state": state, "tries": 1})
    store.hset(JOB + "b", "state", "succeeded")
    store.srem(UNFINISHED_JOBS, "a", "b")
    assert await jobs.adopt() == 1
    assert await jobs.adopt() == 0
    assert [await claim(jobs) for _ in range(3)] == ["a", "c", None]
    assert store.zcard(ALL_JOBS) == 3


async def test_the_queue_forgets_what_is_over(jobs: JobStore, store: "Redis") -> None:
    await submit(jobs, "a", "b", "c")
    await jobs.cancel("b", now_ms())
    assert await claim(jobs) == "a"
    assert await jobs.end(Claim("a", "me"), "succeeded", now_ms())
    assert await claim(jobs) == "c"
    assert store.smembers(UNFINISHED_JOBS) == {"c"}


async def test_a_topic_is_not_kept_by_a_job_whose_worker_died(jobs: JobStore) -> None:
    """The only worker left would wait for that job, which would wait for a worker."""
    await submit(jobs, "a", "b")
    assert await claim(jobs, "first") == "a"
    assert await jobs.take("crude", "a") == "a"
    assert await jobs.take("crude", "b") == "a"
    assert await jobs.renew(Claim("a", "first"), EXPIRED_S) == "held"
    assert await jobs.take("crude", "b") == "b"
