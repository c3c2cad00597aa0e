"""`sluice review`: what is worth a judgement, judged with one key a document."""

import getpass
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.terminal import HERE, AsJson, Failed, Output, Url, connected, literal

if TYPE_CHECKING:
    from service.client import Client
    from service.schemas.review import Offer

KEYS = "[bold]y[/] relevant  [bold]n[/] not  [bold]s[/] skip  [bold]q[/] quit"
END_OF_INPUT = "\x04"  # Ctrl-D
WHY = {"uncertain": "it is not sure", "likely": "it would accept this", "audit": "drawn from what it rejects"}


def review(
    topic: Annotated[str, typer.Argument(help="Whose documents.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="Documents to be listed, where nobody can be asked.")] = 20,
    by: Annotated[str | None, typer.Option(help="Who judges; else your user name.")] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Judge what is worth it, one key a document: y, n, s, q. Piped, or with --json: only list it."""
    output = Output(as_json)
    with connected(url) as sluice:
        if not output.for_people:
            for offer in sluice.review(topic, limit).items:
                output.put(offer, str)
            return
        with _keys() as key:
            _loop(sluice, topic, by or getpass.getuser(), output, key)


def _loop(sluice: "Client", topic: str, by: str, output: Output, key: Callable[[], str]) -> None:
    console, judged = output.console, 0
    while True:
        page = sluice.review(topic)
        if page.detail:
            console.print(f"[dim]{page.detail}[/]")
        if not page.items:
            break
        for offer in page.items:
            console.print(_shown(offer))
            pressed = key()
            if pressed == "q":
                console.print(f"{judged} judged.")
                return
            if pressed == "s":
                sluice.skip(topic, offer.document)
                console.print("[dim]skipped[/]")
                continue
            learned = sluice.feedback(topic, offer.document, pressed == "y", by)
            judged += 1
            said = "[green]relevant[/]" if pressed == "y" else "[red]not relevant[/]"
            console.print(f"{said} [dim]version {learned.version}[/]")
    console.print(f"{judged} judged.")


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """Keys as they are pressed, without Enter, also those that were pressed early; answers what gives the next one that
    means something. Whoever interrupts, or has no more to say, quits."""
    terminal = sys.stdin.fileno()
    if not os.isatty(terminal):
        raise Failed("Judging by keys needs a terminal; `sluice review TOPIC --json` lists what waits.")

    def pressed() -> str:
        while True:
            try:
                key = os.read(terminal, 1).decode(errors="replace").lower() or "q"
            except KeyboardInterrupt:
                return "q"
            if key in ("y", "n", "s", "q"):
                return key
            if key == END_OF_INPUT:
                return "q"

    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        yield pressed
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def _shown(offer: "Offer") -> str:
    head = f"\n[bold]{literal(offer.title or offer.document)}[/]  [dim]{offer.score:.3f}, {WHY[offer.reason]}[/]"
    return f"{head}\n{literal(offer.snippet)}\n{KEYS}"
