"""One topic with a goal on a stream, judged by a simulated reader.

Documents come in order. What the topic accepts or abstains on is shown to the reader; some of what it rejects is
drawn for audit. After each judgement the topic serves its new model, as the service does. Only judgements let the topic
know what is relevant. The corpus is one stream: training documents, then, after a pause, the documents that follow.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from models.core.measures import Bools
from models.core.names import Origin
from models.core.vectors import Reals
from models.goals.promises import Targets
from models.goals.report import recall, report
from models.online.model import Example, Model, Spec
from models.online.trainer import Trainer
from scripts.evaluation.stream import Stream
from scripts.simulation.attainment import ACCEPT, RECENT, REJECT, Attainment, Decisions, GoalClaim, compare, passed
from scripts.simulation.reader import Plan
from service.topics.background import STALE_EPOCHS_OF_PROMISES

MIN_WINDOW, MAX_WINDOW = 16, 512  # documents scored together


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """What the topic is created with."""

    topic: str
    query: str
    goal: Targets
    kind: str = "wh"
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class TopicRun:
    """What has happened to a topic so far."""

    model: Model  # the newest
    decisions: Decisions  # on the documents after those the topic was given, when they came
    judged: int
    audited: int
    met_at: int | None


class TopicSimulation:
    """A topic, past which the documents of a stream go one by one."""

    def __init__(self, stream: Stream, relevant: Bools, spec: TopicSpec, plan: Plan) -> None:
        self._stream, self._plan = stream, plan
        self._trainer = Trainer(Spec(spec.kind, spec.params, stream.query(spec.query), spec.goal))
        given = np.flatnonzero(relevant)[: plan.reader.seeds]
        for i in given:
            self._trainer.learn(Example(str(i), True, stream.bags[i]))
        self.start = self._position = int(given[-1]) + 1 if len(given) else 0
        self._decisions = np.zeros(stream.size, np.int8)
        self._pending: deque[int] = deque()  # documents that will be judged
        self._judged = self._audited = 0
        self._met_at: int | None = None
        self._serve()

    def advance(self, n: int) -> None:
        """Lets documents pass up to the n-th, and judges all that are pending by then."""
        reader, length = self._plan.reader, MIN_WINDOW
        while self._position < n or self._pending:
            if self._pending and (self._pending[0] + reader.delay <= self._position or self._position >= n):
                self._judge(self._pending.popleft())
                length = MIN_WINDOW
            else:
                until = min(self._position + length, n, self._pending[0] + reader.delay if self._pending else n)
                length = min(2 * length, MAX_WINDOW)
                self._decide(until)
        if (
            self._stream.epoch(n) - self._epoch >= STALE_EPOCHS_OF_PROMISES
        ):  # a topic not judged for long is put under the newest epoch
            self._serve()

    def run(self) -> TopicRun:
        decisions = self._decisions[self.start : self._position].copy()
        return TopicRun(self._model, decisions, self._judged, self._audited, self._met_at)

    def _decide(self, until: int) -> None:
        """Decides documents, up to the first that will be judged."""
        plan, first = self._plan, self._position
        decisions = decide(self._model, self._stream.scores(self._model.linear, first, until))
        shown = (decisions != REJECT) | plan.drawn[first:until] | plan.reader.everything
        judged = shown & plan.judges[first:until]
        if judged.any():
            self._pending.append(first + int(np.argmax(judged)))
            until = self._pending[-1] + 1
        self._decisions[first:until] = decisions[: until - first]
        self._position = until

    def _judge(self, i: int) -> None:
        decision = decide(self._model, self._stream.scores(self._model.linear, i, i + 1))[0]
        origin: Origin = "shown" if decision != REJECT else "audit" if self._plan.drawn[i] else "found"
        evidence = origin, self._plan.reader.audit, bool(decision == ACCEPT), i + 1
        self._trainer.learn(Example(str(i), bool(self._plan.labels[i]), self._stream.bags[i], *evidence))
        self._judged += 1
        self._audited += origin == "audit"
        self._serve()
        self._met_at = (self._met_at or self._judged) if self._model.evidence.certified else None

    def _serve(self) -> None:
        self._epoch = self._stream.epoch(min(self._position, self._stream.size - 1))
        self._model = self._trainer.model(self._stream.background(self._epoch))


def run(stream: Stream, relevant: Bools, spec: TopicSpec, plan: Plan, pause: int) -> tuple[TopicRun, TopicRun]:
    """The run up to the pause, when the topic is asked what it promises, and the run to the end of the stream."""
    topic = TopicSimulation(stream, relevant, spec, plan)
    topic.advance(pause)
    paused = topic.run()
    topic.advance(stream.size)
    return paused, topic.run()


def measure(
    stream: Stream, relevant: Bools, spec: TopicSpec, paused: TopicRun, whole: TopicRun, counted: Bools
) -> Attainment:
    """What the topic claims at the pause, compared with how the documents that follow and are counted were decided: by
    the model of the pause, and while judging went on."""
    start = stream.size - len(whole.decisions)
    n, counts = start + len(paused.decisions), passed(paused.decisions)
    status = report(spec.goal, paused.model.evidence, counts, passed(paused.decisions[-RECENT:]))
    if status is None:
        raise ValueError("there is no goal to attain")
    claim = GoalClaim(
        status.state,
        status.precision.state if status.precision else None,
        recall(paused.model.evidence, counts),
        paused.judged,
        paused.audited,
        paused.met_at,
    )
    frozen = decide(paused.model, stream.scores(paused.model.linear, n, stream.size))[counted]
    going_on = whole.decisions[len(paused.decisions) :][counted]
    return compare(spec.topic, claim, paused.decisions, relevant[start:n], relevant[n:][counted], frozen, going_on)


def decide(model: Model, scores: Reals) -> Decisions:
    return (scores >= model.reject_below).astype(np.int8) + (scores > model.accept_above)
