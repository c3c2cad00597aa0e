"""Keys on a real store: made once, found by what they are, limited, and gone when revoked."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis import Redis

from service.access import secrets
from service.access.keys import ADMINISTRATOR, REMEMBERED_MS, WINDOW_S, Keys
from service.errors import NotFound, TooManyRequests, Unauthorized
from service.schemas.access import NewKey
from service.store.topics import Store

ADMIN_KEY = "an administrator's key, 32 characters"


class Clock:
    now_ms = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
async def backing(redis_url: str) -> AsyncIterator[Store]:
    store = Store(redis_url)
    yield store
    await store.close()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keys(backing: Store, clock: Clock) -> Keys:
    return Keys(backing.api_keys, ADMIN_KEY, clock)


async def test_a_key_is_known_by_all_processes_and_says_what_it_may(backing: Store, keys: Keys) -> None:
    issued = await keys.issue(NewKey(name="ann", scopes=["judge", "read", "judge"]))
    for process in (keys, Keys(backing.api_keys, None)):
        caller = await process.authenticate(issued.key)
        assert (caller.name, sorted(caller.scopes)) == ("ann", ["judge", "read"])
        assert caller.may("judge")
        assert not caller.may("manage")
    admin = await keys.authenticate(ADMIN_KEY)
    assert admin.name == ADMINISTRATOR
    assert admin.may("manage")


async def test_the_store_holds_no_key(keys: Keys, store: "Redis") -> None:
    issued = await keys.issue(NewKey(name="ann", scopes=["read"]))
    await keys.authenticate(issued.key)
    secret = issued.key.split("_", 2)[2]
    for name in store.keys("*access*"):
        assert secret not in str(store.hgetall(name))


@pytest.mark.parametrize("change", ["x", "", "another secret", "another id", "upper", "space"])
async def test_what_is_not_the_key_is_refused(keys: Keys, change: str) -> None:
    issued, other = [await keys.issue(NewKey(name=name, scopes=["read"])) for name in ("ann", "bob")]
    changed = {
        "x": "x",
        "": "",
        "another secret": issued.key[:-43] + other.key[-43:],
        "another id": other.key[:-43] + issued.key[-43:],
        "upper": issued.key.upper(),
        "space": issued.key + " ",
    }[change]
    for _ in range(2):  # the second time with the real key remembered
        with pytest.raises(Unauthorized):
            await keys.authenticate(changed)
        await keys.authenticate(issued.key)


async def test_a_revoked_key_is_refused_here_at_once_and_elsewhere_soon(
    backing: Store, keys: Keys, clock: Clock
) -> None:
    elsewhere = Keys(backing.api_keys, None, clock)
    issued = await keys.issue(NewKey(name="ann", scopes=["read"]))
    await keys.authenticate(issued.key)
    await elsewhere.authenticate(issued.key)
    await keys.revoke(issued.id)
    with pytest.raises(Unauthorized):
        await keys.authenticate(issued.key)
    clock.now_ms += REMEMBERED_MS
    with pytest.raises(Unauthorized):
        await elsewhere.authenticate(issued.key)
    with pytest.raises(NotFound):
        await keys.revoke(issued.id)


async def test_a_key_expires_also_while_it_is_remembered(keys: Keys, clock: Clock) -> None:
    expires = datetime.fromtimestamp(clock.now_ms / 1000 + 0.5, UTC)
    issued = await keys.issue(NewKey(name="ann", scopes=["read"], expires=expires))
    await keys.authenticate(issued.key)
    clock.now_ms += 500
    with pytest.raises(Unauthorized, match="expired"):
        await keys.authenticate(issued.key)


async def test_of_many_processes_that_start_one_prints_the_first_key(backing: Store) -> None:
    made = await asyncio.gather(*(Keys(backing.api_keys, None).issue_first() for _ in range(8)))
    (first,) = [key for key in made if key]
    assert (await Keys(backing.api_keys, None).authenticate(first)).may("admin")
    assert await Keys(backing.api_keys, None).issue_first() is None


async def test_with_a_key_in_the_configuration_none_is_printed(keys: Keys) -> None:
    assert await keys.issue_first() is None
    assert await keys.page("", 10) == ([], None)


async def test_keys_are_listed_by_pages_with_when_they_were_used(keys: Keys, clock: Clock) -> None:
    issued = []
    for name in "abc":
        issued.append(await keys.issue(NewKey(name=name, scopes=["read"])))
        clock.now_ms += 1
    await keys.authenticate(issued[1].key)
    page, following = await keys.page("", 2)
    assert [key.name for key in page] == ["a", "b"]
    assert [key.used is not None for key in page] == [False, True]
    rest, end = await keys.page(following or "", 2)
    assert ([key.name for key in rest], end) == (["c"], None)


async def test_an_allowance_lets_a_burst_through_and_then_tells_how_long_to_wait(keys: Keys) -> None:
    issued = await keys.issue(NewKey(name="slow", scopes=["read"], requests_per_s=0.5))
    for _ in range(int(0.5 * WINDOW_S)):
        await keys.authenticate(issued.key)
    with pytest.raises(TooManyRequests) as refused:
        await keys.authenticate(issued.key)
    assert 0 < int(refused.value.headers["Retry-After"]) <= 2
    assert refused.value.headers["RateLimit-Policy"] == '"key";q=5;w=10'
    assert refused.value.headers["RateLimit"].startswith('"key";r=0;t=')


async def test_the_smallest_allowance_is_one_request(keys: Keys) -> None:
    issued = await keys.issue(NewKey(name="slow", scopes=["read"], requests_per_s=0.001))
    await keys.authenticate(issued.key)
    with pytest.raises(TooManyRequests) as refused:
        await keys.authenticate(issued.key)
    assert 900 < int(refused.value.headers["Retry-After"]) <= 1000


def test_keys_have_one_form_and_are_never_alike() -> None:
    made = [secrets.new_secret() for _ in range(100)]
    assert len({each.key for each in made}) == 100
    assert all(
        secrets.id_of(each.key) == each.id and secrets.matches(each.key, secrets.hash_of(each.key)) for each in made
    )


@given(text=st.text(max_size=200))
def test_no_other_text_has_the_form_of_a_key(text: str) -> None:
    assert secrets.id_of(text) is None
