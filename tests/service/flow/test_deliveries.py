"""Deliveries along routes: signed, retried until they are accepted, and never to private addresses."""

import asyncio
import os
import signal
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis import Redis

from service.addresses import is_public
from service.config import Config
from service.errors import PreconditionFailed
from service.flow.deliveries import MAX_PENDING, Deliveries
from service.flow.webhooks import NotDelivered, Webhooks, signature_headers
from service.processes import APPLICATION, CONSUMER, HOUSEKEEPING
from service.store.stream.outbox import announce_cmd
from service.store.topics import Store
from service.tasks import cancel_all
from tests.support.api import OIL, QUERY, Api, running_api
from tests.support.processes import ServeProcess, children
from tests.support.receiver import SECRET, Receiver, receiving
from tests.support.waiting import PATIENCE_S, wait_until

MAX_TIMEOUT_S = 60.0  # the longest that the settings allow
FAST = {"retry_s": 0.3, "webhook_timeout_s": MAX_TIMEOUT_S, "webhooks_private": True}
SHORT_TIMEOUT_S = 0.5  # for receivers that hang


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, **FAST) as api:
        await api.topic()
        yield api


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@asynccontextmanager
async def delivering(api: Api, **settings: Any) -> AsyncIterator[None]:
    config = Config(redis=api.sluice.config.redis, **(FAST | settings))
    store = Store(str(config.redis), 1.0)
    task = asyncio.create_task(Deliveries(store, config, "tester").run())
    try:
        yield
    finally:
        await cancel_all([task])
        await store.close()


def webhook(receiver: Receiver, **fields: Any) -> dict[str, Any]:
    return {"to": "webhook", "url": receiver.url, "secret": SECRET} | fields


async def put(api: Api, *routes: dict[str, Any]) -> Any:
    return (await api.ok("PUT", "/topics/crude/routes", {"routes": list(routes)}))["items"]


async def route_list(api: Api) -> Any:
    return (await api.ok("GET", "/topics/crude/routes"))["items"]


async def accept(api: Api, n: int, prefix: str = "d") -> list[str]:
    """Sends documents that the topic accepts; returns their ids."""
    documents = [OIL | {"id": f"{prefix}{i}"} for i in range(n)]
    await api.ok("POST", "/classify", {"documents": documents})
    return [document["id"] for document in documents]


async def wait_until_accepted(receiver: Receiver, sent: list[str]) -> None:
    async def all_accepted() -> bool:
        return set(receiver.documents()) == set(sent)

    await wait_until(all_accepted)


async def test_what_is_let_through_is_delivered_once_signed_and_whole(api: Api, receiver: Receiver) -> None:
    await accept(api, 3, "before")
    (route,) = await put(api, webhook(receiver))
    assert "secret" not in route
    assert (route["state"], route["url"]) == ("waiting", receiver.url)
    async with delivering(api):
        sent = await accept(api, 50)
        await wait_until_accepted(receiver, sent)
        (first, *_) = receiver.accepted
        assert (first["type"], first["data"]["decision"], first["data"]["text"]) == (
            "sluice.decision",
            "accept",
            OIL["text"],
        )

        async def all_acknowledged() -> bool:
            (route,) = await route_list(api)
            return bool((route["state"], route["delivered"], route["pending"]) == ("delivering", 50, 0))

        await wait_until(all_acknowledged)
    assert receiver.requests == len(sent)
    assert SECRET not in str(await route_list(api))


