"""Documents on their way through the bank: bags one after the other, and what each view makes of them."""

from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from models.kernel import kernel
from models.vectors import Features, Singles, View

Starts = NDArray[np.int64]

Kind = TypeVar("Kind", bound=np.generic)

VIEWS: tuple[View, ...] = ("presence", "tf", "sqrt", "strength", "tfidf")


class Bags(Protocol):
    """Document d has the features (ascending, distinct) and counts from indptr[d] up to indptr[d + 1]."""

    @property
    def indptr(self) -> Starts: ...
    @property
    def features(self) -> Features: ...
    @property
    def counts(self) -> Singles: ...


class Seen(NamedTuple):
    """Documents through one view: the values that a model multiplies, and Σ x of each document."""

    indptr: Starts
    features: Features
    values: Singles
    sums: Singles

    def slice(self, start: int, stop: int) -> "Seen":
        """Documents start .. stop."""
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - a
        return Seen(indptr, self.features[a:b], self.values[a:b], self.sums[start:stop])


def see(view: View, bags: Bags, idf: Singles) -> Seen:
    """These documents through a view, each on its own."""
    indptr, features, counts = _writable(bags.indptr), _writable(bags.features), _writable(bags.counts)
    values = np.empty(len(features), np.float32)
    sums = np.empty(len(indptr) - 1, np.float32)
    _see(VIEWS.index(view), indptr, counts, _writable(idf), values, sums)
    return Seen(indptr, features, values, sums)


@kernel
def _see(view: int, indptr: Starts, counts: Singles, idf: Singles, values: Singles, sums: Singles) -> None:
    for d in range(len(sums)):
        total, square = 0.0, 0.0
        for k in range(indptr[d], indptr[d + 1]):
            n = float(counts[k])
            x = 1.0
            if view == 1:
                x = n
            elif view == 2 or view == 3:
                x = np.sqrt(n)
            elif view == 4:
                x = np.log1p(n) * idf[k]
            values[k] = x
            total += x
            square += x * x
        scale = 1.0
        if view == 3:
            scale = 1 / max(total, 1e-300)
        elif view == 4:
            scale = 1 / max(np.sqrt(square), 1e-300)
        for k in range(indptr[d], indptr[d + 1]):
            values[k] *= scale
        sums[d] = total * scale


def _writable(array: NDArray[Kind]) -> NDArray[Kind]:
    # numba compiles a kernel once more for read-only arrays, which is what decoding from a buffer gives.
    return array if array.flags.writeable else array.copy()
