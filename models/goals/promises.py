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
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from models.core import intervals
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals.thresholds import ENOUGH, NEVER, Band, cuts_of

Origin = Literal["given", "shown", "audit", "found"]
ORIGINS: tuple[Origin, ...] = ("given", "shown", "audit", "found")

CONFIDENCE = 0.8  # of a promise on precision
SURE = 0.95  # of every other bound, and before a goal is called out of reach
LEAST = 8  # relevant documents, before anything is promised
EDGE = 40  # documents nearest above the cut
SPARE = 0.35  # of the abstention that is allowed
ALLOWANCE = 0.15  # of abstention, where recall is wanted and nothing is said of abstention
WINDOW = 5000  # judged documents


@dataclass(frozen=True, slots=True)
class Targets:
    """What the user can tolerate; None where nothing was said."""

    max_error: float | None = None
    min_precision: float | None = None
    min_recall: float | None = None
    max_abstain: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class JudgedWindow:
    """The newest judged documents, in their order."""

    held_out: Reals
    relevant: Bools
    origin: NDArray[np.int8]  # an index of ORIGINS
    alone: Bools  # not near an earlier one
    first: Bools  # nor from before the filter became worse
    chance: Reals  # with which it was drawn, if it was
    accepted: Bools  # before it was judged

    def came(self, origin: Origin) -> Bools:
        return np.equal(self.origin, ORIGINS.index(origin))


class Watch(NamedTuple):
    """How people look at what is accepted, told by how many had been accepted when one of them was judged."""

    last: int = 0  # when one was judged last; 0 if none was, or nobody knows
    pause: float = 0.0  # so many are accepted, in the mean, from one time that some are judged to the next


@dataclass(frozen=True, slots=True)
class Evidence:
    """What judged documents say of the thresholds, and of the decisions that were made; near-duplicates once."""

    accepted: int = 0  # shown, and above `accept_above` now, without their own influence
    hits: int = 0  # relevant among these
    delivered: int = 0  # accepted before they were judged, by model or rule: the newest EDGE
    right: int = 0  # relevant among these
    shown: int = 0  # not rejected before they were judged
    kept: int = 0  # relevant among these
    audits: int = 0  # rejected, and drawn by chance
    finds: int = 0  # relevant among these
    drawn: tuple[tuple[float, int, int], ...] = ()  # chance, audits and finds of each, where they had several chances
    lost: int = 0  # rejected and relevant, and somebody noticed
    certified: bool = False  # whether the precision that was asked for can be promised at `accept_above`
    reach: float = 1.0  # no cut can have a higher precision
    missing: int = 0  # judgements of what is shown after which it might be promised, if things go on as they do
    worse_for: int = 0  # judgements since the filter has become worse; 0 if it has not
    watched: int = 0  # documents that had been accepted when one of them was last judged; see Watch
    pause: float = 0.0

    def __add__(self, other: "Evidence") -> "Evidence":
        """Of two topics together; what is promised of one cut says nothing of another's."""
        counts = ("accepted", "hits", "kept", "lost", "audits", "finds", "shown")
        return Evidence(**{name: getattr(self, name) + getattr(other, name) for name in counts})


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
    most = ALLOWANCE if goal.max_abstain is None else goal.max_abstain
    spends = len(background) >= ENOUGH and (goal.min_recall is not None or goal.max_abstain is not None)
    allowed = int(SPARE * most * len(unseen)) if spends else 0
    if wanted:
        counted = judged.came("shown") & judged.first
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
    if np.count_nonzero(relevant) < LEAST:
        return NEVER
    cuts, _, accepted, _ = cuts_of(scores, relevant)
    missed = np.concatenate(([0], np.cumsum(~relevant[np.argsort(-scores)])))
    allowed = intervals.allowed(goal, CONFIDENCE, 1 << len(scores).bit_length())
    one_more = np.flatnonzero(np.diff(allowed) > 0) + 1
    tried = np.searchsorted(accepted, one_more[one_more >= LEAST])
    tried = np.unique(tried[tried < len(accepted)])
    n = accepted[tried].astype(np.int64)
    passes = missed[n] <= allowed[n]
    near, spared = np.minimum(n, EDGE), np.maximum(intervals.allowed(goal, SURE, EDGE), 0)
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
    shown, audit = judged.came("shown") & judged.first, judged.came("audit")
    if not audit.any():
        return otherwise
    order = np.argsort(judged.held_out)
    n, hits, audits, finds = (
        np.cumsum(some[order]) for some in (shown, shown & judged.relevant, audit, audit & judged.relevant)
    )
    weight = np.where(audit, 1 / np.where(audit, judged.chance, 1.0), 0.0)[order]
    all_of_them = np.cumsum(weight)
    if np.ptp(judged.chance[audit]) == 0:
        high = betaincinv(finds + 1, np.maximum(audits - finds, 0.5), SURE) * all_of_them
        low = np.where(finds, betaincinv(np.maximum(finds, 0.5), audits - finds + 1, 1 - SURE), 0) * all_of_them
    else:
        found = np.where((audit & judged.relevant)[order], weight, 0.0)
        low, high = intervals.totals(np.cumsum(found), np.cumsum(found**2), np.maximum.accumulate(weight), SURE)
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


