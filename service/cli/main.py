"""The command line: `sluice serve`, its three parts for several machines, and the commands that ask a running service.

Help, and the complaint about a mistyped option, should come at once. So this module and the commands it lists import
nothing but typer and the standard library at the top, and the help is plain text: typer would load rich to draw it.
"""

import errno
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from service.cli import archive, documents, jobs, keys, remembered, review, sources, topics
from service.cli.demo import demo
from service.cli.ranked import feed, ranked
from service.cli.tail import tail
from service.cli.terminal import Failed, print_error
from service.cli.watch import watch

WRITE_ERRORS = {errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}


class Commands(TyperGroup):
    """All commands. A value that does not fit its option is refused in our words, not in those of pydantic."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            from pydantic import ValidationError

            from service.sentences import describe

            if isinstance(error.__cause__, ValidationError):
                error.message = describe(error.__cause__.errors()[0])
            raise


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)

# Every default here is None, so that an option that is not given leaves the setting to the environment. What is shown
# as the default is that of `service.config`.
Host = Annotated[str | None, typer.Option(help="Address to listen on.", show_default="127.0.0.1")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one.", show_default="8000")]
Data = Annotated[Path | None, typer.Option(help="Directory of the embedded store.", show_default="data")]
Redis = Annotated[
    str | None, typer.Option(metavar="URL", help="Use this Redis, Valkey or Redis Cluster, not an embedded store.")
]
SharedRedis = Annotated[
    str | None, typer.Option(metavar="URL", help="Address of the shared store; required, unless SLUICE_REDIS is set.")
]
Workers = Annotated[int | None, typer.Option(help="API processes that share the port.", show_default="1")]


@app.callback()
def sluice() -> None:
    """Filter and route a stream of documents by standing queries that learn.

    Options of serve, api, worker and consumer, and many more settings, can be given in the environment, too: --port is
    SLUICE_PORT, and so on. Where the service asks for a key, the other commands take theirs from SLUICE_KEY.
    """


@app.command()
def serve(
    host: Host = None, port: Port = None, data: Data = None, redis: Redis = None, workers: Workers = None
) -> None:
    """Run the whole service in the foreground.

    The store is embedded, in the data directory, unless --redis names another. Ctrl-C stops everything.
    """
    _supervise(api=True, jobs=True, consume=True, host=host, port=port, data=data, redis=redis, workers=workers)


@app.command()
def api(host: Host = None, port: Port = None, redis: SharedRedis = None, workers: Workers = None) -> None:
    """Run only the API, on a shared store."""
    _supervise(api=True, host=host, port=port, redis=redis, workers=workers)


@app.command()
def worker(redis: SharedRedis = None) -> None:
    """Run only the background work, on a shared store."""
    _supervise(jobs=True, redis=redis)


@app.command()
def consumer(redis: SharedRedis = None) -> None:
    """Run only the consumers of `sluice:in`, on a shared store."""
    _supervise(consume=True, redis=redis)


app.add_typer(topics.app, name="topics")
app.command()(documents.classify)
app.command()(documents.feedback)
app.add_typer(remembered.app, name="documents")
app.command()(review.review)
app.add_typer(jobs.app, name="jobs")
app.add_typer(keys.app, name="keys")
app.add_typer(sources.app, name="sources")
app.command()(watch)
app.command()(ranked)
app.command()(feed)
app.command()(tail)
app.command("export")(archive.export_topic)
app.command("import")(archive.import_topic)
app.command()(demo)


def _supervise(*, api: bool = False, jobs: bool = False, consume: bool = False, **options: Any) -> None:
    from service import logs
    from service.config import Config, StartError
    from service.run.supervisor import supervise

    try:
        config = Config.from_env(**options)
        if config.redis is None and not (api and jobs and consume):
            raise StartError("This command needs a shared store: give its address with --redis URL or SLUICE_REDIS.")
        logs.configure(config.log_level)
        supervise(config, api=api, jobs=jobs, consumers=(config.consumers or not api) if consume else 0)
    except StartError as error:
        raise Failed(str(error)) from error


def main() -> None:
    try:
        app()
    except Failed as error:
        print_error(str(error))
        sys.exit(1)
    except OSError as error:
        if error.errno not in WRITE_ERRORS:
            raise
        if error.errno != errno.EPIPE:  # a reader that has seen enough, such as `head`, is no error
            print_error(f"Could not write the output: {error.strerror}.")
        # Otherwise Python tries to write the rest of the buffer once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


if __name__ == "__main__":
    main()
