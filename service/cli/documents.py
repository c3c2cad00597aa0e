"""`sluice classify` and `sluice feedback`: decides on documents and judges them, one by one or piped."""

import json
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from service.cli.terminal import (
    LOCALHOST,
    STDIN,
    AsJson,
    Failed,
    Misused,
    Output,
    Source,
    Url,
    connected,
    literal,
    opened,
    progress_counter,
)
from service.sentences import number_of

if TYPE_CHECKING:
    from service.schemas import Learned, Problem, Result

Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="Decide for this topic; repeatable. Default: all topics."),
]

ANSWERS: dict[str, bool | int] = {"yes": True, "no": False, "0": 0, "1": 1, "2": 2, "3": 3}


def classify(
    source: Source = STDIN,
    topic: Topics = None,
    text: Annotated[bool, typer.Option("--text", help="Each line is plain text, not a JSON document.")] = False,
    explain: Annotated[bool, typer.Option("--explain", help="Show why, and what would flip the decision.")] = False,
    store: Annotated[bool, typer.Option(help="Remember the documents, for feedback and review.")] = True,
    all: Annotated[bool, typer.Option("--all", help="Include rejections.")] = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Decide on documents, one per line.

    A document is {"id"?, "title"?, "text", …}. There is one result per document, in the same order.
    """
    output = Output(as_json)
    refused = lines = 0
    with (
        connected(url) as sluice,
        opened(source, "a file of documents") as file,
        progress_counter("documents") as progress,
    ):
        documents = _texts(file) if text else _lines(file)
        options: dict[str, Any] = {"explain": explain, "store": store, "all": all, "progress": progress}
        for result in sluice.classify_all(documents, topic, **options):
            lines += 1
            refused += _is_problem(result)
            output.put(result, _decided)
    _fail_if_refused(refused, lines, "document")


def feedback(
    what: Annotated[
        list[str],
        typer.Argument(metavar="TOPIC DOCUMENT yes|no|0..3 | FILE", help="A judgement, or a file of them, or -."),
    ],
    by: Annotated[str | None, typer.Option(help="Who judges.")] = None,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Judge a document by its id, or many, one judgement per line.

    0 to 3 says how relevant the document is: 0 is no, the others are yes. In a file, a judgement is {"topic",
    "document", "relevant", "by"?}, where "relevant" is true, false or such a grade.
    """
    output = Output(as_json)
    with connected(url) as sluice:
        if len(what) == 3 and what[2] in ANSWERS:
            topic, document, answer = what
            output.put(sluice.feedback(topic, document, ANSWERS[answer], by), _learned)
            return
        if len(what) != 1:
            raise Misused("Give TOPIC DOCUMENT yes|no|0..3, or a file of judgements, or - for stdin.")
        refused = lines = 0
        with (
            opened(what[0], "TOPIC DOCUMENT yes|no|0..3, or a file of judgements") as file,
            progress_counter("judgements") as progress,
        ):
            for result in sluice.feedback_all(_lines(file), progress=progress):
                lines += 1
                refused += _is_problem(result)
                output.put(result, _learned)
    _fail_if_refused(refused, lines, "judgement")


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    return (line for line in file if line.strip())


def _texts(file: IO[bytes]) -> Iterator[bytes]:
    # Bytes that are not UTF-8 are sent as they are, so that the service refuses just that line.
    texts = (line.decode(errors="surrogateescape").strip() for line in file)
    return (json.dumps({"text": text}, ensure_ascii=False).encode(errors="surrogateescape") for text in texts if text)


def _is_problem(result: "Result | Learned | Problem") -> bool:
    from service.schemas import Problem

    return isinstance(result, Problem)


def _fail_if_refused(refused: int, lines: int, what: str) -> None:
    if refused:
        verb, whose = ("was", "its line says") if refused == 1 else ("were", "their lines say")
        raise Failed(f"{refused:,} of {number_of(lines, what)} {verb} refused; {whose} why.")


def _refused(problem: "Problem") -> str:
    from service.errors import one_line

    return f"[red]{problem.title}: {literal(one_line(problem.detail, problem.errors or ()))}[/]"


def _decided(result: "Result | Problem") -> str:
    from service.schemas import Problem

    if isinstance(result, Problem):
        return _refused(result)
    copy = f"  [dim]copy of {literal(result.duplicate_of)}[/]" if result.duplicate_of else ""
    update = "  [dim]updated[/]" if result.updated else ""
    lines = [f"[bold]{literal(result.document)}[/]{copy}{update}"]
    colours = {"accept": "green", "abstain": "yellow", "reject": "dim"}
    for row in result.decisions:
        why = literal(", ".join(part.term for part in (row.explanation or ())[:5]))
        flip = literal(f"; flips without {', '.join(row.flip.without)}" if row.flip and row.flip.without else "")
        decision = f"[{colours[row.decision]}]{row.decision}[/]"
        lines.append(f"  {decision}  {row.topic}  {row.score:.3f}{'  ' + why if why else ''}{flip}")
    return "\n".join(lines if result.decisions else [f"{lines[0]}  [dim]rejected by all[/]"])


def _learned(result: "Learned | Problem") -> str:
    from service.schemas import Problem

    if isinstance(result, Problem):
        return _refused(result)
    before = f"was {result.before.decision} {result.before.score:.3f}"
    return f"{result.status}  {result.topic}  {literal(result.document)}  version {result.version}  ({before})"
