"""One topic on the stream: created from a query, given a few relevant documents, then one pass in date order.

    everything    every document is judged as it comes
    realistic     only what a person would see is judged: what is accepted and what is abstained on, and audits

The topic and its reader are those of scripts/loop, so it is decided, judged and learned as in the service. Models are
measured on the test documents, which the topic never learns from, as the service would decide them at that moment: at
several numbers of judgements, and at the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from models.online.model import Model
from scripts.evaluation.effectiveness import Compared, Effectiveness, measure
from scripts.evaluation.peers import POINTS as PEER_POINTS
from scripts.evaluation.peers import Peers
from scripts.loop.loop import Loop
from scripts.loop.reader import Plan, SimulatedReader
from scripts.loop.stream import Stream
from scripts.loop.topic import TopicSpec
from service.schemas import Decision, Pocket

POINTS = (10, 20, 35, 50, 75, 100, 150, 250, 350, 500, 1000, 2000, 4000, 8000)


@dataclass(frozen=True, slots=True)
class OnlineSettings:
    """A learner, its parameters, and how its topic is judged."""

    kind: str = "wh"
    params: Mapping[str, object] = field(default_factory=dict)
    reader: SimulatedReader = field(default_factory=SimulatedReader)
    pocket: Pocket = field(default_factory=Pocket)


@dataclass(frozen=True, slots=True)
class OnlineRun:
    """How a topic did on the stream."""

    topic: str
    judged: int
    model: Model  # at the end
    curve: Mapping[int, Effectiveness]  # by judgements; numbers that were not reached have the value at the end
    peers: Mapping[int | None, Compared]  # by judgements, where they were reached; None at the end
    decisions: Sequence[Decision]  # on the test documents, at the end

    @property
    def end(self) -> Effectiveness:
        return self.curve[max(self.curve)]


def run(stream: Stream, topic: str, query: str, settings: OnlineSettings, peers: Peers | None = None) -> OnlineRun:
    """The topic's course, beside that of its peers if there are any."""
    relevant = stream.corpus.relevant(topic)
    curve: dict[int, Effectiveness] = {}
    compared: dict[int | None, Compared] = {}

    def watch(loop: Loop) -> None:
        judged = len(loop.reading.judged)
        reached = [n for n in (0, *POINTS) if n <= judged and n not in curve]
        if reached:
            curve.update(dict.fromkeys(reached, measure(loop, relevant)))
        if peers:
            compared.update({n: peers.compare(loop, topic) for n in reached if n in PEER_POINTS})

    spec = TopicSpec(
        topic, query, kind=settings.kind, params=settings.params, audit=settings.reader.audit, pocket=settings.pocket
    )
    loop = Loop(stream, relevant, spec, Plan.of(settings.reader, relevant, topic), watch=watch)
    loop.advance(stream.train)
    end, judged = measure(loop, relevant), len(loop.reading.judged)
    if peers:
        compared[None] = peers.compare(loop, topic)
    curve |= {n: end for n in POINTS if n not in curve} | {max(judged, POINTS[-1] + 1): end}
    decisions = [verdict.decision for verdict in loop.topic.verdicts(loop.position)]
    return OnlineRun(topic, judged, loop.topic.published.model, curve, compared, decisions)
