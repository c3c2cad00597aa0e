"""The semantic projection: a document's place in a space of a few columns, learned from the stream itself.

    x_f = tf-idf of the document, of length one (view "tfidf")
    y_k = Σ_f x_f V_fk − c_k            V: terms × K, right singular vectors of sampled documents; c: the mean of x V
    z_k = α y_k / ‖y‖                   0 if the document has no term of the projection

Deerwester, Dumais, Furnas, Landauer & Harshman, "Indexing by latent semantic analysis", 1990. Words that occur with the
same words get similar rows of V, so a document is found near one with which it shares no word. A model in the view
"semantic" multiplies [x ; z]: z is appended to a bag as features of its own (core/latent.py), with counts z and idf 1.

`fit` computes the truncated SVD by a randomised range finder (Halko, Martinsson & Tropp, "Finding structure with
randomness", SIAM Review 2011, algorithms 4.4 and 5.1). It is incremental: the rows Σ_k V_kᵀ of the last projection
stand for all documents before (Brand, "Incremental singular value decomposition", ECCV 2002), which is as good as
computing it from all. The result depends on its input alone, up to the last bits, which another machine may round
otherwise: so a projection is stored, never computed again. At most MAX_TERMS terms are kept, those with the strongest
rows Σ_k V_fk; terms that only one document has tell nothing.

V is stored as int8 with a scale for each term, and projecting adds integers:

    y_k·2²⁸ = Σ_f round(x_f·scale_f·2²⁸)·row_fk − c_k        exact, so the same in any order, in a batch or alone

Columns of V have length one and so has x, so a sum stays below 2²⁹ and fits 32 bits.

α and the columns K are part of a projection: models depend on them, and must be computed again from the log with the
same ones. What was tried: docs/experiments.md.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import check
from models.core.kernel import kernel
from models.core.latent import FIRST_LATENT, MAX_LATENT, count_words, latent_features
from models.core.names import TAG_BITS, VIEWS
from models.core.table import Table, rows_of, table
from models.core.vectors import Bag, Features, Reals, Singles
from models.core.views import values_into, view
from models.text.analysis import Bags

COLUMNS = 128
ALPHA = 0.35
MAX_TERMS = 20_000
MIN_DOCUMENTS = 2  # that must have a term

_ONE = float(1 << 28)  # of the fixed point
_TFIDF = VIEWS.index("tfidf")
_OVERSAMPLING, _POWER_STEPS = 20, 2

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Projection:
    features: Features  # of the terms, ascending
    rows: NDArray[np.int8]  # terms × columns; V_fk = scales_f·rows_fk
    scales: Singles
    centre: NDArray[np.int32]  # c_k, in fixed point
    singular: Singles  # Σ_k, descending
    alpha: float = ALPHA

    @property
    def columns(self) -> int:
        return len(self.centre)

    @cached_property
    def tag(self) -> int:
        """A number of 24 bits that depends on all of it."""
        digest = hashlib.sha256()
        for name, array in self.arrays().items():
            digest.update(f"{name} {array.dtype.str} {array.shape} ".encode() + array.tobytes())
        return int.from_bytes(digest.digest()[: TAG_BITS // 8], "big")

    @cached_property
    def latent_features(self) -> Features:
        """The features by which models and bags name its columns."""
        return latent_features(self.tag, self.columns)

    def latent(self, bag: Bag) -> Singles:
        """z of a document."""
        z: Singles = self.latent_batch(*joined([bag]))[0]
        return z

    def latent_batch(self, bags: Bags, idf: Singles) -> NDArray[np.float32]:
        """z of each document, documents × columns; `idf` is that of all features of the bags, in their order."""
        z = np.zeros((len(bags), self.columns), np.float32)
        if len(self.features):
            at = rows_of(self._table, _own(bags.features))
            _latent(at, self.rows, self._steps, self.centre, self.alpha, bags.indptr, _own(bags.counts), _own(idf), z)
        return z

    def extend(self, bag: Bag) -> Bag:
        """The bag with z appended, for the view "semantic"."""
        n = count_words(bag.features)
        features = np.concatenate([bag.features[:n], self.latent_features])
        counts = np.concatenate([bag.counts[:n], self.latent(bag)])
        return Bag(features, counts, np.concatenate([bag.idf[:n], np.ones(self.columns, np.float32)]))

    def share(self, bag: Bag, u: Reals) -> tuple[Reals, float]:
        """The parts of Σ u_k z_k: of each word of a document, and of the centre."""
        at = rows_of(self._table, _own(bag.features)) if len(self.features) else np.full(len(bag.features), -1)
        known = at >= 0
        q = np.rint(view("tfidf", bag).values[known] * self._steps[at[known]])
        products = q[:, None] * self.rows[at[known]]
        length = float(np.linalg.norm(products.sum(axis=0) - self.centre))
        shares = np.zeros(len(bag.features))
        if not known.any() or not length:
            return shares, 0.0
        shares[known] = products @ u * (self.alpha / length)
        return shares, -float(self.centre @ u) * self.alpha / length

    def on_words(self, u: Reals) -> tuple[Reals, float]:
        """Σ u_k y_k as a linear form: what each term of the projection weighs in it, and what the centre adds."""
        return self.rows @ u * self.scales, -float(self.centre @ u) / _ONE

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All of it, for storing."""
        return {
            "features": self.features,
            "rows": self.rows,
            "scales": self.scales,
            "centre": self.centre,
            "singular": self.singular,
            "alpha": np.array([self.alpha]),
        }

    @classmethod
    def of(cls, arrays: Arrays) -> "Projection":
        """The inverse of `arrays`. Raises ValueError for arrays that are none, which may have been imported."""
        check(arrays.keys() == _TYPES.keys(), f"a projection has {', '.join(_TYPES)}")
        for name, kind in _TYPES.items():
            check(arrays[name].dtype == kind, f"{name} of a projection must have the type {np.dtype(kind)}")
        check(arrays["alpha"].shape == (1,), "alpha of a projection is one number")
        features, rows, scales, centre, singular, alpha = (np.array(arrays[name]) for name in _TYPES)  # own copies
        projection = cls(features, rows, scales, centre, singular, float(alpha[0]))
        projection.check()
        return projection

    def check(self) -> None:
        """Raises ValueError unless projecting any document with it is safe."""
        terms, columns = len(self.features), self.columns
        check(1 <= columns <= MAX_LATENT, f"a projection has 1 to {MAX_LATENT} columns")
        check(terms <= MAX_TERMS, f"a projection has up to {MAX_TERMS} terms")
        shapes = self.features.shape, self.rows.shape, self.scales.shape, self.centre.shape, self.singular.shape
        check(
            shapes == ((terms,), (terms, columns), (terms,), (columns,), (columns,)),
            "the parts of a projection must have the same terms and columns",
        )
        ascending = bool(np.all(self.features[1:] > self.features[:-1]) and np.all(self.features < FIRST_LATENT))
        check(ascending, "the features of a projection must be distinct and ascending")
        finite = np.all(np.isfinite(self.scales)) and np.all(self.scales >= 0) and np.all(np.isfinite(self.singular))
        check(bool(finite), "a projection must be finite")
        check(0 < self.alpha <= 10, "alpha of a projection must be a number above 0 and up to 10")
        squares = np.square(self.rows * self.scales.astype(np.float64)[:, None]).sum(axis=0)
        check(bool(np.all(squares <= 4)), "the columns of a projection must have length one")
        check(bool(np.all(np.abs(self.centre.astype(np.float64)) <= 2 * _ONE)), "the centre must lie among documents")

    @cached_property
    def _table(self) -> Table:
        return table(self.features)

    @cached_property
    def _steps(self) -> Reals:
        """scale_f·2²⁸."""
        return self.scales.astype(np.float64) * _ONE


