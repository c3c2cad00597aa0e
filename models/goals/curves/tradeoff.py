"""Restrictive classification: how much error is left if a share of the documents is not decided.

Of documents U a topic decides S: it accepts what scores above one cut, rejects what scores below another, and abstains
from U − S.

    loss    |U − S| / |U|
    error   (accepted and irrelevant + rejected and relevant) / |S|

Siersdorfer, Sizov & Weikum, "Goal-oriented methods and meta methods for document classification and their parameter
tuning", CIKM 2004, sections 2 and 3. The paper dismisses the documents nearest to one hyperplane. We choose both cuts
freely, since few topics are as common as their complement: for each allowed loss, the pair with the least error of all
pairs whose loss is not higher. Among pairs of equal error the one of least loss is taken, and of these the one that
accepts most.

Documents are counted by what they stand for (weighted.py). The bounds hold for a pair of cuts that was fixed before:
the best of many is a little worse than it seems, as the paper found, too. With parts of the stream that nobody judged,
the error may be as high as if all that is rejected there were relevant.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.core.vectors import Reals
from models.goals.curves.weighted import StreamSample
from models.goals.thresholds import NEVER

CONFIDENCE = 0.9
TAIL = (1 - CONFIDENCE) / 2  # probability that one of the two bounds fails
LOSSES = tuple(n / 50 for n in range(50))  # that are allowed: 0, .02, … .98
SAME = 1e-9  # errors and losses that differ by less are equal


class CutPair(NamedTuple):
    """A pair of cuts, the share that it does not decide, and the error among the decided with its bounds."""

    loss: float
    error: float
    low: float
    high: float
    reject_below: float
    accept_above: float


def curve(sample: StreamSample, losses: Sequence[float] = LOSSES) -> list[CutPair]:
    """The pair of cuts of least error within each loss, by ascending loss; a pair that does not improve on one of
    lower loss is left out. Empty while nothing relevant was judged."""
    if not sample.relevant.any():
        return []
    cuts, below = all_cuts(sample)
    hits = np.concatenate(([0.0], np.cumsum(np.where(sample.relevant, sample.weights, 0.0))))[below]
    mass = np.concatenate(([0.0], np.cumsum(sample.weights)))[below]
    best = _best_pairs(hits, mass, sample.unseen, np.array(losses))
    points: list[CutPair] = []
    for low, high in best.tolist():
        if low >= 0:
            point = at(sample, float(cuts[low]), float(cuts[high]))
            if not points or point.error < points[-1].error - SAME:
                points.append(point)
    return points


def at(sample: StreamSample, reject_below: float, accept_above: float) -> CutPair:
    """The loss and the error of this pair of cuts. What no one judged is rejected."""
    accepted, rejected = sample.scores > accept_above, sample.scores < reject_below
    wrong = np.where(accepted, ~sample.relevant, rejected & sample.relevant)
    decided = float(sample.weights[accepted | rejected].sum()) + sample.unseen
    if not decided:
        return CutPair(1.0, 0.0, 0.0, 1.0, reject_below, accept_above)
    errors = sample.weight(wrong, TAIL)
    high = min(1.0, (errors.high + sample.unseen) / decided)
    estimate = (errors.estimate or 0.0) / decided
    return CutPair(1 - decided / sample.total, estimate, errors.low / decided, high, reject_below, accept_above)


def all_cuts(sample: StreamSample) -> tuple[Reals, NDArray[np.int64]]:
    """Every place to cut, lowest first: between two neighbouring scores, below all and above all; and how many
    documents lie below it. Equal scores are never separated."""
    scores = sample.scores
    ends = np.flatnonzero(np.diff(scores)) + 1
    middles = (scores[ends - 1] + scores[ends]) / 2
    under = scores[0] - max(1e-9, scores[-1] - scores[0])
    cuts = np.concatenate(([under], middles, [NEVER]))
    return cuts, np.concatenate(([0], ends, [len(scores)])).astype(np.int64)


@kernel
def _best_pairs(hits: Reals, mass: Reals, unseen: float, losses: Reals) -> NDArray[np.int64]:
    """For each loss the pair of cuts (of rejecting, of accepting); −1 where no pair decides anything. `hits` and `mass`
    are the weight of the relevant and of all documents below each cut."""
    n, last = len(mass), len(mass) - 1
    total, relevant = mass[last] + unseen, hits[last]
    best = np.full((len(losses), 2), -1)
    error, lost = np.full(len(losses), np.inf), np.full(len(losses), np.inf)
    for high in range(n):
        wrong_above = (mass[last] - mass[high]) - (relevant - hits[high])
        for low in range(high, -1, -1):
            loss = (mass[high] - mass[low]) / total
            if loss > losses[-1] + SAME:
                break
            decided = total - (mass[high] - mass[low])
            if decided <= SAME * total:
                continue
            e = (wrong_above + hits[low]) / decided
            for k in range(np.searchsorted(losses, loss - SAME), len(losses)):
                if e < error[k] - SAME or (e <= error[k] + SAME and loss < lost[k] - SAME):
                    error[k], lost[k], best[k, 0], best[k, 1] = e, loss, low, high
                elif e > error[k] + SAME:
                    break  # within a higher loss at least as good a pair is known
    return best
