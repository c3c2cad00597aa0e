"""Documents as one sparse matrix, for methods that learn from all of them at once, and the models they return.

    Examples    g documents × r features, by rows; features ascend, so the order of documents changes no column
    Labels      g documents × m topics: whether a document is relevant to a topic
    Planes      m linear models over the same features:   Φ(d, c_i) = bias_i + rest_i·Σ x_f + Σ w_if x_f

Rejected: scipy's matrices. We need four products of them, each of which is a short kernel, and scipy's many types would
be in every signature.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.core.measures import Bools
from models.core.names import View
from models.core.vectors import Bag, Features, Linear, Reals
from models.core.views import view
from models.text.analysis import Bags

Starts = NDArray[np.int64]
Columns = NDArray[np.int32]
Labels = NDArray[np.bool_]
Progress = Callable[[float], None]  # called with the share of the work that is done


def no_progress(done: float) -> None:
    """Ignores progress."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """Documents as the rows of a sparse matrix (CSR), seen through one view."""

    view: View
    features: Features
    indptr: Starts
    columns: Columns
    values: Reals

    @classmethod
    def of(cls, bags: Sequence[Bag], name: View) -> "Examples":
        lengths = np.array([0, *(len(bag.features) for bag in bags)], np.int64)
        features_of_all = np.concatenate([np.empty(0, np.uint64), *(bag.features for bag in bags)])
        features, columns = np.unique(features_of_all, return_inverse=True)
        values = np.concatenate([np.empty(0), *(view(name, bag).values for bag in bags)])
        return cls(name, features, np.cumsum(lengths), columns.astype(np.int32), values)

    @classmethod
    def of_presence(cls, bags: Bags) -> "Examples":
        """Which words each document has, from all bags at once: half a second for 85,000 abstracts."""
        features, columns = np.unique(bags.features, return_inverse=True)
        return cls("presence", features, bags.indptr, columns.astype(np.int32), np.ones(len(columns)))

    @property
    def size(self) -> int:
        return len(self.indptr) - 1

    def rows(self, which: Bools) -> "Examples":
        """Some of the documents, in their order. All features stay, so columns mean the same."""
        lengths = np.diff(self.indptr)
        kept = np.repeat(which, lengths)
        indptr = np.concatenate([[0], np.cumsum(lengths[which])])
        return Examples(self.view, self.features, indptr, self.columns[kept], self.values[kept])

    def only(self, which: Bools) -> "Examples":
        """Some of the features. Values stay as they were in the whole document."""
        kept = which[self.columns]
        ends = np.concatenate([[0], np.cumsum(kept)])
        renumbered = (np.cumsum(which) - 1).astype(np.int32)
        columns = renumbered[self.columns[kept]]
        return Examples(self.view, self.features[which], ends[self.indptr], columns, self.values[kept])

    def sums(self, labels: Labels) -> Reals:
        """Σ x_f over the documents of each topic: m × r."""
        return _sums(self.indptr, self.columns, self.values, labels, len(self.features))

    def by_column(self) -> tuple[Starts, Columns]:
        """The documents that have each feature: those of column f lie between the f-th start and the next."""
        starts = np.zeros(len(self.features) + 1, np.int64)
        np.cumsum(np.bincount(self.columns, minlength=len(self.features)), out=starts[1:])
        rows = np.repeat(np.arange(self.size, dtype=np.int32), np.diff(self.indptr))
        return starts, rows[np.argsort(self.columns, kind="stable")]


@dataclass(frozen=True, slots=True, eq=False)
class Planes:
    """One linear model a topic, all over the same features."""

    view: View
    features: Features
    w: Reals  # m × r
    bias: Reals  # m
    rest: Reals  # m; `w` is relative to it, as in Linear

    def linear(self, topic: int) -> Linear:
        """The model of one topic in the form that is served; weights of zero are left out."""
        weights = self.w[topic].astype(np.float32)
        kept = weights != 0
        return Linear(self.view, self.features[kept], weights[kept], float(self.bias[topic]), float(self.rest[topic]))

    def scores(self, x: Examples) -> Reals:
        """Φ of every document (rows) and topic (columns)."""
        at = np.minimum(np.searchsorted(self.features, x.features), max(len(self.features) - 1, 0))
        known = self.features[at] == x.features if len(self.features) else np.zeros(len(at), np.bool_)
        place = np.where(known, at, -1)
        by_feature = np.ascontiguousarray(self.w.T)
        return _scores(x.indptr, x.columns, x.values, place, by_feature, self.bias, self.rest)


@kernel
def _sums(indptr: Starts, columns: Columns, values: Reals, labels: Labels, r: int) -> Reals:
    g, m = labels.shape
    sums = np.zeros((m, r))
    for j in range(g):
        for i in range(m):
            if labels[j, i]:
                for k in range(indptr[j], indptr[j + 1]):
                    sums[i, columns[k]] += values[k]
    return sums


@kernel
def _scores(
    indptr: Starts, columns: Columns, values: Reals, place: Starts, w: Reals, bias: Reals, rest: Reals
) -> Reals:
    scores = np.empty((len(indptr) - 1, len(bias)))
    for j in range(len(scores)):
        total, row = 0.0, scores[j]
        row[:] = bias
        for k in range(indptr[j], indptr[j + 1]):
            total += values[k]
            at = place[columns[k]]
            if at >= 0:
                for i in range(len(row)):
                    row[i] += w[at, i] * values[k]
        for i in range(len(row)):
            row[i] += rest[i] * total
    return scores
