"""What judged documents show about the thresholds, and about the decisions that were made.

Evidence is a score that the model did not learn from: each judged document is scored without its own step, and
near-duplicates count once. How a document came to be judged decides what its judgement is evidence of:

    shown   it was accepted or abstained from, so people saw it: a sample of what scores that high
    audit   it was rejected, and drawn by chance: a sample of what is rejected
    given   its user brought it along: typical, so it teaches but does not count
    found   its user found it among the rejected: likewise

`Evidence` is stored with the model it was collected for, so its fields keep their names.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from models.core import intervals
from models.core.measures import Bools
from models.core.names import ORIGINS, Origin
from models.core.vectors import Reals
from models.goals.reporting.needed import judged_in_all, needed_range
from models.goals.thresholds import MIN_SAMPLE, NEVER, Band, all_cuts

PROMISE_CONFIDENCE = 0.8  # of a promise on precision
BOUND_CONFIDENCE = 0.95  # of every other bound, and before a goal is called unreachable
MIN_RELEVANT = 8  # documents, before anything is promised
EDGE_SIZE = 40  # documents nearest above the cut
WINDOW_SIZE = 5000  # judged documents


@dataclass(frozen=True, slots=True, eq=False)
class JudgedWindow:
    """The newest judged documents, in the order of their judgements."""

    held_out: Reals
    relevant: Bools
    origin: NDArray[np.int8]  # an index of ORIGINS
    unique: Bools  # not a near-duplicate of an earlier one
    current: Bools  # unique, and not from before the filter became worse
    chance: Reals  # with which it was drawn for audit
    accepted: Bools  # before it was judged

    def has_origin(self, origin: Origin) -> Bools:
        return np.equal(self.origin, ORIGINS.index(origin))


class Watch(NamedTuple):
    """How often people judge what is accepted. Time is counted in accepted documents."""

    last: int = 0  # documents accepted when one of them was last judged; 0 if none was, or it is unknown
    pause: float = 0.0  # documents accepted, on average, between two times that some of them are judged


@dataclass(frozen=True, slots=True)
class Evidence:
    """Counts of judged documents, near-duplicates once, and what they show about the present thresholds."""

    accepted: int = 0  # shown, and above `accept_above` now by a score they had no part in
    hits: int = 0  # relevant among these
    delivered: int = 0  # accepted before they were judged, by model or rule: the newest EDGE_SIZE
    right: int = 0  # relevant among these
    shown: int = 0  # not rejected before they were judged
    kept: int = 0  # relevant among these
    audits: int = 0  # rejected, and drawn by chance
    finds: int = 0  # relevant among these
    drawn: tuple[tuple[float, int, int], ...] = ()  # chance, audits and finds at each chance, if there are several
    lost: int = 0  # rejected and relevant, found by a user
    certified: bool = False  # whether the precision asked for can be promised at `accept_above`
    reach: float = 1.0  # no cut can have a higher precision
    missing: int = 0  # estimate of the judgements of what is shown that a promise still needs
    missing_range: tuple[int, int] | None = None  # within which that lies, if it is known well enough
    silent: bool = False  # nothing is accepted, whatever it scores
    worse_for: int = 0  # judgements since the filter became worse; 0 if it has not
    watched: int = 0  # `Watch.last`
    pause: float = 0.0  # `Watch.pause`
    value: float | None = None  # of what the goal maximises, estimated; None if it maximises nothing

    def __add__(self, other: "Evidence") -> "Evidence":
        """Counts of two topics together. What is promised for one cut means nothing for another, and is left out."""
        counts = ("accepted", "hits", "kept", "lost", "audits", "finds", "shown")
        return Evidence(**{name: getattr(self, name) + getattr(other, name) for name in counts})


def collect_evidence(
    min_precision: float | None, judged: JudgedWindow, band: Band, worse_for: int = 0, watch: Watch | None = None
) -> Evidence:
    """Counts what the newest judged documents show about a band, and how far a goal on precision is."""
    watch = watch or Watch()
    shown, audit, found = (judged.has_origin(origin) & judged.unique for origin in ("shown", "audit", "found"))
    relevant, counted = judged.relevant, shown & judged.current
    accepted = counted & (judged.held_out > band.accept_above)
    delivered = np.flatnonzero(counted & judged.accepted)[-EDGE_SIZE:]
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
        silent=band.accept_above >= NEVER,
        value=band.value,
        **_prospect(min_precision, judged.held_out[counted], relevant[counted], band),
    )


def _drawn(chance: Reals, relevant: Bools) -> tuple[tuple[float, int, int], ...]:
    """Audits and finds by their chance, if there is more than one."""
    chances = np.unique(chance).tolist()
    if len(chances) < 2:
        return ()
    groups = [(c, chance == c) for c in chances]
    return tuple((c, int(np.count_nonzero(group)), int(np.count_nonzero(group & relevant))) for c, group in groups)


def _prospect(goal: float | None, scores: Reals, relevant: Bools, band: Band) -> dict[str, Any]:
    """How far a goal on precision is: `certified`, `reach`, `missing` and its range, of Evidence."""
    if goal is None or band.certified:
        return {"certified": bool(band.certified)}
    if not len(scores):
        return {"missing": _judgements_needed(goal, 1.0)}
    if band.certified is None and band.accept_above < NEVER:
        # A cut that was not chosen for the goal has to be tested.
        above = relevant[scores > band.accept_above]
        return {"certified": intervals.low(int(np.count_nonzero(above)), len(above), PROMISE_CONFIDENCE) >= goal}
    _, hits, accepted, _ = all_cuts(scores, relevant)
    tested = accepted >= MIN_RELEVANT
    if not tested.any():
        return {"missing": max(0, _judgements_needed(goal, 1.0) - len(scores))}
    share = hits[tested] / accepted[tested]
    best = int(np.flatnonzero(share == share.max())[-1])
    reach = 1.0
    if share[best] < 1 and len(scores) >= MIN_SAMPLE:  # with fewer, the ranking of the next ones will still differ
        reach = float(betaincinv(hits[tested] + 1, accepted[tested] - hits[tested], BOUND_CONFIDENCE).max())
    k, n = int(hits[tested][best]), int(accepted[tested][best])
    needed = _judgements_needed(goal, k / n)
    # Of what is shown, only a part scores as high as the best cut.
    missing = math.ceil(max(0, needed - n) * len(scores) / n) if needed else 0
    span = needed_range(goal, k, n, len(scores), PROMISE_CONFIDENCE, WINDOW_SIZE)
    return {"reach": reach, "missing": missing, "missing_range": span}


def _judgements_needed(goal: float, share: float) -> int:
    return judged_in_all(goal, share, PROMISE_CONFIDENCE, WINDOW_SIZE)
