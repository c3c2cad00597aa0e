"""Centroid: a document is relevant if it is nearer to the mean relevant document than to the mean irrelevant one.

    μ = Σ_{d∈c} x_d / n_c      ν = Σ_{d∉c} x_d / (g − n_c)
    distance    Φ(d) = ½ (‖x_d − ν‖² − ‖x_d − μ‖²) = (μ − ν)·x_d − ½ (‖μ‖² − ‖ν‖²)
    cosine      Φ(d) = (μ/‖μ‖ − ν/‖ν‖)·x_d

The base classifier beside the SVM in Siersdorfer, Sizov & Weikum, "Goal-oriented methods and meta methods for document
classification and their parameter tuning", CIKM 2004, which does not define "near". By distance it is Rocchio's formula
with β = γ = 1, no query, negative weights left in, and its own cut. Cosine is that of Han & Karypis, "Centroid-based
document classification", PKDD 2000: the more documents differ, the shorter is their mean, and by distance the shorter
mean gets what lies between. For two groups of equal size cosine errs less: .0219 against .0302, on held-out training
documents of 60 pairs of newsgroups. If there are no relevant, or no irrelevant, documents, their mean is the origin.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from models.core.names import WordView
from models.methods.matrix import Examples, Labels, Planes, Progress, no_progress


@dataclass(frozen=True, slots=True)
class Params:
    view: WordView = "tfidf"
    by: Literal["distance", "cosine"] = "distance"


def fit(p: Params, x: Examples, labels: Labels, seed: int = 0, progress: Progress = no_progress) -> Planes:
    sums, n = x.sums(labels), labels.sum(axis=0)[:, None]
    others = x.sums(np.ones((x.size, 1), np.bool_)) - sums
    mu, nu = sums / np.maximum(n, 1), others / np.maximum(x.size - n, 1)
    mu2, nu2 = ((mean**2).sum(axis=1) for mean in (mu, nu))
    progress(1.0)
    if p.by == "cosine":
        w = mu / np.sqrt(np.where(mu2 > 0, mu2, 1))[:, None] - nu / np.sqrt(np.where(nu2 > 0, nu2, 1))[:, None]
        return Planes(x.view, x.features, w, np.zeros(len(w)), np.zeros(len(w)))
    return Planes(x.view, x.features, mu - nu, (nu2 - mu2) / 2, np.zeros(len(mu2)))