async def test_those_who_delivered_and_are_gone_are_forgotten_once_they_hold_nothing(
    api: Api, receiver: Receiver, store: "Redis", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.flow.deliveries.SILENT_S", 0.2)
    await put(api, webhook(receiver))
    (route,) = await api.sluice.routes.load("crude")
    idle, holding = (api.sluice.routes.group(route, name) for name in ("idle", "holding"))

    def consumers() -> set[str]:
        return {consumer["name"] for consumer in store.xinfo_consumers(idle.stream, idle.group)}

    await idle.open()
    sent = await accept(api, 1)
    assert len(await holding.read_new(1)) == 1
    async with delivering(api, retry_s=3600):  # pending entries stay with their consumer

        async def only_the_holder() -> bool:
            return consumers() - {"tester"} == {"holding"}

        await wait_until(only_the_holder)
    assert receiver.requests == 0
    async with delivering(api):
        await wait_until_accepted(receiver, sent)

        async def only_the_tester() -> bool:
            return consumers() <= {"tester"}

        await wait_until(only_the_tester)


def test_signatures_are_those_of_the_standard() -> None:
    """The example that implementations of Standard Webhooks are tested with."""
    secret, message = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "msg_p5jXN8AQM9LWM0D4loKWxJek"
    headers = signature_headers(secret, message, b'{"test": 2432232314}', 1614265330)
    assert headers["webhook-signature"] == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("trouble", [500, None, 302])
async def test_a_receiver_that_fails_half_of_the_time_gets_everything(
    api: Api, receiver: Receiver, trouble: int | None
) -> None:
    await put(api, webhook(receiver))
    receiver.answer = lambda n: 200 if n % 2 else trouble
    async with delivering(api, webhook_timeout_s=MAX_TIMEOUT_S if trouble else SHORT_TIMEOUT_S):
        sent = await accept(api, 12)
        await wait_until_accepted(receiver, sent)
    assert receiver.requests > len(sent)
    assert len(set(receiver.ids)) == len(sent)  # what is sent again has the same id
    (route,) = await route_list(api)
    reason = {500: "answered 500", None: "did not answer", 302: "redirects are not followed"}[trouble]
    assert reason in route["last_error"]["reason"]
    assert route["failed"] >= 1


async def test_a_receiver_that_hangs_keeps_nobody_else_waiting_and_is_not_flooded(api: Api, receiver: Receiver) -> None:
    async with receiving() as hanging:
        hanging.answer = lambda n: None
        await put(api, webhook(receiver), webhook(hanging))
        async with delivering(api, webhook_timeout_s=SHORT_TIMEOUT_S):
            sent = await accept(api, 3 * MAX_PENDING)
            await wait_until_accepted(receiver, sent)
            (_, stuck) = await route_list(api)
            assert stuck["pending"] <= MAX_PENDING
            hanging.answer = lambda n: 200
            await wait_until_accepted(hanging, sent)


async def test_what_fails_too_often_is_dead_until_it_is_replayed(
    api: Api, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("service.flow.deliveries.MAX_ATTEMPTS", 2)
    (route,) = await put(api, webhook(receiver))
    receiver.answer = lambda n: 500
    path = f"/topics/crude/routes/{route['id']}"
    async with delivering(api):
        sent = await accept(api, 3)

        async def given_up() -> bool:
            (route,) = await route_list(api)
            return bool((route["dead"], route["pending"], route["state"]) == (3, 0, "failing"))

        await wait_until(given_up)
        dead = await api.ok("GET", f"{path}/dead", params={"limit": 2})
        assert [delivery["reason"] for delivery in dead["items"]] == ["The receiver answered 500."] * 2
        rest = await api.ok("GET", f"{path}/dead", params={"cursor": dead["next"]})
        assert {delivery["document"] for delivery in dead["items"] + rest["items"]} == set(sent)
        receiver.answer = lambda n: 200
        assert (await api.ok("POST", f"{path}/replay", {}))["deliveries"] == 3
        await wait_until_accepted(receiver, sent)
        assert (await api.ok("POST", f"{path}/replay", {"after": "0"}))["deliveries"] == 3

        async def twice() -> bool:
            return len(receiver.accepted) == 6

        await wait_until(twice)
    (route,) = await route_list(api)
    assert (route["dead"], route["state"]) == (0, "delivering")
    assert (await api.post("/topics/crude/routes/0123456789abcdef/replay", json={})).status_code == 404


async def test_routes_that_are_put_again_go_on_and_others_are_gone(
    api: Api, receiver: Receiver, store: "Redis"
) -> None:
    (route,) = await put(api, webhook(receiver, on=["accept"]))
    sent = await accept(api, 3)
    again, other = await put(
        api, {"to": "webhook", "url": receiver.url, "on": ["accept", "abstain"]}, {"to": "stream", "key": "news"}
    )
    assert again["id"] == route["id"]
    more = await accept(api, 2, "more")
    async with delivering(api):
        await wait_until_accepted(receiver, sent + more)  # signed with the secret of before

        async def copied() -> bool:
            return store.xlen("news") == 2

        await wait_until(copied)
    rows: Any = store.xrange("news")
    assert [(fields["topic"], fields["document"]) for _, fields in rows] == [("crude", document) for document in more]
    await put(api)
    assert store.keys("*sluice:route:*") == []
    assert store.xinfo_groups("sluice:out:crude") == []
    await put(api, webhook(receiver))
    await api.ok("DELETE", "/topics/crude")
    assert store.hlen("sluice:routes") == 0
    assert other["to"] == "stream"


async def test_a_route_takes_what_it_is_for(api: Api, receiver: Receiver, store: "Redis") -> None:
    await put(api, webhook(receiver, on=["abstain"]))
    await accept(api, 3)
    async with delivering(api):

        async def passed_over() -> bool:
            (group,) = store.xinfo_groups("sluice:out:crude")
            return bool(group["entries-read"] == 3 and group["pending"] == 0)

        await wait_until(passed_over)
    assert receiver.requests == 0


async def test_a_key_that_is_no_stream_is_an_error_of_the_route(api: Api, store: "Redis") -> None:
    store.set("taken", "x")
    await put(api, {"to": "stream", "key": "taken"})
    async with delivering(api):
        await accept(api, 1)

        async def failed() -> bool:
            (route,) = await route_list(api)
            return bool(route["last_error"] and "WRONGTYPE" in route["last_error"]["reason"])

        await wait_until(failed)


async def test_a_deletion_that_is_refused_leaves_the_routes(redis_url: str) -> None:
    async with running_api(redis_url) as api:
        await api.topic()
        await api.ok("PUT", "/topics/crude/routes", {"routes": [{"to": "stream", "key": "elsewhere"}]})
        assert (await api.request("DELETE", "/topics/crude", headers={"If-Match": '"another-1"'})).status_code == 412
        with pytest.raises(PreconditionFailed):
            await api.sluice.topics.delete("crude", 7)  # it changed after it was compared
        assert len(await route_list(api)) == 1
        await api.ok("DELETE", "/topics/crude")
        await api.topic()
        assert await route_list(api) == []


@pytest.mark.parametrize(
    ("route", "pointer"),
    [
        ({"to": "webhook", "url": "https://example.org"}, "/routes/0/secret"),
        ({"to": "webhook", "url": "https://example.org", "secret": "hunter2"}, "/routes/0/secret"),
        ({"to": "webhook", "url": "ftp://example.org", "secret": SECRET}, "/routes/0/url"),
        ({"to": "webhook", "url": "https://me:you@example.org", "secret": SECRET}, "/routes/0/url"),
        ({"to": "webhook", "url": "https://example.org:99999", "secret": SECRET}, "/routes/0/url"),
        ({"to": "webhook", "url": "https://\u2603.com/", "secret": SECRET}, "/routes/0/url"),
        ({"to": "webhook", "url": f"https://{'a' * 64}.com/", "secret": SECRET}, "/routes/0/url"),
        ({"to": "webhook", "url": "https://example .org/", "secret": SECRET}, "/routes/0/url"),
        ({"to": "webhook", "url": "https://example..org/", "secret": SECRET}, "/routes/0/url"),
        ({"to": "webhook", "url": "https://[::1]/", "secret": SECRET}, "/routes/0/url"),
        ({"to": "webhook", "url": "http://169.254.169.254/", "secret": SECRET}, "/routes/0/url"),
        ({"to": "webhook", "url": "https://example.org", "secret": SECRET, "on": ["reject"]}, "/routes/0/on/0"),
        ({"to": "stream", "key": "sluice:in"}, "/routes/0/key"),
        ({"to": "stream", "key": "{sluice:route:1}:dead"}, "/routes/0/key"),
        ({"to": "mail"}, "/routes/0"),
    ],
)
async def test_a_route_that_cannot_be_is_refused(redis_url: str, route: dict[str, Any], pointer: str) -> None:
    async with running_api(redis_url) as api:
        await api.topic()
        answer = await api.put("/topics/crude/routes", json={"routes": [route]})
        assert answer.status_code == 422
        assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]
        assert await route_list(api) == []


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.1"),
        *("224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1%eth0", "fd00::1", "ff02::1", "2001:db8::1"),
        *("::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::7f00:1", "64:ff9b:1::1", "2002:7f00:1::", "2001::1"),
    ],
)
def test_an_address_that_leads_to_ourselves_or_our_neighbours_is_not_public(address: str) -> None:
    assert not is_public(address)


