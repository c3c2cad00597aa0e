"""`sluice classify` and `sluice feedback`: documents and judgements, piped through."""

import json
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from service.cli.terminal import (
    HERE,
    STDIN,
    AsJson,
    Failed,
    Output,
    Source,
    Url,
    connected,
    counting,
    literal,
    opened,
)

if TYPE_CHECKING:
    from service.schemas import Learned, Problem, Result

Topics = Annotated[list[str] | None, typer.Option("--topic", help="Ask this one; any number. Without: all.")]


def classify(
    source: Source = STDIN,
    topic: Topics = None,
    text: Annotated[bool, typer.Option("--text", help="Each line is a text, not a document in JSON.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Say why, and what would flip it.")] = False,
    store: Annotated[bool, typer.Option(help="Remember the documents, for feedback and review.")] = True,
    all: Annotated[bool, typer.Option("--all", help="Rejections, too.")] = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Decide for documents, a line each: {"id"?, "title"?, "text", …}. A result a line, in order."""
    output = Output(as_json)
    refused = lines = 0
    with connected(url) as sluice, opened(source) as file, counting("documents") as progress:
        documents = _texts(file) if text else _lines(file)
        options: dict[str, Any] = {"explain": explain, "store": store, "all": all, "progress": progress}
        for result in sluice.classify_all(documents, topic, **options):
            lines += 1
            refused += _is_problem(result)
            output.put(result, _decided)
    _report(refused, lines, "documents")


def feedback(
    what: Annotated[
        list[str], typer.Argument(metavar="TOPIC DOCUMENT yes|no | FILE", help="A judgement, or a file of them, or -.")
    ],
    by: Annotated[str | None, typer.Option(help="Who judges.")] = None,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Judge documents: one by its id, or many, a line each: {"topic", "document", "relevant"}."""
    output = Output(as_json)
    with connected(url) as sluice:
        if len(what) == 3 and what[2] in ("yes", "no"):
            learned = sluice.feedback(what[0], what[1], what[2] == "yes", by)
            output.put(learned, _learned)
            return
        if len(what) != 1:
            raise typer.BadParameter("give TOPIC DOCUMENT yes|no, or a file of judgements, or -")
        refused = lines = 0
        with opened(what[0]) as file, counting("judgements") as progress:
            for result in sluice.feedback_all(_lines(file), progress=progress):
                lines += 1
                refused += _is_problem(result)
                output.put(result, _learned)
    _report(refused, lines, "judgements")


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    return (line for line in file if line.strip())


def _texts(file: IO[bytes]) -> Iterator[bytes]:
    # What is not UTF-8 is sent as it is, so that it is refused in its place.
    texts = (line.decode(errors="surrogateescape").strip() for line in file)
    return (json.dumps({"text": text}, ensure_ascii=False).encode(errors="surrogateescape") for text in texts if text)


def _is_problem(result: "Result | Learned | Problem") -> bool:
    from service.schemas import Problem

    return isinstance(result, Problem)


def _report(refused: int, lines: int, what: str) -> None:
    if refused:
        raise Failed(f"{refused:,} of {lines:,} {what} were refused; their lines say why.")


def _refused(problem: "Problem") -> str:
    from service.errors import one_line

    return f"[red]{problem.title}: {literal(one_line(problem.detail, problem.errors or ()))}[/]"


def _decided(result: "Result | Problem") -> str:
    from service.schemas import Problem

    if isinstance(result, Problem):
        return _refused(result)
    again = f"  [dim]again, as {literal(result.duplicate_of)}[/]" if result.duplicate_of else ""
    said = [f"[bold]{literal(result.document)}[/]{again}"]
    colours = {"accept": "green", "abstain": "yellow", "reject": "dim"}
    for one in result.decisions:
        why = literal(", ".join(part.term for part in (one.explanation or ())[:5]))
        flip = literal(f"; not without {', '.join(one.flip.without)}" if one.flip and one.flip.without else "")
        decision = f"[{colours[one.decision]}]{one.decision}[/]"
        said.append(f"  {decision}  {one.topic}  {one.score:.3f}{'  ' + why if why else ''}{flip}")
    return "\n".join(said if result.decisions else [f"{said[0]}  [dim]rejected by all[/]"])


def _learned(result: "Learned | Problem") -> str:
    from service.schemas import Problem

    if isinstance(result, Problem):
        return _refused(result)
    before = f"{result.before.decision} {result.before.score:.3f} before"
    return f"{result.status}  {result.topic}  {literal(result.document)}  version {result.version}  ({before})"
