"""A document that comes again with another text is decided anew, marked, and goes on if its decision has changed."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis import Redis

from service.flow.deliveries import message_id
from service.flow.formats import message
from service.store.stream.outbox import Placed
from tests.support.api import GRAIN, OIL, Api, running_api
from tests.support.streaming import classify

KEY = "sluice:out:crude"


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    """Rules decide, so that a text is decided as it says."""
    async with running_api(redis_url, out_kept=50) as api:
        await api.topic(rules={"accept_if": "opec", "reject_if": "wheat"})
        await api.ok("PATCH", "/topics/crude", {"audit": 0.0})
        yield api


async def send(api: Api, text: str, id: str = "d", **fields: Any) -> Any:
    (result,) = await classify(api, [{"id": id, "text": text} | fields], topics=["crude"])
    return result


def placed_of(row: Any) -> Placed:
    place, fields = row
    return Placed.from_row((place.encode(), {name.encode(): value.encode() for name, value in fields.items()}))


async def unsure_text(api: Api) -> str:
    """A text that the topic abstains on, with a word more or less."""
    texts = [" ".join(["price", *(f"word{n}" for n in range(length))]) for length in range(3, 60)]
    decisions = [(await api.decide({"text": text}))["decision"] for text in texts]
    unsure = [text for text, decision in zip(texts, decisions, strict=True) if decision == "abstain"]
    return unsure[len(unsure) // 2]


async def passed(api: Api) -> list[tuple[str, str, bool]]:
    """What went on, oldest first."""
    items = (await api.ok("GET", "/topics/crude/accepted"))["items"]
    return [(item["text"], item["decision"], item["updated"]) for item in reversed(items)]


async def test_an_update_is_marked_and_one_that_says_the_same_is_none(api: Api) -> None:
    assert "updated" not in await send(api, "opec one")
    assert "updated" not in await send(api, "opec one")
    assert "updated" not in await send(api, "opec one", url="https://example.org/1", source="wire")
    assert (await send(api, "opec two"))["updated"] is True
    assert (await send(api, "opec two", title="OPEC"))["updated"] is True
    assert "updated" not in await send(api, "opec two", title="OPEC")
    found = await api.ok("GET", "/documents/d")
    assert (found["title"], found["text"], found["url"]) == ("OPEC", "opec two", None)


async def test_an_update_goes_on_if_its_decision_is_another_than_the_last_that_went_on(api: Api) -> None:
    unsure = await unsure_text(api)
    expected: list[tuple[str, str, bool]] = []
    last = None
    for n, words in enumerate(
        ("opec", unsure, "opec", "opec", "wheat", "opec", unsure, "opec", "wheat", unsure, "opec")
    ):
        text = f"{words} n{n}"
        (decision,) = (await send(api, text))["decisions"]
        if decision["decision"] not in ("reject", last):
            last = decision["decision"]
            expected.append((text, last, n > 0))
    assert await passed(api) == expected
    assert [decision for _, decision, _ in expected] == ["accept", "abstain"] * 3 + ["accept"]


async def test_each_update_is_a_message_of_its_own_to_webhooks(api: Api, store: "Redis") -> None:
    """A receiver drops a message whose `webhook-id` it has had."""
    for text in ("opec one", await unsure_text(api), "opec three"):
        await send(api, text)
    rows: Any = store.xrange(KEY)
    first, *updates = [message_id(placed_of(row)) for row in rows]
    assert first == f"{rows[0][1]['id']}-accept"
    assert updates == [f"{rows[n][1]['id']}-{rows[n][1]['decision']}-{rows[n][0]}" for n in (1, 2)]


async def test_what_was_rejected_goes_on_when_it_is_accepted(api: Api, store: "Redis") -> None:
    await send(api, "wheat")
    await send(api, "opec")
    assert await passed(api) == [("opec", "accept", True)]
    rows: Any = store.xrange(KEY)
    sent = json.loads(message("crude", placed_of(rows[0])))
    assert sent["data"]["updated"] is True
    (decision,) = (await api.ok("GET", "/documents/d"))["decisions"]
    assert decision["decision"] == "accept"
    page = await api.ok("GET", "/documents", params={"topic": "crude", "decision": "accept"})
    assert [item["document"] for item in page["items"]] == ["d"]


async def test_an_update_is_not_counted_as_another_document(api: Api) -> None:
    await send(api, "opec one")
    before = (await api.ok("GET", "/topics/crude"))["status"]["passed"]
    await send(api, "opec two")
    await send(api, "wheat three")
    assert (await api.ok("GET", "/topics/crude"))["status"]["passed"] == before


async def test_a_judgement_of_the_earlier_text_is_about_the_decision_on_that(api: Api) -> None:
    await send(api, OIL["text"])
    await send(api, GRAIN["text"])
    judged = await api.judge("d", True)
    assert judged["status"] == "learned"
    await send(api, "opec again")
    (kept,) = (await api.ok("GET", "/documents/d"))["judgements"]
    assert kept["relevant"] is True


async def test_of_two_texts_in_one_request_the_last_is_remembered(api: Api) -> None:
    documents = [{"id": "d", "text": "opec one"}, {"id": "d", "text": "opec two"}]
    first, second = await classify(api, documents, topics=["crude"])
    assert (first["document"], second["document"]) == ("d", "d")
    assert (await api.ok("GET", "/documents/d"))["text"] == "opec two"
    assert len(await passed(api)) == 1
