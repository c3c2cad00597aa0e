"""Committees: several classifiers of one topic, each trained on a part of the examples, and what they decide together.

    k-split          T_0 = T_1 ∪ … ∪ T_k        disjoint; relevant and irrelevant examples are dealt out evenly
    resampling       |T_i| = m = 1.5·|T_0| / k  drawn at random for each i: A with, B without replacement

    R(v_i, d)        +1 member i accepts d, −1 it rejects d, 0 neither
    Meta(d)          +1 if Σ w_i R(v_i, d) > t₁,  −1 if < t₂,  0 (the committee abstains) otherwise;  t₁ ≥ t₂
      unanimous      w_i = 1/k, t₁ = −t₂ just below 1
      vote           w_i = 1/k, t₁ = t₂ = 0
      weighted       w_i ∝ log(p_i / (1 − p_i)), p_i being the estimated accuracy of v_i; t₁ = t₂ = 0
      a, r of k      t₁ just below (2a − k)/k, t₂ just above −(2r − k)/k: with equal weights a members must accept, or r
                     reject. One that abstains counts as half a vote for either
    mean             no vote: the mean of the members' distances from their cuts decides, as a single classifier would

Siersdorfer, Sizov & Weikum, "Goal-oriented methods and meta methods for document classification and their parameter
tuning", CIKM 2004, equation (1) and sections 3 and 5.1. The paper leaves the weights of the third rule open: log-odds
are right for members that err independently, and a member no better than a coin has no weight. We draw relevant and
irrelevant examples separately, as both are dealt out separately: a small part that has more of one class by chance
accepts, or rejects, nearly everything.

A member abstains within ±h of its cut, h being the distance within which it has the share `member_loss` of the judged
documents, held out. It then counts as two members of half its weight that never abstain, one with its cut h higher, one
with its cut h lower: their votes are +1 and +1, or −1 and −1, or cancel out. So all that follows needs no third vote.

A goal moves the cuts at which members vote: a document is accepted if a vote with the cut `accept_above` accepts it,
and rejected if one with the cut `reject_below` rejects it, with sign(v_i(d) − cut) for R(v_i, d). Without a goal both
cuts are 0, and this is the rule above. So each document has two turning points, order statistics of its members'
scores: it is accepted as long as accept_above is below the one, and rejected as long as reject_below is above the
other. From there on everything is as with a single score.

The paper draws the parts from a complete list. Here a log grows, and every earlier example must stay with its members:
`times_learned` decides for each example alone how often each member learns it. A part then has the paper's size on
average: with replacement a member learns an example Poisson(m/n) times, which is the binomial of the paper for large n
(Oza & Russell, "Online bagging and boosting", 2001), and without replacement once, with probability m/n.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check
from models.core.names import MemberName
from models.core.vectors import Linear, Reals
from models.online.committee_estimates import CommitteeRates

Method = Literal["split", "resample_a", "resample_b"]
Combine = Literal["unanimous", "vote", "weighted", "mean"]
Votes = NDArray[np.int8]

PART_SIZE = 1.5  # m as a multiple of |T_0| / k
MAX_MEMBERS = 16  # as in the paper
ROUNDING = 1e-9  # the error of a sum of weights, which must not break a tie


@dataclass(frozen=True, slots=True)
class Params:
    of: MemberName = "wh"  # a learner, or a batch method
    params: Mapping[str, object] = field(default_factory=dict)  # of the members
    k: int | None = 4  # None: the search's choice
    method: Method = "split"
    combine: Combine = "unanimous"
    accept_votes: int | None = None  # a, of k; None: as `combine` has it
    reject_votes: int | None = None  # r
    member_loss: float = 0.0  # the share of documents on which each member abstains
    max_loss: float = 0.1  # the bound of the search
    estimator: Literal["beta", "cv", "kl"] = "beta"  # the one that the search uses
    seed: int = 0

    def __post_init__(self) -> None:
        check(
            self.k is None or 1 <= self.k <= MAX_MEMBERS,
            f"k must be null, for the search's choice, or a whole number from 1 to {MAX_MEMBERS}",
        )
        check(
            self.k is not None or self.method == "split",
            "k can be null only for a split: there is no estimate for resampling",
        )
        check(0 <= self.member_loss < 1, "member_loss must be a number from 0 and below 1")
        check(0 < self.max_loss <= 1, "max_loss must be a number above 0 and up to 1")
        check(0 <= self.seed < 2**32, "seed must be a whole number from 0 to 4294967295")
        self._check_votes()

    def _check_votes(self) -> None:
        votes = {"accept_votes": self.accept_votes, "reject_votes": self.reject_votes}
        for name, needed in votes.items():
            if needed is None:
                continue
            check(self.combine != "mean", f"{name} must be null where the mean of the scores decides: nobody votes")
            check(self.k is not None, f"{name} must be null unless k is given")
            most = self.k or 0
            check(1 <= needed <= most, f"{name} must be null or a whole number from 1 to k, which is {most}")
        check(
            self.member_loss == 0 or self.combine != "mean",
            "member_loss must be 0 where the mean of the scores decides: nobody votes",
        )
        accept, reject = votes_needed(self.combine, self.k or 1, self.accept_votes, self.reject_votes)
        check(
            accept + reject > (self.k or 1),
            "accept_votes and reject_votes must be more than k together, or a document could be accepted and rejected: "
            f"{accept} and {reject} are not more than {self.k}",
        )


class VotingRule(NamedTuple):
    weights: tuple[float, ...]
    t1: float
    t2: float


@dataclass(frozen=True, slots=True)
class Committee:
    """A committee as it is served. Members score so that each one's own cut is at 0. Where the mean of their scores
    decides there are no members: the model's linear form is their mean."""

    k: int
    members: tuple[Linear, ...] = ()
    rule: VotingRule | None = None
    estimates: Mapping[str, CommitteeRates] = field(default_factory=dict)  # by estimator, of the last check


