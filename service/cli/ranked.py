"""`sluice ranked` and `sluice feed`: what a topic let through, highest score first, or as a feed."""

import sys
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from service.cli.terminal import LOCALHOST, AsJson, Output, Url, connected, judged_as

if TYPE_CHECKING:
    from service.schemas.flow import Ranked


def _time(text: str) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter("This must be a time such as 2026-03-01 or 2026-03-01T12:00:00Z.") from None


def ranked(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's id.")],
    since: Annotated[
        datetime | None,
        typer.Option(parser=_time, metavar="TIME", help="Only what passed since this time; UTC if it has no zone."),
    ] = None,
    unjudged: Annotated[bool, typer.Option("--unjudged", help="Leave out what has been judged.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many documents to list.")] = 100,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """List what a topic let through, highest score first.

    The scores are those of the model as it is now. If the topic's ranking is learned, they are what it ranks by.
    """

    def row(document: "Ranked") -> tuple[object, ...]:
        judgement = "" if document.relevant is None else judged_as(document, ("relevant", "not"))
        title = document.title or document.text[:80].replace("\n", " ")
        rank = document.score if document.rank is None else document.rank
        return document.document, f"{rank:.3f}", document.decision, judgement, title

    with connected(url) as sluice:
        listed = sluice.ranked(topic, since, "exclude" if unjudged else "include", min(limit, 1000))
        columns = ("document", "[score]", "was", "judged", "title")
        Output(as_json).put_all(islice(listed, limit), columns, row)


def feed(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's id.")],
    form: Annotated[Literal["atom", "json"], typer.Option("--form", help="Atom or JSON Feed.")] = "atom",
    unsure: Annotated[bool, typer.Option("--unsure", help="Also what the topic abstained on.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Maximum number of entries.")] = 50,
    url: Url = LOCALHOST,
) -> None:
    """Print what a topic accepted lately as a feed.

    Feed readers take it from the service: /topics/TOPIC/feed.atom or feed.json.
    """
    with connected(url) as sluice:
        content = sluice.feed(topic, form, unsure=unsure, limit=limit)
    sys.stdout.buffer.write(content + b"\n")
    sys.stdout.buffer.flush()
