"""Who may call: not every page that a browser shows, nor by every name that leads here."""

from collections.abc import AsyncIterator

import pytest

from tests.support.api import OIL, Api, running_api


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url) as api:
        yield api


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "http://sluice"}, 200),
        ({"Origin": "https://elsewhere", "Sec-Fetch-Site": "same-origin"}, 200),  # a proxy calls us by another name
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://sluice", "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
async def test_a_page_of_another_origin_changes_nothing(api: Api, headers: dict[str, str], status: int) -> None:
    await api.topic()
    await api.judge(OIL, True)
    headers = {"Host": "sluice", "Content-Type": "text/plain"} | headers
    assert (await api.request("POST", "/topics/crude/versions/1/restore", headers=headers)).status_code == status
    assert (await api.ok("GET", "/topics/crude"))["status"]["version"] == (3 if status == 200 else 2)
    assert (await api.request("GET", "/topics/crude", headers=headers)).status_code == 200


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("localhost:8000", 200),
        ("127.0.0.1", 200),
        ("[::1]:8000", 200),
        ("sluice", 200),
        ("filter.localhost", 200),
        ("filter.example.org", 200),  # the settings name it
        ("evil.example", 403),
        ("evil.example:8000", 403),
        ("127.0.0.1.evil.example", 403),
        ("[", 200),
        ("EVIL.example.", 403),
    ],
)
async def test_a_service_of_this_machine_alone_is_not_called_by_strange_names(
    redis_url: str, name: str, status: int
) -> None:
    async with running_api(redis_url, hosts="other.example.org,filter.example.org") as api:
        for method in ("GET", "POST"):
            answer = await api.request(method, "/topics", headers={"Host": name}, json={})
            assert answer.status_code == (422 if (method, status) == ("POST", 200) else status)
    async with running_api(redis_url, host="192.0.2.1") as api:  # others may reach it, by whatever name
        assert (await api.request("GET", "/topics", headers={"Host": "evil.example"})).status_code == 200
