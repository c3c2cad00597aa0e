"""Widrow-Hoff and EG against Rocchio, topic by topic, as in table 4 of Lewis, Schapire, Callan & Papka (SIGIR 1996).

    wins        topics on which a learner has the higher F1, averaged over the orders; ties are not counted
    sign test   P(Bin(wins + losses, ½) ≥ wins) < .05; a question mark where it does not hold

Parameters and averaging are the paper's. Thresholds are not: the paper takes the cut that has the highest F1 on the
scores of the training documents themselves; here it is the middle between two cuts, each of the highest F1 on scores by
vectors that have not learned the document (scripts/evaluation/batch.py), for all learners alike. As in the paper, EG
sees only which words occur, and is compared as such with Rocchio on tf-idf, too. The paper's figures are those of the
collection most like Reuters: the bodies of 10,000 articles of AP, 20 topics.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from scipy.stats import binom

from models.core.measures import f_beta, macro
from scripts.evaluation.batch import Setting, TopicResult

SIGNIFICANCE = 0.05

LEARNERS: Mapping[str, Setting] = {
    "rocchio, binary": Setting("rocchio", {"beta": 16.0, "gamma": 4.0, "view": "presence"}),
    "rocchio, tf-idf": Setting("rocchio", {"beta": 16.0, "gamma": 4.0}),
    "wh, binary": Setting("wh", {"eta": None, "bias": 0.0, "average": True, "view": "presence"}),
    "wh, tf-idf": Setting("wh", {"eta": None, "bias": 0.0, "average": True}),
    "eg, binary": Setting("eg", {"eta": None, "target": 1.0, "d": 3e4, "view": "presence", "average": True}),
}
PAIRS = (  # learner, rival, and what the paper prints: wins > losses (mean F1 > mean F1)
    ("wh, binary", "rocchio, binary", "18 > 2 (.48 > .25)"),
    ("eg, binary", "rocchio, binary", "18 > 2 (.52 > .25)"),
    ("wh, tf-idf", "rocchio, tf-idf", "15 > 5 (.60 > .50)"),
    ("eg, binary", "rocchio, tf-idf", "10 = 10 ? (.52 > .50)"),
)


class Duel(NamedTuple):
    """Two learners compared topic by topic."""

    wins: int
    losses: int
    means: tuple[float, float]  # F1 of either over all topics

    @property
    def significant(self) -> bool:
        return bool(binom.sf(self.wins - 1, self.wins + self.losses, 0.5) < SIGNIFICANCE)


def duel(ours: Sequence[float], theirs: Sequence[float]) -> Duel:
    """Compares the F1 of every topic."""
    pairs = list(zip(ours, theirs, strict=True))
    return Duel(sum(a > b for a, b in pairs), sum(a < b for a, b in pairs), (macro(ours), macro(theirs)))


def by_topic(orders: Sequence[Sequence[TopicResult]]) -> list[float]:
    """F1 of every topic, averaged over the orders."""
    return [macro([f_beta(result.table) for result in results]) for results in zip(*orders, strict=True)]
