"""Boosting by several workers: each has a part of the terms, and knows the best of its own.

    E    gives each worker W_1 … W_M a range of the r terms, once, and all documents with only these terms
    W_i  answers the K(s) best of its terms (and all that tie with the last of them), with their c_0 and c_1
    C    chooses the K(s) best of all, and sends every worker the choice

The FARM of Sebastiani, Sperduti & Valdambrini, "An improved boosting algorithm and its application to text
categorization", CIKM 2000, section 4.3. There C also keeps D and sends it to the workers in every round. Here every
worker keeps its own copy of D: g·m numbers change in a round, but a choice takes K(s)·m, and sending D takes longer
than computing it. A worker does to each row of W what a single process would do to it, so the result is the same, bit
for bit, with any number of workers.

Ranges have about as many occurrences of terms, not as many terms, since the occurrences are what costs.

The caller chooses the workers: processes of this machine (service/jobs/farm/local.py) or of a Dask cluster
(service/jobs/farm/dask.py). Each gets its share once, and keeps it; the messages of a round are small.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from models.core.arrays import check
from models.methods.boosting import Ask, Boosted, Params, Rounds, run_rounds
from models.methods.feature_selection import reduced
from models.methods.matrix import Examples, Labels, Planes, Progress, no_progress

MAX_WORKERS = 256


class WorkerShare(NamedTuple):
    """What a worker gets, besides the labels."""

    p: Params
    first: int  # the number of its first term
    x: Examples  # all documents, with only its terms
    known: Labels | None = None  # the pairs of document and topic that count

    def rounds(self, labels: Labels) -> Rounds:
        return Rounds(self.p, self.x, labels, self.first, self.known)


class Crew(Protocol):
    """Workers that are ready to start."""

    @property
    def size(self) -> int: ...

    def assign(self, shares: Sequence[WorkerShare], labels: Labels) -> AbstractContextManager[Ask]:
        """Gives each worker a share, of which there are no more than workers, and a function that asks them all."""


class WorkerDied(RuntimeError):
    """A worker died: its part of the state is lost, and so is the run."""


def fit(
    p: Params,
    x: Examples,
    labels: Labels,
    crew: Crew,
    progress: Progress = no_progress,
    known: Labels | None = None,
) -> Planes:
    """Like the `fit` of boosting.py, by these workers."""
    return farm(p, reduced(x, labels, p.reduction, p.rho, known), labels, crew, progress, known).planes()


def farm(
    p: Params,
    x: Examples,
    labels: Labels,
    crew: Crew,
    progress: Progress = no_progress,
    known: Labels | None = None,
) -> Boosted:
    """The result of `boost`, by these workers."""
    with crew.assign(shares(p, x, crew.size, known), labels) as ask:
        return run_rounds(p, x.features, ask, progress)


def shares(p: Params, x: Examples, workers: int, known: Labels | None = None) -> list[WorkerShare]:
    """Splits the terms into ranges with about as many occurrences each, none of them empty."""
    check(1 <= workers <= MAX_WORKERS, f"workers must be a whole number from 1 to {MAX_WORKERS}")
    check(len(x.features) > 0, "there must be documents, with words, and topics")
    occurrences = np.cumsum(np.bincount(x.columns, minlength=len(x.features)) + 1)
    cuts = np.searchsorted(occurrences, [occurrences[-1] * k / workers for k in range(1, workers)], side="right")
    ends = np.unique([0, *cuts, len(x.features)]).tolist()
    terms = np.arange(len(x.features))
    return [WorkerShare(p, a, x.only((terms >= a) & (terms < b)), known) for a, b in pairwise(ends)]
