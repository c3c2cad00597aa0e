"""How well a model decides the documents for testing, alone or beside others."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.core.measures import Bools, Contingency, contingency, f_beta, macro, sap, t11su
from scripts.loop.loop import Loop


@dataclass(frozen=True, slots=True)
class Effectiveness:
    """How well a model decides the test documents."""

    ap: float
    table: Contingency

    @property
    def f1(self) -> float:
        return f_beta(self.table)


class ApF1(NamedTuple):
    ap: float
    f1: float


class Compared(NamedTuple):
    """The topic and its peers (see peers.py) at one moment."""

    ours: ApF1
    random: ApF1
    same: ApF1
    all: ApF1


def measure(loop: Loop, relevant: Bools) -> Effectiveness:
    """Measures the model of this moment on the test documents. Abstaining is not accepting."""
    verdicts, truth = loop.topic.verdicts(loop.position), relevant[loop.stream.train :]
    accepted = np.array([verdict.decision == "accept" for verdict in verdicts], np.bool_)
    return Effectiveness(sap(np.array([verdict.score for verdict in verdicts]), truth), contingency(accepted, truth))


def means(topics: Sequence[Effectiveness]) -> tuple[float, float, float]:
    """AP, F1 and T11SU, each the mean over topics."""
    return macro([t.ap for t in topics]), macro([t.f1 for t in topics]), macro([t11su(t.table) for t in topics])
