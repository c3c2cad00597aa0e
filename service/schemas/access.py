"""Keys: who may call, and what with."""

from datetime import datetime
from typing import Annotated, Literal, get_args

from pydantic import AfterValidator, Field, StringConstraints

from service.schemas.fields import Answer, Request, no_nul

Scope = Literal["ingest", "judge", "read", "manage", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

Name = Annotated[str, StringConstraints(min_length=1, max_length=100), AfterValidator(no_nul)]


class NewKey(Request):
    """A key for a person or a program."""

    name: Name = Field(description="Whose key it is; shown beside what is done with it.", examples=["newsroom"])
    scopes: list[Scope] = Field(
        min_length=1,
        max_length=len(SCOPES),
        description="What it may do: `ingest` classifies, `judge` gives feedback and reviews, `read` looks, `manage` "
        "changes topics, routes and jobs, `admin` may do everything, keys included.",
    )
    expires: datetime | None = Field(None, description="When it stops working; null: never. UTC, if it has no zone.")
    requests_per_s: float | None = Field(
        None,
        gt=0,
        le=1e6,
        description="How many requests it may send per second, on average; null: no limit. Those of ten seconds may "
        "come at once.",
    )


class Key(Answer):
    id: str
    name: str
    scopes: list[Scope]
    expires: datetime | None
    requests_per_s: float | None
    created: datetime
    used: datetime | None = Field(description="When it was last used, to the minute.")


class IssuedKey(Key):
    key: str = Field(description="The key itself. It is shown only here.")
