"""Estimates of the loss and error of a k-split committee that decides unanimously, before it is built.

    X_i = 1 if member i is right, p_i = P(X_i = 1), q_i = 1 − p_i, cov = cov(X_i, X_j), the same for all pairs

    P(all right) = p_1 Π (p_i p_{i+1} + cov) / p_i        P(all wrong) = q_1 Π (q_i q_{i+1} + cov) / q_i        (9, 10)
    loss  = 1 − P(all right) − P(all wrong)                                                                       (11)
    error = P(all wrong) / (P(all right) + P(all wrong))                                                          (12)

    CV estimator     p = the mean share of the other parts' examples that a member has right
    KL estimator     p = a·diff + b, fitted at two other k, where training is cheap                                (5)
    diff(T_i, T_0)   the larger of KL over relevant and over irrelevant examples                                   (4)
    KL(T_i, T_0)     Σ_j f_j(T_i) log₂ (f_j(T_i) / f_j(T_0)), f_j being the share of documents with feature j       (3)
    beta estimator   p as above, and members alike: each document has a probability of its own with which members are
                     right, drawn from a beta distribution of mean p in which two members have the correlation
                     ρ = cov / pq. Then P(all right) = Π_{i<k} (p(1−ρ) + iρ) / (1−ρ + iρ); P(all wrong) with q for p
    search           k = 1, 2, … while the estimated loss is within the bound; of these, the k of least estimated error

Siersdorfer, Sizov & Weikum, CIKM 2004, sections 4.1, 4.3 and 4.4.

Differences from the paper. It takes cov from three parts, whatever k is; but a member of a large k has learned less,
and documents that are hard for it are hard for the others, too. So the CV estimator takes cov from members of the same
k, any two of which have not learned the other parts (for k = 2, from those of 3). The factors of (9) and (10) must be
probabilities: cov may come from another k than p, so it is first clipped to what a pair of these members can have,
−min(p, q)² to p·q. Unclipped, a p near 1 makes factors exceed 1, and the estimates explode. A p that the regression
puts below 0 or above 1 is clipped.

The beta estimator is ours, and the search's default. A chain forgets: (10) expects members 1 and 8 to disagree far more
often than they do, since what is hard for one member is hard for all.

The error of the estimated loss at k = 2, 4, 8 on held-out training documents of newsgroups (60 pairs, SVM, 375
documents): CV .015, .036, .092 with cov from three thirds, .015, .029, .076 from the same k; beta .013, .018, .032.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.core.measures import Bools
from models.core.vectors import Reals


class CommitteeRates(NamedTuple):
    loss: float
    error: float


@dataclass(frozen=True, slots=True)
class ChosenSize:
    k: int
    estimates: Mapping[int, CommitteeRates]  # of every k that was tried


def unanimous(p: Sequence[float], cov: float) -> CommitteeRates:
    """The estimate for members with these accuracies, any two neighbours having this covariance."""
    right = np.clip(np.asarray(p, np.float64), 0.0, 1.0)
    all_right, all_wrong = _chain(right, cov), _chain(1 - right, cov)
    agreed = all_right + all_wrong
    return CommitteeRates(float(1 - agreed), float(all_wrong / agreed) if agreed else 0.0)


def alike(p: float, rho: float, k: int) -> CommitteeRates:
    """The estimate for k members that are alike, any two having this correlation."""
    p, rho = min(max(p, 0.0), 1.0), min(max(rho, 0.0), 1 - 1e-9)
    all_right, all_wrong = _beta(p, rho, k), _beta(1 - p, rho, k)
    return CommitteeRates(1 - all_right - all_wrong, all_wrong / (all_right + all_wrong) if all_wrong else 0.0)


def covariance(x1: Bools, x2: Bools) -> float:
    """The covariance of being right, over documents that neither member learned; 0 with fewer than two documents."""
    if len(x1) < 2:
        return 0.0
    return float(np.sum((x1 - x1.mean()) * (x2 - x2.mean())) / (len(x1) - 1))


def accuracies(right: Bools, unseen: Bools, doubt: float = 0.0) -> Reals:
    """The share that each member (column) has right of the examples it has not learned; ½ if it has learned all.
    `doubt` adds so many imagined examples of either outcome: five right answers do not make a member infallible."""
    tested = unseen.sum(axis=0) + 2 * doubt
    return np.where(tested > 0, ((right & unseen).sum(axis=0) + doubt) / np.where(tested > 0, tested, 1), 0.5)


def pair_covariance(right: Bools, unseen: Bools) -> float:
    """The mean covariance over all pairs of members, each over the examples that neither has learned."""
    k = right.shape[1]
    pairs = [(i, j) for i in range(k) for j in range(i)]
    both = [unseen[:, i] & unseen[:, j] for i, j in pairs]
    covariances = [covariance(right[b, i], right[b, j]) for b, (i, j) in zip(both, pairs, strict=True)]
    sizes = [max(int(np.count_nonzero(b)) - 1, 0) for b in both]
    return float(np.average(covariances, weights=sizes)) if sum(sizes) else 0.0


def correlation(right: Bools, unseen: Bools) -> float:
    """ρ of being right, over all pairs of members; 0 if the members never err, or there is nothing to test them on."""
    p = float(accuracies(right, unseen).mean())
    return pair_covariance(right, unseen) / (p * (1 - p)) if 0 < p < 1 else 0.0


def divergence(part: Reals, whole: Reals) -> float:
    """KL of two lists of shares, each the share of documents with every feature."""
    present = part > 0
    return float(np.sum(part[present] * np.log2(part[present] / whole[present])))


def difference(part: tuple[Reals, Reals], whole: tuple[Reals, Reals]) -> float:
    """diff, from the shares among relevant and among irrelevant examples."""
    return max(divergence(p, w) for p, w in zip(part, whole, strict=True))


@dataclass(frozen=True, slots=True)
class Regression:
    a: float
    b: float

    def at(self, diff: float) -> float:
        return min(max(self.a * diff + self.b, 0.0), 1.0)


def regression(points: Sequence[tuple[float, float]]) -> Regression:
    """The line through (diff, accuracy); flat if all diffs are the same."""
    x, y = np.array(points, np.float64).T
    spread = float(np.sum((x - x.mean()) ** 2))
    a = float(np.sum((x - x.mean()) * (y - y.mean()))) / spread if spread else 0.0
    return Regression(a, float(y.mean() - a * x.mean()))


def search(estimate: Callable[[int], CommitteeRates], max_loss: float, ks: Iterable[int]) -> ChosenSize:
    """The paper's search: through these k, ascending, until one loses too much. If all do, the first is chosen, and of
    equal ones the largest: an estimate that has reached 0 hides that the error goes on falling."""
    estimates: dict[int, CommitteeRates] = {}
    best = 0
    for k in ks:
        estimates[k] = estimate(k)
        if best and estimates[k].loss > max_loss:
            break
        if not best or estimates[k].error <= estimates[best].error:
            best = k
    return ChosenSize(best, estimates)


def _chain(p: Reals, cov: float) -> float:
    """P(X_1 = … = X_k = 1) where each depends on its neighbour alone."""
    if not p.all():
        return 0.0
    pairs = p[:-1] * p[1:]
    joint = np.clip(cov, -_max_below_zero(p[:-1], p[1:]), np.minimum(p[:-1], p[1:]) - pairs) + pairs
    return float(p[0] * np.prod(joint / p[:-1]))


def _beta(p: float, rho: float, k: int) -> float:
    i = np.arange(k)
    return float(np.prod((p * (1 - rho) + i * rho) / (1 - rho + i * rho)))


def _max_below_zero(p: Reals, r: Reals) -> Reals:
    """How far below 0 a covariance can be, since P(both) ≥ max(0, p + r − 1)."""
    return p * r - np.maximum(0.0, p + r - 1)
