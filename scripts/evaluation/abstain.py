"""Error against loss, on pairs of groups: single classifiers made restrictive by distance, and committees of them.

    loss     the share of test documents that are not decided
    error    the share of wrong decisions among those made, over all pairs together

Tuning uses training documents only: for the loss that is asked for, it chooses a distance (from a five-fold
cross-validation) or the k of a k-split (by a search with each estimator), which is then measured on test documents.
The curve of a single classifier is that of its ranking: at loss L the share L of the test documents nearest to the cut
is left out, as in the paper.

Widrow-Hoff has a step of .5 and a constant feature of .3. On a quarter of the training documents (`--holdout`) neither
more than 5 passes nor a larger constant helps: error .0057 at loss .1, .0056 with 10 passes and .5; SVM .0055.
The smaller constant of the service is for rare topics: here .2 gave .0068 where .3 gave .0051 (both cut at .5).
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from models.batch import registry
from models.batch.passes import train
from models.core.measures import Bools
from models.core.vectors import Reals
from models.learners.documents import DocumentWindow
from models.online.committee import Method, Votes, VotingRule, least_distance, meta, votes, voting_rule
from models.online.committee_estimates import (
    CommitteeRates,
    accuracies,
    alike,
    correlation,
    difference,
    pair_covariance,
    regression,
    search,
    unanimous,
)
from scripts.evaluation.committees import METHODS, Order, parts, restrictive
from scripts.evaluation.pairs import Pair

LOSSES = tuple(round(0.05 * i, 2) for i in range(20))  # of the curve
GOALS = (0.1, 0.3, 0.5, 0.7, 0.9)  # of tuning, as in the paper
KS = (2, 4, 8, 16)  # of the tables, as in the paper
SEARCHED = (1, 2, 3, 4, 6, 8, 12, 16)  # values of k among which tuning chooses
PROBED = (10, 20)  # where the KL estimator is fitted, as in the paper
FOLDS = 5


class Plane(NamedTuple):
    """Signed distances from the cut, X w + b, in a unit that depends on the method."""

    w: Reals
    b: float


Fit = Callable[[Pair, Order, int], Plane]


class ErrorCounts(NamedTuple):
    wrong: int
    decided: int
    documents: int

    @property
    def error(self) -> float:
        return self.wrong / self.decided if self.decided else 0.0

    @property
    def loss(self) -> float:
        return 1 - self.decided / self.documents


def total(counts: Iterable[ErrorCounts]) -> ErrorCounts:
    return ErrorCounts(*(sum(column) for column in zip(*counts, strict=True)))


class Tuned(NamedTuple):
    """What was tuned for a loss, measured."""

    distance: ErrorCounts
    split: Mapping[str, ErrorCounts]  # by the estimator that chose k


class Estimated(NamedTuple):
    """The loss and error of a k-split, measured, and as the estimators expected them."""

    measured: CommitteeRates
    by: Mapping[str, CommitteeRates]


class PairResult(NamedTuple):
    """One classifier on one pair."""

    curve: Mapping[float, ErrorCounts]
    committees: Mapping[tuple[Method, int, str], ErrorCounts]  # by rule; `mean` with the loss of `unanimous`
    tuned: Mapping[float, Tuned]
    estimated: Mapping[int, Estimated]


def learner(kind: str, params: Mapping[str, object], passes: int) -> Fit:
    """A learner that sees one document after the other, and cuts half-way between the groups."""

    def fit(pair: Pair, rows: Order, seed: int) -> Plane:
        known, shown = np.unique(rows, return_inverse=True)
        rng = np.random.default_rng(seed)
        order = np.concatenate([rng.permutation(shown) for _ in range(passes)])
        X, y = pair.X[known], pair.y[known]
        window = DocumentWindow(X.indptr.astype(np.int64), X.indices, X.data.astype(np.float32))
        trained = train(kind, params, [pair.documents[i] for i in known.tolist()], window, y, order)
        w = np.zeros(pair.X.shape[1])
        w[: len(trained.vector.w)] = trained.vector.w[: len(w)]
        return Plane(w, trained.vector.bias - half_way(trained.held_out, y))

    return fit


def half_way(scores: Reals, y: Bools) -> float:
    """The cut between the mean scores of the two groups; with one group only, a cut below or above all its scores."""
    if y.all() or not y.any():
        return float(scores.min() - 1 if y.all() else scores.max() + 1)
    return float(scores[y].mean() + scores[~y].mean()) / 2


def method(kind: str, params: Mapping[str, object]) -> Fit:
    """A method that learns from all documents at once, and cuts at 0."""
    p = registry.parse(kind, params)

    def fit(pair: Pair, rows: Order, seed: int) -> Plane:
        planes = registry.fit(p, pair.examples(rows), pair.y[rows][:, None], seed)
        return Plane(planes.w[0], float(planes.bias[0]))

    return fit


BASES: Mapping[str, Fit] = {
    "WH": learner("wh", {"eta": 0.5, "bias": 0.3}, 1),
    "WH, 5 passes": learner("wh", {"eta": 0.5, "bias": 0.3}, 5),
    "SVM": method("svm", {}),
    "Centroid": method("centroid", {"by": "cosine"}),
}


class Panel(NamedTuple):
    """A committee on one pair: distances of training and test documents (rows) from the members' cuts (columns)."""

    train: Reals
    test: Reals
    unseen: Bools  # training documents that a member has not learned


