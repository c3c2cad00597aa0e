"""Which judged documents belong before which.

    ranks c₁ < c₂ < …        i before k  iff  c_i > c_k        (ordinal regression as classification of pairs)

Herbrich, Graepel & Obermayer 1999; Joachims 2002. A document judged relevant without a grade may have any from 1 to 3:
it belongs before what is irrelevant, and says nothing beside other relevant ones.

A pair weighs the difference of the two gains, so what matters most is that the best documents come first, and hardly at
all how the others are ordered: the first of the two customisations of Cao et al., "Adapting ranking SVM to document
retrieval", SIGIR 2006. (The second, that a query with many documents must not outweigh the others, has no object here:
a topic has one query.)
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.core.measures import gain
from models.core.vectors import Reals

HIGHEST = 3


class Label(NamedTuple):
    """A judgement: relevant or not, and the grade if one was given."""

    relevant: bool
    grade: int | None = None

    @property
    def range(self) -> tuple[int, int]:
        """The lowest and the highest grade that it may stand for."""
        if self.grade is not None:
            return self.grade, self.grade
        return (1, HIGHEST) if self.relevant else (0, 0)

    @property
    def gain(self) -> int:
        return gain(self.relevant, self.grade)


class Pairs(NamedTuple):
    """Places of documents: each of `better` belongs before that of `worse`."""

    better: NDArray[np.int64]
    worse: NDArray[np.int64]
    weights: Reals


def pairs(labels: Sequence[Label]) -> Pairs:
    low, high = (np.array([label.range[i] for label in labels], np.int64) for i in (0, 1))
    gains = np.array([label.gain for label in labels], float)
    better, worse = np.nonzero(low[:, None] > high[None, :])
    return Pairs(better, worse, gains[better] - gains[worse])
