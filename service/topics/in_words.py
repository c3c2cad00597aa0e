"""A model that goes by meaning as one of words alone, for a file that a server with another projection can read.

    Σ_k u_k z_k  =  α/‖y‖ · Σ_k u_k y_k  ≈  β Σ_k u_k y_k           (letters as in models/text/projection.py)

The sum on the right is linear in the words of a document: β V u are weights to be added to theirs. ‖y‖ is not the same
for all documents, so scores differ a little from those of the model itself; β is the factor with which they differ
least, by squares, over a sample of the stream.
"""

from collections.abc import Sequence

import numpy as np

from models.core.latent import count_words
from models.core.vectors import Bag, Linear, Reals, Sparse
from models.core.views import view
from models.text.projection import Projection


def in_words(linear: Linear, projection: Projection, sample: Sequence[Bag], weights: int) -> Linear:
    """The model in words, with at most so many weights, the largest."""
    u = latent_weights(linear, projection)
    on_words, constant = projection.on_words(u)
    V_u = Linear("tfidf", projection.features, on_words.astype(np.float32), constant)
    linear_sums = np.array([V_u.score(view("tfidf", bag)) for bag in sample])
    latent_sums = np.array([float(projection.latent(bag) @ u) for bag in sample])
    known = latent_sums != 0  # a document without any term of the projection has no place in it
    square = float(np.square(linear_sums[known]).sum())
    beta = float(linear_sums[known] @ latent_sums[known]) / square if square else projection.alpha
    n = count_words(linear.features)
    features = np.union1d(linear.features[:n], projection.features)
    added = np.zeros(len(features))
    added[np.searchsorted(features, linear.features[:n])] = linear.weights[:n]
    added[np.searchsorted(features, projection.features)] += beta * on_words
    kept = added != 0
    bias = linear.bias + beta * constant
    return Linear("tfidf", features[kept], added[kept].astype(np.float32), bias, linear.rest).strongest(weights)


def latent_weights(linear: Linear, projection: Projection) -> Reals:
    """u: what a model weights each column of the projection with."""
    columns = Sparse(projection.latent_features, np.ones(projection.columns))
    return linear.contributions(columns) + linear.rest
