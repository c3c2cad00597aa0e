"""Thresholds that keep a promise: from what a user can tolerate to `reject_below` and `accept_above`.

    min_precision   of what is accepted, at least this share is relevant
    max_error       of what is decided, accepted or rejected, at most this share is wrong
    min_recall      of what is relevant, at least this share is not rejected
    max_abstain     at most this share is neither accepted nor rejected
    maximise        no promise: the cut that is best by a measure (objectives.py, thresholds.py)

What counts as evidence is in goals/evidence.py.

In the mode `best`, `max_abstain` and `max_error` without a precision or a recall are not promises but tuning: the cuts
on both sides are those of restrictive classification (goals/restrictive.py).

In the mode `best`, `accept_above` is steered by what was delivered (goals/tracking.py), and promised where it can be.

In the mode `strict` it is the lowest cut that passes two tests; while none does, nothing is accepted. With n documents
above a cut, m of them irrelevant, and a(n, c) the misses that Clopper & Pearson's bound allows at confidence c
(core/intervals.py):

* sequence  m ≤ a(n, PROMISE_CONFIDENCE), here and above every stricter cut that was tried, except for the strictest.
            Cuts are tried from the strictest down, until one fails, at those n where one more miss is allowed: 16, 29,
            42, 54 … for .9. Without the exception, a cut that breaks the goal is chosen with probability at most
            1 − PROMISE_CONFIDENCE, however many are tried: the first false one would have to pass (fixed sequence
            testing; Angelopoulos, Bates, Candès, Jordan & Lei, "Learn then test", 2021). The exception is there
            because one odd document at the very top would otherwise rule out every cut below it. It adds a hundredth,
            since the edge must be clean: where nine in ten documents are relevant, at random, .198 of 600 rankings of
            300 or of 1,500 get a promise, and .19 without it.
* edge      of the e = min(n, EDGE_SIZE) documents nearest above the cut, at most max(0, a(e, BOUND_CONFIDENCE)) are
            irrelevant; for .9, none. Without this test the certain documents at the top pay for a tail that is mostly
            wrong, the first to break when the stream changes a little.

No cut lies where nothing is shown: below what the topic would reject without a goal, and below the highest documents
that the allowed abstention shows to people. The judged documents down there are no sample of the others: the few that
were judged had been shown because they seemed better at the time. (Otherwise they would be enough to promise a
precision of .3, and the whole stream would be accepted.)

PROMISE_CONFIDENCE and EDGE_SIZE were chosen on training documents of three corpora: .63 of the pairs of a topic and a
point of its stream get a promise of .9, .94 of these keep ≥ .88 on what follows, and one is significantly below. The
usual bound, without an edge, promises .75 of them and keeps .59. Promises are broken by streams that move on, more than
by the choice among many cuts: a higher confidence costs promises and saves hardly any. docs/experiments.md has the
tables.

`reject_below` spends the abstention that is allowed, if recall is asked for: how much of it, goals/spending.py says.
Documents with equal scores are all shown or none. Judged documents never raise `reject_below`: relevant ones below it
are not shown, so it would only ever go up. Error comes before abstention: if audits show that more of what is rejected
is relevant than `max_error` allows, the band becomes wider.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaincinv

from models.core import intervals
from models.core.measures import Bools
from models.core.names import GoalMode
from models.core.vectors import Reals
from models.goals.evidence import BOUND_CONFIDENCE, EDGE_SIZE, MIN_RELEVANT, PROMISE_CONFIDENCE, JudgedWindow
from models.goals.objectives import Objective
from models.goals.restrictive import Sample, error_bound, tuned
from models.goals.spending import LEARNING_SHARE, undecided
from models.goals.thresholds import MIN_SAMPLE, NEVER, Band, HandCuts, all_cuts
from models.goals.tracking import tracked_cut

DEFAULT_ABSTAIN = 0.15  # the limit on abstention where recall is asked for and no limit is set


@dataclass(frozen=True, slots=True)
class Targets:
    """What the user can tolerate; None where no target is set."""

    max_error: float | None = None
    min_precision: float | None = None
    min_recall: float | None = None
    max_abstain: float | None = None
    mode: GoalMode = "strict"
    maximise: Objective | None = None  # by which the cut is chosen, if no precision or error is asked for
    cuts: HandCuts | None = None  # set by the user: then the targets are only watched

    @property
    def asks(self) -> bool:
        """Whether a target is set, or the cuts are."""
        shares = self.max_error, self.min_precision, self.min_recall, self.max_abstain
        return self.maximise is not None or self.cuts is not None or any(each is not None for each in shares)

    @property
    def restrictive(self) -> bool:
        """Whether only a loss and an error are asked for, so that both cuts are tuned to them."""
        others = self.min_precision, self.min_recall, self.maximise
        asked = self.max_error is not None or self.max_abstain is not None
        return asked and self.mode == "best" and all(each is None for each in others)

    @property
    def precision(self) -> float | None:
        """The precision that what is accepted must have, if one follows from the targets."""
        asked = [self.min_precision, None if self.max_error is None else 1 - self.max_error]
        return max((each for each in asked if each is not None), default=None)


def choose(
    goal: Targets,
    judged: JudgedWindow,
    background: Reals,
    usual: Band,
    rejecting: tuple[JudgedWindow, Reals] | None = None,
) -> Band:
    """Chooses the band for a goal. `usual` is the band that the topic would have without one; `background` are
    held-out scores of recent documents. A committee that votes rejects by other scores of the same documents:
    `rejecting` (see online/committee.py)."""
    if goal.cuts:
        return goal.cuts.of(usual)
    if goal.restrictive:
        below, passed = rejecting or (judged, background)
        return _restrictive_band(goal, (judged, below), Sample(background, passed, np.zeros(len(background))), usual)
    accept, low = usual.accept_above, usual.reject_below
    judged_below, background_below = rejecting or (judged, background)
    certified = None
    abstain = DEFAULT_ABSTAIN if goal.max_abstain is None else goal.max_abstain
    spends = len(background) >= MIN_SAMPLE and (goal.min_recall is not None or goal.max_abstain is not None)
    allowed = int(LEARNING_SHARE * abstain * len(background)) if spends else 0
    if goal.precision:
        shown = min(usual.reject_below, _cut_for_count(background, allowed, NEVER))
        if goal.mode == "best":
            accept, certified = tracked_cut(judged, goal.precision, usual.accept_above, shown)
        else:
            counted = judged.has_origin("shown") & judged.current
            accept = certified_cut(judged.held_out[counted], judged.relevant[counted], goal.precision, shown)
            certified = accept < NEVER
    if goal.max_error is not None:
        low = min(low, audited_cut(judged_below, goal.max_error, low))
    low = min(low, accept)
    if not spends:
        return replace(usual, reject_below=low, accept_above=accept, certified=certified)
    allowed = undecided(
        judged_below, background_below, background > accept, abstain, goal.min_recall, certified is False
    )
    edge = _cut_for_count(background_below[background <= accept], allowed, accept)
    if goal.max_error is None:
        if goal.min_recall is not None:
            low = edge if goal.max_abstain is not None else min(edge, low)
        else:
            low = max(edge, low)
    elif goal.min_recall is not None:
        low = min(edge, low)
    return replace(usual, reject_below=min(low, accept), accept_above=accept, certified=certified)


def _restrictive_band(
    goal: Targets, judged: tuple[JudgedWindow, JudgedWindow], background: Sample, usual: Band
) -> Band:
    """The band that is tuned to a loss and an error; the usual one while too little is known."""
    cuts = tuned(judged, background, goal.max_abstain, goal.max_error) or (usual.reject_below, usual.accept_above)
    certified = None
    if goal.max_error is not None:
        certified = error_bound(judged, background, cuts) <= goal.max_error
    return replace(usual, reject_below=cuts[0], accept_above=cuts[1], certified=certified)


def certified_cut(scores: Reals, relevant: Bools, goal: float, shown: float = -math.inf) -> float:
    """The lowest cut, not below `shown`, for which a precision of `goal` can be promised; NEVER if there is none."""
    if np.count_nonzero(relevant) < MIN_RELEVANT:
        return NEVER
    cuts, _, accepted, _ = all_cuts(scores, relevant)
    missed = np.concatenate(([0], np.cumsum(~relevant[np.argsort(-scores)])))
    allowed = intervals.allowed_misses(goal, PROMISE_CONFIDENCE, 1 << len(scores).bit_length())
    one_more = np.flatnonzero(np.diff(allowed) > 0) + 1
    tried = np.searchsorted(accepted, one_more[one_more >= MIN_RELEVANT])
    tried = np.unique(tried[tried < len(accepted)])
    n = accepted[tried].astype(np.int64)
    passes = missed[n] <= allowed[n]
    edge = np.minimum(n, EDGE_SIZE)
    allowed_at_edge = np.maximum(intervals.allowed_misses(goal, BOUND_CONFIDENCE, EDGE_SIZE), 0)
    clean = missed[n] - missed[n - edge] <= allowed_at_edge[edge]
    failed = np.flatnonzero(~passes[1:])  # the strictest may fail
    reached = slice(failed[0] + 1 if len(failed) else None)
    passed = tried[reached][(passes & clean & (cuts[tried] >= shown))[reached]]
    return float(cuts[passed[-1]]) if len(passed) else NEVER


def audited_cut(judged: JudgedWindow, max_error: float, usual: float) -> float:
    """The highest cut below which audits show at most this share to be relevant. With too few audits for that, it is
    `usual`, or the highest cut below it that audits do not contradict.

    Below a cut lie documents that were shown, all of which are counted, and rejected ones, of which those drawn with
    chance c stand for 1/c each.
    """
    shown, audit = judged.has_origin("shown") & judged.current, judged.has_origin("audit")
    if not audit.any():
        return usual
    order = np.argsort(judged.held_out)
    n, hits, audits, finds = (
        np.cumsum(kind[order]) for kind in (shown, shown & judged.relevant, audit, audit & judged.relevant)
    )
    weight = np.where(audit, 1 / np.where(audit, judged.chance, 1.0), 0.0)[order]
    rejected = np.cumsum(weight)
    if np.ptp(judged.chance[audit]) == 0:
        high = betaincinv(finds + 1, np.maximum(audits - finds, 0.5), BOUND_CONFIDENCE) * rejected
        share = betaincinv(np.maximum(finds, 0.5), audits - finds + 1, 1 - BOUND_CONFIDENCE)
        low = np.where(finds, share, 0) * rejected
    else:
        found = np.where((audit & judged.relevant)[order], weight, 0.0)
        heaviest = np.maximum.accumulate(weight)
        low, high = intervals.totals(np.cumsum(found), np.cumsum(found**2), heaviest, BOUND_CONFIDENCE)
    at_least, at_most = ((hits + missed) / np.maximum(n + rejected, 1) for missed in (low, high))
    holds = np.flatnonzero((at_most <= max_error) & (audits > finds))
    scores = judged.held_out[order]
    if len(holds):
        return float(scores[holds[-1] + 1]) if holds[-1] + 1 < len(order) else usual
    broken = np.flatnonzero((at_least > max_error) & (scores < usual))
    if not len(broken) or broken[-1] + 1 < np.searchsorted(scores, usual):
        return usual  # nothing contradicts it there
    may_hold = np.flatnonzero(at_least <= max_error)
    may_hold = may_hold[may_hold < broken[-1]]
    return float(scores[may_hold[-1] + 1 if len(may_hold) else 0])


def _cut_for_count(scores: Reals, count: int, accept: float) -> float:
    """The cut with `count` of these scores at or above it, or fewer: if many are equal there, as those of all documents
    without a word of the query are, they lie below it. `accept` if none is allowed."""
    wanted = min(len(scores), count)
    if not wanted:
        return accept
    cut = np.sort(scores)[-wanted]
    return float(cut if np.count_nonzero(scores >= cut) <= wanted else np.nextafter(cut, np.inf))
