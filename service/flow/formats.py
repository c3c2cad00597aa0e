"""What a webhook's receiver is sent: our own message, or one that a chat or a notifier shows to people.

    sluice      the message as Standard Webhooks recommends, signed; the default
    slack       text in Slack's mrkdwn, with a link to the original
    mattermost  the same in Markdown
    discord     an embed
    ntfy        plain text, with title, link and tag as headers
    template    the user's own JSON; {{title}}, {{url}} … in its strings are replaced

In a chat, what people have written must be text: no link that hides its target, and no @all that wakes everybody. So
what means something to the chat is escaped, and mentions are taken apart or switched off. A template is JSON whose
strings are filled in one by one, so no document can add to its structure.
"""

import base64
import re
from typing import NamedTuple

from pydantic import JsonValue
from pydantic_core import to_json

from service.schemas.flow import PLACEHOLDER, ToWebhook
from service.store.stream.outbox import Placed

EVENT_TYPE, GOAL_TYPE = "sluice.decision", "sluice.goal"
TEXT_CHARS = 300  # of a document's text that are shown in a chat
TITLE_CHARS = 200
JSON, PLAIN = "application/json", "text/plain; charset=utf-8"
MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~<>:])")
NO_MENTION = "@\u200b"  # an @ that mentions nobody
COLOURS = {"accept": 0x2E7D32, "abstain": 0xF9A825, "goal": 0x1565C0}
WORDS = {"accept": "accepted", "abstain": "unsure", "goal": "goal"}


class Payload(NamedTuple):
    media_type: str
    body: bytes
    headers: dict[str, str]


class Shown(NamedTuple):
    """What people are shown of an entry."""

    topic: str
    decision: str
    title: str
    text: str
    url: str
    about: str  # source, author, and that it is an update


def payload(target: ToWebhook, topic: str, placed: Placed) -> Payload:
    if target.format == "sluice":
        return Payload(JSON, message(topic, placed), {})
    if target.format == "template":
        return Payload(JSON, to_json(_filled(target.template, _values(topic, placed))), {})
    shown = _shown(topic, placed)
    if target.format == "slack":
        return Payload(JSON, to_json({"text": _slack(shown), "unfurl_links": False}), {})
    if target.format == "mattermost":
        return Payload(JSON, to_json({"text": _mattermost(shown)}), {})
    if target.format == "discord":
        return Payload(JSON, to_json({"embeds": [_discord(shown)], "allowed_mentions": {"parse": []}}), {})
    return _ntfy(shown)


def message(topic: str, placed: Placed) -> bytes:
    """The body of a webhook, in the form that Standard Webhooks recommends."""
    if placed.is_goal:
        change = placed.goal_change(topic)
        return to_json({"type": GOAL_TYPE, "timestamp": change.at, "data": change})
    passed = placed.passed(topic)
    return to_json({"type": EVENT_TYPE, "timestamp": passed.at, "data": passed})


def _shown(topic: str, placed: Placed) -> Shown:
    entry = placed.entry
    if placed.is_goal:
        return Shown(topic, "goal", f"{topic}: the goal is {entry.state.replace('_', ' ')}", entry.text, "", "")
    title = _one_line(entry.title) or _one_line(entry.text)
    about = [entry.source, entry.author, "updated" if entry.updated else ""]
    text = entry.text if entry.title.strip() else ""
    return Shown(
        topic,
        entry.decision,
        _cut(title, TITLE_CHARS),
        _cut(text.strip(), TEXT_CHARS),
        entry.url,
        ", ".join(filter(None, map(_one_line, about))),
    )


def _slack(shown: Shown) -> str:
    title = f"<{_slack_text(shown.url)}|{_slack_text(shown.title)}>" if shown.url else f"*{_slack_text(shown.title)}*"
    return _lines(title, _slack_text(_said(shown)), _slack_text(shown.text))


def _mattermost(shown: Shown) -> str:
    title = _markdown(shown.title)
    linked = f"[{title}]({_in_parentheses(shown.url)})" if shown.url else f"**{title}**"
    return _lines(linked, _markdown(_said(shown)), _markdown(shown.text))


def _discord(shown: Shown) -> dict[str, JsonValue]:
    embed: dict[str, JsonValue] = {
        "title": _markdown(shown.title)[:256],
        "description": _markdown(shown.text),
        "footer": {"text": _said(shown)[:2000]},
        "color": COLOURS[shown.decision],
    }
    return embed | ({"url": shown.url} if shown.url else {})


def _ntfy(shown: Shown) -> Payload:
    headers = {"Title": _header(shown.title), "Tags": WORDS[shown.decision]}
    if shown.url and shown.url.isascii():
        headers["Click"] = shown.url
    return Payload(PLAIN, _lines(_said(shown), shown.text).encode(), headers)


def _values(topic: str, placed: Placed) -> dict[str, str]:
    """What placeholders stand for; see `schemas.flow.PLACEHOLDERS`."""
    entry, shown = placed.entry, _shown(topic, placed)
    return {
        "topic": topic,
        "decision": entry.decision,
        "score": f"{entry.score:g}",
        "document": entry.document,
        "title": shown.title,
        "text": shown.text or shown.title,
        "url": entry.url,
        "source": entry.source,
        "author": entry.author,
        "published": entry.published,
    }


def _filled(template: JsonValue, values: dict[str, str]) -> JsonValue:
    if isinstance(template, str):
        return PLACEHOLDER.sub(lambda name: values[name[1]], template)
    if isinstance(template, list):
        return [_filled(each, values) for each in template]
    if isinstance(template, dict):
        return {name: _filled(each, values) for name, each in template.items()}
    return template


def _said(shown: Shown) -> str:
    decided = shown.topic if shown.decision == "goal" else f"{shown.topic}: {WORDS[shown.decision]}"
    return f"{decided} ({shown.about})" if shown.about else decided


def _slack_text(text: str) -> str:
    """Slack reads these three only; without < nothing mentions anybody."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "¦")


def _markdown(text: str) -> str:
    return MARKDOWN.sub(r"\\\1", text).replace("@", NO_MENTION)


def _in_parentheses(url: str) -> str:
    return url.replace("(", "%28").replace(")", "%29")


def _header(text: str) -> str:
    """A text as a header may have it (RFC 2047)."""
    return f"=?UTF-8?B?{base64.b64encode(text.encode()).decode()}?="


def _lines(*parts: str) -> str:
    return "\n".join(filter(None, parts))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str, chars: int) -> str:
    return text if len(text) <= chars else text[:chars] + "…"
