"""The workers of a job: none but its own process, processes of this machine, or a Dask cluster by its address.

What goes wrong with them (no answer, no workers, one that dies) ends the job with a sentence. Nothing is written before
a fit is over, so nothing is lost: what was published before stays, and the job can be submitted again.

A scheduler sends pickled messages, so control of it is control of the job's process. An address of another machine
must therefore be one of the operator's (`SLUICE_DASK`); this is checked when a job is submitted.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import TypeVar
from urllib.parse import urlsplit

from models.methods.farm import Crew, WorkerDied
from service.config import Config
from service.errors import BadInput
from service.jobs.context import JobContext
from service.jobs.farm.local import Processes

CONNECT_S = 10.0
LOOPBACK = ("localhost", "127.0.0.1", "::1")

R = TypeVar("R")


def is_allowed(address: str, config: Config) -> bool:
    """Whether jobs may use the Dask cluster with this address."""
    named = [one.strip() for one in (config.dask or "").split(",")]
    return urlsplit(address).hostname in LOOPBACK or address in named


@asynccontextmanager
async def open_crew(context: JobContext, workers: int | str | None) -> AsyncIterator[Crew | None]:
    """The workers, as long as the job needs them."""
    with ExitStack() as stack:
        if workers is not None:
            context.message = "Starting workers." if isinstance(workers, int) else f"Connecting to {workers}."
        crew = await context.in_thread(lambda: stack.enter_context(_crew(workers)))
        try:
            yield crew
        finally:
            await asyncio.to_thread(stack.close)


async def in_crew(context: JobContext, fit: Callable[[], R]) -> R:
    """Fits in a thread. A worker that dies ends the job with a sentence."""
    try:
        return await context.in_thread(fit)
    except WorkerDied as error:
        raise BadInput(f"The job has ended, because {error}; what it had published stays. Submit it again.") from error


@contextmanager
def _crew(workers: int | str | None) -> Iterator[Crew | None]:
    if workers is None:
        yield None
    elif isinstance(workers, int):
        with Processes(workers) as processes:
            yield processes
    else:
        with _cluster(workers) as cluster:
            yield cluster


@contextmanager
def _cluster(address: str) -> Iterator[Crew]:
    try:
        from distributed import Client

        from service.jobs.farm.dask import Cluster
    except ModuleNotFoundError:
        raise BadInput("This service cannot use a Dask cluster: its extra `dask` is not installed.") from None
    try:
        client = Client(address, timeout=CONNECT_S)  # the default one, by which actors find their way back
    except (OSError, TimeoutError, ValueError) as error:
        raise BadInput(f"The Dask cluster at {address} does not answer. Nothing was fitted.") from error
    try:  # not `with client`, which would have to begin and end in one thread
        if not client.nthreads():
            raise BadInput(f"The Dask cluster at {address} has no workers. Nothing was fitted.")
        yield Cluster(client)
    finally:
        client.close()
