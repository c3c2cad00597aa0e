"""Committees and restrictive classifiers as Siersdorfer, Sizov & Weikum (CIKM 2004) form them, from a complete list.

The service deals out a log that grows (models/online/committee.py); experiments repeat what the paper did. `parts`
draws each member's part from all examples at once. A single classifier becomes restrictive by distance: it abstains
within t of its cut; `least_distance` of models/online/committee.py finds the t that loses a given share of documents.
(The paper searches for it by halving; it is an order statistic.)
"""

import numpy as np
from numpy.typing import NDArray

from models.core.measures import Bools
from models.core.vectors import Reals
from models.online.committee import PART_SIZE, Method, Votes, votes

Order = NDArray[np.int64]

METHODS: tuple[Method, ...] = ("split", "resample_a", "resample_b")


def parts(method: Method, relevant: Bools, k: int, seed: int) -> tuple[Order, ...]:
    """The indexes of each member's examples."""
    rng = np.random.default_rng(seed)
    kinds = [np.flatnonzero(relevant == kind) for kind in (True, False)]
    if method == "split":
        dealt = np.concatenate([rng.permutation(kind) for kind in kinds])
        return tuple(np.sort(dealt[i::k]) for i in range(k))

    m = round(PART_SIZE * len(relevant) / k)
    of_first = round(m * len(kinds[0]) / max(len(relevant), 1))

    def draw(kind: Order, size: int) -> Order:
        return rng.choice(kind, size) if method == "resample_a" and len(kind) else rng.permutation(kind)[:size]

    return tuple(np.concatenate([draw(kinds[0], of_first), draw(kinds[1], m - of_first)]) for _ in range(k))


def restrictive(distances: Reals, t: float) -> Votes:
    """Decisions of a single classifier that abstains within t of its cut."""
    return votes(distances, -t, t)
