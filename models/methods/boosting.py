"""AdaBoost.MH over single words: every round gives more weight to the pairs of document and topic that are still wrong.

    D_1(d_j, c_i) = 1/(mg)                             g documents, m topics; y = ±1: d_j is of c_i or not
    D_{s+1}(d_j, c_i) = D_s(d_j, c_i) exp(−α_s y Φ_s(d_j, c_i)) / Z_s                                        (1), (2)
    Φ^k(d_j, c_i) = c_0i if the pivot t_k is not in d_j, c_1i if it is                                              (3)
    W_b^xik = Σ_j D_s(d_j, c_i) [t_k in d_j: x] [y = b]                                                             (4)

    R    c_xi = ½ ln((W_1^xik + ε) / (W_−1^xik + ε)),  α = 1;         Z = 2 Σ_i Σ_x √(W_1^xik W_−1^xik)              (5)
    RA   the same, but c_0i = 0: without its pivot a hypothesis abstains;   Z = W_0 + 2 Σ_i √(W_1^1ik W_−1^1ik)
    D    c_xi = sign(W_1^xik − W_−1^xik),  α = ½ ln((1+r+ε) / (1−r+ε)),  r = Σ_i Σ_x |W_1^xik − W_−1^xik|;  Z = √(1−r²)

    Φ_s = 1/K(s) Σ_q Φ_s^q over the K(s) terms of least Z,   K(s) = 1 + C⌊(s−1)/N⌋;   Φ = Σ_s α_s Φ_s         (6) to (8)

Sebastiani, Sperduti & Valdambrini, "An improved boosting algorithm and its application to text categorization", CIKM
2000 (K > 1: ^KR); R, RA and D are of Schapire & Singer, "BoosTexter", Machine Learning 39, 2000. C = 0 is the plain
form. One topic alone is m = 1. With several hypotheses in a round each of D has its own α.

Parameters. Paper: S = 200, C = 1, N = 20, ρ = .90 is best, and so the default. ε = 1/(mg): the .01 that the paper
quotes is as large as the weight of ten thousand pairs, and makes all c alike (micro-F1 falls from .78 to .59).

How D and W are kept from one round to the next, and what that costs, is in methods/stumps.py.

Pairs of document and topic of which nobody knows whether the document is relevant have no part in it: D_1 is
1/(number of known pairs) for the others, and ε with it.

Of hypotheses whose Z differ by less than TIE, that of the smallest feature is taken: the order of documents, terms and
topics does not matter.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check
from models.core.names import View
from models.core.vectors import Features, Reals
from models.methods.feature_selection import Reduction, reduced
from models.methods.matrix import Columns, Examples, Labels, Planes, Progress, no_progress
from models.methods.stumps import TIE, constants, correct, losses, smallest, sum_all

Variant = Literal["R", "RA", "D"]
VARIANTS: tuple[Variant, ...] = ("R", "RA", "D")  # a variant's code is its place here, as in methods/stumps.py

REFRESH_ROUNDS = 50  # after which W is summed again
MAX_CANCELLATION = 1e3  # factor by which sums may shrink before they are summed again: three digits are gone
MAX_SCALE = 1e100  # and 1/MAX_SCALE the smallest


@dataclass(frozen=True, slots=True)
class Params:
    variant: Variant = "R"
    S: int = 200
    C: int = 1
    N: int = 20
    epsilon: float | None = None  # 1/(mg)
    reduction: Reduction = "chi2"
    rho: float = 0.9

    def __post_init__(self) -> None:
        check(1 <= self.S <= 100_000, "S must be a whole number from 1 to 100000")
        check(0 <= self.C <= 1000, "C must be a whole number from 0 to 1000")
        check(1 <= self.N <= 100_000, "N must be a whole number from 1 to 100000")
        check(
            self.epsilon is None or 0 < self.epsilon <= 1,
            "epsilon must be null, for 1/(mg), or a number up to 1 above 0",
        )
        check(0 <= self.rho < 1, "rho must be a number from 0 and below 1")

    @property
    def view(self) -> View:
        return "presence"

    def members(self, s: int) -> int:
        """K(s)"""
        return 1 + self.C * ((s - 1) // self.N)


@dataclass(frozen=True, slots=True, eq=False)
class Boosted:
    """S' hypotheses in the order in which they were found; c_0 and c_1 include the factor α/K."""

    features: Features
    rounds: NDArray[np.int64]  # s of each
    pivots: NDArray[np.int64]  # its place in `features`
    c0: Reals  # S' × m
    c1: Reals
    Z: Reals  # of each round: the divisor of D; the Hamming loss is at most their product

    def first(self, S: int) -> "Boosted":
        """The result of the first S rounds: a round does not depend on how many follow."""
        n = int(np.searchsorted(self.rounds, S, side="right"))
        return Boosted(self.features, self.rounds[:n], self.pivots[:n], self.c0[:n], self.c1[:n], self.Z[:S])

    def planes(self) -> Planes:
        """The linear form (11), hypotheses of one pivot added up: c_1 − c_0 if it is present, and Σ c_0 always."""
        pivots, which = np.unique(self.pivots, return_inverse=True)
        w = np.zeros((len(pivots), self.c0.shape[1]))
        np.add.at(w, which, self.c1 - self.c0)
        m = self.c0.shape[1]
        return Planes("presence", self.features[pivots], w.T, self.c0.sum(axis=0), np.zeros(m))


