"""What a job works with: the store and what can be made of it, and where it says how far it has come."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ParamSpec, TypeVar

from service.config import Config
from service.store.jobs import JobStore
from service.store.topics import Store
from service.topics.background import Epochs
from service.topics.learning import Learning

LOST = 75  # exit code of a process that lost the store (EX_TEMPFAIL): the job begins again

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(slots=True)
class JobContext:
    job: str
    config: Config
    store: Store
    jobs: JobStore
    epochs: Epochs
    learning: Learning
    checkpoint: str | None = None  # where the job stopped when it last ran, JSON
    progress: float = 0.0
    message: str = ""
    _part: tuple[float, float] = field(default=(0.0, 1.0))

    def part(self, begun: int, of: int, message: str) -> None:
        """Begins the next of several parts, which take about as long as each other."""
        self._part = begun / of, 1 / of
        self.message = message
        self.tell(0.0)

    def tell(self, done: float) -> None:
        """What share of this part is done. Called from threads."""
        self.progress = self._part[0] + done * self._part[1]

    async def work(self, call: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Does it in a thread, so that somebody can say how far it has come."""
        return await asyncio.to_thread(call, *args, **kwargs)
