"""`sluice tail`: follows what a topic accepts or abstains on."""

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.terminal import LOCALHOST, AsJson, Output, Url, connected, literal

if TYPE_CHECKING:
    from service.schemas.flow import Passed


def tail(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's id.")],
    all: Annotated[bool, typer.Option("--all", help="Begin with the oldest decision that is kept.")] = False,
    most: Annotated[int | None, typer.Option("--most", "-n", min=1, help="Stop after this many.")] = None,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Follow what a topic accepts or abstains on, until Ctrl-C.

    If the connection breaks, it is opened again, and nothing is missed.
    """
    output = Output(as_json)
    with connected(url) as sluice:
        for n, passed in enumerate(sluice.tail(topic, "0" if all else None), 1):
            output.put(passed, _line)
            if n == most:
                break


def _line(passed: "Passed") -> str:
    colour = {"accept": "green", "abstain": "yellow"}[passed.decision]
    title = literal(passed.title or passed.text[:80].replace("\n", " "))
    copy = f"  [dim]copy of {literal(passed.duplicate_of)}[/]" if passed.duplicate_of else ""
    update = "  [dim]updated[/]" if passed.updated else ""
    return f"[dim]{passed.at:%H:%M:%S}[/] [{colour}]{passed.decision:7}[/] {passed.score:6.3f}  {title}{copy}{update}"
