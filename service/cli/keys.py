"""`sluice keys`: makes, lists and revokes the keys that callers show."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.terminal import LOCALHOST, AsJson, Output, Url, connected, has_no_command

if TYPE_CHECKING:
    from service.schemas.access import IssuedKey, Key

app = typer.Typer(rich_markup_mode=None)


@app.callback(invoke_without_command=True)
def keys(context: typer.Context, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Make, list and revoke the keys that callers show; without a command, list them.

    This needs a key with the scope `admin`, in SLUICE_KEY.
    """
    if has_no_command(context):
        list_keys(url, as_json)


@app.command("list")
def list_keys(url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """List keys, oldest first."""

    def row(key: "Key") -> tuple[object, ...]:
        return key.id, key.name, " ".join(key.scopes), _day(key.expires, "never"), _day(key.used, "not yet")

    with connected(url) as sluice:
        Output(as_json).put_all(sluice.list_keys(), ("key", "name", "scopes", "expires", "used"), row)


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")],
    scope: Annotated[list[str], typer.Option(help="ingest, judge, read, manage or admin; repeatable.")],
    expires: Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d"], help="The day it stops working.")] = None,
    requests_per_s: Annotated[float | None, typer.Option(help="Requests per second, on average.")] = None,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it. It is not shown again."""
    fields: dict[str, Any] = {"name": name, "scopes": scope}
    if expires is not None:
        fields["expires"] = expires.replace(tzinfo=UTC).isoformat()
    if requests_per_s is not None:
        fields["requests_per_s"] = requests_per_s

    def render(issued: "IssuedKey") -> str:
        return issued.key

    with connected(url) as sluice:
        Output(as_json).put(sluice.issue_key(fields), render)


@app.command()
def revoke(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key's id, as listed.")], url: Url = LOCALHOST
) -> None:
    """Revoke a key. It stops working within a second."""
    with connected(url) as sluice:
        sluice.revoke_key(key)


def _day(time: datetime | None, otherwise: str) -> str:
    return otherwise if time is None else f"{time:%Y-%m-%d}"
