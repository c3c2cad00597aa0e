"""The command line: `sluice serve`, its three parts for several machines, and everything that can be asked of a service
that runs (the other modules here)."""

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from service import logs
from service.cli import archive, documents, jobs, review, topics
from service.cli.demo import demo
from service.cli.tail import tail
from service.cli.terminal import Failed, say
from service.config import Config, StartError

UNWRITTEN = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}  # why an answer may not be

app = typer.Typer(
    help="Filter and route a stream of documents by standing queries that learn.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _about(name: str) -> str:
    return str(Config.model_fields[name].description)


Host = Annotated[str | None, typer.Option(help=_about("host"), show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(help=_about("port"), show_default="8000")]
Data = Annotated[Path | None, typer.Option(help=_about("data"), show_default="./data")]
Redis = Annotated[str | None, typer.Option(metavar="URL", help=_about("redis"))]
Shared = Annotated[str | None, typer.Option(metavar="URL", help="Address of the store, a Redis or Valkey; needed.")]
Workers = Annotated[int | None, typer.Option(help=_about("workers"), show_default="1")]


@app.callback()
def settings() -> None:
    """Filter and route a stream of documents by standing queries that learn.

    Every option, and more, can be set in the environment: --port is SLUICE_PORT, and so on.
    """


@app.command()
def serve(
    host: Host = None, port: Port = None, data: Data = None, redis: Redis = None, workers: Workers = None
) -> None:
    """Serve in the foreground, with an embedded store unless --redis names another. Ctrl-C stops everything."""
    _supervise(api=True, jobs=True, consume=True, host=host, port=port, data=data, redis=redis, workers=workers)


@app.command()
def api(host: Host = None, port: Port = None, redis: Shared = None, workers: Workers = None) -> None:
    """Serve the API alone, on a store that others share."""
    _supervise(api=True, host=host, port=port, redis=redis, workers=workers)


@app.command()
def worker(redis: Shared = None) -> None:
    """Do the background work alone, on a store that others share."""
    _supervise(jobs=True, redis=redis)


@app.command()
def consumer(redis: Shared = None) -> None:
    """Decide the documents that are added to the stream `sluice:in` alone, on a store that others share."""
    _supervise(consume=True, redis=redis)


app.add_typer(topics.app, name="topics")
app.command()(documents.classify)
app.command()(documents.feedback)
app.command()(review.review)
app.add_typer(jobs.app, name="jobs")
app.command()(tail)
app.command("export")(archive.export_topic)
app.command("import")(archive.import_topic)
app.command()(demo)


def _supervise(*, api: bool = False, jobs: bool = False, consume: bool = False, **given: Any) -> None:
    # Only now: the help, and a mistyped option, need not wait for these to load.
    from service.run.supervisor import supervise

    settings = Config.from_env(**given)
    if settings.redis is None and not (api and jobs and consume):
        raise StartError("This command works on a shared store: give its address with --redis URL or SLUICE_REDIS.")
    logs.configure(settings.log_level)
    supervise(settings, api=api, jobs=jobs, consumers=(settings.consumers or not api) if consume else 0)


def main() -> None:
    try:
        app()
    except (StartError, Failed) as error:
        say(str(error))
        sys.exit(1)
    except OSError as error:
        if error.errno not in UNWRITTEN:
            raise
        if error.errno != errno.EPIPE:  # else whoever reads has enough, as `head` does
            say(f"The answer could not be written: {error.strerror}.")
        # What is left in the buffer must not be tried again at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
