"""Thresholds that keep a promise: from what a user can tolerate to `reject_below` and `accept_above`.

    min_precision   of what is accepted, at least this share is relevant
    max_error       of what is decided, accepted or rejected, at most this share is wrong
    min_recall      of what is relevant, at least this share is not rejected
    max_abstain     at most this share is neither accepted nor rejected

Evidence are scores that the model did not learn from: of judged documents each without its own step, near-duplicates
counted once. Not every judgement is evidence. What was accepted or abstained from is *shown* to people, so these
judgements are a sample of what scores that high; rejected documents are a sample only if they were drawn by chance, for
*audit*. Documents that a user brought along, or *found* among the rejected, are what they are because they are typical:
they teach, but do not count.

`accept_above` is the lowest cut that passes two tests, and nothing is accepted while none does. With n documents above
a cut, m of them irrelevant, and a(n, c) the misses that Clopper & Pearson's bound at c allows (core/intervals.py):

* sequence  m ≤ a(n, CONFIDENCE), and so it is above every stricter cut that was tried, but for the strictest. Cuts
            are tried from there down, until one fails, at those n at which one more miss is allowed: 16, 29, 42, 54 …
            for .9. But for that exception a cut that breaks the goal is taken with probability at most 1 − CONFIDENCE
            however many are tried (fixed sequence testing; Angelopoulos, Bates, Candès, Jordan & Lei, "Learn then
            test", 2021): the first false one would have to pass. The exception adds a hundredth, because the edge must
            be clean (nine in ten documents relevant, by chance: .198 of 600 rankings of 300 or of 1,500 get a promise,
            .19 without it). Without it one odd document at the very top forbids everything below
* edge      of the min(n, EDGE) documents nearest above it, at most max(0, a(min(n, EDGE), SURE)) are irrelevant: of .9,
            none. Without this the sure ones at the top pay for a tail that is mostly wrong, the first thing to go when
            the stream changes a little.

And no cut lies where nothing is shown: below what the topic would reject without a goal, and below the highest
documents that the allowed abstention has people see. There the judged documents are no sample of the others: the few
that came from there were shown because they seemed better then. (A goal of .3 would else be promised by those that
were judged, and accept the whole stream.)

CONFIDENCE and EDGE are chosen on training documents of three corpora alone: .63 of the pairs of a topic and a point of
its stream get a promise of .9, .94 of these keep ≥ .88 on what follows, and one is significantly below. The bound
without an edge, as is usual, promises .75 of them and keeps .59. What breaks promises is the stream that moves on, more
than the choice among many cuts: a higher confidence costs promises and keeps hardly one. docs/experiments.md has the
tables.

`reject_below` spends the abstention that is allowed, where recall is wanted; but only SPARE of it, since the share is
told from a thousand documents, and streams change: .35 keeps within it everywhere, .5 on .89 of the groups of 20
Newsgroups. Of documents that all score alike, all are taken in or none. It is never lifted by judged documents:
relevant ones below it are not shown, so it would only ever go up. Error comes before abstention: where audits show that
more of what is rejected is relevant than a max_error allows, the band becomes wider.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from models.core import intervals
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals.evidence import BOUND_CONFIDENCE, EDGE_SIZE, MIN_RELEVANT, PROMISE_CONFIDENCE, JudgedWindow
from models.goals.thresholds import MIN_SAMPLE, NEVER, Band, all_cuts

SPENT_SHARE = 0.35  # of the abstention that is allowed
DEFAULT_ABSTAIN = 0.15  # of abstention, where recall is wanted and nothing is said of abstention


@dataclass(frozen=True, slots=True)
class Targets:
    """What the user can tolerate; None where nothing was said."""

    max_error: float | None = None
    min_precision: float | None = None
    min_recall: float | None = None
    max_abstain: float | None = None


def choose(
    goal: Targets,
    judged: JudgedWindow,
    background: Reals,
    usual: Band,
    rejecting: tuple[JudgedWindow, Reals] | None = None,
) -> Band:
    """The band for a goal; `usual` is what the topic would have without one. The background is held out, too. A
    committee that votes has other scores by which it rejects (see online/committee.py), of the same documents."""
    accept, low = usual.accept_above, usual.reject_below
    below, unseen = rejecting or (judged, background)
    wanted = max(goal.min_precision or 0.0, 1 - goal.max_error if goal.max_error is not None else 0.0)
    most = DEFAULT_ABSTAIN if goal.max_abstain is None else goal.max_abstain
    spends = len(background) >= MIN_SAMPLE and (goal.min_recall is not None or goal.max_abstain is not None)
    allowed = int(SPENT_SHARE * most * len(unseen)) if spends else 0
    if wanted:
        counted = judged.has_origin("shown") & judged.current
        shown = min(usual.reject_below, _allowance(background, allowed, NEVER))
        accept = certified(judged.held_out[counted], judged.relevant[counted], wanted, shown)
    if goal.max_error is not None:
        low = min(low, clear(below, goal.max_error, low))
    low = min(low, accept)
    if not spends:
        return Band(low, accept, usual.f1)
    edge = _allowance(unseen[background <= accept], allowed, accept)
    if goal.max_error is None:
        if goal.min_recall is not None:
            low = edge if goal.max_abstain is not None else min(edge, low)
        else:
            low = max(edge, low)
    elif goal.min_recall is not None:
        low = min(edge, low)
    return Band(min(low, accept), accept, usual.f1)


def certified(scores: Reals, relevant: Bools, goal: float, shown: float = -math.inf) -> float:
    """The lowest cut, but not below `shown`, above which the share of relevant documents is at least the goal, as far
    as that can be promised; NEVER if it cannot."""
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
    near, spared = np.minimum(n, EDGE_SIZE), np.maximum(intervals.allowed_misses(goal, BOUND_CONFIDENCE, EDGE_SIZE), 0)
    clean = missed[n] - missed[n - near] <= spared[near]
    failed = np.flatnonzero(~passes[1:])  # the strictest may fail
    reached = slice(failed[0] + 1 if len(failed) else None)
    taken = tried[reached][(passes & clean & (cuts[tried] >= shown))[reached]]
    return float(cuts[taken[-1]]) if len(taken) else NEVER


def clear(judged: JudgedWindow, most: float, otherwise: float) -> float:
    """The highest cut below which at most this share is relevant, as audits show. If they are too few for that, it is
    `otherwise`, or the highest cut below it of which they do not show the opposite.

    Below a cut lie documents that were shown, all of which are counted, and rejected ones, of which those drawn, with
    chance c, stand for 1/c each.
    """
    shown, audit = judged.has_origin("shown") & judged.current, judged.has_origin("audit")
    if not audit.any():
        return otherwise
    order = np.argsort(judged.held_out)
    n, hits, audits, finds = (
        np.cumsum(some[order]) for some in (shown, shown & judged.relevant, audit, audit & judged.relevant)
    )
    weight = np.where(audit, 1 / np.where(audit, judged.chance, 1.0), 0.0)[order]
    all_of_them = np.cumsum(weight)
    if np.ptp(judged.chance[audit]) == 0:
        high = betaincinv(finds + 1, np.maximum(audits - finds, 0.5), BOUND_CONFIDENCE) * all_of_them
        low = (
            np.where(finds, betaincinv(np.maximum(finds, 0.5), audits - finds + 1, 1 - BOUND_CONFIDENCE), 0)
            * all_of_them
        )
    else:
        found = np.where((audit & judged.relevant)[order], weight, 0.0)
        low, high = intervals.totals(
            np.cumsum(found), np.cumsum(found**2), np.maximum.accumulate(weight), BOUND_CONFIDENCE
        )
    at_least, at_most = ((hits + missed) / np.maximum(n + all_of_them, 1) for missed in (low, high))
    holds = np.flatnonzero((at_most <= most) & (audits > finds))
    scores = judged.held_out[order]
    if len(holds):
        return float(scores[holds[-1] + 1]) if holds[-1] + 1 < len(order) else otherwise
    broken = np.flatnonzero((at_least > most) & (scores < otherwise))
    if not len(broken) or broken[-1] + 1 < np.searchsorted(scores, otherwise):
        return otherwise  # as far as is known, it holds there
    may = np.flatnonzero(at_least <= most)
    may = may[may < broken[-1]]
    return float(scores[may[-1] + 1 if len(may) else 0])


def _allowance(left: Reals, most: int, accept: float) -> float:
    """The cut from which on so many documents lie of those that are not accepted, or fewer: where many have the same
    score, as all that have no word of a query do, they lie below it."""
    wanted = min(len(left), most)
    if not wanted:
        return accept
    cut = np.sort(left)[-wanted]
    return float(cut if np.count_nonzero(left >= cut) <= wanted else np.nextafter(cut, np.inf))
