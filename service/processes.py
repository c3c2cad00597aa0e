"""The modules that are started as processes of their own, by name: nothing else may spell these names out."""

import sys

API = "service.run.api"
CONSUMER = "service.run.consumer"
HOUSEKEEPING = "service.run.housekeeping"
JOB_QUEUE = "service.jobs.queue"
JOB_CHILD = "service.jobs.child"
FEED_CHILD = "service.sources.child"
WARM = "service.run.warm"
REPLAY = "service.run.replay"

MODULES = (API, CONSUMER, HOUSEKEEPING, JOB_QUEUE, JOB_CHILD, FEED_CHILD, WARM, REPLAY)
APPLICATION = "service.api.app:create_app"  # what an API process serves


def command(module: str, *arguments: str) -> list[str]:
    """The command line that runs a module with this Python."""
    return [sys.executable, "-m", module, *arguments]