class Candidates(NamedTuple):
    """Terms that may be among the K best, in ascending order."""

    mass: float  # the sum of D after the last round: Z_s
    terms: NDArray[np.int64]
    Z: Reals
    c0: Reals  # times α
    c1: Reals
    documents: list[Columns]  # that have each term


class Chosen(NamedTuple):
    """The hypotheses of a round."""

    pivots: NDArray[np.int64]
    c0: Reals  # times α/K
    c1: Reals
    documents: list[Columns]


Ask = Callable[[Chosen | None, int], Sequence[Candidates]]  # applies what was chosen, then returns the K best


def fit(
    p: Params,
    x: Examples,
    labels: Labels,
    seed: int = 0,
    progress: Progress = no_progress,
    known: Labels | None = None,
) -> Planes:
    """Fits all topics together; `known` are the pairs of document and topic that count, all if it is None."""
    return boost(p, reduced(x, labels, p.reduction, p.rho, known), labels, progress, known).planes()


def boost(
    p: Params, x: Examples, labels: Labels, progress: Progress = no_progress, known: Labels | None = None
) -> Boosted:
    """Runs S rounds over all terms of these examples."""
    rounds = Rounds(p, x, labels, known=known)
    return run_rounds(p, x.features, lambda chosen, K: [rounds.next(chosen, K)], progress)


def run_rounds(p: Params, features: Features, ask: Ask, progress: Progress = no_progress) -> Boosted:
    """Runs S rounds. `ask` returns the candidates of one process, or of several workers (methods/farm.py)."""
    chosen: list[Chosen] = []
    Z = np.empty(p.S)
    answers = ask(None, p.members(1))
    for s in range(1, p.S + 1):
        chosen.append(choose(answers, p.members(s)))
        answers = ask(chosen[-1], p.members(s + 1) if s < p.S else 0)
        Z[s - 1] = answers[0].mass
        progress(s / p.S)
    rounds = np.repeat(np.arange(1, p.S + 1), [len(c.pivots) for c in chosen])
    c0, c1 = np.concatenate([c.c0 for c in chosen]), np.concatenate([c.c1 for c in chosen])
    return Boosted(features, rounds, np.concatenate([c.pivots for c in chosen]), c0, c1, Z)


def choose(answers: Sequence[Candidates], K: int) -> Chosen:
    """The K best of all candidates; `answers` are in ascending order of their terms."""
    terms, Z, c0, c1 = (np.concatenate([a[i] for a in answers]) for i in (1, 2, 3, 4))
    documents = [column for a in answers for column in a.documents]
    best = smallest(Z, min(K, len(Z)))
    return Chosen(terms[best], c0[best] / len(best), c1[best] / len(best), [documents[k] for k in best.tolist()])


