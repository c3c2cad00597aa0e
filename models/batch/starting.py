"""Where a learner starts when it is trained on all documents at once, and which terms it is shown.

    query      w_1 is the standing query, as the learner makes a vector of it (`start` of its module)
    rocchio    w_1 = max(0, α q + β Σ_{i∈C} x_i / n_C − γ Σ_{i∉C} x_i / (n − n_C)),   α = 1, β = 2, γ = .5
    none       w_1 is what the learner has without a query
    Q + n      only the terms of the query q, and the n terms of relevant documents with the largest weight
               β Σ_{i∈C} x_i / n_C − γ Σ_{i∉C} x_i / (n − n_C), are shown; all others weigh nothing

Lewis, Schapire, Callan & Papka, "Training algorithms for linear text classifiers", SIGIR 1996, section 7.2: in routing,
Widrow-Hoff and EG start with the output of Rocchio, on Q+50 or Q+1000 terms. They chose the terms by an expansion like
that of Allan et al. (TREC-4), which they do not spell out; here they are those that Rocchio weighs most.

EG takes from Rocchio's output what it can have: weights that sum to 1. A term of weight 0 keeps it, but for EG's floor.
"""

from collections.abc import Mapping
from typing import Literal

import numpy as np

from models.core.measures import Bools
from models.core.vectors import Reals
from models.learners import rocchio
from models.learners.base import DocumentVector, Vector
from models.methods.matrix import Examples
from models.online.registry import LEARNERS, parse_params

Start = Literal["query", "rocchio", "none"]


def document(x: Examples, row: int) -> DocumentVector:
    """One of the documents, with columns as its slots."""
    a, b = x.indptr[row], x.indptr[row + 1]
    return DocumentVector(x.columns[a:b], x.values[a:b])


def first_vector(
    start: Start, kind: str, params: Mapping[str, object], x: Examples, relevant: Bools, query: DocumentVector | None
) -> Vector | None:
    """w_1 of a learner, by column; None if it starts with nothing."""
    if start == "rocchio":
        return rocchio_output(rocchio.Params(), x, relevant, query)
    if start == "none" or query is None:
        return None
    p, learner = parse_params(kind, params), LEARNERS[kind]
    return next(v for v in learner.vectors(p, learner.start(p, query)) if not v.averaged)


def expanded(x: Examples, relevant: Bools, query: DocumentVector | None, n: int) -> Bools:
    """The columns of Q + n. Of terms with equal weights those with the smallest features are taken."""
    own = np.zeros(len(x.features), np.bool_)
    if query is not None:
        own[query.slots[query.values != 0]] = True
    p = rocchio.Params(alpha=0.0, positive=False)
    weights = rocchio_output(p, x, relevant, None).w
    others = np.flatnonzero((x.sums(relevant[:, None])[0] != 0) & ~own)
    own[others[np.lexsort((others, -weights[others]))[:n]]] = True
    return own


def rocchio_output(p: rocchio.Params, x: Examples, relevant: Bools, query: DocumentVector | None) -> Vector:
    """Rocchio's vector of these documents, by column."""
    of, out = x.sums(np.stack([relevant, ~relevant], axis=1))
    q: Reals = np.zeros(len(x.features))
    if query is not None:
        q[query.slots] = query.values
    n = int(np.count_nonzero(relevant))
    (v,) = rocchio.vectors(p, rocchio.State(q, of, out, n, x.size - n))
    return Vector(v.w)
