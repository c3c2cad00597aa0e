"""The same stream through a running service: everything over HTTP, as a feed and its readers would use it.

All topics are created at once and follow the whole stream. Documents are sent in small batches; what is shown is judged
after each, what waits for audit now and then. In the end the topics are deleted, whatever happens.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

import numpy as np

from models.core.intervals import Interval
from models.core.measures import Bools
from models.goals.promises import Targets
from scripts.common.corpus import Corpus
from scripts.common.report import tracked
from scripts.simulation.attainment import ABSTAIN, ACCEPT, REJECT, Attainment, Decisions, GoalClaim, compare
from scripts.simulation.reader import Plan
from service.client import Client, Refused
from service.schemas import Estimate, Problem

BATCH_SIZE = 20  # documents a request
AUDIT_EVERY = 25  # batches between two requests for what waits for audit
PAGE_SIZE = 100
JUDGEMENTS = 500  # a request
CODES = {"reject": REJECT, "abstain": ABSTAIN, "accept": ACCEPT}

T = TypeVar("T")


def simulate(
    address: str,
    corpus: Corpus,
    relevant: Mapping[str, Bools],
    queries: Mapping[str, str],
    goal: Targets,
    plans: Mapping[str, Plan],
    counted: Bools,
) -> list[Attainment]:
    """What each topic claims and does in the service at this address."""
    with Client(address) as client, _topics(client, list(relevant), queries, goal, plans) as ids:
        simulation = RemoteSimulation(client, corpus, relevant, ids, plans)
        simulation.give_seeds()
        simulation.stream()
        return simulation.attainments(counted)


class RemoteSimulation:
    def __init__(
        self,
        client: Client,
        corpus: Corpus,
        relevant: Mapping[str, Bools],
        ids: Mapping[str, str],
        plans: Mapping[str, Plan],
    ) -> None:
        self._client, self._corpus, self._relevant, self._ids, self._plans = client, corpus, relevant, ids, plans
        self._names = {topic: name for name, topic in ids.items()}
        self._prefix = secrets.token_hex(4)
        self._decisions = {name: np.zeros(corpus.train, np.int8) for name in ids}
        self._judged: dict[str, set[int]] = {name: set() for name in ids}
        self._audited = dict.fromkeys(ids, 0)

    def give_seeds(self) -> None:
        """Judges the relevant documents that each topic is given at the start."""
        for name, plan in self._plans.items():
            given = np.flatnonzero(self._relevant[name][: self._corpus.train])[: plan.reader.seeds]
            self._send([(name, int(i), True) for i in given], with_text=True)

    def stream(self) -> None:
        """Sends the training documents, and judges them as the readers do."""
        pending: list[tuple[int, str, int]] = []  # when it is judged, topic, document
        batches = list(_chunks(range(self._corpus.train), BATCH_SIZE))
        for n, batch in tracked(list(enumerate(batches)), "documents"):
            for name, decisions in self._classify(batch, store=True).items():
                plan = self._plans[name]
                self._decisions[name][batch[0] : batch[-1] + 1] = decisions
                shown = (decisions != REJECT) | plan.reader.everything
                noticed = np.asarray(batch)[shown & plan.judges[batch[0] : batch[-1] + 1]].tolist()
                pending += [(i + plan.reader.delay, name, i) for i in noticed if i not in self._judged[name]]
            self._judge([(name, i) for at, name, i in pending if at <= batch[-1]])
            pending = [entry for entry in pending if entry[0] > batch[-1]]
            if n % AUDIT_EVERY == AUDIT_EVERY - 1 or n + 1 == len(batches):
                self._audit()
        self._judge([(name, i) for _, name, i in pending])

    def attainments(self, counted: Bools) -> list[Attainment]:
        """Sends the documents that follow, and compares."""
        train, size = self._corpus.train, len(self._corpus.documents)
        parts: dict[str, list[Decisions]] = {name: [] for name in self._ids}
        for batch in _chunks(range(train, size), BATCH_SIZE):
            for name, decisions in self._classify(batch, store=False).items():
                parts[name].append(decisions)
        results = []
        for name in self._ids:
            relevant = self._relevant[name]
            following = np.concatenate([np.empty(0, np.int8), *parts[name]])[counted]
            before = self._decisions[name], relevant[:train]
            results.append(compare(name, self._claim(name), *before, relevant[train:][counted], following))
        return results

    def _claim(self, name: str) -> GoalClaim:
        goal = self._client.topic(self._ids[name]).status.goal
        if goal is None:
            raise RuntimeError(f"{name} has lost its goal")
        return GoalClaim(
            goal.state,
            goal.precision.state if goal.precision else None,
            _interval(goal.recall),
            len(self._judged[name]),
            self._audited[name],
        )

    def _classify(self, batch: Sequence[int], store: bool) -> dict[str, Decisions]:
        """The decisions of each topic on these documents."""
        documents = [self._document(i) for i in batch]
        codes: dict[str, list[int]] = {name: [] for name in self._ids}
        for result in self._client.classify(documents, list(self._names), store=store):
            for decision in result.decisions:
                codes[self._names[decision.topic]].append(CODES[decision.decision])
        return {name: np.array(of_topic, np.int8) for name, of_topic in codes.items()}

    def _audit(self) -> None:
        for name, topic in self._ids.items():
            if self._plans[name].reader.audit:
                items = self._client.review(topic, PAGE_SIZE).items
                drawn = [int(item.document.rpartition("-")[2]) for item in items if item.reason == "audit"]
                new = [i for i in drawn if i not in self._judged[name]]
                self._audited[name] += len(new)
                self._judge([(name, i) for i in new])

    def _judge(self, documents: Sequence[tuple[str, int]]) -> None:
        self._send([(name, i, bool(self._plans[name].labels[i])) for name, i in documents])

    def _send(self, judgements: Sequence[tuple[str, int, bool]], with_text: bool = False) -> None:
        for chunk in _chunks(judgements, JUDGEMENTS):
            body = [
                {
                    "topic": self._ids[name],
                    "document": self._document(i) if with_text else f"{self._prefix}-{i}",
                    "relevant": relevant,
                }
                for name, i, relevant in chunk
            ]
            for answer in self._client.feedback_on(body):
                if isinstance(answer, Problem):
                    raise Refused(answer)
        for name, i, _ in judgements:
            self._judged[name].add(i)

    def _document(self, i: int) -> dict[str, str]:
        title, text = self._corpus.documents[i]
        return {"id": f"{self._prefix}-{i}", "title": title, "text": text or title or "-"}


@contextmanager
def _topics(
    client: Client, names: Sequence[str], queries: Mapping[str, str], goal: Targets, plans: Mapping[str, Plan]
) -> Iterator[dict[str, str]]:
    """Creates a topic for each name, and deletes them at the end of the block."""
    targets = {name: value for name in Targets.__slots__ if (value := getattr(goal, name)) is not None}
    ids: dict[str, str] = {}
    try:
        for n, name in enumerate(names):
            topic = f"simulated-{secrets.token_hex(4)}-{n}"
            body = {"id": topic, "name": name, "query": queries.get(name, name), "goal": targets}
            client.create(body | {"audit": plans[name].reader.audit})
            ids[name] = topic
        yield ids
    finally:
        for topic in ids.values():
            client.delete(topic)


def _interval(recall: Estimate | None) -> Interval | None:
    if recall is None or recall.low is None or recall.high is None:
        return None
    # Without audits there is no estimate; a claim is judged by its bounds alone.
    return Interval(recall.low if recall.estimate is None else recall.estimate, recall.low, recall.high)


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
