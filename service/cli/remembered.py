"""`sluice documents`: searches the documents that are remembered, and shows one with what was decided and said about
it."""

from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.terminal import LOCALHOST, AsJson, Output, Url, connected, judged_as, literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from service.schemas.remembered import DocumentJudgement, EarlierJudgement, Found, RememberedDocument

COLOURS = {"accept": "green", "abstain": "yellow", "reject": "dim"}

FORMATS = ["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%SZ"]

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def documents() -> None:
    """Look at the documents that are remembered."""


@app.command()
def search(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="WORDS", help='Words, "phrases", prefix*, and -- -without.')
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Only what this topic did not reject.")] = None,
    decision: Annotated[
        Literal["accept", "abstain", "reject"] | None, typer.Option(help="Only what the topic decided so.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="Only documents of this source.")] = None,
    since: Annotated[datetime | None, typer.Option(formats=FORMATS, help="Only what came since, in UTC.")] = None,
    until: Annotated[datetime | None, typer.Option(formats=FORMATS, help="Only what came before, in UTC.")] = None,
    best: Annotated[bool, typer.Option("--best", help="What fits the words best comes first.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many documents to list.")] = 20,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Search the documents that are remembered, newest first."""
    output = Output(as_json)
    with connected(url) as sluice:
        found = sluice.search(
            " ".join(words or ()),
            topic=topic,
            decision=decision,
            source=source,
            since=since,
            until=until,
            sort="best" if best else "newest",
            limit=min(limit, 1000),
        )
        for document in islice(found, limit):
            output.put(document, _hit)


@app.command()
def show(
    document: Annotated[str, typer.Argument(metavar="ID", help="The document's id.")],
    now: Annotated[bool, typer.Option("--now", help="Decide it again, by the models as they are now.")] = False,
    all: Annotated[bool, typer.Option("--all", help="Include rejections.")] = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Show a document: its text, what topics decided, and who judged it."""
    with connected(url) as sluice:
        Output(as_json).put(sluice.document(document, now=now, all=all), _page)


def _hit(found: "Found") -> str:
    about = [found.document, f"{found.at:%Y-%m-%d %H:%M}", found.source or "", found.decision or ""]
    return "\n".join(
        (
            _marked(found.title or found.document, found.matches.title if found.title else [], "bold"),
            f"[dim]{literal('  '.join(filter(None, about)))}[/]",
            _marked(found.snippet, found.matches.snippet, ""),
        )
    )


def _marked(text: str, spans: "Sequence[tuple[int, int]]", style: str) -> str:
    """The text with what was found underlined."""
    parts, end = [], 0
    for first, last in spans:
        parts += [literal(text[end:first]), f"[underline]{literal(text[first:last])}[/]"]
        end = last
    marked = "".join((*parts, literal(text[end:])))
    return f"[{style}]{marked}[/]" if style else marked


def _page(found: "RememberedDocument") -> str:
    copy = f"  [dim]copy of {literal(found.duplicate_of)}[/]" if found.duplicate_of else ""
    about = [found.source, found.author, found.published, found.language, found.url]
    lines = [
        f"[bold]{literal(found.title or found.document)}[/]{copy}",
        "[dim]" + literal("  ".join([found.document, f"{found.at:%Y-%m-%d %H:%M}", *filter(None, about)])) + "[/]",
        *([literal(found.text)] if found.text else []),
        "",
    ]
    for was in found.decisions:
        lines += [_decision(was.topic, was.decision, was.score, f"version {was.version}" if was.version else "")]
    for is_now in found.now or ():
        lines += [_decision(is_now.topic, is_now.decision, is_now.score, "now")]
    for judged in found.judgements:
        lines += [f"judged {_label(judged)}  {judged.topic}"]
        lines += [f"[dim]  before: {_label(judged.corrects)}[/]"] if judged.corrects else []
    return "\n".join(lines).rstrip("\n")


def _label(judged: "DocumentJudgement | EarlierJudgement") -> str:
    by = f" by {judged.by}" if judged.by else ""
    return literal(f"{judged_as(judged, ('relevant', 'not relevant'))}{by}, {judged.at:%Y-%m-%d %H:%M}")


def _decision(topic: str, decision: str, score: float | None, when: str) -> str:
    shown = f"  {score:.3f}" if score is not None else ""
    return f"[{COLOURS[decision]}]{decision}[/]  {topic}{shown}" + (f"  [dim]{when}[/]" if when else "")
