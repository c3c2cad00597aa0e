"""What was promised against what came.

The promise is what the topic says at the end of the stream. What came is measured on the documents that follow, twice:
with the model as it stood then, and as they were decided while people went on judging what they were shown. What is
said of the stream's decisions is measured on these.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, hypergeom

from models.core.intervals import Interval, interval
from models.core.measures import Bools
from models.core.names import GoalState
from models.goals.evidence import BOUND_CONFIDENCE
from models.goals.report import StreamCounts

REJECT, ABSTAIN, ACCEPT = 0, 1, 2
Decisions = NDArray[np.int8]

LATELY = 2000  # documents
NEARLY = 0.02  # a precision this far below the goal is no broken promise
UNLIKELY = 0.05  # a chance below which a precision is significantly below the goal
KNOWN = 25  # relevant documents of a known-item check


@dataclass(frozen=True, slots=True)
class Claim:
    """What a topic says of its goal at the end of the stream."""

    state: GoalState
    precision: GoalState | None
    recall: Interval | None
    judged: int
    audited: int
    met_at: int | None = None  # after so many judgements precision was promised and stayed so


@dataclass(frozen=True, slots=True)
class FollowUp:
    """How the documents were decided that followed."""

    accepted: int
    precision: float | None  # of these
    found: float  # share of the relevant that is accepted
    kept: float  # share of the relevant that is not rejected
    abstained: float

    @classmethod
    def of(cls, decisions: Decisions, relevant: Bools) -> "FollowUp":
        accepted, n = decisions == ACCEPT, max(1, int(np.count_nonzero(relevant)))
        hits, many = int(np.count_nonzero(accepted & relevant)), int(np.count_nonzero(accepted))
        kept = int(np.count_nonzero(relevant & (decisions != REJECT)))
        abstained = float(np.mean(decisions == ABSTAIN)) if len(decisions) else 0.0
        return cls(many, hits / many if many else None, hits / n, kept / n, abstained)

    def holds(self, goal: float) -> bool:
        return self.precision is None or self.precision >= goal - NEARLY

    def broken(self, goal: float) -> bool:
        """Whether chance does not explain it."""
        hits = round((self.precision or 0) * self.accepted)
        return bool(self.accepted and binom.cdf(hits, self.accepted, goal) < UNLIKELY)


@dataclass(frozen=True, slots=True)
class Attainment:
    """One topic, after what it promised."""

    topic: str
    said: Claim
    frozen: FollowUp  # by the model as it stood
    going_on: FollowUp | None  # while judging went on; None if it did not
    lately: float  # abstained from at the end of the stream, as it was decided
    recall_covers: bool
    known_low: float  # lower bound of recall by a known-item check, expected, ...
    known_covers: float  # ... and how likely its interval covers, whichever relevant documents were found

    @property
    def met(self) -> bool:
        return self.said.precision == "met"


def passed(decisions: Decisions) -> StreamCounts:
    counts = np.bincount(decisions, minlength=3)
    return StreamCounts(len(decisions), int(counts[ACCEPT]), int(counts[ABSTAIN]))


def compare(
    topic: str,
    said: Claim,
    stream: Decisions,
    wanted: Bools,
    relevant: Bools,
    frozen: Decisions,
    going_on: Decisions | None = None,
) -> Attainment:
    """From decisions on the stream, of which `wanted` were relevant, and on what followed, of which `relevant` were."""
    after = FollowUp.of(frozen, relevant)
    recall = float(np.mean(stream[wanted] != REJECT)) if wanted.any() else 1.0
    known_low, known_covers = known_items(frozen[relevant] != REJECT)
    return Attainment(
        topic,
        said,
        after,
        None if going_on is None else FollowUp.of(going_on, relevant),
        lately=float(np.mean(stream[-LATELY:] == ABSTAIN)) if len(stream) else 0.0,
        recall_covers=_covers(said.recall, recall),
        known_low=known_low,
        known_covers=known_covers,
    )


def known_items(kept: Bools) -> tuple[float, float]:
    """Over all ways to find KNOWN of the relevant documents, of which these are not rejected: the mean lower bound of
    recall, and how often it lies between its bounds."""
    every, right = len(kept), int(np.count_nonzero(kept))
    n = min(KNOWN, every)
    found = np.arange(n + 1)
    chances = hypergeom.pmf(found, every, right, n)
    bounds = [interval(int(k), n, BOUND_CONFIDENCE) for k in found]
    covers = [_covers(bound, right / max(1, every)) for bound in bounds]
    lows = [bound.low if bound else 0.0 for bound in bounds]
    return float(chances @ lows), float(chances @ covers)


def pooled_covers(bound: Interval | None, runs: Sequence[tuple[Decisions, Bools]]) -> bool:
    """Whether recall over all topics lies between its bounds."""
    kept = sum(int(np.count_nonzero(stream[wanted] != REJECT)) for stream, wanted in runs)
    every = sum(int(np.count_nonzero(wanted)) for _, wanted in runs)
    return _covers(bound, kept / every if every else 1.0)


def _covers(bound: Interval | None, truth: float) -> bool:
    return bound is None or bound.low <= truth <= bound.high
