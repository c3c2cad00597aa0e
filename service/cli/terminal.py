"""What commands share: options, input, output, errors.

Output is for people, as text, if stdout is a terminal; into a pipe, or with --json, it is for programs, as one JSON
object per line. Progress and errors go to stderr. Progress is shown only if stderr is a terminal and stdout a file: the
output of a pipe may come back to the same terminal.
"""

import json
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.console import Console, RenderableType
    from rich.table import Table

    from service.client import Client
    from service.schemas.feedback import PastJudgement
    from service.schemas.flow import Ranked
    from service.schemas.remembered import DocumentJudgement, EarlierJudgement

STDIN = "-"
LOCALHOST = "http://127.0.0.1:8000"
KEY_VAR = "SLUICE_KEY"  # not an option: others on the machine can see those
CONTROLS = {code: "\N{REPLACEMENT CHARACTER}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\n\t"}

M = TypeVar("M", bound="BaseModel")
Url = Annotated[
    str, typer.Option("--url", envvar="SLUICE_URL", metavar="URL", help="Address of the service.", show_envvar=True)
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line, even on a terminal.")]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", metavar="NAME=VALUE", help="A parameter for learning, such as C=2; repeatable."),
]
Source = Annotated[str, typer.Argument(metavar="FILE", help="A file, or - for stdin.")]


class Failed(Exception):
    """A command failed; the message is a sentence for the person at the terminal."""


class Misused(typer.BadParameter):
    """A command was called wrongly; the message is a sentence that is printed after the command's usage."""

    def format_message(self) -> str:
        return self.message


def parse_params(params: Sequence[str] | None) -> dict[str, Any]:
    """Parses parameters as they are typed: a value is JSON if it can be parsed as such, and a string if not."""
    parsed: dict[str, Any] = {}
    for text in params or ():
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise Misused(f"A parameter has the form C=2, not {text!r}.")
        try:
            parsed[name] = json.loads(value, parse_constant=lambda constant: constant)
        except ValueError:
            parsed[name] = value
    return parsed


def has_no_command(context: typer.Context) -> bool:
    """Whether a group, such as `sluice topics`, was called without a command.

    Options of the group are not passed on to its commands. So an option in front of a command is an error: if it were
    ignored, the command might go to another service than was meant."""
    if context.invoked_subcommand is None:
        return True
    for option in context.command.params:
        source = context.get_parameter_source(option.name or "")
        if source and source.name == "COMMANDLINE":
            raise Misused(f"Write {option.opts[0]} after {context.invoked_subcommand}, not before it.", ctx=context)
    return False


@contextmanager
def connected(url: str) -> "Iterator[Client]":
    """A client whose errors make the command fail."""
    # httpx imports a command line of its own, and with it click, pygments and all of rich, unless the import fails.
    modules: dict[str, Any] = sys.modules
    modules.setdefault("httpx._main", None)
    from service.client import Client, ClientError

    try:
        with Client(url, key=os.environ.get(KEY_VAR) or None) as sluice:
            yield sluice
    except ClientError as error:
        raise Failed(str(error)) from error


@contextmanager
def opened(source: str, expected: str) -> Iterator[IO[bytes]]:
    """The file, or stdin. `expected` says what to give where there is no such file."""
    if source == STDIN:
        yield sys.stdin.buffer
        return
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(source, "rb"))
        except FileNotFoundError as error:
            raise Failed(f"There is no file {source!r}; give {expected}, or - for stdin.") from error
        except OSError as error:
            raise Failed(f"The file {source!r} cannot be read: {error.strerror}.") from error
        yield file  # outside of the `try`: an OSError of the command is not about this file


def write_file(content: bytes, to: Path | None) -> None:
    """Writes the file, or to stdout."""
    if to is None:
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return
    try:
        to.write_bytes(content)
    except OSError as error:
        raise Failed(f"The file {str(to)!r} cannot be written: {error.strerror}.") from error


class Output:
    """Prints replies for people or for programs."""

    def __init__(self, as_json: bool) -> None:
        self.for_people = sys.stdout.isatty() and not as_json

    def put(self, reply: M, render: "Callable[[M], RenderableType]") -> None:
        """Prints a reply; `render` turns it into what people see."""
        if self.for_people:
            self.console.print(render(reply))
        else:
            sys.stdout.write(reply.model_dump_json(by_alias=True, exclude_unset=True) + "\n")
            sys.stdout.flush()

    def put_all(self, replies: Iterable[M], columns: Sequence[str], row: Callable[[M], Sequence[object]]) -> None:
        """Prints a list; `row` turns each item into a row of the table that people see."""
        if self.for_people:
            self.console.print(table(*columns, rows=map(row, replies)))
        else:
            for reply in replies:
                self.put(reply, str)

    @property
    def console(self) -> "Console":
        from rich.console import Console

        return Console(highlight=False)


@contextmanager
def progress_counter(unit: str) -> Iterator[Callable[[int], None]]:
    """Shows a growing count on stderr, if nobody minds. Yields the function that sets it."""
    if not sys.stderr.isatty() or not stat.S_ISREG(os.fstat(sys.stdout.fileno()).st_mode):
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.completed:,} {task.description}"), TimeElapsedColumn())
    # The bar must not redirect stdout to its own console, which is stderr: stdout gets the results.
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        task = bar.add_task(unit, total=None)
        yield lambda count: bar.update(task, completed=count)


def print_error(sentence: str) -> None:
    print(f"sluice: {sentence}", file=sys.stderr)


def judged_as(
    judgement: "PastJudgement | Ranked | DocumentJudgement | EarlierJudgement", words: tuple[str, str]
) -> str:
    """A judgement in words: one of two words, for relevant and for not, and the grade if there is one."""
    word = words[0] if judgement.relevant else words[1]
    return word if judgement.grade is None else f"{word}, {judgement.grade}"


def literal(text: object) -> str:
    """Escapes text for rich, so that neither markup nor control characters in it have any effect."""
    from rich.markup import escape

    return escape(str(text).translate(CONTROLS))


def table(*columns: str, rows: Iterable[Sequence[object]] = ()) -> "Table":
    """A plain table. Columns with names in brackets hold numbers, and are aligned to the right."""
    from rich.table import Table

    plain = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", show_header=any(columns))
    for n, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if column.startswith("[") else "left"
        # The first column of a list holds ids, which people copy: they are not wrapped.
        plain.add_column(column.strip("[]"), justify=justify, overflow="fold", no_wrap=not n and any(columns))
    for row in rows:
        plain.add_row(*map(literal, row))
    return plain
