"""The two forms of a document between its text and a score, and the form of every model.

* `Bag`     the counted text: distinct features (64-bit hashes, ascending), how often each occurs, and the idf that was
            in force when the document was judged or scored. Any view can be computed from it, now or on replay.
* `Sparse`  a bag seen through a view: features and the values a model multiplies.
* `Linear`  what every model compiles to:

      score(x) = bias + rest·Σ x_f + Σ w_f x_f

  `rest` is the weight of a feature that the model has never seen, and `weights` are relative to it (a feature's whole
  weight is rest + w_f). So a model that starts every feature at 1/d, as EG does, is sparse too, and dropping the
  smallest |w_f| gives a feature the weight of an unseen one, not zero.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.core.latent import Features as Features
from models.core.latent import count_words
from models.core.names import View

Reals = NDArray[np.float64]
Singles = NDArray[np.float32]

SERVED_WEIGHTS = 2000  # of a topic's model, the largest, unless it is configured


@dataclass(frozen=True, slots=True, eq=False)
class Bag:
    features: Features
    counts: Singles
    idf: Singles


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    features: Features
    values: Reals


@dataclass(frozen=True, slots=True, eq=False)
class Linear:
    view: View
    features: Features
    weights: Singles
    bias: float
    rest: float = 0.0

    def score(self, x: Sparse) -> float:
        """The score of a document; the bank computes the same for all topics at once."""
        return self.bias + self.rest * float(x.values.sum()) + float(self.contributions(x).sum())

    def contributions(self, x: Sparse) -> Reals:
        """w_f x_f for each feature of x, zero where the model has no weight for it."""
        if not len(self.features):
            return np.zeros(len(x.features))
        at = np.minimum(np.searchsorted(self.features, x.features), len(self.features) - 1)
        weights = np.where(self.features[at] == x.features, self.weights[at], np.float32(0))
        return weights.astype(np.float64) * x.values

    def strongest(self, n: int) -> "Linear":
        """The same model with only its n largest |w_f|; ties are broken by feature, so the choice is deterministic.
        Latent weights are kept, too, and do not count."""
        words = count_words(self.features)
        if words <= n:
            return self
        keep = np.sort(np.lexsort((self.features[:words], -np.abs(self.weights[:words])))[:n])
        keep = np.append(keep, np.arange(words, len(self.features)))
        return Linear(self.view, self.features[keep], self.weights[keep], self.bias, self.rest)
