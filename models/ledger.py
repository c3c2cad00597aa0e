"""How each document came to be judged, in the order of the judgements: what makes a judgement evidence, or not.

A judgement is evidence of how the filter does now if its document is not near an earlier one, and if it was made since
the filter last became worse. That is told from decisions that stood before the judgement: something accepted that is
irrelevant, something drawn for audit that is relevant (see drift.py). What came before such a change still teaches.
"""

import numpy as np
from numpy.typing import NDArray

from models import drift
from models.goals import ORIGINS, Judged, Origin
from models.measures import Bools
from models.near import Groups
from models.vectors import Features, Reals
from models.vocabulary import grown


class Ledger:
    def __init__(self) -> None:
        self.groups = Groups()
        self._relevant = np.zeros(16, np.bool_)
        self._origin = np.zeros(16, np.int8)
        self._chance = np.zeros(16)
        self._accepted = np.zeros(16, np.bool_)

    def add(self, features: Features, relevant: bool, origin: Origin, chance: float, accepted: bool) -> None:
        """One more judged document, and whether it had been accepted."""
        n = self.size
        self._relevant, self._origin = grown(self._relevant, n + 1), grown(self._origin, n + 1)
        self._chance, self._accepted = grown(self._chance, n + 1), grown(self._accepted, n + 1)
        self._relevant[n], self._origin[n] = relevant, ORIGINS.index(origin)
        self._chance[n], self._accepted[n] = chance, accepted
        self.groups.add(features)

    @property
    def size(self) -> int:
        return self.groups.size

    @property
    def relevant(self) -> Bools:
        return self._relevant[: self.size]

    @property
    def alone(self) -> Bools:
        """Which documents are not near an earlier one."""
        return np.equal(self.groups.group, np.arange(self.size))

    def changed(self) -> int:
        """The document with which the filter last became worse; 0 if it has not."""
        accepted = self._accepted[: self.size] & (self._origin[: self.size] == ORIGINS.index("shown"))
        decided = np.flatnonzero(self.alone & (accepted | (self._origin[: self.size] == ORIGINS.index("audit"))))
        since = drift.since(self._relevant[decided] != accepted[decided])
        return int(decided[since]) if since else 0

    def newest(self, held_out: Reals, since: int = 0) -> Judged:
        """The newest documents with these scores; those before `since` are no evidence of how it does now."""
        first, n = self.size - len(held_out), self.size
        counts = self.alone & (np.arange(n) >= since)
        return Judged(held_out, self._relevant[first:n], self._origin[first:n], counts[first:], self._chance[first:n])

    @property
    def nbytes(self) -> int:
        columns: tuple[NDArray[np.generic], ...] = (self._relevant, self._origin, self._chance, self._accepted)
        return self.groups.nbytes + sum(column.nbytes for column in columns)