def voting_rule(
    combine: Combine, accuracies: Sequence[float], accept_votes: int | None = None, reject_votes: int | None = None
) -> VotingRule:
    """The rule by which members of these estimated accuracies decide together."""
    k = len(accuracies)
    t = 1 - 1 / (2 * k) if combine == "unanimous" else 0.0
    t1 = t if accept_votes is None else (2 * accept_votes - k - 0.5) / k
    t2 = 0.0 - t if reject_votes is None else (k + 0.5 - 2 * reject_votes) / k
    if combine == "weighted":
        p = np.clip(accuracies, 0.5, 1 - 1e-6)
        log_odds = np.log(p / (1 - p))
        if log_odds.sum():
            return VotingRule(tuple((log_odds / log_odds.sum()).tolist()), t1, t2)
    return VotingRule((1 / k,) * k, t1, t2)


def votes_needed(combine: Combine, k: int, accept_votes: int | None, reject_votes: int | None) -> tuple[int, int]:
    """How many of k members must accept, and how many reject, if they have equal weights and none abstains."""
    usual = k if combine == "unanimous" else k // 2 + 1
    return usual if accept_votes is None else accept_votes, usual if reject_votes is None else reject_votes


def halved(rule: VotingRule) -> VotingRule:
    """The rule for members that abstain, each of which votes twice: first all with the higher cut, then with the
    lower."""
    halves = tuple(w / 2 for w in rule.weights)
    return VotingRule(halves + halves, rule.t1, rule.t2)


def members_weights(rule: VotingRule, k: int) -> tuple[float, ...]:
    """The weights of the k members, also if each of them votes twice."""
    return rule.weights if len(rule.weights) == k else tuple(2 * w for w in rule.weights[:k])


def least_distance(distances: Reals, loss: float) -> float:
    """The smallest h such that at least this share of documents lies within h of the cut; 0 for no loss."""
    dropped = int(np.ceil(loss * len(distances) - 1e-9))
    return float(np.partition(np.abs(distances), dropped - 1)[dropped - 1]) if dropped > 0 else 0.0


def votes(scores: Reals, reject_below: float | Reals = 0.0, accept_above: float | Reals = 0.0) -> Votes:
    """R of each score; 0 where it lies between the thresholds, or on one of them."""
    return (scores > accept_above).astype(np.int8) - (scores < reject_below).astype(np.int8)


def meta(cast: Votes, rule: VotingRule) -> Votes:
    """Meta of each document; `cast` has a row for each document and a column for each member."""
    total = cast @ np.array(rule.weights)
    return votes(total, rule.t2 - ROUNDING, rule.t1 + ROUNDING)


def decide(scores: Sequence[float], reject_below: float, accept_above: float, rule: VotingRule) -> int:
    """Meta of one document, from its members' scores."""

    def total(cut: float) -> float:
        return sum(w * ((s > cut) - (s < cut)) for w, s in zip(rule.weights, scores, strict=True))

    return int(total(accept_above) > rule.t1 + ROUNDING) - int(total(reject_below) < rule.t2 - ROUNDING)


class TurningPoints(NamedTuple):
    """For each document the cut below which it is accepted, and the cut, not lower, above which it is rejected."""

    accepted_below: Reals
    rejected_above: Reals

    def decision_score(self, reject_below: float, accept_above: float) -> Reals:
        """A single score for each document that, compared with these thresholds, gives its decision."""
        accepted, rejected = self.accepted_below > accept_above, self.rejected_above < reject_below
        unsure = np.clip((self.accepted_below + self.rejected_above) / 2, reject_below, accept_above)
        return np.where(accepted, self.accepted_below, np.where(rejected, self.rejected_above, unsure))


def turning_points(scores: Reals, rule: VotingRule) -> TurningPoints:
    """Turning points from the members' scores, a row a document. More than (1 + t₁) / 2 of the weight accepts, and more
    than (1 − t₂) / 2 rejects."""
    weights = np.array(rule.weights)
    points = []
    for order, t in ((np.argsort(-scores, axis=1), rule.t1), (np.argsort(scores, axis=1), -rule.t2)):
        majority = (1 + t + ROUNDING) / 2
        place = np.argmax(np.cumsum(weights[order], axis=1) > majority, axis=1)
        decisive = np.take_along_axis(order, place[:, None], axis=1)
        points.append(np.take_along_axis(scores, decisive, axis=1)[:, 0])
    return TurningPoints(*points)


def mean_form(members: Sequence[Linear]) -> Linear:
    """The linear form whose score is the mean of the members' scores; they share a view."""
    k = len(members)
    features, at = np.unique(np.concatenate([m.features for m in members]), return_inverse=True)
    weights = np.bincount(at, np.concatenate([m.weights for m in members]), minlength=len(features)) / k
    bias, rest = sum(m.bias for m in members) / k, sum(m.rest for m in members) / k
    return Linear(members[0].view, features, weights.astype(np.float32), bias, rest)


def times_learned(method: Method, k: int, seed: int, relevant: bool, nth: int) -> NDArray[np.int64]:
    """How often each member learns the example that is the nth (from 0) of its class."""
    times: NDArray[np.int64]
    if method == "split":
        deal, place = divmod(nth, k)
        times = (np.random.default_rng([seed, relevant, deal]).permutation(k) == place).astype(np.int64)
        return times
    rng = np.random.default_rng([seed, relevant, nth])
    times = (
        rng.poisson(PART_SIZE / k, k) if method == "resample_a" else (rng.random(k) < PART_SIZE / k).astype(np.int64)
    )
    return times
