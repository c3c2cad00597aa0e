"""`sluice sources`: adds, lists, tries, polls, pauses and removes feeds that the service reads by itself."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from service.cli.terminal import (
    LOCALHOST,
    STDIN,
    AsJson,
    Failed,
    Misused,
    Output,
    Url,
    connected,
    has_no_command,
    literal,
    opened,
    table,
    write_file,
)
from service.cli.terminal import Source as File

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from service.schemas.sources import FoundDocument, ImportedFeeds, Polled, Source, SourceState, Tried

app = typer.Typer(rich_markup_mode=None)

UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}

Id = Annotated[str, typer.Argument(metavar="SOURCE", help="The source's id.")]
Every = Annotated[str | None, typer.Option(metavar="TIME", help="Time between two polls, such as 90s, 15m, 2h or 1d.")]


@app.callback(invoke_without_command=True)
def sources(context: typer.Context, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Feeds that the service reads by itself; without a command, list them."""
    if has_no_command(context):
        list_sources(None, url, as_json)


@app.command("list")
def list_sources(
    state: Annotated[str | None, typer.Option(help="Only those that are waiting, ok, failing or paused.")] = None,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """List sources, and how their polls went."""

    def row(source: "Source") -> tuple[object, ...]:
        status = source.status
        last = f"{status.last_poll:%Y-%m-%d %H:%M}" if status.last_poll else ""
        why = status.last_error.reason if status.last_error and status.state in ("failing", "paused") else ""
        return source.id, status.state, status.documents, last, why or status.title or source.url or source.path

    with connected(url) as sluice:
        listed = sluice.sources(cast("SourceState | None", state))  # the service says which states there are
        Output(as_json).put_all(listed, ("source", "state", "[documents]", "last poll", ""), row)


@app.command()
def add(
    address: Annotated[str, typer.Argument(metavar="FEED", help="The address of an RSS, Atom or JSON feed.")],
    id: Annotated[str | None, typer.Option(help="The source's id; made from the address if absent.")] = None,
    every: Every = None,
    paused: Annotated[bool, typer.Option("--paused", help="Do not poll it yet.")] = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Add a feed. It is polled at once, and then regularly."""
    _add({"kind": "feed", "url": address, "paused": paused}, id, every, url, as_json)


@app.command("add-file")
def add_file(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Within the directory of SLUICE_SOURCES_FILES.")],
    format: Annotated[str, typer.Option(help="ndjson, text or mbox.")] = "ndjson",
    id: Annotated[str | None, typer.Option(help="The source's id; made from the path if absent.")] = None,
    every: Every = None,
    paused: Annotated[bool, typer.Option("--paused", help="Do not read it yet.")] = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Add a file of the service's machine. It is read as it grows."""
    _add({"kind": "file", "path": path, "format": format, "paused": paused}, id, every, url, as_json)


@app.command("add-folder")
def add_folder(
    path: Annotated[str, typer.Argument(metavar="PATH", help="Within the directory of SLUICE_SOURCES_FILES.")],
    format: Annotated[str, typer.Option(help="maildir, or text: each file is a document.")] = "maildir",
    id: Annotated[str | None, typer.Option(help="The source's id; made from the path if absent.")] = None,
    every: Every = None,
    paused: Annotated[bool, typer.Option("--paused", help="Do not read it yet.")] = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Add a folder of the service's machine. It is read as it fills."""
    _add({"kind": "folder", "path": path, "format": format, "paused": paused}, id, every, url, as_json)


@app.command()
def show(source: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Show a source, and how its polls went."""
    with connected(url) as sluice:
        Output(as_json).put(sluice.source(source), _source)


@app.command()
def pause(source: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Stop polling a source until it is resumed."""
    with connected(url) as sluice:
        Output(as_json).put(sluice.change_source(source, {"paused": True}), _source)


@app.command()
def resume(source: Id, every: Every = None, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Poll a source again, at once and then regularly."""
    change: dict[str, Any] = {"paused": False} | ({"every_s": seconds(every)} if every else {})
    with connected(url) as sluice:
        Output(as_json).put(sluice.change_source(source, change), _source)


@app.command()
def poll(source: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Poll a source now, and show what is new."""
    with connected(url) as sluice:
        polled, output = sluice.poll_source(source), Output(as_json)
        if not (polled.error and output.for_people):
            output.put(polled, _polled)
    if polled.error:
        raise Failed(polled.error)


@app.command("try")
def try_source(
    address: Annotated[str, typer.Argument(metavar="FEED", help="The address of an RSS, Atom or JSON feed.")],
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Fetch a feed and show what it offers; nothing is stored."""
    with connected(url) as sluice:
        tried, output = sluice.try_source({"kind": "feed", "url": address}), Output(as_json)
        if not (tried.error and output.for_people):
            output.put(tried, _tried)
    if tried.error:
        raise Failed(tried.error)


@app.command("import")
def import_sources(source: File = STDIN, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Add the feeds of an OPML file, as feed readers export it."""
    with opened(source, "an OPML file") as file:
        content = file.read()
    with connected(url) as sluice:
        imported = sluice.import_sources(content)
        Output(as_json).put(imported, _imported)
    if imported.refused:
        raise Failed(f"{imported.refused:,} of {len(imported.feeds):,} feeds were refused.")


@app.command("export")
def export_sources(
    to: Annotated[
        Path | None, typer.Option("--to", "-o", metavar="FILE", help="Write to this file, not to stdout.")
    ] = None,
    url: Url = LOCALHOST,
) -> None:
    """Export all sources as OPML, for feed readers."""
    with connected(url) as sluice:
        write_file(sluice.export_sources(), to)


@app.command()
def remove(source: Id, url: Url = LOCALHOST) -> None:
    """Remove a source; the documents that it has given stay."""
    with connected(url) as sluice:
        sluice.delete_source(source)


def seconds(text: str) -> float:
    """The seconds of a time such as 90s, 15m, 2h or 1d."""
    found = re.fullmatch(r"(\d{1,9})([smhd]?)", text)
    if not found:
        raise Misused(f"A time has the form 90s, 15m, 2h or 1d, not {text!r}.")
    return float(found[1]) * UNITS[found[2]]


def _source(source: "Source") -> "RenderableType":
    status = source.status
    rows: list[tuple[str, object]] = [("source", source.id)]
    rows += [("url", source.url)] if source.url else [(source.kind, source.path), ("format", source.format)]
    rows.append(("state", status.state))
    rows += [("title", status.title)] if status.title else []
    rows += [("documents", f"{status.documents:,}"), ("polled every", f"{source.every_s:g} seconds")]
    rows += [("last poll", f"{status.last_poll:%Y-%m-%d %H:%M:%S}")] if status.last_poll else []
    rows += [("next poll", f"{status.next_poll:%Y-%m-%d %H:%M:%S}")] if status.next_poll else []
    if error := status.last_error:
        rows.append(("last error", f"{error.at:%Y-%m-%d %H:%M:%S}  {error.reason}"))
    return table("", "", rows=rows)


def _imported(imported: "ImportedFeeds") -> str:
    refused = [f"[red]{literal(each.url)}  {literal(each.reason or '')}[/]" for each in imported.feeds if each.reason]
    return "\n".join([*refused, f"{imported.added:,} added, {imported.known:,} known, {imported.refused:,} refused"])


def _polled(polled: "Polled") -> str:
    return _found(polled.documents, f"{polled.new:,} new of {polled.found:,}" if polled.found else "nothing new")


def _tried(tried: "Tried") -> str:
    title = f"{literal(tried.title)}: " if tried.title else ""
    return _found(tried.documents, f"{title}{tried.found:,} items")


def _found(documents: "Sequence[FoundDocument]", total: str) -> str:
    lines = [f"[bold]{literal(each.title or each.snippet[:80])}[/]" for each in documents]
    dates = [
        literal(f"{(each.published or '')[:16].replace('T', ' ')}  {each.url or ''}".strip()) for each in documents
    ]
    return "\n".join([*(f"{line}\n  [dim]{date}[/]" for line, date in zip(lines, dates, strict=True)), total])


def _add(source: dict[str, Any], id: str | None, every: str | None, url: str, as_json: bool) -> None:
    source |= ({"id": id} if id else {}) | ({"every_s": seconds(every)} if every else {})
    with connected(url) as sluice:
        Output(as_json).put(sluice.create_source(source), _source)
