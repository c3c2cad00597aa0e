"""The demonstration at work: stories pass in small batches, readers judge, and each topic is scored.

    stories  →  classify, for the topics of the demonstration only  →  readers  →  feedback  →  the next batch

What each reader wants is known, so precision and recall are counted, not estimated: over the last RECENT_STORIES, by
what was accepted at the time, before anybody judged it. Abstaining counts as not accepting.
"""

import random
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from pydantic import BaseModel

from service.client import Client, ClientError, Refused
from service.demo.newswire import Story, newswire
from service.demo.readers import INTERESTS, Interest, Reader, SeenStory
from service.schemas import Problem

BATCH_SIZE = 10
RECENT_STORIES = 100
AUDIT_BATCHES = 5  # batches between two audits; the state of the goals is fetched as often
GOAL = {"max_abstain": 0.1}
LATEST_STORIES = 4  # shown on the screen, with their decisions
CONFLICT, NOT_FOUND = 409, 404
AUDIT_RATE = 0.1  # far more than usual, because a demonstration is short


class TopicScore(BaseModel):
    """How well a topic did over a range of stories."""

    topic: str
    name: str
    stories: int
    relevant: int
    accepted: int
    abstained: int
    precision: float | None
    recall: float | None
    f1: float | None
    judgements: int
    goal: str


@dataclass(slots=True)
class Play:
    """A demonstration in progress; `steps` runs it, batch by batch."""

    sluice: Client
    length: int
    seed: int
    run: str  # part of the documents' ids, so that every run has documents of its own
    readers: dict[str, Reader] = field(default_factory=dict)
    goals: dict[str, str] = field(default_factory=dict)
    done: int = 0
    latest: deque[tuple[str, dict[str, str]]] = field(default_factory=lambda: deque(maxlen=LATEST_STORIES))

    def __post_init__(self) -> None:
        for interest in INTERESTS:
            rng = random.Random(f"{self.seed} {interest.topic}")
            self.readers[interest.topic] = Reader(interest, rng)

    @contextmanager
    def topics(self, keep: bool) -> Iterator[None]:
        """Creates the topics, and deletes them at the end unless they are to be kept."""
        created: list[str] = []
        try:
            for interest in INTERESTS:
                created.append(interest.topic)  # at once: Ctrl-C may come between the creation and its reply
                self._create(interest, created)
            yield
        finally:
            for topic in created if not keep or len(created) < len(INTERESTS) else ():
                self._delete(topic)

    def steps(self) -> Iterator[None]:
        stories = newswire(self.length, self.seed)
        for n in range(0, self.length, BATCH_SIZE):
            self._classify(list(islice(stories, BATCH_SIZE)))
            if n // BATCH_SIZE % AUDIT_BATCHES == AUDIT_BATCHES - 1 or n + BATCH_SIZE >= self.length:
                self._audit()
            yield

    def scores(self, first: int, last: int) -> list[TopicScore]:
        """How well each topic did between these two stories."""
        return [_score(reader, self.goals.get(topic, ""), first, last) for topic, reader in self.readers.items()]

    def recent_scores(self) -> list[TopicScore]:
        return self.scores(self.done - RECENT_STORIES, self.done)

    def recalls(self, topic: str, windows: int) -> list[float]:
        """Recall over time, by window; windows without a relevant story are left out."""
        size = max(BATCH_SIZE, self.length // windows)
        recalls = [_recall(self.readers[topic].seen[start : start + size]) for start in range(0, self.done, size)]
        return [recall for recall in recalls if recall is not None]

    def _create(self, interest: Interest, created: list[str]) -> None:
        try:
            self.sluice.create(_new_topic(interest))
        except Refused as error:
            created.remove(interest.topic)
            if error.status != CONFLICT:
                raise
            names = " ".join(interest.topic for interest in INTERESTS)
            detail = f"Topics of an earlier demonstration still exist; delete them first: {names}."
            raise ClientError(detail) from error

    def _delete(self, topic: str) -> None:
        try:
            self.sluice.delete(topic)
        except Refused as error:
            if error.status != NOT_FOUND:
                raise

    def _classify(self, stories: Sequence[Story]) -> None:
        ids = [f"demo-{self.run}-{self.done + i}" for i in range(len(stories))]
        documents = [
            {"id": id, "title": story.title, "text": story.text} for id, story in zip(ids, stories, strict=True)
        ]
        results = self.sluice.classify(documents, list(self.readers))
        decided = {(d.topic, r.document): d.decision for r in results for d in r.decisions}
        judgements: list[tuple[str, str, bool]] = []
        for topic, reader in self.readers.items():
            wanted = map(reader.interest.wants, stories)
            batch = [SeenStory(id, relevant, decided[topic, id]) for id, relevant in zip(ids, wanted, strict=True)]
            judgements += [(topic, document, relevant) for document, relevant in reader.read(batch)]
        self._judge(judgements)
        self.done += len(stories)
        for id, story in zip(ids, stories, strict=True):
            self.latest.append((story.title, {topic: decided[topic, id] for topic in self.readers}))

    def _audit(self) -> None:
        for topic, reader in self.readers.items():
            drawn = [offer.document for offer in self.sluice.review(topic, 100).items if offer.reason == "audit"]
            self._judge([(topic, document, relevant) for document, relevant in reader.audit(drawn)])
            goal = self.sluice.topic(topic).status.goal
            self.goals[topic] = goal.state if goal else ""

    def _judge(self, judgements: Sequence[tuple[str, str, bool]]) -> None:
        lines = [{"topic": t, "document": d, "relevant": y, "by": "demo"} for t, d, y in judgements]
        for result in self.sluice.feedback_on(lines) if lines else ():
            if isinstance(result, Problem):
                raise Refused(result)


def _new_topic(interest: Interest) -> dict[str, object]:
    return {"id": interest.topic, "name": interest.name, "query": interest.query, "goal": GOAL, "audit": AUDIT_RATE}


def _score(reader: Reader, goal: str, first: int, last: int) -> TopicScore:
    seen = reader.seen[max(0, first) : last]
    relevant = sum(story.relevant for story in seen)
    accepted = sum(story.decision == "accept" for story in seen)
    right = sum(story.decision == "accept" and story.relevant for story in seen)
    return TopicScore(
        topic=reader.interest.topic,
        name=reader.interest.name,
        stories=len(seen),
        relevant=relevant,
        accepted=accepted,
        abstained=sum(story.decision == "abstain" for story in seen),
        precision=right / accepted if accepted else None,
        recall=_recall(seen),
        f1=2 * right / (accepted + relevant) if accepted + relevant else None,
        judgements=len(reader.judged),
        goal=goal,
    )


def _recall(seen: Sequence[SeenStory]) -> float | None:
    accepted = [story.decision == "accept" for story in seen if story.relevant]
    return sum(accepted) / len(accepted) if accepted else None
