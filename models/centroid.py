"""Centroid: a document is of the topic if it is nearer to the mean relevant document than to the mean irrelevant one.

    μ = Σ_{d∈c} x_d / n_c      ν = Σ_{d∉c} x_d / (g − n_c)
    Φ(d) = ½ (‖x_d − ν‖² − ‖x_d − μ‖²) = (μ − ν)·x_d − ½ (‖μ‖² − ‖ν‖²)

The base classifier beside the SVM in Siersdorfer, Sizov & Weikum, "Goal-oriented methods and meta methods for document
classification and their parameter tuning", CIKM 2004. It is Rocchio's formula with β = γ = 1, no query, negative
weights left in, and a cut of its own. Without documents of a kind its mean is the origin.
"""

from dataclasses import dataclass

import numpy as np

from models.examples import Examples, Labels, Planes, Tell, quiet
from models.vectors import View


@dataclass(frozen=True, slots=True)
class Params:
    view: View = "tfidf"


def fit(p: Params, x: Examples, labels: Labels, seed: int = 0, tell: Tell = quiet) -> Planes:
    sums, n = x.sums(labels), labels.sum(axis=0)[:, None]
    others = x.sums(np.ones((x.size, 1), np.bool_)) - sums
    mu, nu = sums / np.maximum(n, 1), others / np.maximum(x.size - n, 1)
    bias = -((mu**2).sum(axis=1) - (nu**2).sum(axis=1)) / 2
    tell(1.0)
    return Planes(x.view, x.features, mu - nu, bias, np.zeros(len(bias)))
