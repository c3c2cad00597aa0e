"""Boosting by several workers: the terms are dealt out, and each worker knows the best of its own.

    E    gives each worker W_1 … W_M a range of the r terms, once, and all documents with only these terms
    W_i  answers the K(s) best of its terms (and all that are as good as the last of them), with their c_0 and c_1
    C    chooses the K(s) best of all, and tells every worker what was chosen

The FARM of Sebastiani, Sperduti & Valdambrini, "An improved boosting algorithm and its application to text
categorization", CIKM 2000, section 4.3. There C also keeps D and sends it to the workers in every round. Here every
worker keeps D for itself, all of them the same one: g·m numbers change in a round, but a choice is told in K(s)·m, and
it takes longer to send D than to compute it. A worker does to each row of W what one process would do to it, so that
the result is the same, bit for bit, with any number of workers.

Ranges hold about as many occurrences of terms, not as many terms: an occurrence is what costs.

Who the workers are is the caller's: processes of this machine (service/jobs/farm/local.py) or of a Dask cluster
(service/jobs/farm/dask.py). A crew is told each part once, and keeps it; what goes to and fro in a round is small.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from models.batch.boosting import Ask, Boosted, Params, Rounds, lead
from models.batch.feature_selection import reduced
from models.batch.matrix import Examples, Labels, Planes, Progress, no_progress
from models.core.arrays import check

MAX_WORKERS = 256


class WorkerShare(NamedTuple):
    """What one worker is given beside the labels."""

    p: Params
    first: int  # the number of its first term
    x: Examples  # all documents, with only its terms

    def rounds(self, labels: Labels) -> Rounds:
        return Rounds(self.p, self.x, labels, self.first)


class Crew(Protocol):
    """So many workers, ready for work."""

    @property
    def size(self) -> int: ...

    def hired(self, parts: Sequence[WorkerShare], labels: Labels) -> AbstractContextManager[Ask]:
        """Each with one part, asked all at once; there are no more parts than workers."""


class WorkerDied(RuntimeError):
    """What it knew is lost, and so is the run."""


def fit(p: Params, x: Examples, labels: Labels, crew: Crew, progress: Progress = no_progress) -> Planes:
    """As boosting's own."""
    return farm(p, reduced(x, labels, p.reduction, p.rho), labels, crew, progress).planes()


def farm(p: Params, x: Examples, labels: Labels, crew: Crew, progress: Progress = no_progress) -> Boosted:
    """What `boost` gives, by this crew."""
    with crew.hired(shares(p, x, crew.size), labels) as ask:
        return lead(p, x.features, ask, progress)


def shares(p: Params, x: Examples, workers: int) -> list[WorkerShare]:
    """Ranges of terms with about as many occurrences each, none of them empty."""
    check(1 <= workers <= MAX_WORKERS, f"workers must be a whole number from 1 to {MAX_WORKERS}")
    check(len(x.features) > 0, "there must be documents, with words, and topics")
    occurrences = np.cumsum(np.bincount(x.columns, minlength=len(x.features)) + 1)
    cuts = np.searchsorted(occurrences, [occurrences[-1] * k / workers for k in range(1, workers)], side="right")
    ends = np.unique([0, *cuts, len(x.features)]).tolist()
    terms = np.arange(len(x.features))
    return [WorkerShare(p, a, x.only((terms >= a) & (terms < b))) for a, b in pairwise(ends)]