def panel(pair: Pair, fit: Fit, members: tuple[Order, ...], seed: int) -> Panel:
    """Trains a member on each of these parts."""
    planes = [fit(pair, rows, seed + i) for i, rows in enumerate(members)]
    W, b = np.stack([plane.w for plane in planes], axis=1), np.array([plane.b for plane in planes])
    unseen = np.ones((len(pair.y), len(members)), np.bool_)
    for i, rows in enumerate(members):
        unseen[rows, i] = False
    return Panel(pair.X @ W + b, pair.X_test @ W + b, unseen)


def measure(pair: Pair, fit: Fit, seed: int) -> PairResult:
    everything = np.arange(len(pair.y))
    single = panel(pair, fit, (everything,), seed).test[:, 0]
    crossed = cross_validated(pair, fit, seed)
    splits = {k: panel(pair, fit, parts("split", pair.y, k, seed), seed) for k in {3, *KS, *SEARCHED, *PROBED} - {1}}
    committees: dict[tuple[Method, int, str], ErrorCounts] = {}
    for method in METHODS:
        for k in KS:
            drawn = splits[k] if method == "split" else panel(pair, fit, parts(method, pair.y, k, seed), seed)
            committees |= {(method, k, name): counts for name, counts in decisions(pair, drawn).items()}
    estimate = estimators(pair, splits, crossed, seed)

    def split_in(k: int) -> ErrorCounts:
        return count_decisions(unanimously(splits[k].test if k > 1 else single[:, None]), pair.y_test)

    tuned = {}
    for goal in GOALS:
        by_distance = count_decisions(restrictive(single, least_distance(crossed, goal)), pair.y_test)
        tuned[goal] = Tuned(by_distance, {name: split_in(search(e, goal, SEARCHED).k) for name, e in estimate.items()})
    estimated = {}
    for k in KS:
        measured = split_in(k)
        rates = CommitteeRates(measured.loss, measured.error)
        estimated[k] = Estimated(rates, {name: e(k) for name, e in estimate.items()})
    curve = {loss: count_decisions(nearest_dropped(single, loss), pair.y_test) for loss in LOSSES}
    return PairResult(curve, committees, tuned, estimated)


