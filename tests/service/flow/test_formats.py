"""What a chat is sent is read as text, leads where it says, and mentions nobody, whatever a document contains."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.flow.formats import payload
from service.schemas.flow import PLACEHOLDERS, ToWebhook
from service.store.stream.outbox import Entry, Placed
from tests.service.flow.test_deliveries import FAST, accept, delivering, put, webhook
from tests.support.api import OIL, Api, running_api
from tests.support.receiver import Receiver, receiving
from tests.support.refusals import pointers, refused
from tests.support.waiting import wait_until

HOSTILE = '<!channel> @all @here <https://evil.example|bank> [bank](https://evil.example) **b** & "q" {{url}}'
URL = "https://example.org/a_(b)?q=1&r=2"


@pytest.fixture
async def api(redis_url: str) -> AsyncIterator[Api]:
    async with running_api(redis_url, **FAST) as api:
        await api.topic()
        yield api


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


def placed(title: str = "OPEC meets", text: str = "Crude prices rose.", **fields: Any) -> Placed:
    entry = Entry("0" * 32, "accept", 0.5, 1, "d", title, text)
    return Placed("1795000000000-0", entry._replace(**({"url": URL, "source": "wire"} | fields)))


def sent(format: str, entry: Placed, **fields: Any) -> Any:
    target = ToWebhook.model_validate({"to": "webhook", "url": "https://example.org/", "format": format} | fields)
    return payload(target, "crude", entry)


def body(format: str, entry: Placed, **fields: Any) -> Any:
    made = sent(format, entry, **fields)
    assert made.media_type == "application/json"
    return json.loads(made.body)


def test_slack_is_sent_a_link_and_what_was_decided() -> None:
    assert body("slack", placed()) == {
        "text": "<https://example.org/a_(b)?q=1&amp;r=2|OPEC meets>\ncrude: accepted (wire)\nCrude prices rose.",
        "unfurl_links": False,
    }
    assert body("slack", placed(url=""))["text"].startswith("*OPEC meets*\n")


def test_mattermost_is_sent_the_same_in_markdown() -> None:
    assert body("mattermost", placed())["text"] == (
        "[OPEC meets](https://example.org/a_%28b%29?q=1&r=2)\ncrude\\: accepted \\(wire\\)\nCrude prices rose\\."
    )


def test_discord_is_sent_an_embed() -> None:
    made = body("discord", placed(decision="abstain", updated="true"))
    assert made["allowed_mentions"] == {"parse": []}
    (embed,) = made["embeds"]
    assert (embed["title"], embed["url"], embed["description"]) == ("OPEC meets", URL, "Crude prices rose\\.")
    assert embed["footer"] == {"text": "crude: unsure (wire, updated)"}


def test_ntfy_is_sent_text_with_a_title_and_a_link() -> None:
    made = sent("ntfy", placed(title="Öl\r\nX-Evil: 1"))
    assert (made.media_type, made.body.decode()) == (
        "text/plain; charset=utf-8",
        "crude: accepted (wire)\nCrude prices rose.",
    )
    assert (
        base64.b64decode(made.headers["Title"].removeprefix("=?UTF-8?B?").removesuffix("?=")).decode() == "Öl X-Evil: 1"
    )
    assert (made.headers["Click"], made.headers["Tags"]) == (URL, "accepted")


@pytest.mark.parametrize("format", ["slack", "mattermost", "discord", "ntfy"])
def test_a_goal_that_changes_is_told_in_words(format: str) -> None:
    goal = placed("", "The goal is met now.", decision="goal", state="at_risk", before="met", url="", source="")
    made = sent(format, goal)
    assert b"met now" in made.body
    told = made.body + base64.b64decode(made.headers["Title"][10:-2]) if format == "ntfy" else made.body
    assert b"at risk" in told


@pytest.mark.parametrize("format", ["slack", "mattermost", "discord"])
def test_hostile_texts_are_text(format: str) -> None:
    hostile = placed(HOSTILE, HOSTILE, source=HOSTILE, author=HOSTILE)
    made = body(format, hostile)
    if format == "slack":
        links = made["text"].split("\n")
        assert links[0].count("<") == links[0].count("|") == links[0].count(">") == 1
        assert "<" not in "".join(links[1:])
    elif format == "mattermost":
        text = made["text"].replace("@\u200b", "")
        assert "@" not in text
        assert text.count("](") == 1
    else:
        (embed,) = made["embeds"]
        for part in (embed["title"], embed["description"]):
            assert "@" not in part.replace("@\u200b", "")
            assert "](" not in part


@given(st.text(), st.text(), st.sampled_from(["slack", "mattermost", "discord", "ntfy"]))
def test_any_text_gives_a_message_of_bounded_size(title: str, text: str, format: str) -> None:
    made = sent(format, placed(title, text * 50))
    assert len(made.body) < 10_000
    for value in made.headers.values():
        assert value.isascii()
        assert value.isprintable()


@given(st.dictionaries(st.sampled_from(PLACEHOLDERS), st.text()))
def test_a_template_keeps_its_shape_whatever_is_filled_in(values: dict[str, str]) -> None:
    template = {
        "a": [f"{{{{{name}}}}}" for name in PLACEHOLDERS],
        "b": {"c": 1, "d": None},
        "{{title}}": "x{{ title }}y",
    }
    fields = {name: value for name, value in values.items() if name in ("title", "text", "url", "source", "author")}
    made = body("template", placed(**fields), template=template)
    assert made.keys() == {"a", "b", "{{title}}"}
    assert [type(value) for value in made["a"]] == [str] * len(PLACEHOLDERS)
    assert made["b"] == {"c": 1, "d": None}
    assert made["{{title}}"].startswith("x")


def test_a_template_is_filled_in() -> None:
    template = {"summary": "{{topic}}: {{ title }}", "link": "{{url}}", "priority": 3, "not": "{{}} {{Title}}"}
    assert body("template", placed(title="{{url}}"), template=template) == {
        "summary": "crude: {{url}}",
        "link": URL,
        "priority": 3,
        "not": "{{}} {{Title}}",
    }


async def test_a_chat_gets_what_is_let_through(api: Api, receiver: Receiver) -> None:
    (route,) = await put(api, webhook(receiver, format="discord"))
    assert route["format"] == "discord"
    async with delivering(api):
        await accept(api, 1)

        async def arrived() -> bool:
            return bool(receiver.accepted)

        await wait_until(arrived)
    assert receiver.accepted[0]["embeds"][0]["title"] == OIL["title"]


async def test_a_chat_needs_no_secret_and_a_template_is_checked(api: Api) -> None:
    chat = {"to": "webhook", "url": "https://example.org/hook", "format": "slack"}
    (route,) = await put(api, chat)
    assert (route["format"], route["url"]) == ("slack", chat["url"])
    for wrong, pointer in (
        ({"format": "sluice"}, "/routes/0/secret"),
        ({"format": "teams"}, "/routes/0/format"),
        ({"format": "template"}, "/routes/0"),
        ({"template": {"a": "b"}}, "/routes/0"),
        ({"format": "template", "template": {"a": "{{titel}}"}}, "/routes/0/template"),
        ({"format": "template", "template": "{{title}}"}, "/routes/0/template"),
    ):
        path = "/topics/other/routes"
        await api.request("DELETE", "/topics/other")
        await api.topic("other")
        assert pointers(refused(await api.put(path, json={"routes": [chat | wrong]}), 422)) == [pointer]
