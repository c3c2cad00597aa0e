"""`sluice export` and `sluice import`: topics with their logs, as files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.terminal import HERE, STDIN, AsJson, Failed, Output, Source, Url, connected, opened

if TYPE_CHECKING:
    from service.schemas import Topic


def export_topic(
    topic: Annotated[str, typer.Argument(help="Which one.")],
    to: Annotated[Path | None, typer.Option("--to", "-o", metavar="FILE", help="Else stdout.")] = None,
    url: Url = HERE,
) -> None:
    """A topic with its log as a file, NDJSON: to keep, or to import elsewhere."""
    with connected(url) as sluice:
        file = sluice.export_topic(topic)
    if to is None:
        sys.stdout.buffer.write(file)
        sys.stdout.buffer.flush()
        return
    try:
        to.write_bytes(file)
    except OSError as error:
        raise Failed(f"{to}: {error.strerror}.") from error


def import_topic(
    source: Source = STDIN,
    id: Annotated[str | None, typer.Option(help="Another name for it.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Take the place of a topic of that name.")] = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """A topic of a file that was exported: as a whole or not at all. It decides as it did."""
    with opened(source) as file:
        content = file.read()
    with connected(url) as sluice:
        Output(as_json).put(sluice.import_topic(content, id, replace), _came)


def _came(topic: "Topic") -> str:
    judged = topic.status.judged.relevant + topic.status.judged.irrelevant
    return f"{topic.id}: version {topic.status.version}, {judged:,} judgement{'s' * (judged != 1)}"
