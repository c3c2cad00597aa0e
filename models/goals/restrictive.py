"""Restrictive classification: the two cuts of least error within an allowed loss, or of least loss within an error.

    loss    share of the documents that is neither accepted nor rejected
    error   (accepted and irrelevant + rejected and relevant) / decided

    max_abstain          min error  over pairs of cuts with  loss ≤ max_abstain
    max_error            min loss   over pairs of cuts with  error ≤ max_error;  of these, min error
    both                 min loss within both; if no pair keeps both, min error within the loss

Siersdorfer, Sizov & Weikum, "Goal-oriented methods and meta methods for document classification and their parameter
tuning", CIKM 2004, sections 4.2 and 4.4. They estimate both by leave-one-out: held-out scores of the training
documents, each right or wrong. Their band lies evenly around one hyperplane; we try every pair of cuts, because a topic
is seldom as common as all else, and its errors cost the same on both sides.

On a stream the judged documents are no sample: people judge what they are shown. There the sample is the background,
recent documents as they came, each relevant with the probability P that its score suggests,

    error = Σ (P of the rejected, 1 − P of the accepted) / decided

with P a sigmoid (sigmoid.py) through the documents that were shown or drawn for audit: among documents with the same
score, judged ones are relevant as often as others. While these are all relevant or all irrelevant, the error is that of
the judged documents, as in the paper, and the loss that of the stream. The loss is planned so that, judging by the size
of the sample, it is within what is allowed with LOSS_CONFIDENCE.

Tried on 3,000 Reuters documents and three topics, the next 3,000 measured: labels of the background in place of P where
they are known (the pair fits the few errors of the sample, and uses less than half the loss), isotonic regression (it
finds no error where none was judged: .0178, .0110 and .0150 for an error of .01), and the sigmoid of prevalence.py (its
prior of irrelevant documents doubles the error). With P as it is an error of .01 became .0080, .0018 and .0031.

What is chosen by an estimate is not promised. `error_bound` is: misses among the judged documents that would be
accepted, and finds among the audits, each at its bound and weighted by how many there are.
"""

from typing import NamedTuple

import numpy as np

from models.core import intervals
from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals import sigmoid
from models.goals.evidence import BOUND_CONFIDENCE, MIN_RELEVANT, JudgedWindow
from models.goals.thresholds import MIN_SAMPLE, NEVER

LOSS_CONFIDENCE = 0.95
SAME = 1e-9  # errors and losses that differ by less are equal


class Sample(NamedTuple):
    """Documents by the scores that compare with `accept_above` and with `reject_below`, and how likely each is to be
    relevant. A committee that votes has two scores; else both are the same."""

    accepting: Reals
    rejecting: Reals
    relevant: Reals


class Tally(NamedTuple):
    """For each cut, in ascending order, what lies above it and below it, as shares of all."""

    accepted: Reals
    false: Reals  # accepted and irrelevant
    rejected: Reals
    missed: Reals  # rejected and relevant


def best_pair(
    sample: Sample, max_loss: float = 1.0, max_error: float | None = None, passed: Sample | None = None
) -> tuple[float, float] | None:
    """The cuts to reject below and to accept above; None if no pair keeps within the loss. Loss is measured on what
    `passed`, if that is given."""
    cuts = _cuts(sample, passed)
    tally = _tally(sample, cuts)
    shown = _tally(passed, cuts) if passed else tally
    if max_error is not None:
        low, high = _least_loss(tally, shown, max_loss, max_error)
        if high >= 0:
            return float(cuts[low]), float(cuts[high])
    low, high = _least_loss(tally, shown, max_loss, _least_error(tally, shown, max_loss))
    return (float(cuts[low]), float(cuts[high])) if high >= 0 else None


def tuned(
    judged: tuple[JudgedWindow, JudgedWindow],
    background: Sample,
    max_loss: float | None,
    max_error: float | None,
) -> tuple[float, float] | None:
    """The cuts for a topic; None while too little is known. `judged` has the scores that compare with `accept_above`
    and those that compare with `reject_below`; of the background it is not known what is relevant."""
    accepting, rejecting = judged
    unique, relevant = accepting.unique, accepting.relevant
    positive = int(np.count_nonzero(unique & relevant))
    if min(positive, int(np.count_nonzero(unique)) - positive) < MIN_RELEVANT:
        return None
    given = Sample(accepting.held_out[unique], rejecting.held_out[unique], relevant[unique].astype(float))
    loss = 1.0 if max_loss is None else max_loss
    if len(background.accepting) < MIN_SAMPLE:
        return best_pair(given, loss, max_error)
    loss = planned_loss(loss, len(background.accepting))
    sampled = unique & (accepting.has_origin("shown") | accepting.has_origin("audit"))
    sampled &= accepting.current
    f, y = accepting.held_out[sampled], relevant[sampled]
    if y.all() or not y.any():
        return best_pair(given, loss, max_error, background)
    P = sigmoid.fit(f, y, np.ones(len(f))).probabilities(background.accepting)
    return best_pair(background._replace(relevant=P), loss, max_error)


