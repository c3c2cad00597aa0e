"""What topics let through, where it goes, and the stream of incoming documents."""

import base64
import re
from datetime import datetime
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

import httpx
from pydantic import AfterValidator, Discriminator, Field, JsonValue, Tag, model_validator
from pydantic_core import to_json

from models.core.names import GoalState
from service.schemas.common import Page
from service.schemas.documents import Decision
from service.schemas.fields import STREAM, WEBHOOK, Answer, Grade, Place, Request, bounded
from service.schemas.metrics import Figure

NAME = re.compile(r"(?a:[\w-]{1,63}(\.[\w-]{1,63})*\.?)")  # on the internet or in a private network
SECRET_BYTES = (24, 64)  # at least, at most, according to Standard Webhooks


class Passed(Answer):
    """A document that a topic did not reject."""

    id: str
    topic: str
    decision: Decision
    score: float
    version: int
    document: str
    title: str
    text: str
    duplicate_of: str | None = Field(default=None, description="The document that this one is a near-duplicate of.")
    updated: bool = Field(default=False, description="Whether it came before under this id with another text.")
    source: str | None = Field(
        default=None, description="This and the fields from `published` to `metadata` are as the document was sent."
    )
    published: str | None = None
    url: str | None = None
    author: str | None = None
    language: str | None = None
    metadata: dict[str, JsonValue] | None = None
    certain: bool | None = Field(
        default=None,
        description="Whether the precision or error that the topic's goal asks for could be promised then; null "
        "without such a goal.",
    )
    at: datetime


class Ranked(Passed):
    """A document that a topic did not reject, in the topic's ranking. Its decision is the one that was made."""

    score: float = Field(description="By the model as it is now, whichever version decided, so that all compare.")
    relevant: bool | None = Field(description="The judgement in force; null if there is none.")
    grade: Grade | None = Field(default=None, description="Its grade; null if none was given.")

    rank: float | None = Field(
        default=None, description="What it is ranked by, if the order is learned from feedback; null: by its score."
    )


class RankedPage(Page[Ranked]):
    ranked_by: Literal["score", "feedback"] = Field(
        default="score", description="`feedback` if the topic's `ranking` is learned, once enough was judged."
    )
    ndcg: Figure | None = Field(
        description="How well those that were judged are ordered, each by the score that it would have if it had not "
        "been learned from; null until two of different grades are among them."
    )


class GoalChanged(Answer):
    """A topic's goal has changed its state; sent once for each change."""

    id: str
    topic: str
    before: GoalState
    state: GoalState
    version: int
    detail: str
    at: datetime


class ConsumerInfo(Answer):
    name: str
    alive: bool = Field(description="Whether it has sent a heartbeat lately.")
    pending: int = Field(
        description="Documents that it has taken and not decided yet; if it dies, others take them over."
    )
    started: datetime | None = Field(description="This and the fields below are null if it is not alive.")
    documents: int | None = Field(description="Documents decided since it started.")
    dead: int | None = Field(description="Entries that it could not decide since it started.")
    taken_over: int | None = Field(description="Entries that it has taken over from other consumers.")
    per_s: float | None = Field(description="Documents per second over the last ten seconds.")


class Flow(Answer):
    """The stream `sluice:in`, and its consumers."""

    lag: int = Field(description="Documents that no consumer has taken yet.")
    lag_s: float = Field(description="Seconds since the oldest undecided document was added; 0 if there is none.")
    pending: int = Field(description="Documents that were taken and not decided yet.")
    dead: int = Field(description="Entries in `sluice:dead`.")
    consumers: list[ConsumerInfo]


# -- routes ------------------------------------------------------------------------------------------------------------


def web_address(url: str) -> str:
    """Refuses what cannot be called: another scheme, no valid host, a user."""
    try:
        parts = urlsplit(url)
        port = parts.port
        host = httpx.URL(url).raw_host.decode()  # as it will be resolved
    except (ValueError, httpx.InvalidURL):
        raise ValueError("This URL does not have a valid host name and port.") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise ValueError("This must be a URL that begins with https:// or http://.")
    if not NAME.fullmatch(host) and ":" not in host:  # a colon: an IPv6 address, which httpx has checked
        raise ValueError("This URL does not have a valid host name and port.")
    if parts.username is not None or parts.password is not None or parts.fragment or not url.isprintable():
        raise ValueError("This URL must not have a user, a fragment or control characters.")
    return url


