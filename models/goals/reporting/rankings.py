"""How well a topic ranks the documents that it has shown, with bounds.

    SAP           ∫ π u / (π u + (1 − π) F₀(q(u))) du:  q(u) is the score that the share u of the relevant documents
                  reaches, F₀ the share of the others that does, π the share that is relevant
    R-precision   the u with  π u + (1 − π) F₀(q(u)) = π:  as many rank as high as are relevant, so that precision
                  equals recall; equal scores rank against us
    break-even    the same; within equal scores it is interpolated (core/measures.py)
    NDCG          Σ_c g_c n_c ∫ d(n_c u + Σ_c' n_c' F_c'(q_c(u))) du / the same of the best order:  g_c is the gain of
                  grade c, n_c how many have it, d the discount, and F_c' the share of another grade that ranks as high.
                  It says how well those that were shown are ordered, so the n_c are taken as they are. Of a single
                  grade there is no order, and no figure

For the bounds all empirical distributions are moved by √(ln(1/tail) / 2n) (Dvoretzky, Kiefer & Wolfowitz 1956; Massart
1990), and π is taken at its bounds. R-precision and break-even have the same ones.
"""

from collections.abc import Sequence
from math import log, sqrt
from typing import NamedTuple

import numpy as np

from models.core import intervals, measures
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals.reporting.samples import Bounded, Trial


class Side(NamedTuple):
    """One bound of a ranking: u of each relevant document, F₀ there, and π."""

    u: Reals
    f0: Reals
    pi: float


class RankingFigures(NamedTuple):
    sap: Bounded | None = None
    r_precision: Bounded | None = None
    break_even: Bounded | None = None
    ndcg: Bounded | None = None


def figures(shown: Sequence[Trial], tail: float) -> RankingFigures:
    """The figures of these documents; each bound fails with probability `tail`. None without a relevant one."""
    scores, relevant = np.array([t.score for t in shown]), np.array([t.relevant for t in shown], np.bool_)
    if not relevant.any():
        return RankingFigures()
    worst, best = _sides(scores, relevant, tail / 3)
    even = _even(worst), min(1.0, _even(best) + 1 / int(np.count_nonzero(relevant)))
    return RankingFigures(
        Bounded(measures.sap(scores, relevant), _sap(worst), _sap(best)),
        Bounded(measures.r_precision(scores, relevant), *even),
        Bounded(measures.break_even(scores, relevant), *even),
        ndcg(scores, np.array([t.gain for t in shown], float), tail),
    )


def ndcg(scores: Reals, gains: Reals, tail: float) -> Bounded | None:
    """The NDCG of a ranking; each bound fails with probability `tail`. None unless there are two grades."""
    grades = np.unique(gains)
    if len(grades) < 2:
        return None
    # Each grade is bounded twice: where its documents rank, and how many of them rank above others. Of what gains
    # nothing the first does not matter; then, of two grades, the second does not matter of the other one.
    events = 2 if len(grades) == 2 and not grades[0] else 2 * len(grades)
    moved = log(events / tail) / 2
    by_grade = {g: np.sort(scores[gains == g])[::-1] for g in grades.tolist()}
    low = high = 0.0
    for g, own in ((g, own) for g, own in by_grade.items() if g):
        n, j = len(own), np.arange(1, len(own) + 1)
        last, first = j + sqrt(moved * n), j - 1 - sqrt(moved * n)  # of which the score may be that of the j-th
        worst, best = j.astype(float), j.astype(float)
        for others in (others for other, others in by_grade.items() if other != g):
            n_o, slack = len(others), sqrt(moved * len(others))
            rising = others[::-1]
            at = own[np.clip(np.ceil(last).astype(np.int64) - 1, 0, n - 1)]
            worst += np.where(last > n, n_o, np.minimum(n_o, n_o - np.searchsorted(rising, at, "left") + slack))
            at = own[np.clip(np.floor(first).astype(np.int64) - 1, 0, n - 1)]
            best += np.where(first < 1, 0, np.maximum(0, n_o - np.searchsorted(rising, at, "right") - slack))
        low += g * float(measures.discount(worst).sum())
        high += g * float(measures.discount(best).sum())
    ideal = float(np.sort(gains)[::-1] @ measures.discount(np.arange(1.0, len(gains) + 1)))
    return Bounded(measures.ndcg(scores, gains), low / ideal, min(1.0, high / ideal))


def _sides(scores: Reals, relevant: Bools, tail: float) -> tuple[Side, Side]:
    n, k = len(scores), int(np.count_nonzero(relevant))
    found, others = np.sort(scores[relevant])[::-1], np.sort(scores[~relevant])
    moved = log(1 / tail) / 2
    e1, e0 = sqrt(moved / k), sqrt(moved / len(others)) if len(others) else 1.0
    j = np.arange(1, k + 1)

    def reached(places: Reals) -> Reals:
        """F₀ of the scores of the relevant at these ranks, counted from 1; 0 before the first, 1 after the last."""
        at = found[np.clip(places.astype(np.int64) - 1, 0, k - 1)]
        share = (len(others) - np.searchsorted(others, at)) / max(1, len(others))
        return np.where(places > k, 1.0, np.where(places < 1, 0.0, share))

    worst = np.minimum(1, reached(np.ceil(j + e1 * k)) + e0)
    best = np.maximum(0, reached(np.floor(j - 1 - e1 * k)) - e0)
    return (
        Side((j - 1) / k, worst, intervals.low(k, n, 1 - tail)),
        Side(j / k, best, intervals.high(k, n, 1 - tail)),
    )


def _sap(side: Side) -> float:
    u, f0, pi = side
    return float(np.mean(pi * u / np.maximum(pi * u + (1 - pi) * f0, 1e-300)))


def _even(side: Side) -> float:
    """The highest u at which no more documents rank as high than are relevant."""
    u, f0, pi = side
    return float(u[pi * u + (1 - pi) * f0 <= pi + 1e-12].max(initial=0.0))
