"""The same stream through a running service: everything by its HTTP interface, as a feed and its readers would use it.

All topics are made at once and watch the whole stream. Documents go in small batches; what is shown is judged after
each, what waits for audit now and then. The topics are deleted in the end, whatever happens.
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
from scripts.simulation.attainment import REJECT, Attainment, Claim, Decisions, compare
from scripts.simulation.reader import Plan
from service.client import Client, Refused
from service.schemas import Estimate, Problem

BATCH = 20  # documents a request
AUDITING = 25  # batches between two looks at what waits for audit
PAGE = 100
CODES = {"reject": 0, "abstain": 1, "accept": 2}

T = TypeVar("T")


def simulate(
    address: str,
    corpus: Corpus,
    wanted: Mapping[str, Bools],
    queries: Mapping[str, str],
    goal: Targets,
    plans: Mapping[str, Plan],
    counted: Bools,
) -> list[Attainment]:
    """What each topic of the service at this address says and does."""
    with (
        Client(address) as client,
        _topics(client, list(wanted), queries, goal, plans) as ids,
    ):
        run = RemoteSimulation(client, corpus, wanted, ids, plans)
        run.give()
        run.pass_by()
        return run.attainments(counted)


class RemoteSimulation:
    def __init__(
        self,
        client: Client,
        corpus: Corpus,
        wanted: Mapping[str, Bools],
        ids: Mapping[str, str],
        plans: Mapping[str, Plan],
    ) -> None:
        self._client, self._corpus, self._ids, self._plans = client, corpus, ids, plans
        self._names = {topic: name for name, topic in ids.items()}
        self._prefix = secrets.token_hex(4)
        self._relevant = wanted
        self._decisions = {name: np.zeros(corpus.train, np.int8) for name in ids}
        self._judged: dict[str, set[int]] = {name: set() for name in ids}
        self._audited = dict.fromkeys(ids, 0)

    def give(self) -> None:
        """The documents that each topic is shown at the start."""
        for name, plan in self._plans.items():
            given = np.flatnonzero(self._relevant[name][: self._corpus.train])[: plan.reader.seeds]
            self._feed_back([(name, int(i), True) for i in given], whole=True)

    def pass_by(self) -> None:
        waiting: list[tuple[int, str, int]] = []  # when it is judged, topic, document
        batches = list(_chunks(range(self._corpus.train), BATCH))
        for n, batch in tracked(list(enumerate(batches)), "documents"):
            for name, decided in self._classify(batch, store=True).items():
                plan = self._plans[name]
                self._decisions[name][batch[0] : batch[-1] + 1] = decided
                shown = (decided != REJECT) | plan.reader.everything
                noticed = np.asarray(batch)[shown & plan.judges[batch[0] : batch[-1] + 1]].tolist()
                waiting += [(i + plan.reader.delay, name, i) for i in noticed if i not in self._judged[name]]
            due = [(name, i) for at, name, i in waiting if at <= batch[-1]]
            waiting = [one for one in waiting if one[0] > batch[-1]]
            self._feed_back([(name, i, bool(self._plans[name].says[i])) for name, i in due])
            if n % AUDITING == AUDITING - 1 or n + 1 == len(batches):
                self._audit()
        self._feed_back([(name, i, bool(self._plans[name].says[i])) for _, name, i in waiting])

    def attainments(self, counted: Bools) -> list[Attainment]:
        train, size = self._corpus.train, len(self._corpus.documents)
        parts: dict[str, list[Decisions]] = {name: [] for name in self._ids}
        for batch in _chunks(range(train, size), BATCH):
            for name, decided in self._classify(batch, store=False).items():
                parts[name].append(decided)
        results = []
        for name in self._ids:
            relevant = self._relevant[name]
            following = np.concatenate([np.empty(0, np.int8), *parts[name]])[counted]
            passed, truth = self._decisions[name], relevant[train:][counted]
            results.append(compare(name, self._said(name), passed, relevant[:train], truth, following))
        return results

    def _said(self, name: str) -> Claim:
        goal = self._client.topic(self._ids[name]).status.goal
        if goal is None:
            raise RuntimeError(f"{name} has lost its goal")
        return Claim(
            goal.state,
            goal.precision.state if goal.precision else None,
            _interval(goal.recall),
            len(self._judged[name]),
            self._audited[name],
        )

    def _classify(self, batch: Sequence[int], store: bool) -> dict[str, Decisions]:
        """Of each topic the decisions on these documents."""
        documents = [self._document(i) for i in batch]
        found: dict[str, list[int]] = {name: [] for name in self._ids}
        for result in self._client.classify(documents, list(self._names), store=store):
            for decision in result.decisions:
                found[self._names[decision.topic]].append(CODES[decision.decision])
        return {name: np.array(codes, np.int8) for name, codes in found.items()}

    def _audit(self) -> None:
        for name, topic in self._ids.items():
            if self._plans[name].reader.audit:
                items = self._client.review(topic, PAGE).items
                drawn = [int(one.document.rpartition("-")[2]) for one in items if one.reason == "audit"]
                new = [i for i in drawn if i not in self._judged[name]]
                self._audited[name] += len(new)
                self._feed_back([(name, i, bool(self._plans[name].says[i])) for i in new])

    def _feed_back(self, judgements: Sequence[tuple[str, int, bool]], whole: bool = False) -> None:
        for chunk in _chunks(judgements, 500):
            said = [
                {
                    "topic": self._ids[name],
                    "document": self._document(i) if whole else f"{self._prefix}-{i}",
                    "relevant": relevant,
                }
                for name, i, relevant in chunk
            ]
            for answer in self._client.feedback_on(said):
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
    """Makes a topic for each name, and deletes them."""
    wanted = {name: value for name in Targets.__slots__ if (value := getattr(goal, name)) is not None}
    ids: dict[str, str] = {}
    try:
        for n, name in enumerate(names):
            topic = f"simulated-{secrets.token_hex(4)}-{n}"
            asked = {"id": topic, "name": name, "query": queries.get(name, name), "goal": wanted}
            client.create(asked | {"audit": plans[name].reader.audit})
            ids[name] = topic
        yield ids
    finally:
        for topic in ids.values():
            client.delete(topic)


def _interval(recall: Estimate | None) -> Interval | None:
    if recall is None or recall.estimate is None or recall.low is None or recall.high is None:
        return None
    return Interval(recall.estimate, recall.low, recall.high)


def _chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
