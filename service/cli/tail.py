"""`sluice tail`: what a topic lets through, as it happens."""

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.terminal import HERE, AsJson, Output, Url, connected, literal

if TYPE_CHECKING:
    from service.schemas.flow import Passed


def tail(
    topic: Annotated[str, typer.Argument(help="Whose.")],
    all: Annotated[bool, typer.Option("--all", help="First what has been let through and is still kept.")] = False,
    most: Annotated[int | None, typer.Option("--most", "-n", min=1, help="End after so many.")] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """What a topic accepts or abstains from, as it happens; for ever, or until Ctrl-C. Nothing is missed in between."""
    output = Output(as_json)
    with connected(url) as sluice:
        for n, passed in enumerate(sluice.tail(topic, "0" if all else None), 1):
            output.put(passed, _shown)
            if n == most:
                break


def _shown(passed: "Passed") -> str:
    colour = {"accept": "green", "abstain": "yellow"}[passed.decision]
    said = literal(passed.title or passed.text[:80].replace("\n", " "))
    again = f"  [dim]again, as {literal(passed.duplicate_of)}[/]" if passed.duplicate_of else ""
    return f"[dim]{passed.at:%H:%M:%S}[/] [{colour}]{passed.decision:7}[/] {passed.score:6.3f}  {said}{again}"
