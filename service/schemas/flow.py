"""The public contract of what flows through, as types."""

import base64
import re
from datetime import datetime
from typing import Annotated, Literal
from urllib.parse import urlsplit

import httpx
from pydantic import AfterValidator, Discriminator, Field, JsonValue, Tag

from service.schemas.documents import Decision
from service.schemas.fields import STREAM, WEBHOOK, Answer, Place, Request

NAME = re.compile(r"(?a:[\w-]{1,63}(\.[\w-]{1,63})*\.?)")  # on the internet, or in a network of one's own
SECRET_BYTES = (24, 64)  # as Standard Webhooks has it


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
    duplicate_of: str | None = Field(
        default=None, description="The document that this one repeats, but for a few words."
    )
    source: str | None = Field(default=None, description="This, `published` and `metadata`: as they came with it.")
    published: str | None = None
    metadata: dict[str, JsonValue] | None = None
    at: datetime


class ConsumerInfo(Answer):
    name: str
    alive: bool = Field(description="Whether it has been heard of lately.")
    pending: int = Field(description="Documents that it took and has not decided yet; others will take them over.")
    started: datetime | None = Field(description="This and what follows is null once it is not alive any more.")
    documents: int | None = Field(description="Decided since it started.")
    dead: int | None = Field(description="Entries since it started that could not be decided.")
    taken_over: int | None = Field(description="Entries that others had left behind.")
    per_s: float | None = Field(description="Documents a second, over the last ten seconds of its work.")


class Flow(Answer):
    """The stream `sluice:in`, and who works on it."""

    lag: int = Field(description="Documents that no consumer has taken yet.")
    lag_s: float = Field(description="How long ago the oldest that is not decided was added; 0 if there is none.")
    pending: int = Field(description="Documents that were taken and are not decided yet.")
    dead: int = Field(description="Entries in `sluice:dead`.")
    consumers: list[ConsumerInfo]


# -- routes ------------------------------------------------------------------------------------------------------------


def _receiver(url: str) -> str:
    parts = urlsplit(url)  # of a port that is none, `port` says so
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError("must be an address that begins with https:// or http://")
    try:
        host = httpx.URL(url).raw_host.decode()  # as it is resolved
    except httpx.InvalidURL:
        host = ""
    if not NAME.fullmatch(host) and ":" not in host:  # of an IPv6 address, which httpx has read
        raise ValueError("names no host that can be")
    if parts.username is not None or parts.password is not None or parts.fragment or not url.isprintable():
        raise ValueError("may hold neither a user nor a fragment nor control characters")
    return url


def _secret(secret: str) -> str:
    low, high = SECRET_BYTES
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith("whsec_") or not low <= len(key) <= high:
        raise ValueError(f"must be whsec_ and {low} to {high} random bytes in base64")
    return secret


def _foreign(key: str) -> str:
    if key.lstrip("{").startswith(("sluice:", "streaq:")) or not key.isprintable():
        raise ValueError("may hold no control characters, nor begin with sluice: or streaq:, which are our own")
    return key


NotRejected = Literal["accept", "abstain"]
On = Annotated[list[NotRejected], Field(min_length=1, max_length=2)]


def _both() -> list[NotRejected]:
    return ["accept", "abstain"]


class ToWebhook(Request):
    """Each decision is posted to an address, signed as Standard Webhooks says."""

    to: Literal["webhook"]
    url: Annotated[str, Field(max_length=2000), AfterValidator(_receiver)]
    on: On = Field(default_factory=_both)
    secret: Annotated[str, Field(max_length=200), AfterValidator(_secret)] | None = Field(
        default=None, description="Never shown again. May be left out if the topic has this route already."
    )


class ToStream(Request):
    """Each decision is added to another stream of the same Redis."""

    to: Literal["stream"]
    key: Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_foreign)]
    on: On = Field(default_factory=_both)


def _to(route: object) -> str | None:
    to = route.get("to") if isinstance(route, dict) else getattr(route, "to", None)
    return {"webhook": WEBHOOK, "stream": STREAM}.get(str(to))


Route = Annotated[
    Annotated[ToWebhook, Tag(WEBHOOK)] | Annotated[ToStream, Tag(STREAM)],
    Discriminator(_to, custom_error_type="route", custom_error_message="`to` must be webhook or stream"),
]


class Routes(Request):
    routes: list[Route] = Field(max_length=20)


class RouteError(Answer):
    document: str
    reason: str
    at: datetime


class RouteInfo(Answer):
    """`waiting`: nothing was delivered yet; `delivering`; `failing`: the newest attempt failed."""

    id: str
    to: Literal["webhook", "stream"]
    url: str | None
    key: str | None
    on: On
    state: Literal["waiting", "delivering", "failing"]
    delivered: int
    failed: int = Field(description="Attempts; each is followed by another, until too many have failed.")
    pending: int = Field(description="Decisions that were tried and are to be tried again.")
    dead: int = Field(description="Decisions of which too many attempts failed. `replay` tries them again.")
    last_error: RouteError | None


class RouteList(Answer):
    items: list[RouteInfo]
    next: None = Field(default=None, description="A topic has few routes; there is no next page.")


class DeadDelivery(Answer):
    document: str
    reason: str
    at: datetime


class Replay(Request):
    after: Place | None = Field(
        default=None,
        description="The place in the topic's stream (`Last-Event-ID`) after which everything is delivered again; "
        "null: what is dead.",
    )


class Replayed(Answer):
    topic: str
    route: str
    deliveries: int = Field(description="How many will be made again.")
