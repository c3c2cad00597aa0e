"""How each document came to be judged, in the order of the judgements. It decides which judgements are evidence.

A judgement is evidence of how the filter does now if its document is not a near-duplicate of an earlier one, and
arrived after the filter last became worse. Errors of decisions made before the judgement show that: accepted documents
that are irrelevant, documents drawn for audit that are relevant (see drift.py). Documents from before such a change
still teach.

A topic may also fail without an error: it abstains from what it used to accept. That shows in held-out scores. Of the
relevant documents that were shown, more than before would not be accepted by the present model (`faded_since`). All of
them are measured by one model and one cut, so neither learning nor a cut that moved looks like a change.

Documents with an unknown time of arrival (users brought them, or an old log does not have it) count as older than all
others, in the order of their judgements.
"""

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import grown
from models.core.measures import Bools
from models.core.names import ORIGINS, Origin
from models.core.vectors import Features, Reals
from models.goals import drift
from models.goals.evidence import JudgedWindow, Watch
from models.text.minhash import Groups


class Ledger:
    def __init__(self) -> None:
        self.groups = Groups()
        self._relevant = np.zeros(16, np.bool_)
        self._origin = np.zeros(16, np.int8)
        self._chance = np.zeros(16)
        self._accepted = np.zeros(16, np.bool_)
        self._arrived = np.zeros(16, np.int64)
        self._accepted_before = np.zeros(16, np.int64)

    def add(
        self,
        features: Features,
        relevant: bool,
        origin: Origin,
        chance: float,
        accepted: bool,
        arrived: int = 0,
        accepted_before: int = 0,
    ) -> None:
        """Adds a judged document: whether it had been accepted, when it arrived, and how many documents had been
        accepted when it was judged. Both numbers are 0 if unknown."""
        n = self.size
        self._relevant, self._origin = grown(self._relevant, n + 1), grown(self._origin, n + 1)
        self._chance, self._accepted = grown(self._chance, n + 1), grown(self._accepted, n + 1)
        self._relevant[n], self._origin[n] = relevant, ORIGINS.index(origin)
        self._chance[n], self._accepted[n] = chance, accepted
        self._arrived = grown(self._arrived, n + 1)
        self._arrived[n] = arrived or n + 1
        self._accepted_before = grown(self._accepted_before, n + 1)
        self._accepted_before[n] = accepted_before
        self.groups.add(features)

    @property
    def size(self) -> int:
        return self.groups.size

    @property
    def relevant(self) -> Bools:
        return self._relevant[: self.size]

    @property
    def unique(self) -> Bools:
        """Which documents are not near-duplicates of an earlier one."""
        return np.equal(self.groups.group, np.arange(self.size))

    @property
    def sampled(self) -> Bools:
        """Which documents were shown or drawn for audit, and are not near-duplicates of an earlier one."""
        origin = self._origin[: self.size]
        return self.unique & np.isin(origin, (ORIGINS.index("shown"), ORIGINS.index("audit")))

    def last_change(self) -> int:
        """When the first document arrived after the filter last became worse; 0 if it has not."""
        accepted = self._accepted[: self.size] & (self._origin[: self.size] == ORIGINS.index("shown"))
        decided = np.flatnonzero(self.unique & (accepted | (self._origin[: self.size] == ORIGINS.index("audit"))))
        decided = decided[np.argsort(self._arrived[decided], kind="stable")]
        arrived = self._arrived[decided]
        worse = drift.latest_change(self._relevant[decided] != accepted[decided], accepted[decided], arrived)
        return int(arrived[worse.place]) if worse else 0

    def faded_since(self, held_out: Reals, accept_above: float) -> int:
        """When the first document arrived after relevant ones began to score too low to be accepted; 0 if they have
        not. `held_out` are scores of the newest documents."""
        first = self.size - len(held_out)
        shown = self._origin[first : self.size] == ORIGINS.index("shown")
        places = np.flatnonzero(self.unique[first:] & shown & self._relevant[first : self.size])
        arrived = self._arrived[first : self.size][places]
        order = np.argsort(arrived, kind="stable")
        start = drift.regime_start(held_out[places][order] <= accept_above, arrived[order], drift.DELTA / 2)
        return int(arrived[order][start]) if start else 0

    def watch(self) -> Watch:
        """How often people judge what is accepted."""
        accepted = self._accepted[: self.size] & (self._origin[: self.size] == ORIGINS.index("shown"))
        judged_at = np.unique(self._accepted_before[: self.size][accepted])
        judged_at = judged_at[judged_at > 0]
        return Watch(int(judged_at[-1]), float(judged_at[-1]) / len(judged_at)) if len(judged_at) else Watch()

    def arrived_since(self, when: int) -> Bools:
        """Which documents arrived then or later."""
        return self._arrived[: self.size] >= when

    def window(self, held_out: Reals, since: int = 0) -> JudgedWindow:
        """The newest judged documents, with these scores. Those that arrived before `since` are not current."""
        newest = slice(self.size - len(held_out), self.size)
        unique = self.unique[newest]
        return JudgedWindow(
            held_out,
            self._relevant[newest],
            self._origin[newest],
            unique,
            unique & self.arrived_since(since)[newest],
            self._chance[newest],
            self._accepted[newest],
        )

    @property
    def nbytes(self) -> int:
        columns: tuple[NDArray[np.generic], ...] = (
            self._relevant,
            self._origin,
            self._chance,
            self._accepted,
            self._arrived,
            self._accepted_before,
        )
        return self.groups.nbytes + sum(column.nbytes for column in columns)