def test_addresses_of_the_internet_are_public() -> None:
    assert is_public("93.184.216.34")
    assert is_public("2606:2800:220:1:248:1893:25c8:1946")


async def test_a_name_is_looked_up_once_and_every_address_it_has_must_be_public(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name may resolve to a public address when it is checked, and to ours a moment later."""
    resolved: list[str] = []
    answers: list[list[str]] = []
    port = int(httpx.URL(receiver.url).port or 0)

    async def resolve(host: str, *_: Any, **__: Any) -> list[Any]:
        resolved.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in answers.pop(0)]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", resolve)
    url = f"http://rebinding.example:{port}/hook?x=1"
    strict, lax = (Webhooks(ssl.create_default_context(), 1.0, private, 1) for private in (False, True))
    for addresses in (["127.0.0.1"], ["93.184.216.34", "127.0.0.1"], ["93.184.216.34", "::1"]):
        answers[:] = [addresses, ["127.0.0.1"]]
        with pytest.raises(NotDelivered, match="public"):
            await strict.send(url, signature_headers(SECRET, "m", b'{"data": 1}', 1), b'{"data": 1}')
        assert len(answers) == 1
    assert receiver.requests == 0
    answers[:] = [["127.0.0.1"]]
    await lax.send(url, signature_headers(SECRET, "m", b'{"data": 1}', 1), b'{"data": 1}')
    assert (receiver.requests, answers) == (1, [])
    assert set(resolved) == {"rebinding.example"}
    for webhooks in (strict, lax):
        await webhooks.close()


async def test_deliveries_survive_the_death_of_whoever_makes_them(tmp_path: Path, receiver: Receiver) -> None:
    settings: dict[str, Any] = {"application": APPLICATION, "housekeeper": HOUSEKEEPING, "steady_s": 0, "consumers": 2}
    serve = ServeProcess(tmp_path, **(settings | FAST))
    receiver.answer = lambda n: 500 if n % 5 == 0 else 200
    try:
        address = await asyncio.to_thread(lambda: serve.address)
        async with Api(base_url=address, timeout=PATIENCE_S) as api:
            await api.ok("POST", "/topics", {"id": "crude", "query": QUERY})
            await put(api, webhook(receiver))
            sent: list[str] = []
            for n in range(4):
                wanted = len(receiver.accepted) + 5  # before they are sent: on a slow machine all may arrive meanwhile
                sent += await accept(api, 40, f"round{n}-")

                async def going_on(wanted: int = wanted) -> bool:
                    return len(receiver.accepted) >= wanted

                await wait_until(going_on)
                processes = await asyncio.to_thread(children, serve.process.pid)
                os.kill(next(pid for pid, command in processes.items() if CONSUMER in command), signal.SIGKILL)
            await wait_until_accepted(receiver, sent)
            assert len(set(receiver.ids)) == len(sent)
    finally:
        await asyncio.to_thread(serve.end)


async def test_a_change_of_the_goal_goes_to_those_who_asked_for_it(
    api: Api, receiver: Receiver, redis_url: str
) -> None:
    await put(api, webhook(receiver, on=["goal"]), {"to": "stream", "key": "all", "on": ["accept", "goal"]})
    born = (await api.sluice.topics.find("crude")).born
    async with delivering(api):
        await accept(api, 2)
        await api.sluice.store.run([announce_cmd("crude", born, "met", 3, 2, "Of 50, 49 are relevant.", 100)])

        async def delivered() -> bool:
            return [route["delivered"] for route in await route_list(api)] == [1, 3]

        await wait_until(delivered)
    (sent,) = receiver.accepted
    assert (sent["type"], sent["data"]["before"], sent["data"]["state"]) == ("sluice.goal", "learning", "met")
    with Redis.from_url(redis_url, decode_responses=True) as client:
        entries: Any = client.xrange("all")
    assert [fields["decision"] for _, fields in entries] == ["accept", "accept", "goal"]
    assert entries[-1][1]["state"] == "met"
