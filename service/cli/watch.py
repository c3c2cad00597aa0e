"""`sluice watch`: the shortest way from nothing to a feed that is filtered, in one command.

    service    started, if none answers at an address of this machine, and stopped at the end
    topic      made from the query, unless there is one
    sources    added, unless they are there
    output     what the topic accepts or is unsure about, as it comes

The topic is made before the sources, so that it decides what their first poll brings.
"""

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import typer

from service.cli.terminal import LOCALHOST, AsJson, Failed, Misused, Output, Url, connected, literal

if TYPE_CHECKING:
    from service.client import Client
    from service.schemas.flow import Passed
    from service.schemas.sources import Source

OWN = ("127.0.0.1", "localhost", "::1")
START_S, STOP_S = 300.0, 15.0  # the first start compiles
POLLED_S = 60.0  # after which a source that was not polled is left to itself
STEP_S = 0.3
MAX_ID_CHARS = 60
WORDS = {"accept": "[green]accepted[/]", "abstain": "[yellow]unsure[/]  "}


def watch(
    feeds: Annotated[list[str], typer.Argument(metavar="FEED...", help="Addresses of RSS, Atom or JSON feeds.")],
    query: Annotated[str | None, typer.Option("--query", "-q", help="What matters, in a few words.")] = None,
    topic: Annotated[str | None, typer.Option(help="The topic's id; made from the query if absent.")] = None,
    most: Annotated[int | None, typer.Option("--most", "-n", min=1, help="Stop after this many stories.")] = None,
    data: Annotated[
        Path | None, typer.Option(help="Directory of the store, if the service is started.", show_default="data")
    ] = None,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Watch feeds for what matters to you, until Ctrl-C.

    Starts the service if none is running here. What is found stays in the data directory: the same command goes on
    where it ended.
    """
    id = topic or topic_id(query or "")
    if not id:
        raise Misused("Say what matters: give --query, or the --topic to use.")
    output = Output(as_json)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C, so that the service is stopped
    with suppress(KeyboardInterrupt), _service(url, data, output), connected(url) as sluice:
        _make_topic(sluice, id, query)
        sources = _add(sluice, feeds)
        _say(output, f"Watching {len(sources):,} feed{'s' * (len(sources) != 1)} for the topic {id}. Ctrl-C ends it.")
        _await_polls(sluice, sources, output)
        _say(output, f"To teach it, judge what it shows: sluice review {id}")
        for n, passed in enumerate(sluice.tail(id, "0"), 1):
            output.put(passed, _story)
            if n == most:
                break


def topic_id(query: str) -> str:
    """An id of the words of a query."""
    return "-".join(re.findall(r"[a-z0-9]+", query.lower()))[:MAX_ID_CHARS].strip("-")


# -- the service -------------------------------------------------------------------------------------------------------


@contextmanager
def _service(url: str, data: Path | None, output: Output) -> Iterator[None]:
    """Starts the service unless it answers, and stops it after the block if it was started."""
    if _answers(url):
        yield
        return
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname not in OWN:
        raise Failed(f"Nothing answers at {url}, and only an address of this machine can be started.")
    _say(output, "Starting the service; the first time this takes a minute.")
    options = ["--host", str(parts.hostname), "--port", str(parts.port or 80), *(["--data", str(data)] if data else [])]
    with tempfile.TemporaryFile() as log, _running(["serve", *options], log) as process:
        deadline = time.monotonic() + START_S
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise Failed(f"The service did not start. {_last_line(log)}".rstrip())
            time.sleep(STEP_S)
        yield


@contextmanager
def _running(arguments: Sequence[str], log: IO[bytes]) -> Iterator["subprocess.Popen[bytes]"]:
    from service.tether import tethered

    command = tethered(sys.executable, "-m", "service.cli.main", *arguments)
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(url: str) -> bool:
    """Whether a service answers there that has loaded its topics; raises if it is something else."""
    from service.client import Client, ClientError, Refused, Retries, Unreachable

    try:
        with Client(url, retries=Retries(attempts=1)) as sluice:
            sluice.ready()
    except Unreachable:
        return False
    except Refused as error:
        if error.status == 503:  # it is loading them
            return False
        raise Failed(str(error)) from error
    except ClientError as error:
        raise Failed(str(error)) from error
    return True


def _last_line(log: IO[bytes]) -> str:
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    return lines[-1].removeprefix("sluice: ") if lines else ""


# -- topic and sources -------------------------------------------------------------------------------------------------


def _make_topic(sluice: "Client", id: str, query: str | None) -> None:
    from service.client import Refused

    try:
        existing = sluice.topic(id)
    except Refused as error:
        if error.status != 404:
            raise
        if not query:
            raise Failed(f"There is no topic {id!r}; give --query to make it.") from error
        sluice.create({"id": id, "name": query[:200], "query": query})
        return
    if query and existing.query != query:
        raise Failed(f"The topic {id!r} has another query: {existing.query!r}. Choose another --topic.")


def _add(sluice: "Client", feeds: Sequence[str]) -> list[str]:
    """The ids of the sources that read these feeds."""
    known = {source.url: source.id for source in sluice.sources()}
    return [known.get(feed) or sluice.create_source({"kind": "feed", "url": feed}).id for feed in dict.fromkeys(feeds)]


def _await_polls(sluice: "Client", sources: Sequence[str], output: Output) -> None:
    """Says of each source how its first poll went."""
    waiting, deadline = list(sources), time.monotonic() + POLLED_S
    while waiting and time.monotonic() < deadline:
        for id in list(waiting):
            source = sluice.source(id)
            if source.status.state != "waiting":
                waiting.remove(id)
                _say(output, _state(source))
        if waiting:
            time.sleep(STEP_S)
    for id in waiting:
        _say(output, f"{id}: not polled yet")


def _state(source: "Source") -> str:
    status = source.status
    if status.state == "ok":
        return f"{source.id}: {status.title or source.url}, {status.documents:,} stories so far"
    reason = status.last_error.reason if status.last_error else ""
    return f"{source.id}: {status.state}. {reason}".rstrip()


# -- output ------------------------------------------------------------------------------------------------------------


def _say(output: Output, sentence: str) -> None:
    """Says to people what is going on; programs get the stories only."""
    if output.for_people:
        output.console.print(f"[dim]{literal(sentence)}[/]")


def _story(passed: "Passed") -> str:
    title = literal(passed.title or passed.text[:80].replace("\n", " "))
    where = literal("  ".join(filter(None, (passed.source, passed.url))))
    copy = f"  copy of {literal(passed.duplicate_of)}" if passed.duplicate_of else ""
    return f"{WORDS[passed.decision]} {passed.score:6.3f}  [bold]{title}[/]\n                 [dim]{where}{copy}[/]"
