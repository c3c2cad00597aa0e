"""The client: the same methods, blocking or async, for all of the API; no call is repeated that must not be."""

import inspect
import json
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, assert_type

import httpx
import pytest

from service.api.routes.sources import EXAMPLE
from service.client import AsyncClient, Client, ClientError, Refused, Retries, UnexpectedReply, Unreachable, operations
from service.client.calls import Call
from service.schemas import Document, Health, NewTopic, Problem, Result, Topic
from service.schemas.flow import Passed
from tests.support.api import GRAIN, OIL, QUERY, Api, running_api
from tests.support.live import Live, live
from tests.support.streaming import document, oil

QUICK = Retries(attempts=4, first_s=0.001)
ADMIN_KEY = "an administrator's key, 32 characters"
Handler = Callable[[httpx.Request], httpx.Response]


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, access="keys", admin_key=ADMIN_KEY) as api:
        yield api


class Unreliable(httpx.AsyncBaseTransport):
    """Passes requests on to a real service, and loses as many replies as there are `losses`."""

    def __init__(self, inner: httpx.AsyncBaseTransport, losses: list[type[httpx.TransportError] | int]) -> None:
        self._inner, self._losses = inner, losses
        self.sent: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(f"{request.method} {request.url.path}")
        loss = self._losses.pop(0) if self._losses else None
        if loss is httpx.ConnectError:
            raise httpx.ConnectError("refused")
        response = await self._inner.handle_async_request(request)
        if loss is None:
            return response
        await response.aread()
        if isinstance(loss, int):
            later = {"title": "Store unavailable", "status": loss, "detail": "Later."}
            return httpx.Response(loss, json=later, headers={"retry-after": "0"})
        raise loss("lost")


def unreliable(api: Api, *losses: Any) -> tuple[AsyncClient, list[str]]:
    transport = Unreliable(httpx.ASGITransport(api.app), list(losses))
    return AsyncClient("http://sluice", key=ADMIN_KEY, retries=QUICK, transport=transport), transport.sent


def replying(handler: Handler, retries: Retries = QUICK) -> Client:
    return Client("http://sluice", retries=retries, transport=httpx.MockTransport(handler))


# -- what it can do ----------------------------------------------------------------------------------------------------


