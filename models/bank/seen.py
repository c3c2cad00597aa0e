"""A batch of documents seen through a view: the values that the models of the bank multiply.

Models of the semantic view share a *space* if they have the same projection, too. Documents in that space have their
latent features in a matrix beside the words, which are seen as through "tfidf".

Looking up idf and computing values are separate passes over the batch. Tried and dropped: looking idf up where it is
multiplied. It is slower by half, perhaps because fewer lines of the table, which the cache does not hold, are fetched
at a time.
"""

from collections.abc import Collection, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check
from models.core.kernel import kernel
from models.core.latent import tag_of
from models.core.names import VIEWS, View
from models.core.vectors import Features, Linear, Singles
from models.core.views import values_into
from models.text.analysis import Bags

Starts = NDArray[np.int64]
Matrix = NDArray[np.float32]
Kind = TypeVar("Kind", bound=np.generic)

NO_TAG = -1


class Space(NamedTuple):
    """What models must have in common to stand in one index: the view, and the tag of the projection, if any."""

    view: View
    tag: int = NO_TAG

    @classmethod
    def of(cls, linear: Linear) -> "Space":
        tag = tag_of(linear.features) if linear.view == "semantic" else None
        return cls(linear.view, NO_TAG if tag is None else tag)


class ViewedBatch(NamedTuple):
    """Documents in one space: the features and values of all, one document after the other; latent values, documents ×
    columns; and Σ x of each, latent values included."""

    indptr: Starts
    features: Features
    values: Singles
    sums: Singles
    latent: Matrix

    def slice(self, start: int, stop: int) -> "ViewedBatch":
        """Documents start … stop − 1."""
        a, b = int(self.indptr[start]), int(self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - a
        return ViewedBatch(indptr, self.features[a:b], self.values[a:b], self.sums[start:stop], self.latent[start:stop])


def view_batch(view: View, bags: Bags, idf: Singles) -> ViewedBatch:
    """These documents through a view."""
    indptr, features, counts = _writable(bags.indptr), _writable(bags.features), _writable(bags.counts)
    values = np.empty(len(features), np.float32)
    sums = np.empty(len(bags), np.float32)
    _view_batch(VIEWS.index(view), indptr, counts, _writable(idf), values, sums)
    return ViewedBatch(indptr, features, values, sums, np.empty((len(bags), 0), np.float32))


def space_batches(
    spaces: Collection[Space], bags: Bags, idf: Singles, latent: Mapping[int, Matrix]
) -> dict[Space, ViewedBatch]:
    """These documents in each of the spaces; `latent` has their latent values by the projection's tag. Raises KeyError
    if it lacks one."""
    views: set[View] = {"tfidf" if space.view == "semantic" else space.view for space in spaces}
    seen = {view: view_batch(view, bags, idf) for view in views}
    batches = {}
    for space in spaces:
        batch = seen["tfidf" if space.view == "semantic" else space.view]
        if space.tag != NO_TAG:
            z = _writable(latent[space.tag])
            check(z.shape[:1] == (len(bags),), "latent values must be those of the documents")
            batch = batch._replace(latent=z, sums=batch.sums + z.sum(axis=1, dtype=np.float64).astype(np.float32))
        batches[space] = batch
    return batches


@kernel
def _view_batch(code: int, indptr: Starts, counts: Singles, idf: Singles, values: Singles, sums: Singles) -> None:
    for d in range(len(sums)):
        a, b = indptr[d], indptr[d + 1]
        sums[d] = values_into(code, counts[a:b], idf[a:b], values[a:b])


def _writable(array: NDArray[Kind]) -> NDArray[Kind]:
    # numba compiles a kernel once more for read-only arrays, which is what decoding from a buffer gives.
    return array if array.flags.writeable else array.copy()
