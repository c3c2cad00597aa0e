"""The demonstration at work: stories pass in small batches, readers judge, and what each topic has done is counted.

    stories  →  classify (for the topics of the demonstration alone)  →  readers  →  feedback  →  the next batch

We know what each reader wants, so precision and recall are counted, not estimated: over the last LATELY stories, of
what was accepted at the time, before anybody had judged it. What is abstained from counts as not accepted.
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

BATCH = 10
LATELY = 100
LOOKING = 5  # batches between two looks at what was drawn for audit, and at how goals stand
GOAL = {"max_abstain": 0.1}
HEARD = 4  # of the newest stories, shown with what was decided
TAKEN = 409
AUDIT = 0.1  # a tenth of what is rejected is looked at: much, but a demonstration is short


class TopicScore(BaseModel):
    """How a topic has done over some stories."""

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
    """A demonstration in progress. `steps` does it, a batch at a time."""

    sluice: Client
    length: int
    seed: int
    run: str  # part of the documents' names, so that a second demonstration has documents of its own
    readers: dict[str, Reader] = field(default_factory=dict)
    goals: dict[str, str] = field(default_factory=dict)
    done: int = 0
    heard: deque[tuple[str, dict[str, str]]] = field(default_factory=lambda: deque(maxlen=HEARD))

    def __post_init__(self) -> None:
        for interest in INTERESTS:
            chance = random.Random(f"{self.seed} {interest.topic}")
            self.readers[interest.topic] = Reader(interest, chance)

    @contextmanager
    def topics(self, keep: bool) -> Iterator[None]:
        """Makes the topics; deletes them in the end, unless they shall be kept."""
        made: list[str] = []
        try:
            for interest in INTERESTS:
                self.sluice.create(_new(interest))
                made.append(interest.topic)
            yield
        except Refused as error:
            if error.status == TAKEN:
                names = " ".join(interest.topic for interest in INTERESTS)
                raise ClientError(
                    f"Topics of an earlier demonstration are still there; delete them first: {names}."
                ) from error
            raise
        finally:
            for topic in made if not keep or len(made) < len(INTERESTS) else ():
                self.sluice.delete(topic)

    def steps(self) -> Iterator[None]:
        stories = newswire(self.length, self.seed)
        for n in range(0, self.length, BATCH):
            self._pass(list(islice(stories, BATCH)))
            if n // BATCH % LOOKING == LOOKING - 1 or n + BATCH >= self.length:
                self._look()
            yield

    def standings(self, first: int, last: int) -> list[TopicScore]:
        """How each topic did between these stories."""
        return [_standing(reader, self.goals.get(topic, ""), first, last) for topic, reader in self.readers.items()]

    def lately(self) -> list[TopicScore]:
        return self.standings(self.done - LATELY, self.done)

    def recalls(self, topic: str, windows: int) -> list[float]:
        """Recall over time, in as many windows; those in which nothing was wanted are left out."""
        size = max(BATCH, self.length // windows)
        shares = [_recall(self.readers[topic].seen[start : start + size]) for start in range(0, self.done, size)]
        return [share for share in shares if share is not None]

    def _pass(self, stories: Sequence[Story]) -> None:
        ids = [f"demo-{self.run}-{self.done + i}" for i in range(len(stories))]
        documents = [
            {"id": id, "title": story.title, "text": story.text} for id, story in zip(ids, stories, strict=True)
        ]
        results = self.sluice.classify(documents, list(self.readers))
        decided = {(d.topic, r.document): d.decision for r in results for d in r.decisions}
        said: list[tuple[str, str, bool]] = []
        for topic, reader in self.readers.items():
            wanted = map(reader.interest.wants, stories)
            seen = [SeenStory(id, relevant, decided[topic, id]) for id, relevant in zip(ids, wanted, strict=True)]
            said += [(topic, document, relevant) for document, relevant in reader.look(seen)]
        self._say(said)
        self.done += len(stories)
        for id, story in zip(ids, stories, strict=True):
            self.heard.append((story.title, {topic: decided[topic, id] for topic in self.readers}))

    def _look(self) -> None:
        for topic, reader in self.readers.items():
            drawn = [one.document for one in self.sluice.review(topic, 100).items if one.reason == "audit"]
            self._say([(topic, document, relevant) for document, relevant in reader.audit(drawn)])
            goal = self.sluice.topic(topic).status.goal
            self.goals[topic] = goal.state if goal else ""

    def _say(self, said: Sequence[tuple[str, str, bool]]) -> None:
        judgements = [{"topic": t, "document": d, "relevant": y, "by": "demo"} for t, d, y in said]
        for answer in self.sluice.feedback_on(judgements) if judgements else ():
            if isinstance(answer, Problem):
                raise Refused(answer)


def _new(interest: Interest) -> dict[str, object]:
    return {"id": interest.topic, "name": interest.name, "query": interest.query, "goal": GOAL, "audit": AUDIT}


def _standing(reader: Reader, goal: str, first: int, last: int) -> TopicScore:
    seen = reader.seen[max(0, first) : last]
    relevant = sum(one.relevant for one in seen)
    accepted = sum(one.decision == "accept" for one in seen)
    right = sum(one.decision == "accept" and one.relevant for one in seen)
    return TopicScore(
        topic=reader.interest.topic,
        name=reader.interest.name,
        stories=len(seen),
        relevant=relevant,
        accepted=accepted,
        abstained=sum(one.decision == "abstain" for one in seen),
        precision=right / accepted if accepted else None,
        recall=_recall(seen),
        f1=2 * right / (accepted + relevant) if accepted + relevant else None,
        judgements=len(reader.judged),
        goal=goal,
    )


def _recall(seen: Sequence[SeenStory]) -> float | None:
    wanted = [one.decision == "accept" for one in seen if one.relevant]
    return sum(wanted) / len(wanted) if wanted else None
