"""Simulated readers: what each wants, and what they judge.

A reader judges, one batch later, most of what is shown (accepted or abstained on); everything drawn for audit; and now
and then a story that was rejected but that the reader found elsewhere. Sometimes a reader errs.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from service.demo.newswire import Story

JUDGED_SHARE = 0.8  # of what is shown
FOUND_SHARE = 0.15  # of what is wanted and was rejected
ERROR_SHARE = 0.02  # of judgements
AUDITED_STORIES = 2000  # the newest; a reader does not remember others


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
    """A story that has passed, and what one topic decided on it."""

    document: str
    relevant: bool
    decision: str


@dataclass(slots=True)
class Reader:
    interest: Interest
    rng: random.Random
    seen: list[SeenStory] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)
    _to_judge: list[SeenStory] = field(default_factory=list)  # with the next batch

    def read(self, batch: Sequence[SeenStory]) -> list[tuple[str, bool]]:
        """Takes in a batch, and returns judgements of the one before."""
        self.seen += batch
        judgements = [self._judge(story) for story in self._to_judge]
        self._to_judge = [story for story in batch if self.rng.random() < self._judged_share(story)]
        return judgements

    def audit(self, documents: Sequence[str]) -> list[tuple[str, bool]]:
        """Returns judgements of documents that were drawn for audit."""
        by_id = {story.document: story for story in self.seen[-AUDITED_STORIES:]}
        return [self._judge(by_id[document]) for document in documents if document in by_id]

    def _judged_share(self, story: SeenStory) -> float:
        if story.decision != "reject":
            return JUDGED_SHARE
        return FOUND_SHARE if story.relevant else 0.0

    def _judge(self, story: SeenStory) -> tuple[str, bool]:
        self.judged.add(story.document)
        return story.document, story.relevant != (self.rng.random() < ERROR_SHARE)
