"""The quality of a ranking, and of a set of decisions.

    SAP          mean, over the relevant documents, of the precision at their rank          (simple average precision)
    R-precision  precision of the first R documents, R being the number of relevant ones
    break-even   where precision equals recall
    NDCG         DCG / the DCG of the best order,  DCG = Σ_i (2^grade_i − 1) / log₂(1 + i)  over the ranks i = 1, 2, …
    F_β          (1+β²)·tp / ((1+β²)·tp + fp + β²·fn);  1 if nothing was relevant and nothing was accepted
    T11SU        2·tp − fp, as a share of the best possible 2R, floored at −½ and stretched to [0, 1];
                 accepting nothing gives ⅓

Lewis, Schapire, Callan & Papka 1996 (SAP, R-precision, F_β); Dagan, Karov & Roth 1997 (break-even); the TREC 2002
filtering track (T11SU); Burges et al. 2005 (NDCG with these gains; in Järvelin & Kekäläinen 2002 they are the grades).

Ties. SAP, R-precision and NDCG rank pessimistically: among equal scores what is less relevant comes first, so that a
model that scores everything alike gains nothing by luck. Precision equals recall exactly where R documents are
accepted; if that falls inside a tie, break-even is interpolated, which gives the mean over all orders of the tie.
Without ties it is the R-precision. Without a relevant document a ranking cannot be measured: the result is nan, and
callers leave it out.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.vectors import Reals

Bools = NDArray[np.bool_]

MIN_NU = -0.5  # the TREC track's floor of normalised utility


class Contingency(NamedTuple):
    """Decisions against the truth: relevant and accepted, irrelevant and accepted, relevant but not accepted."""

    tp: float
    fp: float
    fn: float

    @property
    def precision(self) -> float:
        return self.tp / (self.tp + self.fp) if self.tp + self.fp else 1.0

    @property
    def recall(self) -> float:
        return self.tp / (self.tp + self.fn) if self.tp + self.fn else 1.0


def contingency(accepted: Bools, relevant: Bools) -> Contingency:
    tp = int(np.count_nonzero(accepted & relevant))
    return Contingency(tp, int(np.count_nonzero(accepted)) - tp, int(np.count_nonzero(relevant)) - tp)


def f_beta(c: Contingency, beta: float = 1.0) -> float:
    b2 = beta * beta
    whole = (1 + b2) * c.tp + c.fp + b2 * c.fn
    return (1 + b2) * c.tp / whole if whole else 1.0


def t11su(c: Contingency) -> float:
    # A topic without a relevant document is scaled as if it had one: accepting can only cost.
    nu = (2 * c.tp - c.fp) / (2 * max(c.tp + c.fn, 1))
    return (max(nu, MIN_NU) - MIN_NU) / (1 - MIN_NU)


def micro(tables: Sequence[Contingency]) -> Contingency:
    """All decisions in one table: every document counts the same, so large topics dominate."""
    return Contingency(*(sum(column) for column in zip(*tables, strict=True)))


def macro(values: Sequence[float]) -> float:
    """The mean over topics that could be measured: every topic counts the same, so small topics dominate."""
    known = [v for v in values if not math.isnan(v)]
    return sum(known) / len(known) if known else math.nan


def sap(scores: Reals, relevant: Bools) -> float:
    # Before the j-th relevant document come j − 1 relevant ones and every irrelevant one that scores as high or higher.
    # Sorting numbers twice takes a tenth of the time of ordering the documents, and the pocket does little else.
    positives, negatives = np.sort(scores[relevant])[::-1], np.sort(scores[~relevant])
    j = np.arange(1, len(positives) + 1)
    return float(np.mean(j / (j + len(negatives) - np.searchsorted(negatives, positives)))) if len(j) else math.nan


def r_precision(scores: Reals, relevant: Bools) -> float:
    R = int(np.count_nonzero(relevant))
    ranked = relevant[np.lexsort((relevant, -scores))]
    return float(np.mean(ranked[:R])) if R else math.nan


def gain(relevant: bool, grade: int | None) -> int:
    """The worth of a document in NDCG: 2^grade − 1; one that is relevant without a grade is worth what grade 1 is."""
    return (1 << (grade or int(relevant))) - 1


def discount(rank: Reals) -> Reals:
    """The weight of a place in the ranking, from 1 on."""
    return 1 / np.log2(1 + rank)


def ndcg(scores: Reals, gains: Reals) -> float:
    d = discount(np.arange(1.0, len(gains) + 1))
    best = float(np.sort(gains)[::-1] @ d)
    return float(gains[np.lexsort((gains, -scores))] @ d) / best if best else math.nan


def break_even(scores: Reals, relevant: Bools) -> float:
    R = int(np.count_nonzero(relevant))
    if not R:
        return math.nan
    cut = np.partition(scores, len(scores) - R)[len(scores) - R]  # the R-th highest score
    above, tied = scores > cut, scores == cut
    tp = np.count_nonzero(relevant & above)
    inside = np.count_nonzero(relevant & tied) * (R - np.count_nonzero(above)) / np.count_nonzero(tied)
    return float((tp + inside) / R)
