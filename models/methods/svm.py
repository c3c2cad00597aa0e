"""Linear support vector machine, by scikit-learn, a topic at a time.

    squared_hinge    min_{w,b}  ½ (‖w‖² + b²) + C Σ_j max(0, 1 − y_j (w·x_j + b))²            y = ±1
    hinge            min_{w,b}  ½ ‖w‖² + C Σ_j ξ_j      y_j (w·x_j + b) ≥ 1 − ξ_j,  ξ_j ≥ 0    the soft margin
    Φ(d) = w·x_d + b

The soft margin is the lecture's (Manning & Raghavan, "Support vector machines", after Cortes & Vapnik 1995), its bias
is free; LIBSVM solves it (SVC), in time that grows with the square of the documents. The squared hinge, whose bias is
penalised like a weight, is LIBLINEAR's (LinearSVC; Fan, Chang, Hsieh, Wang & Lin, JMLR 9, 2008), linear in the
documents and so the default; for text Joachims, "Text categorization with support vector machines", ECML 1998.
scikit-learn is imported where it is used: processes that only serve do not load it.

If all documents of a topic are relevant, or none is, its plane is constant: b = ±1.
"""

from dataclasses import dataclass
from typing import Any, Literal

from models.core.arrays import check
from models.core.names import WordView
from models.methods.matrix import Examples, Labels, Planes, Progress, no_progress
from models.methods.one_by_one import fit_each


@dataclass(frozen=True, slots=True)
class Params:
    C: float = 1.0
    loss: Literal["squared_hinge", "hinge"] = "squared_hinge"
    view: WordView = "tfidf"

    def __post_init__(self) -> None:
        check(0 < self.C <= 1e6, "C must be a number above 0 and up to 1000000")


def fit(p: Params, x: Examples, labels: Labels, seed: int = 0, progress: Progress = no_progress) -> Planes:
    from sklearn.svm import SVC, LinearSVC

    def model() -> Any:
        return SVC(C=p.C, kernel="linear", tol=1e-4) if p.loss == "hinge" else LinearSVC(C=p.C, random_state=seed)

    return fit_each(model, x, labels, progress)