def decisions(pair: Pair, drawn: Panel) -> dict[str, ErrorCounts]:
    """The decisions by each rule, counted; the mean of the distances is made to lose as many documents as unanimity."""
    cast = votes(drawn.test)
    quality = accuracies((drawn.train > 0) == pair.y[:, None], drawn.unseen, doubt=1).tolist()
    rules: dict[str, VotingRule] = {
        "unanimous": voting_rule("unanimous", quality),
        "vote": voting_rule("vote", quality),
        "weighted": voting_rule("weighted", quality),
    }
    counts = {name: count_decisions(meta(cast, by), pair.y_test) for name, by in rules.items()}
    mean = drawn.test.mean(axis=1)
    return {**counts, "mean": count_decisions(nearest_dropped(mean, counts["unanimous"].loss), pair.y_test)}


def estimators(
    pair: Pair, splits: Mapping[int, Panel], crossed: Reals, seed: int
) -> Mapping[str, Callable[[int], CommitteeRates]]:
    """Functions by name that estimate for this pair the loss and error of a split in k."""
    right = {k: (s.train > 0) == pair.y[:, None] for k, s in splits.items()}
    accuracy = {k: float(accuracies(right[k], s.unseen).mean()) for k, s in splits.items()}
    accuracy[1] = float(np.mean((crossed > 0) == pair.y))
    cov = {k: pair_covariance(right[k], s.unseen) for k, s in splits.items() if k > 2}
    differ = differences(pair, seed)
    line = regression([(differ[k], accuracy[k]) for k in PROBED])

    def cv(k: int) -> CommitteeRates:
        return unanimous([accuracy[k]] * k, cov[max(k, 3)])

    def kl(k: int) -> CommitteeRates:
        return unanimous([line.at(differ[k])] * k, cov[3])

    @cache
    def beta(k: int) -> CommitteeRates:
        at = max(k, 3)  # two members have no document that neither has seen
        return alike(accuracy[k], correlation(right[at], splits[at].unseen), k)

    return {"CV": cv, "KL": kl, "beta": beta}


@lru_cache(1)  # the same for every classifier of a pair
def differences(pair: Pair, seed: int) -> Mapping[int, float]:
    """By k, the mean difference of the parts from the whole."""
    there = pair.X.astype(np.bool_).astype(np.float64)

    def shares(rows: Order) -> tuple[Reals, Reals]:
        sides = [rows[pair.y[rows] == kind] for kind in (True, False)]
        first, second = (np.asarray(there[side].sum(axis=0)) / max(len(side), 1) for side in sides)
        return first, second

    whole = shares(np.arange(len(pair.y)))
    splits = {k: parts("split", pair.y, k, seed) for k in {*KS, *SEARCHED, *PROBED}}
    return {k: float(np.mean([difference(shares(rows), whole) for rows in split])) for k, split in splits.items()}


def cross_validated(pair: Pair, fit: Fit, seed: int) -> Reals:
    """Distances of the training documents from cuts that were trained without them."""
    distances = np.empty(len(pair.y))
    everything = np.arange(len(pair.y))
    for i, held in enumerate(parts("split", pair.y, FOLDS, seed)):
        plane = fit(pair, np.setdiff1d(everything, held), seed + i)
        distances[held] = pair.X[held] @ plane.w + plane.b
    return distances


def unanimously(distances: Reals) -> Votes:
    return meta(votes(distances), voting_rule("unanimous", [0.5] * distances.shape[1]))


def nearest_dropped(distances: Reals, loss: float) -> Votes:
    """The decisions when exactly this share of documents, those nearest to the cut, is left out."""
    cast = np.where(distances > 0, 1, -1).astype(np.int8)
    dropped = round(loss * len(distances))
    cast[np.argsort(np.abs(distances), kind="stable")[:dropped]] = 0
    return cast


def count_decisions(cast: Votes, truth: Bools) -> ErrorCounts:
    decided = cast != 0
    wrong = decided & ((cast > 0) != truth)
    return ErrorCounts(int(np.count_nonzero(wrong)), int(np.count_nonzero(decided)), len(truth))
