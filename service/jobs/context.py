"""What a job is given: the store, what is built on it, and where the job reports its progress."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from service.config import Config
from service.errors import StoreUnavailable
from service.store.jobs import Claim, JobStore
from service.store.topics import Store
from service.topics.background import Epochs
from service.topics.learning import Learning

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class JobContext:
    claim: Claim
    config: Config
    store: Store
    jobs: JobStore
    epochs: Epochs
    learning: Learning
    checkpoint: str | None = None  # where an earlier run of this job stopped, JSON
    progress: float = 0.0
    message: str = ""
    _part: tuple[float, float] = field(default=(0.0, 1.0))  # where the current part begins, and its share

    @property
    def job(self) -> str:
        return self.claim.job

    def begin_part(self, number: int, parts: int, message: str) -> None:
        """Begins the next of several parts that take about the same time each."""
        self._part = number / parts, 1 / parts
        self.message = message
        self.report(0.0)

    def report(self, share: float) -> None:
        """Sets how much of the current part is done. May be called from any thread."""
        self.progress = self._part[0] + share * self._part[1]

    async def save_progress(self) -> None:
        await self.jobs.update(self.claim, progress=round(self.progress, 4), message=self.message)

    async def save_checkpoint(self, checkpoint: str) -> None:
        """Saves where the next run of this job would continue. Raises if another worker has taken the job over."""
        if not await self.jobs.update(self.claim, checkpoint=checkpoint):
            raise StoreUnavailable("This process no longer holds the job.")

    async def in_thread(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Calls it in a thread, so that the event loop can save the progress meanwhile."""
        return await asyncio.to_thread(call, *args, **kwargs)
