"""Training a learner on a fixed set of documents: several passes, or many random draws with a pocket.

    in_passes      each pass takes every document once, in a new random order
    random_draws   n draws with replacement;  balanced: each from the relevant or the irrelevant ones, by a coin toss
    pocket         after every 100 examples all documents are ranked; the vector with the highest SAP is kept

Lewis, Schapire, Callan & Papka, "Training algorithms for linear text classifiers", SIGIR 1996, section 7: 100,000
draws, balanced for EG, not for Widrow-Hoff.

A threshold needs scores that the vector did not learn from. For a document that was shown at times t_1, t_2 …, all its
steps are taken back: in an average of n+1 vectors the step g of time t is g·(n+1−t)/(n+1), so with the two sums

    G = Σ g        H = Σ t·g            its coefficient is G − H/(n+1), or G in the last vector.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from models.core.measures import Bools, sap
from models.core.vectors import Reals
from models.learners.base import DocumentVector, Vector
from models.learners.documents import DocumentWindow
from models.online.registry import LEARNERS, parse_params

POCKET_INTERVAL = 100  # examples between two rankings of all documents
Order = NDArray[np.int64]  # indices of the documents, as they are shown


@dataclass(frozen=True, slots=True, eq=False)
class Trained:
    vector: Vector
    scores: Reals  # of the training documents
    held_out: Reals  # each document scored without its own steps


def in_passes(documents: int, passes: int, seed: int) -> Order:
    rng = np.random.default_rng(seed)
    return np.concatenate([np.empty(0, np.int64), *(rng.permutation(documents) for _ in range(passes))])


def random_draws(relevant: Bools, n: int, seed: int, balanced: bool = False) -> Order:
    rng = np.random.default_rng(seed)
    kinds = [np.flatnonzero(relevant), np.flatnonzero(~relevant)]
    if not balanced or not all(map(len, kinds)):
        return rng.integers(len(relevant), size=n)
    return np.where(rng.random(n) < 0.5, rng.choice(kinds[0], n), rng.choice(kinds[1], n))


def train(
    kind: str,
    params: Mapping[str, object],
    documents: Sequence[DocumentVector],
    window: DocumentWindow,
    relevant: Bools,
    order: Order,
    pocket: bool = False,
    first: Vector | None = None,
) -> Trained:
    """Trains a learner on the documents in this order; `window` holds the same documents. `first` is w_1, if it is not
    what the learner has without a query."""
    p, learner = parse_params(kind, params), LEARNERS[kind]
    s = learner.start(p, None) if first is None else learner.resume(p, first)
    G, H = np.zeros(len(documents)), np.zeros(len(documents))
    labels = relevant.tolist()
    best, kept = -1.0, (learner.vectors(p, s)[0], G, H)
    for t, i in enumerate(order.tolist(), 1):
        g = learner.update(p, s, documents[i], labels[i])
        if g:
            G[i] += g
            H[i] += t * g
        if pocket and t % POCKET_INTERVAL == 0:
            v = learner.vectors(p, s)[0]
            value = sap(window.scores(v.w, v.bias, v.rest), relevant)
            if value > best:
                best, kept = value, (v, G.copy(), H.copy())
    v, G, H = kept if pocket else (learner.vectors(p, s)[0], G, H)
    # c has the share of each step already, so held_out must count all of it: as if the vector were no average.
    c = G - H / (v.at + 1) if v.averaged else G
    unaveraged = dataclasses.replace(v, averaged=False)
    held_out = learner.held_out(p, unaveraged, window, c, np.zeros(len(documents), np.int64))
    return Trained(v, window.scores(v.w, v.bias, v.rest), held_out)
