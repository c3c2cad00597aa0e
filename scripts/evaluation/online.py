"""One topic on the stream: created from a query, given a few relevant documents, then one pass in date order.

    everything    every document is judged as it comes
    realistic     only what a person would see is judged: what is accepted and what is abstained on

After each judgement the topic serves its new model at once, and a topic that has not been judged for long is put under
the newest epoch, both as in the service. Models are measured on the test documents, which the topic never learns from:
at several numbers of judgements, and at the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from models.core.measures import Bools, Contingency, contingency, f_beta, macro, sap, t11su
from models.online.model import Example, Model, Spec
from models.online.trainer import Trainer
from scripts.evaluation.stream import Stream
from service.topics.background import STALE_EPOCHS

POINTS = (10, 20, 35, 50, 75, 100, 150, 200, 350, 500, 1000, 2000, 4000, 8000)
MIN_WINDOW, MAX_WINDOW = 16, 2048  # documents scored together to find the next one to judge


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """A learner, its parameters, and how its topic is judged."""

    kind: str = "wh"
    params: Mapping[str, object] = field(default_factory=dict)
    seeds: int = 3
    everything: bool = False
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


def run(stream: Stream, topic: str, query: str, settings: OnlineSettings) -> OnlineRun:
    relevant = stream.corpus.relevant(topic)
    trainer = (Trainer if settings.pocket else TrainerWithoutPocket)(
        Spec(settings.kind, settings.params, stream.query(query))
    )
    given = np.flatnonzero(relevant[: stream.train])[: settings.seeds]
    for i in given:
        trainer.learn(Example(str(i), True, stream.bags[i]))
    judged, position = len(given), int(given[-1]) + 1 if len(given) else 0
    epoch = stream.epoch(position)
    model = trainer.model(stream.background(epoch))
    curve = {0: measure(stream, model, relevant)}
    while True:
        stale = stream.begins(epoch + STALE_EPOCHS)  # by then the service has put the topic under the newest epoch
        position = position if settings.everything else _next(stream, model, position, stale)
        if position >= stream.train:
            break
        if position >= stale and not settings.everything:
            epoch = stream.epoch(position)
            model = trainer.model(stream.background(epoch))
            continue
        trainer.learn(Example(str(position), bool(relevant[position]), stream.bags[position]))
        judged, position, epoch = judged + 1, position + 1, stream.epoch(position)
        if not settings.everything or judged in POINTS:
            model = trainer.model(stream.background(epoch))
        if judged in POINTS:
            curve[judged] = measure(stream, model, relevant)
    if settings.everything:
        model = trainer.model(stream.background(stream.epoch(stream.train)))
    end = measure(stream, model, relevant)
    curve |= {n: end for n in POINTS if n not in curve} | {max(judged, POINTS[-1] + 1): end}
    return OnlineRun(topic, judged, model, curve)


def measure(stream: Stream, model: Model, relevant: Bools) -> Effectiveness:
    """Measures a model on the test documents. Abstaining is not accepting."""
    scores, truth = stream.scores(model.linear, stream.train, stream.size), relevant[stream.train :]
    return Effectiveness(sap(scores, truth), contingency(scores > model.accept_above, truth))


def means(topics: Sequence[Effectiveness]) -> tuple[float, float, float]:
    """AP, F1 and T11SU, each the mean over topics."""
    return macro([t.ap for t in topics]), macro([t.f1 for t in topics]), macro([t11su(t.table) for t in topics])


def _next(stream: Stream, model: Model, position: int, until: int) -> int:
    """The first document from here on, and before `until`, that is not rejected; `until` if there is none."""
    length = MIN_WINDOW
    while position < until:
        end = min(position + length, until)
        seen = stream.scores(model.linear, position, end) >= model.reject_below
        if seen.any():
            return position + int(np.argmax(seen))
        position, length = end, min(2 * length, MAX_WINDOW)
    return position
