"""One topic with a goal on a stream, judged by a simulated reader (scripts/loop), and what came of its promises.

The corpus is one stream: training documents, then, after a pause, the documents that follow. At the pause the topic is
asked what it promises, as the service would answer.
"""

from dataclasses import dataclass

import numpy as np

from models.core.measures import Bools
from models.goals.reporting.report import recall
from models.goals.reporting.volume import StreamCounts
from models.online.model import Model
from scripts.loop.loop import Loop
from scripts.loop.reader import Decisions, Plan
from scripts.loop.stream import Stream
from scripts.loop.topic import CODES, TopicSpec
from scripts.simulation.attainment import Attainment, GoalClaim, compare
from service.feedback.goals import report


@dataclass(frozen=True, slots=True, eq=False)
class TopicRun:
    """What a topic has promised at the pause, and what it decided before and after."""

    start: int  # how many documents had come when it was created
    claim: GoalClaim
    model: Model  # at the pause
    ever: StreamCounts  # counts at the pause
    stream: Decisions  # on the documents since its creation, when they came, up to the pause
    frozen: Decisions  # on those that follow, by the model of the pause
    going_on: Decisions  # on the same, while judging went on
    judged: int  # in all, without what it was given


def run(stream: Stream, relevant: Bools, spec: TopicSpec, plan: Plan) -> TopicRun:
    """Lets the training documents pass, then the others; all documents of the stream pass, so it must be `whole`."""
    loop = Loop(stream, relevant, spec, plan)
    loop.advance(stream.train)
    topic, before = loop.topic, loop.decisions
    counts = topic.counts(stream.train)
    status = report(topic.published, counts, stream.config.audit_rate)
    if status is None:
        raise ValueError("there is no goal to attain")
    claim = GoalClaim(
        status.state,
        status.precision.state if status.precision else None,
        recall(topic.published.model.evidence, counts.ever),
        _judged(loop),
        loop.reading.audited,
        loop.met_at,
    )
    frozen = np.array([CODES[verdict.decision] for verdict in topic.verdicts(stream.train)], np.int8)
    model = topic.published.model
    loop.advance(stream.size)
    going_on = loop.decisions[len(before) :]
    return TopicRun(loop.start, claim, model, counts.ever, before, frozen, going_on, _judged(loop))


def measure(run: TopicRun, stream: Stream, relevant: Bools, name: str, counted: Bools) -> Attainment:
    """What the topic claims at the pause, compared with how the documents that follow and are counted were decided: by
    the model of the pause, and while judging went on."""
    before, after = relevant[run.start : stream.train], relevant[stream.train :][counted]
    return compare(name, run.claim, run.stream, before, after, run.frozen[counted], run.going_on[counted])


def _judged(loop: Loop) -> int:
    return len(loop.reading.judged) - len(loop.reading.given)
