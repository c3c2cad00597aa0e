"""Answers of every kind: problems, pages, health."""

from typing import Generic, Literal, TypeVar

from pydantic import Field

from service.schemas.fields import Answer

T = TypeVar("T")


class Problem(Answer):
    """What went wrong (RFC 9457). `errors` has a pointer and a sentence for each invalid field."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


class Health(Answer):
    status: Literal["ok"]
    topics: int | None = None


class About(Answer):
    """What serves here, and where to go on."""

    name: str
    version: str
    links: dict[str, str]


class Page(Answer, Generic[T]):
    items: list[T]
    next: str | None = Field(description="Cursor of the next page; null on the last.")
