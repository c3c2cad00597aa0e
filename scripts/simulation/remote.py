"""The same stream through a running service: everything over HTTP, as a feed and its readers would use it.

Documents are put to all topics of the service, so it should have no others. Each topic is created when its reader has
met the documents that it is given, and follows the rest of the stream. What is shown is judged after each batch, what
waits for audit now and then: the order of events is that of scripts/loop. In the end the topics are deleted, whatever
happens.
"""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import numpy as np

from models.core.intervals import Interval
from models.core.measures import Bools
from scripts.common.corpus import Corpus
from scripts.common.report import tracked
from scripts.loop.loop import AUDITS
from scripts.loop.reader import Decisions, Plan, ReaderProgress
from scripts.loop.topic import CODES, TopicSpec
from scripts.simulation.attainment import Attainment, GoalClaim, compare
from service.client import Client, Refused
from service.schemas import Estimate, Problem, Status

JUDGEMENTS = 500  # a request
SENT = 100  # documents a request, of those that follow

T = TypeVar("T")


def simulate(
    address: str,
    corpus: Corpus,
    relevant: Mapping[str, Bools],
    specs: Mapping[str, TopicSpec],
    plans: Mapping[str, Plan],
    counted: Bools,
    batch: int,
) -> list[Attainment]:
    """What each topic claims and does in the service at this address."""
    prefix = secrets.token_hex(4)
    with Client(address) as client:
        simulation = RemoteSimulation(client, corpus, relevant, specs, plans, batch, f"{prefix}-")
        try:
            simulation.stream()
            return simulation.attainments(counted)
        finally:
            simulation.delete_topics()


class RemoteTopic(NamedTuple):
    """A topic in the service, and its reader."""

    id: str
    start: int  # how many documents had come when it was created
    reading: ReaderProgress


class RemoteSimulation:
    def __init__(
        self,
        client: Client,
        corpus: Corpus,
        relevant: Mapping[str, Bools],
        specs: Mapping[str, TopicSpec],
        plans: Mapping[str, Plan],
        batch: int,
        prefix: str,
        after_batch: Callable[[int], None] = lambda position: None,
    ) -> None:
        """Ids of documents and topics begin with the prefix. `after_batch` is called when so many documents have come,
        before any is judged."""
        self._client, self._corpus, self._relevant, self._specs, self._plans = client, corpus, relevant, specs, plans
        self._batch, self._prefix, self._after_batch = batch, prefix, after_batch
        self.topics: dict[str, RemoteTopic] = {}
        self.decisions = {name: np.zeros(corpus.train, np.int8) for name in specs}
        self._readings = {name: ReaderProgress(plan, relevant[name][: corpus.train]) for name, plan in plans.items()}

    def stream(self) -> None:
        """Sends the training documents, and judges them as the readers do."""
        self._create_topics(0)
        batches = list(_chunks(range(self._corpus.train), self._batch))
        for batch in tracked(batches, "documents"):
            position, last = batch[-1] + 1, batch[-1] + 1 == self._corpus.train
            for name, decisions in self._classify(batch, store=True).items():
                self.decisions[name][batch[0] : position] = decisions
                self.topics[name].reading.show(batch[0], decisions)
            self._after_batch(position)
            self._judge({name: topic.reading.take_due(position, last) for name, topic in self.topics.items()})
            for name, topic in self.topics.items():
                if topic.reading.looks_for_audits(batch[0], position) or last:
                    self._judge({name: topic.reading.take_audits(self._audits(topic))})
            self._create_topics(position)

    def status(self, name: str) -> Status:
        return self._client.topic(self.topics[name].id).status

    def delete_topics(self) -> None:
        for topic in self.topics.values():
            self._client.delete(topic.id)

    def attainments(self, counted: Bools) -> list[Attainment]:
        """Sends the documents that follow, and compares."""
        train, size = self._corpus.train, len(self._corpus.documents)
        parts: dict[str, list[Decisions]] = {name: [] for name in self.topics}
        for batch in _chunks(range(train, size), SENT):
            for name, decisions in self._classify(batch, store=False).items():
                parts[name].append(decisions)
        results = []
        for name, topic in self.topics.items():
            relevant = self._relevant[name]
            following = np.concatenate([np.empty(0, np.int8), *parts[name]])[counted]
            before = self.decisions[name][topic.start :], relevant[topic.start : train]
            results.append(compare(name, self._claim(name), *before, relevant[train:][counted], following))
        return results

    def _create_topics(self, position: int) -> None:
        """Creates the topics whose readers have met all that these are given, and gives it to them."""
        for n, (name, reading) in enumerate(self._readings.items()):
            if name not in self.topics and reading.begins <= position:
                topic = RemoteTopic(f"{self._prefix}topic-{n}", position, reading)
                self._client.create({"id": topic.id, **self._specs[name].fields()})
                self.topics[name] = topic
                self._judge({name: dict.fromkeys(reading.given, True)}, with_text=True)

    def _claim(self, name: str) -> GoalClaim:
        goal, reading = self.status(name).goal, self.topics[name].reading
        if goal is None:
            raise RuntimeError(f"{name} has lost its goal")
        return GoalClaim(
            goal.state,
            goal.precision.state if goal.precision else None,
            _interval(goal.recall),
            len(reading.judged) - len(reading.given),
            reading.audited,
        )

    def _classify(self, batch: Sequence[int], store: bool) -> dict[str, Decisions]:
        """The decisions of each topic on these documents."""
        names = {topic.id: name for name, topic in self.topics.items()}
        codes = {name: np.zeros(len(batch), np.int8) for name in self.topics}
        results = self._client.classify([self._document(i) for i in batch], None if store else list(names), store=store)
        for place, result in enumerate(results):
            for decision in result.decisions:
                if decision.topic in names:
                    codes[names[decision.topic]][place] = CODES[decision.decision]
        return codes

    def _audits(self, topic: RemoteTopic) -> list[int]:
        items = self._client.review(topic.id, AUDITS).items
        return [int(item.document.removeprefix(self._prefix)) for item in items if item.reason == "audit"]

    def _judge(self, labels: Mapping[str, Mapping[int, bool]], with_text: bool = False) -> None:
        judgements = [(name, i, relevant) for name, of_topic in labels.items() for i, relevant in of_topic.items()]
        for chunk in _chunks(judgements, JUDGEMENTS):
            body = [
                {
                    "topic": self.topics[name].id,
                    "document": self._document(i) if with_text else f"{self._prefix}{i}",
                    "relevant": relevant,
                }
                for name, i, relevant in chunk
            ]
            for answer in self._client.feedback_on(body):
                if isinstance(answer, Problem):
                    raise Refused(answer)

    def _document(self, i: int) -> dict[str, str]:
        title, text = self._corpus.documents[i]
        return {"id": f"{self._prefix}{i}", "title": title, "text": text or title or "-"}


def _interval(recall: Estimate | None) -> Interval | None:
    if recall is None or recall.low is None or recall.high is None:
        return None
    # Without audits there is no estimate; a claim is judged by its bounds alone.
    return Interval(recall.low if recall.estimate is None else recall.estimate, recall.low, recall.high)


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
