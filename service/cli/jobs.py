"""`sluice jobs`: retrain, compare, decide about earlier documents; listed, watched, cancelled."""

import json
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.terminal import (
    HERE,
    AsJson,
    Failed,
    Output,
    Params,
    Url,
    connected,
    own_options,
    parse_params,
    table,
)

if TYPE_CHECKING:
    from rich.table import Table

    from service.client import Client
    from service.schemas.jobs import Job

app = typer.Typer(help="Background work: list, show, retrain, compare, backfill, wait, cancel.", rich_markup_mode=None)

OVER = ("succeeded", "failed", "cancelled")
LOOK_S = 0.5

Id = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]
Topics = Annotated[list[str] | None, typer.Option("--topic", help="This one; any number. Without: all.")]
Wait = Annotated[bool, typer.Option("--wait", help="Until it is over.")]


@app.callback(invoke_without_command=True)
def jobs(context: typer.Context, url: Url = HERE, as_json: AsJson = False) -> None:
    """Background work; without a command: list it."""
    if own_options(context):
        list_jobs(url, as_json)


@app.command("list")
def list_jobs(url: Url = HERE, as_json: AsJson = False) -> None:
    """Jobs, newest first."""

    def row(job: "Job") -> tuple[object, ...]:
        created = f"{job.created:%Y-%m-%d %H:%M:%S}"
        return job.id, job.kind, job.state, f"{job.progress:.0%}", created, job.message

    with connected(url) as sluice:
        Output(as_json).put_all(sluice.jobs(), ("job", "kind", "state", "[done]", "created", ""), row)


@app.command()
def show(job: Id, url: Url = HERE, as_json: AsJson = False) -> None:
    """A job: how far it has come, or what came of it."""
    with connected(url) as sluice:
        _put(sluice.job(job), as_json)


@app.command()
def retrain(
    method: Annotated[str, typer.Argument(help="Such as svm, boosting or rocchio.")],
    topic: Topics = None,
    publish: Annotated[str, typer.Option(help="if_better, always or never.")] = "if_better",
    param: Params = None,
    wait: Wait = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Fit topics anew to all their judgements, and serve the result if it is better."""
    asked = {"kind": "retrain", "method": method, "params": parse_params(param), "topics": topic or None}
    _submit(asked | {"publish": publish}, wait, url, as_json)


@app.command()
def compare(
    topic: Annotated[str, typer.Argument(help="Whose judgements.")],
    method: Annotated[list[str] | None, typer.Option(help="This one; any number. Without: all.")] = None,
    wait: Wait = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Try several methods on one topic's judgements."""
    methods = [{"method": one} for one in method] if method else None
    _submit({"kind": "compare", "topic": topic, "methods": methods}, wait, url, as_json)


@app.command()
def backfill(
    topic: Topics = None,
    archive: Annotated[str | None, typer.Option(help="A file in the service's directory of archives.")] = None,
    wait: Wait = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """Decide about documents that came before: those that are remembered, or an archive."""
    _submit({"kind": "backfill", "topics": topic or None, "archive": archive}, wait, url, as_json)


@app.command()
def wait(job: Id, url: Url = HERE, as_json: AsJson = False) -> None:
    """Wait until a job is over; 1 if it did not succeed."""
    with connected(url) as sluice:
        _watch(sluice, sluice.job(job), as_json)


@app.command()
def cancel(job: Id, url: Url = HERE, as_json: AsJson = False) -> None:
    """Cancel a job. One that is over stays as it is."""
    with connected(url) as sluice:
        _put(sluice.cancel(job), as_json)


def _submit(asked: dict[str, Any], wait: bool, url: str, as_json: bool) -> None:
    with connected(url) as sluice:
        job = sluice.submit(asked)
        if wait:
            _watch(sluice, job, as_json)
        else:
            _put(job, as_json)


def _watch(sluice: "Client", job: "Job", as_json: bool) -> None:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(job.kind, total=1.0)
        while job.state not in OVER:
            time.sleep(LOOK_S)
            job = sluice.job(job.id)
            bar.update(task, completed=job.progress, description=job.message or job.kind)
    _put(job, as_json)
    if job.state != "succeeded":
        raise Failed(f"The job was not done ({job.state}). {job.message}".rstrip())


def _put(job: "Job", as_json: bool) -> None:
    Output(as_json).put(job, _shown)


def _shown(job: "Job") -> "Table":
    rows: list[tuple[str, object]] = [("job", job.id), ("kind", job.kind), ("state", job.state)]
    rows += [("done", f"{job.progress:.0%}"), ("message", job.message)]
    if job.result is not None:
        rows.append(("result", json.dumps(job.result, indent=2)))
    return table("", "", rows=rows)
