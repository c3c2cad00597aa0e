"""`sluice export` and `sluice import`: a topic with its log, as a file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from service.cli.terminal import LOCALHOST, STDIN, AsJson, Failed, Output, Source, Url, connected, opened, write_file

if TYPE_CHECKING:
    from service.schemas import Topic


def export_topic(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic's id.")],
    to: Annotated[
        Path | None, typer.Option("--to", "-o", metavar="FILE", help="Write to this file, not to stdout.")
    ] = None,
    url: Url = LOCALHOST,
) -> None:
    """Export a topic with its log, as NDJSON."""
    with connected(url) as sluice:
        content = sluice.export_topic(topic)
    write_file(content, to)


def import_topic(
    source: Source = STDIN,
    id: Annotated[str | None, typer.Option(help="Import it under this id.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace an existing topic with that id.")] = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Import a topic that was exported. It decides as it did.

    A file is imported completely or not at all.
    """
    with opened(source, "a file from `sluice export`") as file:
        content = file.read()
    with connected(url) as sluice:
        from service.client import Refused

        try:
            Output(as_json).put(sluice.import_topic(content, id, replace), _imported)
        except Refused as error:
            raise Failed(str(error).replace("`id`", "--id").replace("`replace=true`", "--replace")) from error


def _imported(topic: "Topic") -> str:
    judgements = topic.status.judged.relevant + topic.status.judged.irrelevant
    return f"{topic.id}: version {topic.status.version}, {judgements:,} judgement{'s' * (judgements != 1)}"