def planned_loss(allowed: float, documents: int) -> float:
    """The largest share of so many documents that shows, with confidence, a share of the stream within the allowed."""
    if allowed >= 1:
        return 1.0
    low, high = 0, documents
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if intervals.high(middle, documents, LOSS_CONFIDENCE) <= allowed else (low, middle)
    return low / documents


def error_bound(judged: tuple[JudgedWindow, JudgedWindow], background: Sample, cuts: tuple[float, float]) -> float:
    """With confidence, at most this share of what these cuts decide is wrong: 1 if nothing is known of either part."""
    accepting, rejecting = judged
    shown, audit = accepting.has_origin("shown") & accepting.current, accepting.has_origin("audit") & accepting.current
    above, below = shown & (accepting.held_out > cuts[1]), audit & (rejecting.held_out < cuts[0])
    accepted, rejected = (
        (float(np.mean(part)) for part in _decided(background, cuts)) if len(background.accepting) else (0.0, 0.0)
    )
    if not accepted + rejected:
        return 1.0
    each = (1 + BOUND_CONFIDENCE) / 2  # both must hold at once
    misses, finds = (
        intervals.high(int(np.count_nonzero(part & (accepting.relevant == kind))), int(np.count_nonzero(part)), each)
        for part, kind in ((above, False), (below, True))
    )
    return (accepted * misses + rejected * finds) / (accepted + rejected)


def _decided(sample: Sample, cuts: tuple[float, float]) -> tuple[Bools, Bools]:
    return sample.accepting > cuts[1], sample.rejecting < cuts[0]


def _cuts(sample: Sample, passed: Sample | None) -> Reals:
    """Every place to cut, lowest first: between neighbouring scores, below all and above all."""
    several = [each for one in (sample, passed) if one for each in (one.accepting, one.rejecting)]
    scores = np.unique(np.concatenate(several))
    if not len(scores):
        return np.array([NEVER])
    under = scores[0] - max(1e-9, scores[-1] - scores[0])
    return np.concatenate(([under], (scores[:-1] + scores[1:]) / 2, [NEVER]))


def _tally(sample: Sample, cuts: Reals) -> Tally:
    n = max(len(sample.relevant), 1)

    def below(scores: Reals, amounts: Reals) -> Reals:
        order = np.argsort(scores)
        sums = np.concatenate(([0.0], np.cumsum(amounts[order])))
        found: Reals = sums[np.searchsorted(scores[order], cuts)] / n
        return found

    ones, y = np.ones(len(sample.relevant)), sample.relevant
    accepted, false = (amounts.sum() / n - below(sample.accepting, amounts) for amounts in (ones, 1 - y))
    return Tally(accepted, false, below(sample.rejecting, ones), below(sample.rejecting, y))


@kernel
def _least_error(tally: Tally, shown: Tally, max_loss: float) -> float:
    """The least error of all pairs of cuts within this loss."""
    least = np.inf
    for high in range(len(tally.accepted)):
        for low in range(high, -1, -1):
            if 1 - shown.accepted[high] - shown.rejected[low] > max_loss + SAME:
                break  # a lower cut rejects less
            decided = tally.accepted[high] + tally.rejected[low]
            if decided > SAME:
                least = min(least, (tally.false[high] + tally.missed[low]) / decided)
    return least


@kernel
def _least_loss(tally: Tally, shown: Tally, max_loss: float, max_error: float) -> tuple[int, int]:
    """The pair of least loss within this loss and error, of these the one of least error, and of these the one that
    accepts most; −1 if there is none."""
    pair, loss, error = (-1, -1), np.inf, np.inf
    for high in range(len(tally.accepted)):
        for low in range(high, -1, -1):
            lost = 1 - shown.accepted[high] - shown.rejected[low]
            if lost > max_loss + SAME or lost > loss + SAME:
                break
            decided = tally.accepted[high] + tally.rejected[low]
            if decided <= SAME:
                continue
            e = (tally.false[high] + tally.missed[low]) / decided
            if e <= max_error + SAME and (lost < loss - SAME or e < error - SAME):
                pair, loss, error = (low, high), lost, e
    return pair
