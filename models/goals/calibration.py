"""The probability that a document with this score is relevant: a sigmoid (see sigmoid.py) through held-out scores.

Each document that was shown and judged weighs 1. What lies below `reject_below` is nearly all
unjudged: documents of the background there stand for it as irrelevant, and audited ones as what they are. All of these
together weigh REJECTED_WEIGHT times as much as the judged ones. Near-duplicates count once. What a user brought along
or found among the rejected does not count: it was chosen for being typical.

Against judged documents alone, log loss is about the same on what is not rejected, and a fifth to a quarter lower on
everything. Isotonic regression needs some hundred judgements to come close, and its curve has steps.

With few judgements the expected calibration error is .05 to .16, because probabilities are too low, not because they
are too extreme: what a young topic was shown is not what it is shown later. The smoothed targets are prior enough; a
ridge on the slope, more smoothing, or the mean over the posterior of A and B help where scores say little and cost more
where they say much. docs/experiments.md has the figures.
"""

import numpy as np

from models.core.vectors import Reals
from models.goals.evidence import JudgedWindow
from models.goals.sigmoid import Calibration, fit

REJECTED_WEIGHT = 0.5  # of all rejected documents together, as a share of the judged ones
MIN_OF_EACH = 8  # relevant, and irrelevant, documents that were shown and judged


def calibrate(judged: JudgedWindow, rejected: Reals) -> Calibration | None:
    """Fits the sigmoid to judged documents and to scores of rejected unjudged ones; None before there is evidence."""
    shown = judged.current & judged.has_origin("shown")
    positive = int(np.count_nonzero(judged.relevant & shown))
    n = int(np.count_nonzero(shown))
    if min(positive, n - positive) < MIN_OF_EACH:
        return None
    audit = judged.current & judged.has_origin("audit")
    below = np.concatenate((judged.held_out[audit], rejected))
    relevant = np.concatenate((judged.relevant[shown], judged.relevant[audit], np.zeros(len(rejected), np.bool_)))
    weights = np.ones(n + len(below))
    weights[n:] = REJECTED_WEIGHT * n / max(len(below), 1)
    return fit(np.concatenate((judged.held_out[shown], below)), relevant, weights)
