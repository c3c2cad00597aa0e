"""How commands read and write.

People are shown text, programs JSON, an object a line: text if stdout is a terminal, else (or with --json) JSON. What
is not the answer, such as progress and mishaps, goes to stderr; progress only where that is a terminal and the answer
goes to a file: what is piped on may come back to the same terminal.
"""

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console, RenderableType
    from rich.table import Table

    from service.client import Client

STDIN = "-"
M = TypeVar("M", bound="BaseModel")

Url = Annotated[
    str, typer.Option("--url", envvar="SLUICE_URL", metavar="URL", help="Where the service is.", show_envvar=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="JSON, an object a line, though it is a terminal.")]
Params = Annotated[
    list[str] | None, typer.Option("--param", metavar="NAME=VALUE", help="A parameter of it, such as C=2; any number.")
]
Source = Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for what is piped in.")]
HERE = "http://127.0.0.1:8000"
CONTROLS = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}


class Failed(Exception):
    """A command could not do what it was asked; the message is a sentence for the person at the terminal."""


def parse_params(given: Sequence[str] | None) -> dict[str, Any]:
    """Parameters as they are typed: a value is JSON if it can be, else a text."""
    found: dict[str, Any] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise typer.BadParameter(f"{text!r} is not like C=2")
        try:
            found[name] = json.loads(value, parse_constant=lambda constant: constant)
        except ValueError:
            found[name] = value
    return found


def own_options(context: typer.Context) -> bool:
    """Whether a group of commands is asked by itself. Its options are not its commands': given before one of them they
    would be passed over, and the command go to another service than was meant."""
    if context.invoked_subcommand is None:
        return True
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source and source.name == "COMMANDLINE":
            raise typer.BadParameter(f"{option.opts[0]} goes after {context.invoked_subcommand}", ctx=context)
    return False


@contextmanager
def connected(url: str) -> "Iterator[Client]":
    """A client whose errors become the command's."""
    # httpx loads its own command line, with click, pygments and all of rich, unless that cannot be imported.
    modules: dict[str, Any] = sys.modules
    modules.setdefault("httpx._main", None)
    from service.client import Client, ClientError

    try:
        with Client(url) as sluice:
            yield sluice
    except ClientError as error:
        raise Failed(str(error)) from error


@contextmanager
def opened(source: str) -> Iterator[IO[bytes]]:
    if source == STDIN:
        yield sys.stdin.buffer
        return
    with ExitStack() as opening:
        try:
            file = opening.enter_context(open(source, "rb"))
        except OSError as error:
            raise Failed(f"{source}: {error.strerror}.") from error
        yield file  # outside: what fails from here on is not the file's fault


class Output:
    """Answers, for people or for programs."""

    def __init__(self, as_json: bool) -> None:
        self.for_people = sys.stdout.isatty() and not as_json

    def put(self, answer: M, shown: "Callable[[M], RenderableType]") -> None:
        """One answer; `shown` makes of it what people see."""
        if self.for_people:
            self.console.print(shown(answer))
        else:
            sys.stdout.write(answer.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
            sys.stdout.flush()

    def put_all(self, answers: Iterable[M], columns: Sequence[str], row: Callable[[M], Sequence[object]]) -> None:
        """A list of answers; `row` makes of each what stands in these columns for people."""
        if self.for_people:
            self.console.print(table(*columns, rows=map(row, answers)))
        else:
            for answer in answers:
                self.put(answer, str)

    @property
    def console(self) -> "Console":
        from rich.console import Console

        return Console(highlight=False)


@contextmanager
def counting(what: str) -> Iterator[Callable[[int], None]]:
    """Shows a growing number, where it disturbs nobody; answers what to tell it."""
    if not sys.stderr.isatty() or not stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} {task.description}"), TimeElapsedColumn())
    # Not through the bar's console, which is stderr: what we write to stdout is the answer.
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done: bar.update(task, completed=done)


def say(sentence: str) -> None:
    print(f"sluice: {sentence}", file=sys.stderr)


def literal(text: object) -> str:
    """A text of somebody's, for `rich`: neither its markup nor the terminal's own controls have any effect."""
    from rich.markup import escape

    return escape(str(text).translate(CONTROLS))


def table(*columns: str, rows: Iterable[Sequence[object]] = ()) -> "Table":
    """A plain table; numbers, which columns in brackets hold, stand to the right."""
    from rich.table import Table

    made = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_header=any(columns))
    for n, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if column.startswith("[") else "left"
        # What comes first is to be typed again, so it stands in one line.
        made.add_column(column.strip("[]"), justify=justify, overflow="fold", no_wrap=not n and any(columns))
    for row in rows:
        made.add_row(*map(literal, row))
    return made
