"""`sluice review`: shows documents worth judging, and takes one key for each."""

import getpass
import os
import sys
import termios
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.terminal import LOCALHOST, AsJson, Failed, Output, Url, connected, literal

if TYPE_CHECKING:
    from service.client import Client
    from service.schemas.review import Offer

KEYS = "[bold]y[/] relevant  [bold]n[/] not  [bold]0[/]-[bold]3[/] how relevant  [bold]s[/] skip  [bold]q[/] quit"
LABELS: dict[str, bool | int] = {"y": True, "n": False, "0": 0, "1": 1, "2": 2, "3": 3}
CTRL_D = "\x04"
REASONS = {"uncertain": "undecided", "likely": "likely to be accepted", "audit": "drawn from the rejected"}


def review(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's id.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="How many documents to list, piped or with --json.")] = 20,
    by: Annotated[str | None, typer.Option(help="Who judges. Default: your user name.")] = None,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Judge the documents worth judging, with one key for each.

    The keys are y (relevant), n (not), 0 to 3 (how relevant; 0 is not), s (skip) and q (quit). Piped, or with --json,
    the documents are only listed.
    """
    output = Output(as_json)
    with connected(url) as sluice:
        if not output.for_people:
            for offer in sluice.review(topic, limit).items:
                output.put(offer, str)
            return
        with _keys() as next_key:
            _judge(sluice, topic, by or getpass.getuser(), output, next_key)


def _judge(sluice: "Client", topic: str, by: str, output: Output, next_key: Callable[[], str]) -> None:
    console, judged = output.console, 0
    while True:
        page = sluice.review(topic)
        if page.detail:
            console.print(f"[dim]{page.detail}[/]")
        if not page.items:
            break
        for offer in page.items:
            console.print(_text(offer))
            key = next_key()
            if key == "q":
                console.print(f"{judged} judged.")
                return
            if key == "s":
                sluice.skip(topic, offer.document)
                console.print("[dim]skipped[/]")
                continue
            relevant = LABELS[key]
            learned = sluice.feedback(topic, offer.document, relevant, by)
            judged += 1
            label = "[green]relevant[/]" if relevant else "[red]not relevant[/]"
            label += f" [dim]grade {key}[/]" if key.isdigit() else ""
            console.print(f"{label} [dim]version {learned.version}[/]")
    console.print(f"{judged} judged.")


@contextmanager
def _keys() -> Iterator[Callable[[], str]]:
    """Reads keys without Enter, including those pressed early. Yields a function that returns the next that means
    something; Ctrl-C, Ctrl-D and the end of input count as q."""
    terminal = sys.stdin.fileno()
    if not os.isatty(terminal):
        raise Failed("Judging by key needs a terminal; `sluice review TOPIC --json` only lists the documents.")

    def next_key() -> str:
        while True:
            try:
                key = os.read(terminal, 1).decode(errors="replace").lower() or "q"
            except KeyboardInterrupt:
                return "q"
            if key in LABELS or key in ("s", "q"):
                return key
            if key == CTRL_D:
                return "q"

    before = termios.tcgetattr(terminal)
    try:
        tty.setcbreak(terminal, termios.TCSANOW)
        yield next_key
    finally:
        termios.tcsetattr(terminal, termios.TCSANOW, before)


def _text(offer: "Offer") -> str:
    head = f"\n[bold]{literal(offer.title or offer.document)}[/]  [dim]{offer.score:.3f}, {REASONS[offer.reason]}[/]"
    return f"{head}\n{literal(offer.snippet)}\n{KEYS}"
