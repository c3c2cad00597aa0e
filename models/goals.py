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

`accept_above` is the lowest cut that passes three tests, and nothing is accepted while none does:

* sequence  the share of relevant documents above it is at least the goal, by Clopper & Pearson's bound, and so it is
            above every stricter cut that was tried before. Cuts are tried from the strictest down, until one fails, at
            those numbers of documents at which one more miss is allowed: 14, 27, 39, 51 … for .9. A cut that breaks the
            goal is then taken with probability at most 1 − CONFIDENCE however many are tried (fixed sequence testing;
            Angelopoulos, Bates, Candès, Jordan & Lei, "Learn then test", 2021): the first false one would have to pass
* edge      the documents nearest above it promise the goal by themselves, by the bound at SURE; fewer of them than that
            takes must have no miss. Without this the sure ones at the top pay for a tail that is mostly wrong, the
            first thing to go when the stream changes a little
* newest    of the documents above it, the newest are not significantly worse than the goal.

Chosen on training documents alone (Reuters, 20 Newsgroups and 20,000 abstracts of arXiv, goal .9, 29, 16 and 20 topics,
each asked at four points of its stream: `scripts/simulate --holdout --at .5`, .625, .75, .875). Share of the topics
that promise; of these, the share that keeps ≥ .88 on what follows, by the model as it stood; how many are significantly
below .9; relevant documents accepted (with 500 served weights, a quarter of today's):

                                           Reuters               20 Newsgroups         arXiv
    the bound at .85, lowest cut           .61  .62  16  .44     .95  .74  10  .56     .85  .71   5  .28
    … newest 20, edge of 30 half-way       .61  .79   4  .40     .95  .92   0  .43     .85  .87   1  .21
    … at .75, edge of 30 without a miss    .70  .85   1  .39     .98  .95   0  .38     .85  .93   0  .17
    sequence through every cut, .75        .64  .62  16  .42     .89  .77   9  .51     .74  .78   3  .21
    … edge of 30 without a miss            .64  .84   1  .35     .89  .98   0  .35     .74  .95   0  .13
    sequence as above, .75, no edge        .64  .70  11  .43     .89  .82   7  .51     .74  .75   4  .25
    … and edge (chosen)                    .64  .89   1  .33     .89  1.0   0  .30     .74  .95   0  .12
    … at .8                                .59  .93   0  .30     .89  .98   0  .32     .70  .95   0  .12

What breaks promises is the stream that moves on more than the choice among many cuts: the sequence alone is hardly
better than the bound alone. With the edge it is, and its confidence is that of the promise, not of one cut. How high
that is matters less: of Reuters with a fifth of the documents four times, .75 promises .47 of 40 topics, .8 only .42
(the second row .41), and of these .87, .88 and .76 keep it.

`reject_below` spends the abstention that is allowed, where recall is wanted; but only SPARE of it, since the share is
told from a thousand documents, and streams change. On what follows those points, no judgement meanwhile, topics that
keep within what is allowed; relevant documents not rejected; topics that promise, and the judgements it takes:

             Reuters                   20 Newsgroups             arXiv
    .5       1.0   .95   .53   629     .91   .92   .91   782     1.0   .81   .70   1,411
    .4       1.0   .93   .57   528     .95   .90   .92   661     1.0   .75   .66   1,168
    .3       1.0   .90   .52   433     .98   .86   .88   539     1.0   .68   .72     929 (three points)

(.9 of it, with 500 served weights: .56, .48 and .88 keep within.) While judging goes on all do, but one topic with .5.
Nothing in the sample foretells who will exceed it: between its newer half and its older the difference has a
correlation of −.07 to .07 with what follows. Groups that come in bursts exceed it, and counting relevant documents
twice costs more recall than it saves.
It is never lifted by judged documents: relevant ones below it are not shown, so it would only ever go up. Error comes
before abstention: a max_error that needs a wider band gets it.
"""

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, betaincinv

from models import intervals
from models.measures import Bools
from models.thresholds import ENOUGH, NEVER, Band, cuts_of
from models.vectors import Reals

Origin = Literal["given", "shown", "audit", "found"]
ORIGINS: tuple[Origin, ...] = ("given", "shown", "audit", "found")

CONFIDENCE = 0.75  # of a promise on precision
SURE = 0.95  # of every other bound, and before a goal is called out of reach
LEAST = 8  # relevant documents, before anything is promised
EDGE = 30  # documents nearest above the cut
NEWEST, SUSPICIOUS = 20, 0.2  # documents, and a chance below which they are no accident
SPARE = 0.4  # of the abstention that is allowed
ALLOWANCE = 0.15  # of abstention, where recall is wanted and nothing is said of abstention
WINDOW = 5000  # judged documents


@dataclass(frozen=True, slots=True)
class Goal:
    """What the user can tolerate; None where nothing was said."""

    max_error: float | None = None
    min_precision: float | None = None
    min_recall: float | None = None
    max_abstain: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """The newest judged documents, in their order."""

    held_out: Reals
    relevant: Bools
    origin: NDArray[np.int8]  # an index of ORIGINS
    first: Bools  # not near an earlier one, and not from before the filter became worse
    chance: Reals  # with which it was drawn, if it was

    def came(self, origin: Origin) -> Bools:
        return np.equal(self.origin, ORIGINS.index(origin))


@dataclass(frozen=True, slots=True)
class Evidence:
    """What judged documents say of the thresholds, and of the decisions that were made."""

    accepted: int = 0  # shown, and above `accept_above` now, without their own influence; near-duplicates once
    hits: int = 0  # relevant among these
    shown: int = 0  # not rejected before they were judged
    kept: int = 0  # relevant among these
    audits: int = 0  # rejected, and drawn by chance
    finds: int = 0  # relevant among these
    lost: int = 0  # rejected and relevant, and somebody noticed
    certified: bool = False  # whether the precision that was asked for can be promised at `accept_above`
    reach: float = 1.0  # no cut can have a higher precision
    missing: int = 0  # judgements of what is shown after which it might be promised, if things go on as they do
    worse_for: int = 0  # judgements since the filter has become worse; 0 if it has not

    def __add__(self, other: "Evidence") -> "Evidence":
        """Of two topics together; what is promised of one cut says nothing of another's."""
        counts = ("accepted", "hits", "kept", "lost", "audits", "finds", "shown")
        return Evidence(**{name: getattr(self, name) + getattr(other, name) for name in counts})


def choose(
    goal: Goal, judged: Judged, background: Reals, usual: Band, rejecting: tuple[Judged, Reals] | None = None
) -> Band:
    """The band for a goal; `usual` is what the topic would have without one. The background is held out, too. A
    committee that votes has other scores by which it rejects (see committee.py), of the same documents."""
    accept, low = usual.accept_above, usual.reject_below
    below, unseen = rejecting or (judged, background)
    wanted = max(goal.min_precision or 0.0, 1 - goal.max_error if goal.max_error is not None else 0.0)
    if wanted:
        counted = judged.came("shown") & judged.first
        accept = certified(judged.held_out[counted], judged.relevant[counted], wanted)
    if goal.max_error is not None:
        low = min(low, clear(below, goal.max_error, low))
    low = min(low, accept)
    if len(background) < ENOUGH or (goal.min_recall is None and goal.max_abstain is None):
        return Band(low, accept, usual.f1)
    most = ALLOWANCE if goal.max_abstain is None else goal.max_abstain
    edge = _allowance(unseen[background <= accept], int(SPARE * most * len(unseen)), accept)
    if goal.max_error is None:
        low = edge if goal.min_recall is not None else max(edge, low)
    elif goal.min_recall is not None:
        low = min(edge, low)
    return Band(min(low, accept), accept, usual.f1)


def certified(scores: Reals, relevant: Bools, goal: float) -> float:
    """The lowest cut above which the share of relevant documents is at least the goal, as far as that can be promised;
    NEVER if it cannot."""
    if np.count_nonzero(relevant) < LEAST:
        return NEVER
    cuts, hits, accepted, _ = cuts_of(scores, relevant)
    n, missed = accepted.astype(np.int64), np.cumsum(~relevant[np.argsort(-scores)])
    allowed = intervals.allowed(goal, CONFIDENCE, 1 << len(scores).bit_length())
    one_more = np.flatnonzero(np.diff(allowed) > 0) + 1
    tried = np.searchsorted(n, one_more[one_more >= LEAST])
    tried = np.unique(tried[tried < len(n)])
    failed = np.flatnonzero(n[tried] - hits[tried] > allowed[n[tried]])
    spared = np.maximum(intervals.allowed(goal, SURE, EDGE), 0)
    for i in tried[: failed[0] if len(failed) else None][::-1]:
        before = missed[n[i] - EDGE - 1] if n[i] > EDGE else 0
        if missed[n[i] - 1] - before > spared[min(n[i], EDGE)]:
            continue
        newest = relevant[np.flatnonzero(scores > cuts[i])[-NEWEST:]]
        if bdtr(np.count_nonzero(newest), len(newest), goal) >= SUSPICIOUS:
            return float(cuts[i])
    return NEVER


def clear(judged: Judged, most: float, otherwise: float) -> float:
    """The highest cut below which at most this share is relevant, as audits show; `otherwise` if they are too few.

    Below a cut lie documents that were shown, all of which are counted, and rejected ones, of which those drawn stand
    for the others.
    """
    shown, audit = judged.came("shown") & judged.first, judged.came("audit")
    if not audit.any():
        return otherwise
    each = 1 / float(judged.chance[audit].mean())
    order = np.argsort(judged.held_out)
    n, hits, audits, finds = (
        np.cumsum(some[order]) for some in (shown, shown & judged.relevant, audit, audit & judged.relevant)
    )
    rate = betaincinv(finds + 1, np.maximum(audits - finds, 0.5), SURE)
    share = (hits + audits * each * rate) / np.maximum(n + audits * each, 1)
    holds = np.flatnonzero((share <= most) & (audits > finds))
    if not len(holds):
        return otherwise
    last = holds[-1]
    return float(judged.held_out[order[last + 1]]) if last + 1 < len(order) else otherwise


def _allowance(left: Reals, most: int, accept: float) -> float:
    """The cut above which so many documents lie of those that are not accepted."""
    wanted = min(len(left), most)
    return float(np.sort(left)[-wanted]) if wanted else accept


def evidence(goal: Goal, judged: Judged, band: Band, worse_for: int = 0) -> Evidence:
    shown, audit, found = judged.came("shown"), judged.came("audit"), judged.came("found")
    relevant, counted = judged.relevant, shown & judged.first
    accepted = counted & (judged.held_out > band.accept_above)
    return Evidence(
        accepted=int(np.count_nonzero(accepted)),
        hits=int(np.count_nonzero(accepted & relevant)),
        kept=int(np.count_nonzero(shown & relevant)),
        lost=int(np.count_nonzero(found & relevant)),
        audits=int(np.count_nonzero(audit)),
        finds=int(np.count_nonzero(audit & relevant)),
        shown=int(np.count_nonzero(shown)),
        worse_for=worse_for,
        **_prospect(goal.min_precision, judged.held_out[counted], relevant[counted], band),
    )


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
    reach = float(betaincinv(hits[enough] + 1, accepted[enough] - hits[enough], SURE).max()) if share[best] < 1 else 1.0
    tries = _tries(goal, float(share[best]))
    # Of what is shown, only a part scores as high as the best cut.
    part = float(accepted[enough][best]) / len(scores)
    return {"reach": reach, "missing": math.ceil(max(0.0, tries - accepted[enough][best]) / part) if tries else 0}


def _tries(goal: float, share: float) -> int:
    """How many judged documents above a cut, this share of them relevant, would promise the goal; 0 if none would."""
    most = intervals.allowed(goal, CONFIDENCE, WINDOW)
    holds = np.floor(np.arange(len(most)) * (1 - share)) <= most
    return int(np.argmax(holds)) if holds.any() else 0
