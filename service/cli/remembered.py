"""`sluice documents`: shows a remembered document, with what was decided and said about it."""

from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.terminal import LOCALHOST, AsJson, Output, Url, connected, judged_as, literal

if TYPE_CHECKING:
    from service.schemas.remembered import DocumentJudgement, EarlierJudgement, RememberedDocument

COLOURS = {"accept": "green", "abstain": "yellow", "reject": "dim"}

app = typer.Typer(rich_markup_mode=None, no_args_is_help=True)


@app.callback()
def documents() -> None:
    """Look at the documents that are remembered."""


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
