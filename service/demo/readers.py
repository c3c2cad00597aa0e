"""Simulated readers: what each wants, and when they say so.

A reader judges what is shown (accepted or abstained from), most of it, one batch later; what is drawn for audit; and
now and then a story that was rejected, and found elsewhere. Sometimes a reader errs.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from service.demo.newswire import Story

JUDGES = 0.8  # share of what is shown
FINDS = 0.15  # share of what is wanted and was rejected
ERRS = 0.02  # share of judgements


@dataclass(frozen=True, slots=True)
class Interest:
    topic: str
    name: str
    query: str
    theme: str

    def wants(self, story: Story) -> bool:
        return story.theme == self.theme


INTERESTS = (
    Interest("demo-energy", "Energy", "crude oil OPEC output barrels", "oil"),
    Interest("demo-harvests", "Harvests", "wheat maize harvest farmers", "grain"),
    Interest("demo-money", "Money", "central bank interest rate inflation", "rates"),
    Interest("demo-football", "Football", "football goal league", "football"),
)


@dataclass(slots=True)
class SeenStory:
    """A story that has passed, and what came of it for one topic."""

    document: str
    relevant: bool
    decision: str


@dataclass(slots=True)
class Reader:
    interest: Interest
    chance: random.Random
    seen: list[SeenStory] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)
    _desk: list[SeenStory] = field(default_factory=list)  # shown, and to be judged with the next batch

    def look(self, seen: Sequence[SeenStory]) -> list[tuple[str, bool]]:
        """Takes in a batch; says what it thinks of the one before."""
        self.seen += seen
        said = [self._says(one) for one in self._desk]
        self._desk = [one for one in seen if self.chance.random() < self._notices(one)]
        return said

    def audit(self, documents: Sequence[str]) -> list[tuple[str, bool]]:
        """What it thinks of documents that were drawn."""
        by_id = {one.document: one for one in self.seen[-2000:]}
        return [self._says(by_id[document]) for document in documents if document in by_id]

    def _notices(self, one: SeenStory) -> float:
        if one.decision != "reject":
            return JUDGES
        return FINDS if one.relevant else 0.0

    def _says(self, one: SeenStory) -> tuple[str, bool]:
        self.judged.add(one.document)
        return one.document, one.relevant != (self.chance.random() < ERRS)