async def test_a_topic_lives_through_the_client(api: Api) -> None:
    client, sent = unreliable(api)
    async with client:
        made = await client.create(NewTopic(id="crude", name="Crude oil", query=QUERY))
        assert (made.id, made.status.version) == ("crude", 1)
        (result,) = await client.classify([Document.model_validate({"id": "d1"} | OIL)], ["crude"], explain=True)
        (decision,) = result.decisions
        assert decision.decision == "accept"
        assert decision.explanation
        assert decision.flip
        assert decision.flip.without
        learned = await client.feedback("crude", "d1", True, by="ann")
        assert (learned.status, learned.version) == ("learned", 2)
        several = await client.feedback_on(
            [
                {"topic": "crude", "document": GRAIN, "relevant": False},
                {"topic": "none", "document": "d1", "relevant": True},
            ]
        )
        assert [type(result).__name__ for result in several] == ["Learned", "Problem"]
        assert [(judgement.document, judgement.by) async for judgement in client.judgements("crude")][-1] == (
            "d1",
            "ann",
        )
        assert (await client.change("crude", {"name": "Oil", "audit": 1.0})).name == "Oil"
        offers = await client.review("crude")
        assert offers.detail
        await client.classify([{"id": "d2", **GRAIN}])
        assert (await client.skip("crude", "d2")).status == "skipped"
        assert (await client.add_known("crude", ["d2", {"id": "k/1", "text": "crude"}])).known == 2
        assert {item.document async for item in client.known("crude")} == {"d2", "k/1"}
        await client.delete_known("crude", "k/1")
        assert (await client.metrics("crude")).topic == "crude"
        assert (await client.overview()).topics == 1
        assert (await client.curve("crude")).topic == "crude"
        assert (await client.tradeoff("crude")).topic == "crude"
        assert (await client.recall()).topics == 1
        assert (await client.preview("crude", {"query": "wheat"})).version == 4
        assert (await client.withdraw("crude", "d1")).version == 5
        assert (await client.restore("crude", 3)).status.version == 6
        assert [version.version async for version in client.versions("crude", limit=2)] == [6, 5, 4, 3, 2, 1]
        assert (await client.model("crude")).terms.toward
        assert (await client.replace_model("crude", await client.model_file("crude"))).status.version == 7
        (route,) = (await client.replace_routes("crude", [{"to": "stream", "key": "news"}])).items
        assert (await client.routes("crude")).items[0].key == "news"
        assert [delivery async for delivery in client.dead("crude", route.id)] == []
        assert (await client.replay("crude", route.id)).deliveries == 0
        assert (await client.flow()).pending == 0
        assert b"<entry>" in await client.feed("crude")
        assert b"jsonfeed.org" in await client.feed("crude", "json", unsure=True)
        assert b"<entry>" in await client.search_feed("opec")
        assert b"jsonfeed.org" in await client.search_feed("opec", "json", topic="crude")
        assert [one.document async for one in client.search("opec", topic="crude", limit=1)] == ["d1"]
        assert (await client.document("d1", ["crude"], now=True)).decisions[0].topic == "crude"
        assert [passed.document async for passed in client.accepted("crude")]
        now = datetime.now(UTC)
        assert [one.document async for one in client.ranked("crude", now - timedelta(hours=1), limit=1)] == ["d1"]
        assert [one.document async for one in client.ranked("crude", now + timedelta(hours=1))] == []
        job = await client.submit({"kind": "backfill", "topics": ["crude"]})
        assert (await client.job(job.id)).state == "queued"
        assert (await client.cancel(job.id)).state == "cancelled"
        assert [job.id async for job in client.jobs()] == [job.id]
        feed = {"kind": "feed", "url": "https://feeds.example.invalid/news.xml"}
        assert (await client.try_source(feed)).error
        source = await client.create_source({**feed, "id": "news"})
        assert (await client.poll_source("news")).error
        assert (await client.source("news")).status.failures == source.status.failures + 1
        assert (await client.change_source("news", {"paused": True})).status.state == "paused"
        assert [source.id async for source in client.sources("paused")] == ["news"]
        await client.delete_source("news")
        assert (await client.import_sources(EXAMPLE.encode())).added == 1
        assert b"https://example.org/feed.xml" in await client.export_sources()
        copy = await client.import_topic(await client.export_topic("crude"), id="copy")
        assert copy.status.version == 7
        assert [topic.id async for topic in client.topics(limit=1)] == ["copy", "crude"]
        await client.delete("copy")
        with pytest.raises(Refused) as refused:
            await client.topic("copy")
        assert refused.value.status == 404
        assert (await client.ready()).topics == 1
        issued = await client.issue_key({"name": "ann", "scopes": ["read"]})
        assert [key.id async for key in client.list_keys()] == [issued.id]
        await client.revoke_key(issued.id)
        assert (await client.about()).links["docs"] == "/docs"
    for path, methods in api.app.openapi()["paths"].items():
        pattern = path.replace("{document}", ".+")
        for method in methods:
            call = re.compile(f"{method.upper()} {re.sub('{.+?}', '[^/]+', pattern)}")
            unused = path in ("/healthz", "/metrics", "/topics/{topic}/stream")  # the last needs a real connection
            assert unused or any(map(call.fullmatch, sent)), f"the client has nothing for {method} {path}"


@pytest.fixture(scope="module")
def server(embedded: Any) -> Iterator[Live]:
    with live(embedded.url) as server:
        yield server


def test_the_same_methods_block(server: Live) -> None:
    with Client(server.address) as client:
        client.create({"id": "blocking", "query": QUERY})
        assert client.classify([OIL], ["blocking"])[0].decisions[0].decision == "accept"
        documents = ({"id": f"d{n}", **OIL} if n % 7 else {"id": f"d{n}"} for n in range(1201))
        progress: list[int] = []
        results = list(client.classify_all(documents, ["blocking"], progress=progress.append))
        assert len(results) == 1201
        assert [result.document for result in results if isinstance(result, Result)][:2] == ["d1", "d2"]
        assert sum(isinstance(result, Problem) for result in results) == 172
        assert progress == [500, 1000, 1201]
        judged = ({"topic": "blocking", "document": f"d{n}", "relevant": True} for n in (1, 2, 3))
        assert [learned.status for learned in client.feedback_all(judged)] == ["learned"] * 3
        assert [judgement.document for judgement in client.judgements("blocking", limit=1)] == ["d3", "d2", "d1"]
        client.delete("blocking")


def test_results_come_while_documents_are_still_being_read(server: Live) -> None:
    """Memory does not grow with the stream: the results of a batch are handed over before more documents are read."""
    taken = 0

    def documents() -> Iterator[dict[str, Any]]:
        nonlocal taken
        while True:
            taken += 1
            yield document(f"endless-{taken}", ["crude", "oil", "opec", "barrel", "price"])

    with Client(server.address) as client:
        results = client.classify_all(documents(), store=False)
        for n in range(1, 1500):
            next(results)
            assert taken <= n + 501


