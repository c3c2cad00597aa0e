"""Simulated readers: what they judge, when, and whether they are right."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.core.measures import Bools

REJECT, ABSTAIN, ACCEPT = 0, 1, 2
Decisions = NDArray[np.int8]


@dataclass(frozen=True, slots=True)
class SimulatedReader:
    everything: bool = False  # rejected documents are judged, too
    part: float = 1.0  # share of the shown documents that is judged
    delay: int = 0  # documents between showing one and its judgement
    noise: float = 0.0  # share of the judgements that are wrong
    audit: float | None = None  # chance of a rejected document to be drawn for audit; None: as the service chooses
    audit_every: int = 100  # documents between two looks at what is offered for audit
    seeds: int = 3  # relevant documents that the topic is given at the start
    early: bool = False  # they are given before the first document of the stream comes, not when they have come


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """What a reader will do with each document of a stream, decided before it begins."""

    reader: SimulatedReader
    judges: Bools  # if it is shown
    labels: Bools  # what the reader takes for relevant

    @classmethod
    def of(cls, reader: SimulatedReader, relevant: Bools, topic: str = "", seed: int = 0) -> "Plan":
        random = np.random.default_rng([seed, *topic.encode()])
        judged, wrong = random.random((2, len(relevant)))
        return cls(reader, judged < reader.part, relevant ^ (wrong < reader.noise))


class ReaderProgress:
    """What a reader has judged of a topic's documents, and what waits for that."""

    def __init__(self, plan: Plan, relevant: Bools) -> None:
        """`relevant` to the topic are those documents from which the reader takes the first ones."""
        self._plan = plan
        self.given: list[int] = np.flatnonzero(relevant)[: plan.reader.seeds].tolist()
        self.judged = list(self.given)  # in this order
        self.audited = 0
        self._done = set(self.given)
        self._pending: list[int] = []

    @property
    def begins(self) -> int:
        """The document after which the reader has met all that the topic is given."""
        return 0 if self._plan.reader.early or not self.given else self.given[-1] + 1

    def noticed(self, first: int, decisions: Decisions) -> NDArray[np.int64]:
        """Which of the documents from `first` on, with these decisions, the reader will judge."""
        shown = (decisions != REJECT) | self._plan.reader.everything
        places: NDArray[np.int64] = first + np.flatnonzero(shown & self._plan.judges[first : first + len(decisions)])
        return places

    def show(self, first: int, decisions: Decisions) -> None:
        """Shows the documents from `first` on, as they were decided."""
        self._pending += [i for i in self.noticed(first, decisions).tolist() if i not in self._done]

    @property
    def next_due(self) -> int | None:
        """How many documents will have come when the next one is judged."""
        return self._pending[0] + self._plan.reader.delay + 1 if self._pending else None

    def take_due(self, position: int, all_of_them: bool = False) -> dict[int, bool]:
        """The documents that are judged when so many have come, each with its label."""
        upto = position - self._plan.reader.delay
        return self._take([i for i in self._pending if all_of_them or i < upto])

    def take_audits(self, offered: list[int]) -> dict[int, bool]:
        """Those of the documents offered for audit that are judged, each with its label."""
        taken = self._take(sorted(i for i in offered if i not in self._done))
        self.audited += len(taken)
        return taken

    def _take(self, documents: list[int]) -> dict[int, bool]:
        taken = {i: bool(self._plan.labels[i]) for i in documents}
        self._done |= taken.keys()
        self.judged += taken
        self._pending = [i for i in self._pending if i not in taken]
        return taken

    def looks_for_audits(self, before: int, position: int) -> bool:
        """Whether the reader looks at what is offered for audit when, after `before`, so many documents have come."""
        return before // self._plan.reader.audit_every < position // self._plan.reader.audit_every


def drifting(before: Bools, after: Bools, at: int) -> Bools:
    """Relevance to a reader whose interest changes when the document at this position comes."""
    return np.concatenate((before[:at], after[at:]))
