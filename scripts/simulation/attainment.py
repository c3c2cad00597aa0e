"""What was promised, compared with what came.

The promise is what the topic claims at the end of the stream. What came is measured on the documents that follow,
twice: with the model frozen as it was then, and as they were decided while judging went on. What the topic claims about
the stream's own decisions is compared with these.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binom, hypergeom

from models.core.intervals import Interval, interval
from models.core.measures import Bools
from models.core.names import GoalState
from models.goals.evidence import BOUND_CONFIDENCE
from scripts.loop.reader import ABSTAIN, ACCEPT, REJECT, Decisions

RECENT = 2000  # documents
TOLERANCE = 0.02  # a precision this far below the goal is no broken promise
SIGNIFICANCE = 0.05  # a precision is significantly below the goal if its chance is less
KNOWN_ITEMS = 25  # relevant documents of a known-item check


@dataclass(frozen=True, slots=True)
class GoalClaim:
    """What a topic claims about its goal at the end of the stream."""

    state: GoalState
    precision: GoalState | None
    recall: Interval | None
    judged: int
    audited: int
    met_at: int | None = None  # the number of judgements after which precision was promised and stayed so


@dataclass(frozen=True, slots=True)
class FollowUp:
    """How the documents that followed were decided."""

    accepted: int
    precision: float | None  # of these
    found: float  # share of the relevant documents that was accepted
    kept: float  # share of the relevant documents that was not rejected
    abstained: float

    @classmethod
    def of(cls, decisions: Decisions, relevant: Bools) -> "FollowUp":
        is_accepted, n = decisions == ACCEPT, max(1, int(np.count_nonzero(relevant)))
        hits, accepted = int(np.count_nonzero(is_accepted & relevant)), int(np.count_nonzero(is_accepted))
        kept = int(np.count_nonzero(relevant & (decisions != REJECT)))
        abstained = float(np.mean(decisions == ABSTAIN)) if len(decisions) else 0.0
        return cls(accepted, hits / accepted if accepted else None, hits / n, kept / n, abstained)

    def holds(self, goal: float) -> bool:
        return self.precision is None or self.precision >= goal - TOLERANCE

    def broken(self, goal: float) -> bool:
        """Whether chance does not explain the precision."""
        hits = round((self.precision or 0) * self.accepted)
        return bool(self.accepted and binom.cdf(hits, self.accepted, goal) < SIGNIFICANCE)


@dataclass(frozen=True, slots=True)
class Attainment:
    """What one topic promised, and what it attained."""

    topic: str
    claim: GoalClaim
    frozen: FollowUp  # by the model as it was at the end of the stream
    going_on: FollowUp | None  # while judging went on; None if it did not
    abstained_recently: float  # share of the last documents of the stream, as they were decided
    recall_covers: bool
    known_low: float  # expected lower bound of recall by a known-item check ...
    known_covers: float  # ... and the chance that its interval covers recall, over all choices of relevant documents

    @property
    def met(self) -> bool:
        return self.claim.precision == "met"


def compare(
    topic: str,
    claim: GoalClaim,
    stream: Decisions,
    stream_relevant: Bools,
    relevant: Bools,
    frozen: Decisions,
    going_on: Decisions | None = None,
) -> Attainment:
    """A claim with the decisions on the stream and on what followed, each beside what was relevant there."""
    recall = float(np.mean(stream[stream_relevant] != REJECT)) if stream_relevant.any() else 1.0
    known_low, known_covers = known_items(frozen[relevant] != REJECT)
    return Attainment(
        topic,
        claim,
        FollowUp.of(frozen, relevant),
        None if going_on is None else FollowUp.of(going_on, relevant),
        abstained_recently=float(np.mean(stream[-RECENT:] == ABSTAIN)) if len(stream) else 0.0,
        recall_covers=_covers(claim.recall, recall),
        known_low=known_low,
        known_covers=known_covers,
    )


def known_items(kept: Bools) -> tuple[float, float]:
    """The mean lower bound of recall, and how often recall lies within its bounds, over all choices of KNOWN_ITEMS from
    the relevant documents; `kept` says which of these are not rejected."""
    size, right = len(kept), int(np.count_nonzero(kept))
    n = min(KNOWN_ITEMS, size)
    hits = np.arange(n + 1)
    chances = hypergeom.pmf(hits, size, right, n)
    bounds = [interval(int(k), n, BOUND_CONFIDENCE) for k in hits]
    covers = [_covers(bound, right / max(1, size)) for bound in bounds]
    lows = [bound.low if bound else 0.0 for bound in bounds]
    return float(chances @ lows), float(chances @ covers)


def pooled_covers(bound: Interval | None, runs: Sequence[tuple[Decisions, Bools]]) -> bool:
    """Whether recall over all topics lies within its bounds; a run is its decisions, and what was relevant."""
    kept = sum(int(np.count_nonzero(decisions[relevant] != REJECT)) for decisions, relevant in runs)
    size = sum(int(np.count_nonzero(relevant)) for _, relevant in runs)
    return _covers(bound, kept / size if size else 1.0)


def _covers(bound: Interval | None, truth: float) -> bool:
    return bound is None or bound.low <= truth <= bound.high
