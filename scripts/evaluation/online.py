"""One topic on the stream: made from a query, shown a few relevant documents, then one pass in date order.

    everything    every document is judged as it comes
    realistic     only what a person would see is judged: what is accepted and what is abstained from

After each judgement the topic serves its new model at once, as the service does, and one that has not been judged for
long is put under the newest epoch, as a worker does. What a model is worth is measured on
the test documents, which the topic never learns from: at some numbers of judgements, and at the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from models.core.measures import Bools, Contingency, contingency, f_beta, macro, sap, t11su
from models.online.model import Example, Model, Spec
from models.online.trainer import Trainer
from scripts.evaluation.stream import Stream
from service.topics.background import STALE

POINTS = (10, 20, 35, 50, 75, 100, 150, 200, 350, 500, 1000, 2000, 4000, 8000)
FIRST_LOOK, LONGEST_LOOK = 16, 2048  # documents scored together while looking for the next one to judge


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    kind: str = "wh"
    params: Mapping[str, object] = field(default_factory=dict)
    seeds: int = 3
    everything: bool = False
    pocket: bool = True


@dataclass(frozen=True, slots=True)
class Effectiveness:
    ap: float
    table: Contingency

    @property
    def f1(self) -> float:
        return f_beta(self.table)


@dataclass(frozen=True, slots=True)
class OnlineRun:
    topic: str
    judged: int
    model: Model  # at the end
    curve: Mapping[int, Effectiveness]  # by judgements; those that were not reached have the worth at the end

    @property
    def end(self) -> Effectiveness:
        return self.curve[max(self.curve)]


class TrainerWithoutPocket(Trainer):
    """Without a pocket: always serves the learner's preferred vector as it stands."""

    def _check(self) -> None:
        return


def run(stream: Stream, topic: str, query: str, protocol: OnlineSettings) -> OnlineRun:
    relevant = stream.corpus.relevant(topic)
    trainer = (Trainer if protocol.pocket else TrainerWithoutPocket)(
        Spec(protocol.kind, protocol.params, stream.query(query))
    )
    shown = np.flatnonzero(relevant[: stream.train])[: protocol.seeds]
    for i in shown:
        trainer.learn(Example(str(i), True, stream.bags[i]))
    judged, position = len(shown), int(shown[-1]) + 1 if len(shown) else 0
    epoch = stream.epoch(position)
    model = trainer.model(stream.background(epoch))
    curve = {0: measure(stream, model, relevant)}
    while True:
        stale = stream.begins(epoch + STALE)  # by then a worker has put the topic under the newest epoch
        position = position if protocol.everything else _next(stream, model, position, stale)
        if position >= stream.train:
            break
        if position >= stale and not protocol.everything:
            epoch = stream.epoch(position)
            model = trainer.model(stream.background(epoch))
            continue
        trainer.learn(Example(str(position), bool(relevant[position]), stream.bags[position]))
        judged, position, epoch = judged + 1, position + 1, stream.epoch(position)
        if not protocol.everything or judged in POINTS:
            model = trainer.model(stream.background(epoch))
        if judged in POINTS:
            curve[judged] = measure(stream, model, relevant)
    if protocol.everything:
        model = trainer.model(stream.background(stream.epoch(stream.train)))
    end = measure(stream, model, relevant)
    curve |= {n: end for n in POINTS if n not in curve} | {max(judged, POINTS[-1] + 1): end}
    return OnlineRun(topic, judged, model, curve)


def measure(stream: Stream, model: Model, relevant: Bools) -> Effectiveness:
    """On the test documents. Abstaining is not accepting."""
    scores, truth = stream.scores(model.linear, stream.train, stream.size), relevant[stream.train :]
    return Effectiveness(sap(scores, truth), contingency(scores > model.accept_above, truth))


def means(worths: Sequence[Effectiveness]) -> tuple[float, float, float]:
    """AP, F1 and T11SU, each the mean over topics."""
    return macro([w.ap for w in worths]), macro([w.f1 for w in worths]), macro([t11su(w.table) for w in worths])


def _next(stream: Stream, model: Model, position: int, until: int) -> int:
    """The first document from here on, and before `until`, that is not rejected; `until` if there is none."""
    length = FIRST_LOOK
    while position < until:
        end = min(position + length, until)
        seen = stream.scores(model.linear, position, end) >= model.reject_below
        if seen.any():
            return position + int(np.argmax(seen))
        position, length = end, min(2 * length, LONGEST_LOOK)
    return position
