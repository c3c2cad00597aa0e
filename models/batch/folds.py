"""Folds for cross-validation that have about as many relevant documents of every topic.

A fold is the same for all topics, since some methods learn them together. So documents are assigned topic by topic, the
rarest topic first, each document to the fold that has the fewest of that topic (Sechidis, Tsoumakas & Vlahavas, "On the
stratification of multi-label data", 2011). A topic's only relevant document is scored by a model that has seen none.
"""

import numpy as np
from numpy.typing import NDArray

from models.methods.matrix import Labels


def stratified_folds(labels: Labels, folds: int, seed: int) -> NDArray[np.int64]:
    """A fold for each document: the relevant ones of every topic as evenly as possible, all others at random."""
    g, m = labels.shape
    rng = np.random.default_rng(seed)
    fold, have = np.full(g, -1), np.zeros((folds, m), np.int64)
    for i in np.argsort(labels.sum(axis=0), kind="stable"):
        for j in rng.permutation(np.flatnonzero(labels[:, i] & (fold < 0))):
            k = int(np.lexsort((have.sum(axis=1), have[:, i]))[0])
            fold[j] = k
            have[k] += labels[j]
    rest = rng.permutation(np.flatnonzero(fold < 0))
    fold[rest] = np.arange(len(rest)) % folds
    return fold
