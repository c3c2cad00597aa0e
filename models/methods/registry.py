"""Every batch method by its name.

A new method is a module beside this one, one entry in METHODS, and its name in core/names.py.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from models.methods import bayes, boosting, centroid, logistic, svm
from models.methods.matrix import Examples, Labels, Planes, Progress, no_progress


class Method(Protocol):
    Params: type[Any]

    def fit(self, p: Any, x: Examples, labels: Labels, seed: int = 0, progress: Progress = no_progress) -> Planes: ...


METHODS: Mapping[str, Method] = {
    "boosting": boosting,
    "bayes": bayes,
    "centroid": centroid,
    "svm": svm,
    "logistic": logistic,
}


def fit(p: Any, x: Examples, labels: Labels, seed: int = 0, progress: Progress = no_progress) -> Planes:
    """Fits the method that has these parameters to all topics at once."""
    method = next(method for method in METHODS.values() if isinstance(p, method.Params))
    return method.fit(p, x, labels, seed, progress)


def takes_signed_values(p: Any) -> bool:
    """Whether a method with these parameters works on tf-idf and can learn from values below 0, so that documents may
    have latent features, too."""
    return isinstance(p, svm.Params | logistic.Params | centroid.Params) and p.view == "tfidf"
