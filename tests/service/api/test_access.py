"""With `SLUICE_ACCESS=keys`: every operation, asked with every scope, with none, and without a key."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from service.api.scopes import OPERATIONS, PUBLIC
from service.config import Config, StartError
from service.schemas.access import SCOPES
from tests.support.api import OIL, Api, running_api

ADMIN_KEY = "an administrator's key, 32 characters"
EVERYWHERE = "0.0.0.0"  # noqa: S104 - it is only looked at; nothing listens on it


@pytest_asyncio.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    """A client that shows the administrator's key."""
    async with running_api(redis_url, access="keys", admin_key=ADMIN_KEY) as api:
        yield api


async def bearer(api: Api, *scopes: str, **fields: Any) -> dict[str, str]:
    """The header of a caller with a new key."""
    issued = await api.ok("POST", "/keys", {"name": "-".join(scopes), "scopes": scopes} | fields)
    return {"Authorization": f"Bearer {issued['key']}"}


async def operations(api: Api) -> list[tuple[str, str, str]]:
    """Method, path and name of every operation; paths lead to nothing that is there."""
    document = await api.ok("GET", "/openapi.json")
    return [
        (
            method,
            re.sub(r"{(\w+)}", lambda name: "0" * (20 if name[1] == "job" else 16), path),
            operation["operationId"],
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


async def test_every_operation_has_a_scope_and_every_scope_an_operation(api: Api) -> None:
    names = {name for _, _, name in await operations(api)}
    assert names == set(OPERATIONS)
    assert set(OPERATIONS.values()) == {*SCOPES, PUBLIC}


async def test_every_operation_is_allowed_to_those_with_its_scope_and_to_nobody_else(api: Api) -> None:
    callers = {scope: await bearer(api, scope) for scope in SCOPES}
    everyone = callers | {"nobody": {"Authorization": ""}}
    for method, path, name in await operations(api):
        needed = OPERATIONS[name]
        for who, headers in everyone.items():
            answer = await api.request(method, path, headers=headers)
            refused = 401 if who == "nobody" else 403
            allowed = needed == PUBLIC or who in (needed, "admin")
            assert (answer.status_code == refused) != allowed, (method, path, who, answer.text)
            assert not (allowed and answer.status_code in (401, 403)), (method, path, who, answer.text)


async def test_who_may_not_look_learns_nothing_of_what_is_there(api: Api) -> None:
    await api.topic("secret")
    headers = await bearer(api, "ingest")
    there, nowhere = [await api.get(f"/topics/{topic}", headers=headers) for topic in ("secret", "nowhere")]
    assert there.status_code == nowhere.status_code == 403
    assert there.content == nowhere.content


@pytest.mark.parametrize(
    ("shown", "status"),
    [
        (f"Bearer {ADMIN_KEY}", 200),
        (f"bearer   {ADMIN_KEY} ", 200),
        (ADMIN_KEY, 401),
        (f"Basic {ADMIN_KEY}", 401),
        ("Bearer", 401),
        ("Bearer ", 401),
        (f"Bearer {ADMIN_KEY}x", 401),
        ("Bearer sluice_0123456789abcdef_" + "A" * 43, 401),
        ("Bearer " + "A" * 10_000, 401),
        ("Bearer sluice_\u00e9", 401),
    ],
)
async def test_a_key_is_shown_as_a_bearer_token(api: Api, shown: str, status: int) -> None:
    answer = await api.get("/topics", headers=[(b"Authorization", shown.encode("latin-1"))])
    assert answer.status_code == status
    if status == 401:
        assert answer.headers["www-authenticate"] == "Bearer"
        assert shown.removeprefix("Bearer ").strip() not in answer.text or len(shown) < 10


async def test_a_revoked_key_is_refused_at_once(api: Api) -> None:
    issued = await api.ok("POST", "/keys", {"name": "ann", "scopes": ["read"]})
    headers = {"Authorization": f"Bearer {issued['key']}"}
    assert (await api.get("/topics", headers=headers)).status_code == 200
    assert (await api.delete(f"/keys/{issued['id']}")).status_code == 204
    assert (await api.get("/topics", headers=headers)).status_code == 401
    assert (await api.delete(f"/keys/{issued['id']}")).status_code == 404


async def test_a_key_is_shown_once_and_never_again(api: Api) -> None:
    issued = await api.ok("POST", "/keys", {"name": "ann", "scopes": ["read"]})
    for path in ("/keys", "/metrics", "/openapi.json"):
        assert issued["key"][-43:] not in (await api.get(path)).text


async def test_a_judgement_carries_the_name_of_the_key_unless_it_names_somebody(api: Api) -> None:
    await api.topic()
    headers = await bearer(api, "judge")
    for id, by in (("d1", {}), ("d2", {"by": "ann"})):
        body = {"topic": "crude", "document": OIL | {"id": id}, "relevant": True} | by
        assert (await api.post("/feedback", json=body, headers=headers)).status_code == 200
    judgements = (await api.ok("GET", "/topics/crude/judgements"))["items"]
    assert {each["document"]: each["by"] for each in judgements} == {"d1": "judge", "d2": "ann"}


async def test_a_key_that_asks_too_often_is_told_when_to_come_back(api: Api) -> None:
    headers = await bearer(api, "read", requests_per_s=0.1)
    assert (await api.get("/topics", headers=headers)).status_code == 200
    refused = await api.get("/topics", headers=headers)
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 10
    assert refused.headers["ratelimit-policy"] == '"key";q=1;w=10'
    assert refused.json()["title"] == "Too many requests"
    assert (await api.get("/healthz", headers=headers)).status_code == 200
    assert (await api.get("/topics")).status_code == 200  # others are not affected


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"name": "", "scopes": ["read"]}, "/name"),
        ({"name": "x", "scopes": []}, "/scopes"),
        ({"name": "x", "scopes": ["everything"]}, "/scopes/0"),
        ({"name": "x", "scopes": ["read"], "requests_per_s": 0}, "/requests_per_s"),
        ({"name": "x", "scopes": ["read"], "expires": "tomorrow"}, "/expires"),
        ({"name": "x", "scopes": ["read"], "space": "other"}, "/space"),
    ],
)
async def test_a_key_that_cannot_be_is_refused(api: Api, fields: dict[str, Any], pointer: str) -> None:
    answer = await api.post("/keys", json=fields)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


async def test_where_access_is_open_there_are_no_keys(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        assert (await api.get("/topics", headers={"Authorization": "Bearer whatever"})).status_code == 200
        answer = await api.post("/keys", json={"name": "ann", "scopes": ["admin"]})
        assert answer.status_code == 409
        assert "SLUICE_ACCESS=keys" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("host", "access", "starts"),
    [
        ("127.0.0.1", None, True),
        ("::1", None, True),
        ("localhost", None, True),
        (EVERYWHERE, None, False),
        ("192.0.2.1", None, False),
        (EVERYWHERE, "keys", True),
        (EVERYWHERE, "open", True),
    ],
)
def test_a_service_that_others_can_reach_starts_only_when_told_who_may_call(
    host: str, access: Any, starts: bool
) -> None:
    config = Config(host=host, access=access)
    if starts:
        config.check_access()
    else:
        with pytest.raises(StartError, match="SLUICE_ACCESS=keys"):
            config.check_access()
