"""The cut of a goal that is not certain yet: where, by the best estimate, the goal holds.

    π̂(c) = (k + ½) / (n + 1)          n judged documents above the cut c, k of them relevant

The cut is the lowest one with π̂(c) ≥ goal, among those with at least MIN_RELEVANT documents above it. If there is none,
it is the one with the highest π̂, unless even the bound high(k, n) there is below the goal: then the goal does not hold
anywhere, and nothing is accepted. Before MIN_RELEVANT relevant documents that were shown have been judged, there is no
estimate, and the cut is the one that the topic would have without a goal.

π̂ is the mean of the posterior under Jeffreys' prior (Krichevsky & Trofimov, "The performance of universal encoding",
1981): four clean documents are not yet .9, and a single one is .75. Nothing is promised here: the lowest of many cuts
that seem to hold is chosen for seeming to, so the truth is a little lower on average. `certified_cut` of promises.py
takes its place as soon as the goal is certain.
"""

import math

import numpy as np

from models.core import intervals
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals.evidence import BOUND_CONFIDENCE, MIN_RELEVANT
from models.goals.thresholds import NEVER, all_cuts


def likely_cut(scores: Reals, relevant: Bools, goal: float, usual: float, shown: float = -math.inf) -> float:
    """The lowest cut, not below `shown`, above which a precision of `goal` seems to hold; `usual` without evidence."""
    if np.count_nonzero(relevant) < MIN_RELEVANT:
        return usual
    cuts, hits, accepted, _ = all_cuts(scores, relevant)
    tried = np.flatnonzero((accepted >= MIN_RELEVANT) & (cuts >= shown))
    if not len(tried):
        return usual
    estimate = (hits[tried] + 0.5) / (accepted[tried] + 1)
    holds = np.flatnonzero(estimate >= goal)
    if len(holds):
        return float(cuts[tried[holds[-1]]])
    best = tried[int(np.argmax(estimate))]
    high = intervals.high(int(hits[best]), int(accepted[best]), BOUND_CONFIDENCE)
    return float(cuts[best]) if high >= goal else NEVER
