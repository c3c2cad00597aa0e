"""Feature selection: leaves out the share ρ of the terms that says least about any topic.

    ρ = (r − r') / r                          r terms before, r' after

    chi2        max_i  g·[P(t,c_i)P(t̄,c̄_i) − P(t,c̄_i)P(t̄,c_i)]² / (P(t)P(t̄)P(c_i)P(c̄_i))          (9)
    mutual      max_i  Σ_{x∈{t,t̄}} Σ_{y∈{c_i,c̄_i}} P(x,y) log( P(x,y) / (P(x)P(y)) )
    frequency   how many documents have t

Sebastiani, Sperduti & Valdambrini, "An improved boosting algorithm and its application to text categorization", CIKM
2000, equation (9) and section 4.2; the other two after Yang & Pedersen, "A comparative study on feature selection in
text categorization", ICML 1997: their information gain, for each topic alone, is the mutual information of two events.

Probabilities are shares of the g documents. A term, or a topic, of all documents or of none says nothing: 0. Of terms
with equal scores those with the smallest features stay, so that the choice does not depend on the order of anything.
"""

from typing import Literal

import numpy as np

from models.core.arrays import check
from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.vectors import Reals
from models.methods.matrix import Examples, Labels

Reduction = Literal["chi2", "mutual", "frequency"]


def reduced(x: Examples, labels: Labels, by: Reduction, rho: float, known: Labels | None = None) -> Examples:
    """The documents with only the r' best terms; at least one term stays."""
    check(0 <= rho < 1, "rho must be a number from 0 and below 1")
    return x.only(best_terms(term_scores(x, labels, by, known), rho))


def best_terms(scores: Reals, rho: float) -> Bools:
    """Which terms stay, by their scores."""
    r = len(scores)
    kept = np.zeros(r, np.bool_)
    # Nine digits: sums in another order of documents or topics must not make equal terms differ.
    ranks = np.lexsort((np.arange(r), -np.round(scores / max(scores.max(initial=0.0), 1e-300), 9)))
    kept[ranks[: max(1, round((1 - rho) * r))]] = True
    return kept


def term_scores(x: Examples, labels: Labels, by: Reduction, known: Labels | None = None) -> Reals:
    """The score of each term. Of each topic only the documents count of which it is known whether they are relevant."""
    df = np.bincount(x.columns, minlength=len(x.features)).astype(np.float64)
    if by == "frequency":
        return df
    binary = Examples(x.view, x.features, x.indptr, x.columns, np.ones(len(x.columns)))
    both, positive = binary.sums(labels), labels.sum(axis=0).astype(np.float64)
    dfs, g = df[None], np.full(labels.shape[1], float(x.size))  # one row for all topics
    if known is not None:
        dfs, g = binary.sums(known), known.sum(axis=0).astype(np.float64)
    return (_chi2 if by == "chi2" else _mutual)(both, dfs, positive, g)


@kernel
def _chi2(both: Reals, dfs: Reals, positive: Reals, sizes: Reals) -> Reals:
    m, r = both.shape
    scores = np.zeros(r)
    for i in range(m):
        df, g = dfs[min(i, len(dfs) - 1)], sizes[i]
        for k in range(r):
            n, a, b = both[i, k], df[k], positive[i]
            # In counts: P(t,c)P(t̄,c̄) − P(t,c̄)P(t̄,c) = (n·g − a·b) / g².
            spread = a * (g - a) * b * (g - b)
            if spread > 0:
                scores[k] = max(scores[k], g * (n * g - a * b) ** 2 / spread)
    return scores


@kernel
def _mutual(both: Reals, dfs: Reals, positive: Reals, sizes: Reals) -> Reals:
    m, r = both.shape
    scores = np.zeros(r)
    for i in range(m):
        df, g = dfs[min(i, len(dfs) - 1)], sizes[i]
        for k in range(r):
            n, a, b = both[i, k], df[k], positive[i]
            total = _part(n, a, b, g) + _part(a - n, a, g - b, g)
            total += _part(b - n, g - a, b, g) + _part(g - a - b + n, g - a, g - b, g)
            scores[k] = max(scores[k], total)
    return scores


@kernel
def _part(n: float, a: float, b: float, g: float) -> float:
    """P(x,y) log(P(x,y)/(P(x)P(y))), 0 if x and y never occur together."""
    return n / g * np.log(n * g / (a * b)) if n > 0 else 0.0
