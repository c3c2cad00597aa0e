"""A batch of documents seen through a view: the values that the models of the bank multiply.

Looking up idf and computing values are separate passes over the batch. Tried and dropped: looking idf up where it is
multiplied. It is slower by half, perhaps because fewer lines of the table, which the cache does not hold, are fetched
at a time.
"""

from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from models.core.kernel import kernel
from models.core.names import VIEWS, View
from models.core.vectors import Features, Singles
from models.core.views import values_into
from models.text.analysis import Bags

Starts = NDArray[np.int64]
Kind = TypeVar("Kind", bound=np.generic)


class ViewedBatch(NamedTuple):
    """Documents through one view: the features and values of all, one document after the other, and Σ x of each."""

    indptr: Starts
    features: Features
    values: Singles
    sums: Singles

    def slice(self, start: int, stop: int) -> "ViewedBatch":
        """Documents start … stop − 1."""
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - a
        return ViewedBatch(indptr, self.features[a:b], self.values[a:b], self.sums[start:stop])


def view_batch(view: View, bags: Bags, idf: Singles) -> ViewedBatch:
    """These documents through a view."""
    indptr, features, counts = _writable(bags.indptr), _writable(bags.features), _writable(bags.counts)
    values = np.empty(len(features), np.float32)
    sums = np.empty(len(bags), np.float32)
    _view_batch(VIEWS.index(view), indptr, counts, _writable(idf), values, sums)
    return ViewedBatch(indptr, features, values, sums)


@kernel
def _view_batch(code: int, indptr: Starts, counts: Singles, idf: Singles, values: Singles, sums: Singles) -> None:
    for d in range(len(sums)):
        a, b = indptr[d], indptr[d + 1]
        sums[d] = values_into(code, counts[a:b], idf[a:b], values[a:b])


def _writable(array: NDArray[Kind]) -> NDArray[Kind]:
    # numba compiles a kernel once more for read-only arrays, which is what decoding from a buffer gives.
    return array if array.flags.writeable else array.copy()
