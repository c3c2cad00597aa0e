"""Linear support vector machine, by scikit-learn's LinearSVC (LIBLINEAR), a topic at a time.

    min_{w,b}  ½ (‖w‖² + b²) + C Σ_j max(0, 1 − y_j (w·x_j + b))²            y = ±1
    Φ(d) = w·x_d + b

Fan, Chang, Hsieh, Wang & Lin, "LIBLINEAR: a library for large linear classification", JMLR 9, 2008; for text Joachims,
"Text categorization with support vector machines", ECML 1998. scikit-learn is imported where it is used: processes that
only serve do not load it.

The bias is penalised like a weight, as in LIBLINEAR. If all documents of a topic are relevant, or none is, its plane
is constant: b = ±1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from models.batch.matrix import Examples, Labels, Planes, Progress, no_progress
from models.core.arrays import check
from models.core.names import WordView


@dataclass(frozen=True, slots=True)
class Params:
    C: float = 1.0
    view: WordView = "tfidf"

    def __post_init__(self) -> None:
        check(0 < self.C <= 1e6, "C must be a number above 0 and up to 1000000")


def fit(p: Params, x: Examples, labels: Labels, seed: int = 0, progress: Progress = no_progress) -> Planes:
    from scipy.sparse import csr_matrix
    from sklearn.svm import LinearSVC

    m = labels.shape[1]
    X = csr_matrix((x.values, x.columns, x.indptr), shape=(x.size, len(x.features)))
    w, bias = np.zeros((m, len(x.features))), np.zeros(m)
    for i in range(m):
        y = labels[:, i]
        if y.all() or not y.any():
            bias[i] = 1.0 if y.any() else -1.0
        else:
            model: Any = LinearSVC(C=p.C, random_state=seed).fit(X, y)
            w[i], bias[i] = model.coef_[0], model.intercept_[0]
        progress((i + 1) / m)
    return Planes(x.view, x.features, w, bias, np.zeros(m))
