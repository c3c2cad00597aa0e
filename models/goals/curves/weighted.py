"""Judged documents as a sample of the whole stream: each stands for as many documents as were decided like it.

    shown      n of `total` accepted documents were judged: each weighs total / n; those abstained from likewise
    rejected   N documents, of which audits were drawn with chance c: an audit weighs N · (1/c) / Σ 1/c
    unseen     the weight of parts of which nothing was judged; they count as rejected, and how many of them are
               relevant is not known

Where a stream was not counted, a shown document weighs 1 and an audit 1/c. What users brought along or came across is
no sample, and left out. Horvitz & Thompson 1952; weights that add up to the counts: Hájek 1971. The scores may be
others than those by which the documents were decided: by the model as it is now, which did not learn from them.

    share of documents with a property   Σ w over those that have it / Σ w, with the bounds of a sum of rare events of
                                         unequal weights (Fay & Feuer, core/intervals.py)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.core import intervals
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals.reporting.samples import Bounded, Trial
from models.goals.reporting.volume import StreamCounts


@dataclass(frozen=True, slots=True, eq=False)
class StreamSample:
    """Documents by ascending score, and what each stands for."""

    scores: Reals
    relevant: Bools
    weights: Reals
    unseen: float = 0.0

    @classmethod
    def of(cls, trials: Sequence[Trial], scores: Sequence[float], counts: StreamCounts) -> "StreamSample":
        """These documents, with these scores in place of those by which they were decided."""
        weights = np.zeros(len(trials))
        unseen = 0.0
        parts = (("accept", "shown", counts.accepted), ("abstain", "shown", counts.abstained))
        for decision, origin, total in (*parts, ("reject", "audit", counts.rejected)):
            places = [i for i, t in enumerate(trials) if (t.decision, t.origin) == (decision, origin)]
            each = np.array([1 / trials[i].chance if origin == "audit" else 1.0 for i in places])
            if not places:
                unseen += total
            else:
                weights[places] = each * max(1.0, total / each.sum()) if counts.documents else each
        held = np.flatnonzero(weights)
        held = held[np.argsort(np.array(scores)[held], kind="stable")]
        relevant = np.array([t.relevant for t in trials], np.bool_)
        return cls(np.array(scores, float)[held], relevant[held], weights[held], unseen)

    @property
    def total(self) -> float:
        return float(self.weights.sum()) + self.unseen

    def weight(self, which: Bools, tail: float) -> Bounded:
        """The number of documents of the stream that these stand for; each bound fails with probability `tail`. The
        next document of that kind might be of any part, and so have the largest weight."""
        w = self.weights[which]
        largest = self.weights.max(initial=1.0)
        y, v = np.array([w.sum()]), np.array([(w**2).sum()])
        low, high = intervals.totals(y, v, np.array([largest]), 1 - tail)
        return Bounded(float(y[0]), float(low[0]), float(high[0]))
