"""Planes by a linear model of scikit-learn, a topic at a time. A topic of which all documents are relevant, or none is,
has nothing to tell apart: its plane is constant, b = ±1."""

from collections.abc import Callable
from typing import Any

import numpy as np

from models.methods.matrix import Examples, Labels, Planes, Progress


def fit_each(model: Callable[[], Any], x: Examples, labels: Labels, progress: Progress) -> Planes:
    """Fits a new model to each topic; it has `coef_` and `intercept_` afterwards."""
    from scipy.sparse import csr_matrix

    m = labels.shape[1]
    X = csr_matrix((x.values, x.columns, x.indptr), shape=(x.size, len(x.features)))
    w, bias = np.zeros((m, len(x.features))), np.zeros(m)
    for i in range(m):
        y = labels[:, i]
        if y.all() or not y.any():
            bias[i] = 1.0 if y.any() else -1.0
        else:
            fitted = model().fit(X, y)
            w[i] = csr_matrix(fitted.coef_).toarray()[0]  # SVC's is sparse, the others' is not
            bias[i] = fitted.intercept_[0]
        progress((i + 1) / m)
    return Planes(x.view, x.features, w, bias, np.zeros(m))
