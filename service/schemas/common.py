"""What answers of every kind share: problems, pages, health."""

from typing import Generic, Literal, TypeVar

from pydantic import Field

from service.schemas.fields import Answer

T = TypeVar("T")


class Problem(Answer):
    """RFC 9457."""

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    errors: list[dict[str, str]] | None = None


class Health(Answer):
    status: Literal["ok"]
    topics: int | None = None


class Page(Answer, Generic[T]):
    items: list[T]
    next: str | None = Field(description="The cursor for what follows; null at the end.")