def evidence(
    goal: Targets, judged: JudgedWindow, band: Band, worse_for: int = 0, watch: Watch | None = None
) -> Evidence:
    watch = watch or Watch()
    shown, audit, found = (judged.came(origin) & judged.alone for origin in ("shown", "audit", "found"))
    relevant, counted = judged.relevant, shown & judged.first
    accepted = counted & (judged.held_out > band.accept_above)
    delivered = np.flatnonzero(counted & judged.accepted)[-EDGE:]
    return Evidence(
        accepted=int(np.count_nonzero(accepted)),
        hits=int(np.count_nonzero(accepted & relevant)),
        delivered=len(delivered),
        right=int(np.count_nonzero(relevant[delivered])),
        drawn=_drawn(judged.chance[audit], relevant[audit]),
        kept=int(np.count_nonzero(shown & relevant)),
        lost=int(np.count_nonzero(found & relevant)),
        audits=int(np.count_nonzero(audit)),
        finds=int(np.count_nonzero(audit & relevant)),
        shown=int(np.count_nonzero(shown)),
        worse_for=worse_for,
        watched=watch.last,
        pause=watch.pause,
        **_prospect(goal.min_precision, judged.held_out[counted], relevant[counted], band),
    )


def _drawn(chance: Reals, relevant: Bools) -> tuple[tuple[float, int, int], ...]:
    """Audits and finds by their chance, where there is more than one."""
    chances = np.unique(chance).tolist()
    if len(chances) < 2:
        return ()
    each = [(c, chance == c) for c in chances]
    return tuple((c, int(np.count_nonzero(of)), int(np.count_nonzero(of & relevant))) for c, of in each)


def _prospect(goal: float | None, scores: Reals, relevant: Bools, band: Band) -> dict[str, Any]:
    """How near a goal on precision is."""
    if goal is None:
        return {}
    if not len(scores):
        return {"missing": _tries(goal, 1.0)}
    if band.accept_above < NEVER:
        # A cut chosen for the goal keeps it; one of a model that was made elsewhere was not, and has to be tested.
        above = relevant[scores > band.accept_above]
        return {"certified": intervals.low(int(np.count_nonzero(above)), len(above), CONFIDENCE) >= goal}
    _, hits, accepted, _ = cuts_of(scores, relevant)
    enough = accepted >= LEAST
    if not enough.any():
        return {"missing": max(0, _tries(goal, 1.0) - len(scores))}
    share = hits[enough] / accepted[enough]
    best = int(np.flatnonzero(share == share.max())[-1])
    reach = 1.0
    if share[best] < 1 and len(scores) >= ENOUGH:  # with fewer the ranking still changes too much to speak for the next
        reach = float(betaincinv(hits[enough] + 1, accepted[enough] - hits[enough], SURE).max())
    tries = _tries(goal, float(share[best]))
    # Of what is shown, only a part scores as high as the best cut.
    part = float(accepted[enough][best]) / len(scores)
    return {"reach": reach, "missing": math.ceil(max(0.0, tries - accepted[enough][best]) / part) if tries else 0}


def _tries(goal: float, share: float) -> int:
    """How many judged documents above a cut, this share of them relevant, would promise the goal; 0 if none would."""
    most = intervals.allowed(goal, CONFIDENCE, WINDOW)
    holds = np.floor(np.arange(len(most)) * (1 - share)) <= most
    return int(np.argmax(holds)) if holds.any() else 0
