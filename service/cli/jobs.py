"""`sluice jobs`: submits, lists, follows and cancels background jobs."""

import json
import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from service.cli.terminal import (
    LOCALHOST,
    AsJson,
    Failed,
    Output,
    Params,
    Url,
    connected,
    has_no_command,
    parse_params,
    table,
)

if TYPE_CHECKING:
    from rich.table import Table

    from service.client import Client
    from service.schemas.jobs import Job

app = typer.Typer(rich_markup_mode=None)

FINAL_STATES = ("succeeded", "failed", "cancelled")
POLL_S = 0.5

Id = Annotated[str, typer.Argument(metavar="JOB", help="The job's id.")]
Topics = Annotated[
    list[str] | None,
    typer.Option("--topic", metavar="TOPIC", help="Only this topic; repeatable. Default: all topics."),
]
Wait = Annotated[bool, typer.Option("--wait", help="Wait until the job is over.")]


@app.callback(invoke_without_command=True)
def jobs(context: typer.Context, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Submit, follow and list background jobs."""
    if has_no_command(context):
        list_jobs(url, as_json)


@app.command("list")
def list_jobs(url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """List jobs, newest first."""

    def row(job: "Job") -> tuple[object, ...]:
        created = f"{job.created:%Y-%m-%d %H:%M:%S}"
        return job.id, job.kind, job.state, f"{job.progress:.0%}", created, job.message

    with connected(url) as sluice:
        Output(as_json).put_all(sluice.jobs(), ("job", "kind", "state", "[done]", "created", ""), row)


@app.command()
def show(job: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Show a job's progress, or its result."""
    with connected(url) as sluice:
        _put(sluice.job(job), as_json)


@app.command()
def retrain(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="The method, such as svm, boosting or rocchio.")],
    topic: Topics = None,
    publish: Annotated[str, typer.Option(help="When to serve the result: if_better, always or never.")] = "if_better",
    param: Params = None,
    workers: Annotated[
        str | None, typer.Option(help="With boosting: a number of processes, or the address of a Dask cluster.")
    ] = None,
    joint: Annotated[
        bool, typer.Option("--joint/--alone", help="With boosting: fit the topics together, or each alone.")
    ] = True,
    wait: Wait = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Retrain topics on all their judgements.

    The result is served if it is better, unless --publish says otherwise.
    """
    job: dict[str, Any] = {"kind": "retrain", "method": method, "params": parse_params(param), "topics": topic or None}
    if workers is not None:
        job["workers"] = int(workers) if workers.isascii() and workers.isdigit() else workers
    _submit(job | {"publish": publish, "joint": joint}, wait, url, as_json)


@app.command()
def compare(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic whose judgements to use.")],
    method: Annotated[list[str] | None, typer.Option(help="Try this method; repeatable. Default: all methods.")] = None,
    wait: Wait = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Compare methods on the judgements of one topic."""
    methods = [{"method": name} for name in method] if method else None
    _submit({"kind": "compare", "topic": topic, "methods": methods}, wait, url, as_json)


@app.command()
def backfill(
    topic: Topics = None,
    archive: Annotated[str | None, typer.Option(help="A file in the service's archive directory.")] = None,
    wait: Wait = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Decide on earlier documents: those remembered, or an archive."""
    _submit({"kind": "backfill", "topics": topic or None, "archive": archive}, wait, url, as_json)


@app.command()
def wait(job: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Wait until a job is over; fail if it did not succeed."""
    with connected(url) as sluice:
        _wait(sluice, sluice.job(job), as_json)


@app.command()
def cancel(job: Id, url: Url = LOCALHOST, as_json: AsJson = False) -> None:
    """Cancel a job; one that is over stays as it is."""
    with connected(url) as sluice:
        _put(sluice.cancel(job), as_json)


def _submit(job: dict[str, Any], wait: bool, url: str, as_json: bool) -> None:
    with connected(url) as sluice:
        submitted = sluice.submit(job)
        if wait:
            _wait(sluice, submitted, as_json)
        else:
            _put(submitted, as_json)


def _wait(sluice: "Client", job: "Job", as_json: bool) -> None:
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as bar:
        task = bar.add_task(job.kind, total=1.0)
        while job.state not in FINAL_STATES:
            time.sleep(POLL_S)
            job = sluice.job(job.id)
            bar.update(task, completed=job.progress, description=job.message or job.kind)
    _put(job, as_json)
    if job.state != "succeeded":
        raise Failed(f"The job did not succeed ({job.state}). {job.message}".rstrip())


def _put(job: "Job", as_json: bool) -> None:
    Output(as_json).put(job, _table)


def _table(job: "Job") -> "Table":
    rows: list[tuple[str, object]] = [("job", job.id), ("kind", job.kind), ("state", job.state)]
    rows += [("done", f"{job.progress:.0%}"), ("message", job.message)]
    if job.result is not None:
        rows.append(("result", json.dumps(job.result, indent=2)))
    return table("", "", rows=rows)