class Rounds:
    """D of all pairs, and W of a range of the terms, between two rounds. `first` is the number of the first term."""

    def __init__(self, p: Params, x: Examples, labels: Labels, first: int = 0, known: Labels | None = None) -> None:
        g, m = labels.shape
        pairs = g * m if known is None else int(np.count_nonzero(known))
        check(g == x.size and pairs > 0 and len(x.features) > 0, "there must be documents, with words, and topics")
        self._code = VARIANTS.index(p.variant)
        self._epsilon = 1 / pairs if p.epsilon is None else p.epsilon
        self._rows, self._columns, self._first = (x.indptr, x.columns), x.by_column(), first
        self._ends = np.concatenate([[0], np.cumsum(labels.sum(axis=1))])  # where the labels of each document end
        self._topics = np.nonzero(labels)[1].astype(np.int32)
        self._plus = np.full(len(self._topics), 1 / pairs)  # D where y = 1, by label
        irrelevant = ~labels if known is None else known & ~labels
        self._minus = np.where(irrelevant, 1 / pairs, 0.0)  # D where y = −1, by document and topic
        self._W = np.zeros((len(x.features), 2, m))  # where y = 1, where y = −1
        self._s, self._mass = 0, 1.0
        self._scales, self._totals, self._peak = np.ones((3, 2, m))
        self._refresh()

    @property
    def distribution(self) -> Reals:
        """D_s: g × m."""
        D: Reals = self._minus * self._scales[1]
        of = np.repeat(np.arange(len(D)), np.diff(self._ends))
        D[of, self._topics] = self._plus * self._scales[0][self._topics]
        return D / self._mass

    def next(self, chosen: Chosen | None, K: int) -> Candidates:
        """Applies a choice, if there is one, and returns every term that can be among the K best of all terms.

        These are the K best here, and all that equal the last of them but for rounding.
        """
        if chosen is not None:
            self.apply(chosen)
        sums = self._W, self._totals, self._scales, self._mass
        Z = losses(*sums, self._code)
        K = min(K, len(Z))
        terms = np.flatnonzero(np.partition(Z, K - 1)[K - 1] + TIE >= Z) if K else np.empty(0, np.int64)
        c = constants(*sums, self._epsilon, self._code, terms)
        starts, documents = self._columns
        lists = [documents[starts[k] : starts[k + 1]] for k in terms.tolist()]
        return Candidates(self._mass, self._first + terms, Z[terms], c[0], c[1], lists)

    def apply(self, chosen: Chosen) -> float:
        """Goes on to the next distribution; returns Z_s."""
        absent = chosen.c0.sum(axis=0)
        self._scales *= np.exp(np.stack([-absent, absent])) / self._mass
        labels, D = (self._ends, self._topics), (self._plus, self._minus)
        starts = np.cumsum([0, *map(len, chosen.documents)])
        documents, factors = np.concatenate(chosen.documents), np.exp(chosen.c1 - chosen.c0)
        correct(*self._rows, *labels, *D, self._W, self._totals, starts, documents, factors)
        self._s += 1
        self._peak = np.maximum(self._peak, self._totals)
        self._mass = float((self._totals * self._scales).sum())
        cancelled = not (self._peak * self._scales).sum() < MAX_CANCELLATION * self._mass
        extreme = self._scales.max() > MAX_SCALE or self._scales.min() < 1 / MAX_SCALE
        if self._s % REFRESH_ROUNDS == 0 or cancelled or extreme:
            self._refresh()
        return self._mass

    def _refresh(self) -> None:
        """Applies the scales, and computes the sums again, so that rounding errors do not accumulate."""
        self._plus *= self._scales[0][self._topics]
        self._minus *= self._scales[1]
        self._scales[:] = 1.0
        plus = np.bincount(self._topics, self._plus, minlength=self._minus.shape[1])
        self._totals = np.stack([plus, self._minus.sum(axis=0)])
        self._peak, self._mass = self._totals.copy(), float(self._totals.sum())
        self._W[:] = 0.0
        sum_all(*self._rows, self._ends, self._topics, self._plus, self._minus, self._W)
