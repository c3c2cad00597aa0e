"""Documents on their way through the bank: many bags one after the other, and what a view makes of them.

Each step is a pass of its own over all of them. Tried and dropped: idf looked up where it is multiplied, in place of an
array of it, is slower by half, perhaps because fewer lines of the table, which the cache does not hold, are fetched at
a time.
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
    """Documents through one view: the values that a model multiplies, and Σ x of each document."""

    indptr: Starts
    features: Features
    values: Singles
    sums: Singles

    def slice(self, start: int, stop: int) -> "ViewedBatch":
        """Documents start .. stop."""
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - a
        return ViewedBatch(indptr, self.features[a:b], self.values[a:b], self.sums[start:stop])


def see(view: View, bags: Bags, idf: Singles) -> ViewedBatch:
    """These documents through a view, each on its own."""
    indptr, features, counts = _writable(bags.indptr), _writable(bags.features), _writable(bags.counts)
    values = np.empty(len(features), np.float32)
    sums = np.empty(len(bags), np.float32)
    _see(VIEWS.index(view), indptr, counts, _writable(idf), values, sums)
    return ViewedBatch(indptr, features, values, sums)


@kernel
def _see(code: int, indptr: Starts, counts: Singles, idf: Singles, values: Singles, sums: Singles) -> None:
    for d in range(len(sums)):
        a, b = indptr[d], indptr[d + 1]
        sums[d] = values_into(code, counts[a:b], idf[a:b], values[a:b])


def _writable(array: NDArray[Kind]) -> NDArray[Kind]:
    # numba compiles a kernel once more for read-only arrays, which is what decoding from a buffer gives.
    return array if array.flags.writeable else array.copy()