async def test_an_awaiting_client_takes_documents_as_they_come(api: Api) -> None:
    async def documents() -> AsyncIterator[dict[str, Any]]:
        for item in oil(3):
            yield item

    client, _ = unreliable(api)
    async with client:
        await client.create({"id": "crude", "query": "oil crude"})
        assert [result.document async for result in client.classify_all(documents()) if isinstance(result, Result)] == [
            "o0",
            "o1",
            "o2",
        ]
        assert len([result async for result in client.classify_all(oil(2))]) == 2


# -- what is sent again ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", [503, 502, httpx.ReadTimeout, httpx.RemoteProtocolError, httpx.ConnectError])
async def test_a_topic_whose_making_got_no_answer_is_made_once(api: Api, loss: Any) -> None:
    client, sent = unreliable(api, loss)
    async with client:
        assert (await client.create({"id": "crude", "query": QUERY})).query == QUERY
        assert sent[:2] == ["POST /topics"] * 2
        assert [topic.id async for topic in client.topics()] == ["crude"]


async def test_a_topic_that_is_another_s_is_a_conflict_even_so(api: Api) -> None:
    await api.topic(query="football")
    client, _ = unreliable(api, 503)
    async with client:
        with pytest.raises(Refused) as refused:
            await client.create({"id": "crude", "query": QUERY})
    assert refused.value.status == 409


async def test_without_doubt_an_id_that_is_taken_is_a_conflict(api: Api) -> None:
    await api.topic(query=QUERY)
    client, sent = unreliable(api, httpx.ConnectError)
    async with client:
        with pytest.raises(Refused) as refused:
            await client.create({"id": "crude", "query": QUERY})
    assert refused.value.status == 409
    assert sent == ["POST /topics"] * 2


@pytest.mark.parametrize("loss", [503, httpx.ReadError])
async def test_what_was_deleted_or_taken_back_without_an_answer_is_gone(api: Api, loss: Any) -> None:
    await api.topic()
    await api.judge(OIL | {"id": "d/1"}, True)
    client, _ = unreliable(api, loss)
    async with client:
        assert (await client.withdraw("crude", "d/1")).version == 3
    client, _ = unreliable(api, loss, loss)
    async with client:
        await client.delete("crude")
        with pytest.raises(Refused):
            await client.delete("crude")


async def test_a_judgement_that_got_no_answer_is_given_again(api: Api) -> None:
    await api.topic()
    client, sent = unreliable(api, 503, httpx.ReadError)
    async with client:
        learned = await client.feedback("crude", OIL, True)
    assert (learned.status, learned.version, len(sent)) == ("known", 2, 3)


@pytest.mark.parametrize("loss", [503, httpx.ReadError])
async def test_what_would_be_done_twice_is_sent_once(api: Api, loss: Any) -> None:
    await api.topic()
    await api.judge(OIL, True)
    client, sent = unreliable(api, loss)
    async with client:
        with pytest.raises((Refused, Unreachable)):
            await client.restore("crude", 1)
        assert len(sent) == 1
        assert (await client.topic("crude")).status.version == 3
    client, sent = unreliable(api, httpx.ConnectError)  # nothing was sent, so nothing was done
    async with client:
        assert (await client.restore("crude", 1)).status.version == 4
        assert len(sent) == 2


@pytest.mark.parametrize("document", ["..", ".", "a/../b"])
async def test_no_document_leads_to_its_topic(api: Api, document: str) -> None:
    """The path of a document whose id is dots is that of its topic, and deleting that would delete everything."""
    await api.topic()
    client, sent = unreliable(api)
    async with client:
        for call in (client.withdraw, client.delete_known):
            with pytest.raises(ClientError, match="dots"):
                await call("crude", document)
        assert not sent
        assert (await client.topic("crude")).id == "crude"


def test_blank_lines_are_left_out_and_answers_stay_with_what_was_asked() -> None:
    def reply(request: httpx.Request) -> httpx.Response:
        lines = [json.dumps({"document": json.loads(line)["id"], "decisions": []}) for line in request.content.split()]
        return httpx.Response(200, text="\n".join(lines) + "\n")

    with replying(reply) as client:
        given = [b'{"id":"a"}', b"", b" \r\n", b'{"id":"b"}']
        assert [getattr(result, "document", None) for result in client.classify_all(given)] == ["a", "b"]
    too_few = httpx.Response(200, text='{"document":"a","decisions":[]}\n')
    with replying(lambda _: too_few) as client, pytest.raises(UnexpectedReply):
        list(client.classify_all([b'{"id":"a"}', b'{"id":"b"}']))


