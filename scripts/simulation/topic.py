"""One topic with a goal on a stream, judged by a simulated reader.

Documents come in order. What the topic accepts or abstains from is shown to the reader; of what it rejects, some are
drawn for audit. After each judgement the topic serves its new model, as the service does. Nothing of a document's truth
reaches the topic but by a judgement. The corpus is one stream: training documents, then, after a pause, the others.
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
from scripts.simulation.attainment import ACCEPT, LATELY, REJECT, Attainment, Claim, Decisions, compare, passed
from scripts.simulation.reader import Plan
from service.topics.background import SOON

FIRST_LOOK, LONGEST_LOOK = 16, 512  # documents scored together


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """What the topic is made with."""

    topic: str
    query: str
    goal: Targets
    kind: str = "wh"
    params: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class TopicRun:
    """How it went."""

    model: Model  # at the end
    decisions: Decisions  # of the documents after those that the topic was given, as they came
    judged: int
    audited: int
    met_at: int | None


class TopicSimulation:
    """The topic at work: documents pass one after the other, as far as it is told."""

    def __init__(self, stream: Stream, relevant: Bools, wish: TopicSpec, plan: Plan) -> None:
        self._stream, self._plan = stream, plan
        self._trainer = Trainer(Spec(wish.kind, wish.params, stream.query(wish.query), wish.goal))
        given = np.flatnonzero(relevant)[: plan.reader.seeds]
        for i in given:
            self._trainer.learn(Example(str(i), True, stream.bags[i]))
        self.start = self._position = int(given[-1]) + 1 if len(given) else 0
        self._decisions = np.zeros(stream.size, np.int8)
        self._due: deque[int] = deque()
        self._judged = self._audited = 0
        self._met_at: int | None = None
        self._choose()

    def advance(self, n: int) -> None:
        """Lets documents pass up to the n-th; then all that was shown is judged."""
        reader, length = self._plan.reader, FIRST_LOOK
        while self._position < n or self._due:
            if self._due and (self._due[0] + reader.delay <= self._position or self._position >= n):
                self._judge(self._due.popleft())
                length = FIRST_LOOK
            else:
                until = min(self._position + length, n, self._due[0] + reader.delay if self._due else n)
                length = min(2 * length, LONGEST_LOOK)
                self._look(until)
        if self._stream.epoch(n) - self._epoch >= SOON:  # a topic not judged for long is put under the newest epoch
            self._choose()

    def course(self) -> TopicRun:
        decisions = self._decisions[self.start : self._position].copy()
        return TopicRun(self._model, decisions, self._judged, self._audited, self._met_at)

    def _look(self, until: int) -> None:
        """Decides documents, up to the first that will be judged."""
        plan, first = self._plan, self._position
        decided = decide(self._model, self._stream.scores(self._model.linear, first, until))
        shown = (decided != REJECT) | plan.drawn[first:until] | plan.reader.everything
        noticed = shown & plan.judges[first:until]
        if noticed.any():
            self._due.append(first + int(np.argmax(noticed)))
            until = self._due[-1] + 1
        self._decisions[first:until] = decided[: until - first]
        self._position = until

    def _judge(self, i: int) -> None:
        decision = decide(self._model, self._stream.scores(self._model.linear, i, i + 1))[0]
        origin: Origin = "shown" if decision != REJECT else "audit" if self._plan.drawn[i] else "found"
        how = origin, self._plan.reader.audit, bool(decision == ACCEPT), i + 1
        self._trainer.learn(Example(str(i), bool(self._plan.says[i]), self._stream.bags[i], *how))
        self._judged += 1
        self._audited += origin == "audit"
        self._choose()
        self._met_at = (self._met_at or self._judged) if self._model.evidence.certified else None

    def _choose(self) -> None:
        self._epoch = self._stream.epoch(min(self._position, self._stream.size - 1))
        self._model = self._trainer.model(self._stream.background(self._epoch))


def run(stream: Stream, relevant: Bools, wish: TopicSpec, plan: Plan, pause: int) -> tuple[TopicRun, TopicRun]:
    """How it went up to the pause, where the topic is asked what it promises, and how it went on to the end."""
    topic = TopicSimulation(stream, relevant, wish, plan)
    topic.advance(pause)
    promised = topic.course()
    topic.advance(stream.size)
    return promised, topic.course()


def measure(
    stream: Stream, relevant: Bools, wish: TopicSpec, course: TopicRun, whole: TopicRun, counted: Bools
) -> Attainment:
    """What the topic says at the pause, and what comes of it, by those documents that follow and are counted: decided
    by the model as it stood, and as they were while judging went on."""
    start = stream.size - len(whole.decisions)
    n, ever = start + len(course.decisions), passed(course.decisions)
    said = report(wish.goal, course.model.evidence, ever, passed(course.decisions[-LATELY:]))
    if said is None:
        raise ValueError("there is no goal to attain")
    promise = said.precision.state if said.precision else None
    words = Claim(
        said.state, promise, recall(course.model.evidence, ever), course.judged, course.audited, course.met_at
    )
    frozen = decide(course.model, stream.scores(course.model.linear, n, stream.size))
    after = [decided[counted] for decided in (frozen, whole.decisions[len(course.decisions) :])]
    return compare(wish.topic, words, course.decisions, relevant[start:n], relevant[n:][counted], *after)


def decide(model: Model, scores: Reals) -> Decisions:
    return (scores >= model.reject_below).astype(np.int8) + (scores > model.accept_above)