def joined(bags: Sequence[Bag]) -> tuple[Bags, Singles]:
    """Many bags as one value, and the idf of all their features."""
    indptr = np.cumsum([0, *(len(bag.features) for bag in bags)], dtype=np.int64)
    features = np.concatenate([np.empty(0, np.uint64), *(bag.features for bag in bags)])
    counts = np.concatenate([np.empty(0, np.float32), *(bag.counts for bag in bags)])
    return Bags(indptr, features, counts), np.concatenate([np.empty(0, np.float32), *(bag.idf for bag in bags)])


_TYPES = {
    "features": np.uint64,
    "rows": np.int8,
    "scales": np.float32,
    "centre": np.int32,
    "singular": np.float32,
    "alpha": np.float64,
}


def fit(
    previous: Projection | None, bags: Sequence[Bag], columns: int = COLUMNS, alpha: float = ALPHA
) -> Projection | None:
    """The projection of these documents and of those that the previous one was made from; None if there is no term
    that two documents share."""
    terms, matrix, documents = _matrix(previous, bags)
    if not len(terms):
        return None
    singular, V = _svd(matrix, columns)
    strength = np.square(V * singular).sum(axis=1)
    kept = np.sort(np.lexsort((terms, -strength))[:MAX_TERMS])
    V = V[kept]
    scales = (np.abs(V).max(axis=1) / 127).astype(np.float32)
    rows = np.rint(V / np.where(scales > 0, scales, 1)[:, None]).astype(np.int8)
    mean = np.asarray(matrix[-documents:].mean(axis=0)).ravel()[kept] if documents else np.zeros(len(kept))
    centre = np.rint(mean @ (rows * scales.astype(np.float64)[:, None]) * _ONE).astype(np.int32)
    return Projection(terms[kept], rows, scales, centre, singular.astype(np.float32), alpha)


