"""`sluice demo`: made-up news and simulated readers, against a running service."""

import signal
import time
from typing import Annotated

import typer

from service.cli.terminal import LOCALHOST, AsJson, Output, Url, connected


def demo(
    stories: Annotated[int, typer.Option(min=100, max=100_000, help="Number of stories.")] = 1200,
    seconds: Annotated[float, typer.Option(min=0, help="Take at least this long.")] = 60.0,
    seed: Annotated[int, typer.Option(help="The same seed gives the same stories.")] = 20,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the topics, to look at them.")] = False,
    url: Url = LOCALHOST,
    as_json: AsJson = False,
) -> None:
    """Watch the service learn for a minute, from made-up news.

    Four topics follow news whose themes drift, and simulated readers judge what they are shown. The topics are deleted
    at the end. The stories stay among the documents that the service remembers and counts words by, so run it where no
    real stream passes.
    """
    from rich.live import Live

    from service.demo import screen
    from service.demo.play import Play

    output = Output(as_json)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # like Ctrl-C, so that the topics are deleted
    with connected(url) as sluice:
        play = Play(sluice, stories, seed, f"{time.time_ns():x}")
        started = time.monotonic()
        with play.topics(keep), Live(console=output.console, auto_refresh=False, transient=True) as display:
            for _ in play.steps():
                if output.for_people:
                    display.update(screen.live(play), refresh=True)
                time.sleep(max(0.0, started + seconds * play.done / stories - time.monotonic()))
        if output.for_people:
            output.console.print(screen.live(play), "", screen.summary(play))
            if keep:
                output.console.print("\nThe topics are kept: try `sluice topics` or `sluice review demo-energy`.")
        else:
            for score in play.recent_scores():
                output.put(score, str)