def _secret(secret: str) -> str:
    low, high = SECRET_BYTES
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith("whsec_") or not low <= len(key) <= high:
        raise ValueError(f"This must be whsec_, followed by {low} to {high} random bytes in base64.")
    return secret


def _not_ours(key: str) -> str:
    if key.lstrip("{").startswith("sluice:") or not key.isprintable():
        raise ValueError("This must not have control characters, nor begin with sluice:, which is reserved.")
    return key


Routed = Literal["accept", "abstain", "goal"]
On = Annotated[
    list[Routed],
    Field(
        min_length=1,
        max_length=3,
        description="What is sent: decisions, and, as `sluice.goal`, changes of the goal's state.",
    ),
]


def _both() -> list[Routed]:
    return ["accept", "abstain"]


PLACEHOLDER = re.compile(r"\{\{ *([a-z]+) *\}\}")
PLACEHOLDERS = ("topic", "decision", "score", "document", "title", "text", "url", "source", "author", "published")
Format = Literal["sluice", "slack", "mattermost", "discord", "ntfy", "template"]


def _template(template: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Refuses placeholders that stand for nothing."""
    unknown = sorted(set(PLACEHOLDER.findall(to_json(template).decode())) - set(PLACEHOLDERS))
    if unknown:
        raise ValueError(f"There is no placeholder {unknown[0][:40]}; there are {', '.join(PLACEHOLDERS)}.")
    return bounded(template)


class ToWebhook(Request):
    """Sends each decision to a URL as a POST request: signed according to Standard Webhooks, or in the form that a chat
    or a notifier understands."""

    to: Literal["webhook"]
    url: Annotated[str, Field(max_length=2000), AfterValidator(web_address)]
    on: On = Field(default_factory=_both)
    secret: Annotated[str, Field(max_length=200), AfterValidator(_secret)] | None = Field(
        default=None,
        description="Never shown again. May be omitted if the topic has this route already, and in other formats than "
        "`sluice`, which are signed if there is one.",
    )
    format: Format = Field(
        default="sluice", description="What is sent: our own message, or what the receiver shows to people."
    )
    template: Annotated[dict[str, JsonValue], AfterValidator(_template)] | None = Field(
        default=None,
        description="With the format `template`: the JSON to send. In its strings {{title}}, {{url}} and so on are "
        "replaced.",
    )

    @model_validator(mode="after")
    def _has_a_template_if_it_needs_one(self) -> Self:
        if (self.format == "template") != (self.template is not None):
            raise ValueError("The format `template` needs a `template`, and no other format has one.")
        return self


class ToStream(Request):
    """Adds each decision to another stream of the same Redis."""

    to: Literal["stream"]
    key: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_not_ours)]
    on: On = Field(default_factory=_both)


def _to(route: object) -> str | None:
    to = route.get("to") if isinstance(route, dict) else getattr(route, "to", None)
    return {"webhook": WEBHOOK, "stream": STREAM}.get(str(to))


Route = Annotated[
    Annotated[ToWebhook, Tag(WEBHOOK)] | Annotated[ToStream, Tag(STREAM)],
    Discriminator(_to, custom_error_type="route", custom_error_message="`to` must be webhook or stream."),
]


class Routes(Request):
    routes: list[Route] = Field(max_length=20)


class RouteError(Answer):
    document: str
    reason: str
    at: datetime


class RouteInfo(Answer):
    """`waiting`: nothing has been delivered yet; `delivering`: the last attempt succeeded; `failing`: it failed."""

    id: str
    to: Literal["webhook", "stream"]
    url: str | None
    key: str | None
    format: Format | None = Field(default=None, description="Of a webhook; null for a stream.")
    on: On
    state: Literal["waiting", "delivering", "failing"]
    delivered: int
    failed: int = Field(description="Failed attempts; each is retried, until too many have failed.")
    pending: int = Field(description="Decisions that failed and will be retried.")
    dead: int = Field(description="Decisions that failed too often. `replay` tries them again.")
    last_error: RouteError | None


class RouteList(Answer):
    items: list[RouteInfo]
    next: None = Field(default=None, description="Always null: a topic has few routes.")


class DeadDelivery(Answer):
    document: str
    reason: str
    at: datetime


class Replay(Request):
    after: Place | None = Field(
        default=None,
        description="Deliver everything after this place in the topic's stream (`Last-Event-ID`); "
        "null: only dead deliveries.",
    )


class Replayed(Answer):
    topic: str
    route: str
    deliveries: int = Field(description="How many deliveries will be repeated.")