def _matrix(previous: Projection | None, bags: Sequence[Bag]) -> tuple[Features, Any, int]:
    """The terms, and a sparse matrix: pseudo-documents of the previous projection, then these, whose number is last."""
    from scipy.sparse import csr_matrix  # where it is used: processes that only serve do not load it

    features = np.concatenate([np.empty(0, np.uint64), *(bag.features for bag in bags)])
    values = np.concatenate([np.empty(0), *(view("tfidf", bag).values for bag in bags)])
    distinct, df = np.unique(features, return_counts=True)
    terms = distinct[(df >= MIN_DOCUMENTS) & (distinct < FIRST_LATENT)]
    old = 0
    if previous:
        terms, old = np.union1d(terms, previous.features), previous.columns
    if not len(terms):
        return terms, None, len(bags)
    at = np.searchsorted(terms, features)
    known = terms[np.minimum(at, len(terms) - 1)] == features
    row = np.repeat(np.arange(len(bags)), [len(bag.features) for bag in bags])[known] + old
    data, columns = values[known], at[known]
    if previous:
        V = previous.rows * previous.scales[:, None]
        size = len(previous.features)
        data = np.concatenate([(V * previous.singular).T.ravel(), data])
        row = np.concatenate([np.repeat(np.arange(old), size), row])
        columns = np.concatenate([np.tile(np.searchsorted(terms, previous.features), old), columns])
    shape = (old + len(bags), len(terms))
    return terms, csr_matrix((data.astype(np.float32), (row, columns)), shape=shape), len(bags)


def _svd(matrix: Any, columns: int) -> tuple[Reals, Reals]:
    """The largest singular values, and their right singular vectors as columns. Those of almost nothing are left out,
    but for the first."""
    wanted = min(columns, *matrix.shape)
    start = np.random.default_rng(0).standard_normal((matrix.shape[1], min(wanted + _OVERSAMPLING, *matrix.shape)))
    basis = matrix @ start.astype(np.float32)
    transposed = matrix.T.tocsr()
    for _ in range(_POWER_STEPS):
        basis = matrix @ np.linalg.qr(transposed @ np.linalg.qr(basis)[0])[0]
    small = transposed @ np.linalg.qr(basis)[0]
    V, singular, _ = np.linalg.svd(small.astype(np.float64), full_matrices=False)
    used = max(1, int(np.count_nonzero(singular[:wanted] > 1e-4 * singular[0])))
    return singular[:used], V[:, :used]


@kernel
def _latent(
    at: NDArray[np.int32],
    rows: NDArray[np.int8],
    steps: Reals,
    centre: NDArray[np.int32],
    alpha: float,
    indptr: NDArray[np.int64],
    counts: Singles,
    idf: Singles,
    z: NDArray[np.float32],
) -> None:
    columns = len(centre)
    sums, x = np.empty(columns, np.int32), np.empty(len(counts))
    for d in range(len(indptr) - 1):
        begin, end = indptr[d], indptr[d + 1]
        values_into(_TFIDF, counts[begin:end], idf[begin:end], x[begin:end])
        sums[:] = -centre
        known = False
        for i in range(begin, end):
            if at[i] >= 0:
                known = True
                row, q = rows[np.uint64(at[i])], np.int32(np.rint(x[i] * steps[np.uint64(at[i])]))
                for k in range(columns):
                    sums[k] += q * np.int32(row[k])
        if not known:
            continue
        square = 0.0
        for k in range(columns):
            square += float(sums[k]) * float(sums[k])
        if square > 0.0:
            factor = alpha / np.sqrt(square)
            for k in range(columns):
                z[d, k] = sums[k] * factor


def _own(array: NDArray[Any]) -> NDArray[Any]:
    # numba compiles a kernel once more for read-only arrays, which is what decoding from a buffer gives.
    return array if array.flags.writeable else array.copy()
