"""One topic on the stream: created from a query, given a few relevant documents, then one pass in date order.

    everything    every document is judged as it comes
    realistic     only what a person would see is judged: what is accepted and what is abstained on, and audits

The topic and its reader are those of scripts/loop, so it is decided, judged and learned as in the service. Models are
measured on the test documents, which the topic never learns from, as the service would decide them at that moment: at
several numbers of judgements, and at the end.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from models.core.measures import Bools, Contingency, contingency, f_beta, macro, sap, t11su
from models.online.model import Model
from models.online.trainer import Trainer
from scripts.loop.loop import Loop
from scripts.loop.reader import Plan, SimulatedReader
from scripts.loop.stream import Stream
from scripts.loop.topic import TopicSpec

POINTS = (10, 20, 35, 50, 75, 100, 150, 250, 350, 500, 1000, 2000, 4000, 8000)


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """A learner, its parameters, and how its topic is judged."""

    kind: str = "wh"
    params: Mapping[str, object] = field(default_factory=dict)
    reader: SimulatedReader = field(default_factory=SimulatedReader)
    pocket: bool = True


@dataclass(frozen=True, slots=True)
class Effectiveness:
    """How well a model decides the test documents."""

    ap: float
    table: Contingency

    @property
    def f1(self) -> float:
        return f_beta(self.table)


@dataclass(frozen=True, slots=True)
class OnlineRun:
    """How a topic did on the stream."""

    topic: str
    judged: int
    model: Model  # at the end
    curve: Mapping[int, Effectiveness]  # by judgements; numbers that were not reached have the value at the end

    @property
    def end(self) -> Effectiveness:
        return self.curve[max(self.curve)]


class TrainerWithoutPocket(Trainer):
    """A trainer that always serves the learner's newest vector."""

    def _check(self) -> None:
        return


def run(
    stream: Stream,
    topic: str,
    query: str,
    settings: OnlineSettings,
    at_point: Callable[[int | None, Loop], None] = lambda point, loop: None,
) -> OnlineRun:
    """The topic's course. `at_point` is called when so many judgements are reached, and with None at the end."""
    relevant, curve = stream.corpus.relevant(topic), dict[int, Effectiveness]()

    def watch(loop: Loop) -> None:
        judged = len(loop.reading.judged)
        reached = [n for n in (0, *POINTS) if n <= judged and n not in curve]
        if reached:
            curve.update(dict.fromkeys(reached, measure(loop, relevant)))
            for n in reached[1:] if reached[0] == 0 else reached:
                at_point(n, loop)

    spec = TopicSpec(topic, query, kind=settings.kind, params=settings.params, audit=settings.reader.audit)
    trainer = Trainer if settings.pocket else TrainerWithoutPocket
    loop = Loop(stream, relevant, spec, Plan.of(settings.reader, relevant, topic), new_trainer=trainer, watch=watch)
    loop.advance(stream.train)
    end, judged = measure(loop, relevant), len(loop.reading.judged)
    at_point(None, loop)
    curve |= {n: end for n in POINTS if n not in curve} | {max(judged, POINTS[-1] + 1): end}
    return OnlineRun(topic, judged, loop.topic.published.model, curve)


def measure(loop: Loop, relevant: Bools) -> Effectiveness:
    """Measures the model of this moment on the test documents. Abstaining is not accepting."""
    verdicts, truth = loop.topic.verdicts(loop.position), relevant[loop.stream.train :]
    accepted = np.array([verdict.decision == "accept" for verdict in verdicts], np.bool_)
    return Effectiveness(sap(np.array([verdict.score for verdict in verdicts]), truth), contingency(accepted, truth))


def means(topics: Sequence[Effectiveness]) -> tuple[float, float, float]:
    """AP, F1 and T11SU, each the mean over topics."""
    return macro([t.ap for t in topics]), macro([t.f1 for t in topics]), macro([t11su(t.table) for t in topics])