def test_what_a_method_takes_can_be_looked_up() -> None:
    with replying(lambda _: httpx.Response(204)) as client:
        assert list(inspect.signature(client.change).parameters) == ["topic", "change", "if_match"]
        assert list(inspect.signature(client.classify_all).parameters)[:2] == ["items", "topics"]
    assert Client.change.__doc__ == client.change.__doc__
    assert dict(inspect.getmembers(Client))["classify_all"] is Client.classify_all


def test_both_clients_have_every_operation() -> None:
    functions = inspect.getmembers(operations, inspect.isfunction)
    names = {name for name, function in functions if function.__module__ == operations.__name__ and name[0] != "_"}
    assert len(names) > 30
    for client in (Client, AsyncClient):
        assert names <= set(vars(client))


async def test_a_type_checker_knows_what_each_client_returns() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"status": "ok", "topics": 1}))
    with Client("http://sluice", transport=transport) as client:
        assert_type(client.ready(), Health)
        assert_type(client.topics(), Iterator[Topic])
        assert_type(client.tail("crude"), Iterator[Passed])
        assert_type(client.classify_all([]), Iterator[Result | Problem])
    async with AsyncClient("http://sluice", transport=transport) as async_client:
        assert_type(await async_client.ready(), Health)
        assert_type(async_client.topics(), AsyncIterator[Topic])
        assert_type(async_client.tail("crude"), AsyncIterator[Passed])
        assert_type(async_client.classify_all([]), AsyncIterator[Result | Problem])


def test_a_refusal_is_not_asked_for_again() -> None:
    sent: list[str] = []

    def refuse(request: httpx.Request) -> httpx.Response:
        sent.append(request.url.path)
        errors = [{"pointer": "/goal", "detail": "No."}]
        return httpx.Response(
            422, json={"title": "Invalid input", "status": 422, "detail": "Not so.", "errors": errors}
        )

    with pytest.raises(Refused, match=r"^Not so\. /goal: No\.$"), replying(refuse) as client:
        client.topic("crude")
    assert len(sent) == 1


def test_whoever_never_answers_is_given_up_on_and_what_is_not_ours_is_said_to_be() -> None:
    sent = 0

    def fail(request: httpx.Request) -> httpx.Response:
        nonlocal sent
        sent += 1
        if request.url.path == "/topics/crude":
            raise httpx.ConnectError("no")
        return httpx.Response(504, text="<html>")

    with replying(fail) as client:
        with pytest.raises(Unreachable, match="Cannot connect to Sluice"):
            client.topic("crude")
        assert sent == 4
        with pytest.raises(Refused, match="504 Gateway Timeout, not from Sluice"):
            client.topic("other")


def test_an_answer_of_another_version_is_said_to_be_one() -> None:
    with replying(lambda _: httpx.Response(200, json={"id": "crude"})) as client, pytest.raises(UnexpectedReply):
        client.topic("crude")


def test_a_stream_that_ended_early_is_sent_again_from_there() -> None:
    bodies: list[bytes] = []

    def reply(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        lines = [
            json.dumps({"document": json.loads(line)["id"], "decisions": []}) for line in request.content.splitlines()
        ]
        if len(bodies) == 2:
            lines = [lines[0], json.dumps({"title": "Store unavailable", "status": 503, "detail": "Gone."})]
        return httpx.Response(200, text="\n".join(lines) + "\n")

    with replying(reply) as client:
        results = list(client.classify_all({"id": f"d{n}", "text": "x"} for n in range(1000)))
    assert [result.document for result in results if isinstance(result, Result)] == [f"d{n}" for n in range(1000)]
    assert [len(body.splitlines()) for body in bodies] == [500, 500, 500]
    assert bodies[1] == bodies[2]


def test_pauses_grow_are_not_alike_and_are_as_long_as_the_service_says() -> None:
    retries, rng = Retries(), random.Random(20)
    pauses = [[retries.pause_s(failures, rng) for _ in range(100)] for failures in (1, 2, 3, 20)]
    for longest, drawn in zip((0.2, 0.4, 0.8, 10.0), pauses, strict=True):
        assert longest / 2 <= min(drawn) < max(drawn) <= longest
        assert len(set(drawn)) > 90
    assert 3.0 < retries.pause_s(1, rng, retry_after_s=3.0) < 3.3
    assert retries.pause_s(1, rng, retry_after_s=1e9) < 61


async def test_a_call_of_one_s_own_can_be_sent(api: Api) -> None:
    client, _ = unreliable(api)
    async with client:
        assert await client.send(Call("GET", "/healthz", bytes)) == b'{"status":"ok","topics":null}'
