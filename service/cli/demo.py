"""`sluice demo`: a newswire that is made up, and readers that are simulated, against a running service."""

import signal
import time
from typing import Annotated

import typer

from service.cli.terminal import HERE, AsJson, Output, Url, connected


def demo(
    stories: Annotated[int, typer.Option(min=100, max=100_000, help="How many pass.")] = 1200,
    seconds: Annotated[float, typer.Option(min=0, help="How long it shall take, at least.")] = 60.0,
    seed: Annotated[int, typer.Option(help="The same seed, the same stories.")] = 20,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the topics there, to look at.")] = False,
    url: Url = HERE,
    as_json: AsJson = False,
) -> None:
    """See it learn within a minute: made-up news of drifting themes, simulated readers, four topics.

    The topics are deleted in the end. The stories stay among the documents that the service remembers and counts words
    by, so do it where no real stream passes.
    """
    from rich.live import Live

    from service.demo import screen
    from service.demo.play import Play

    output = Output(as_json)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C: the topics are deleted then, too
    with connected(url) as sluice:
        play = Play(sluice, stories, seed, f"{time.time_ns():x}")
        began = time.monotonic()
        with play.topics(keep), Live(console=output.console, auto_refresh=False, transient=True) as shown:
            for _ in play.steps():
                if output.for_people:
                    shown.update(screen.live(play), refresh=True)
                time.sleep(max(0.0, began + seconds * play.done / stories - time.monotonic()))
        if output.for_people:
            output.console.print(screen.live(play), "", screen.summary(play))
            if keep:
                output.console.print("\nThe topics are still there: `sluice topics`, `sluice review demo-energy`, …")
        else:
            for standing in play.lately():
                output.put(standing, str)
