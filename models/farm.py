"""Boosting by several processes: the terms are dealt out, and each process knows the best of its own.

    E    gives each worker W_1 … W_M a range of the r terms, once, and all documents with only these terms
    W_i  answers the K(s) best of its terms (and all that are as good as the last of them), with their c_0 and c_1
    C    chooses the K(s) best of all, and tells every worker what was chosen

The FARM of Sebastiani, Sperduti & Valdambrini, "An improved boosting algorithm and its application to text
categorization", CIKM 2000, section 4.3. There C also keeps D and sends it to the workers in every round. Here every
worker keeps D for itself, all of them the same one: g·m numbers change in a round, but a choice is told in K(s)·m, and
it takes longer to send D than to compute it. A worker does to each row of W what one process would do to it, so that
the result is the same, bit for bit, with any number of workers.

Ranges hold about as many occurrences of terms, not as many terms: an occurrence is what costs.
Rejected: threads, which the kernels would allow, since a process can be killed when it is no longer wanted; and shared
memory, which stays behind when its owner is killed.

Workers are started anew (`spawn`), whatever threads their parent has, and end with it: their pipe closes.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import cast

import numpy as np

from models.boosting import Ask, Boosted, Candidates, Chosen, Params, Rounds, boost, lead
from models.dense import check
from models.examples import Examples, Labels, Planes, Tell, quiet
from models.reduction import reduced

Part = tuple[int, Examples]  # the number of its first term, and the documents with only its terms
MOST = 256


def fit(p: Params, x: Examples, labels: Labels, workers: int, tell: Tell = quiet) -> Planes:
    """As boosting's own."""
    return farm(p, reduced(x, labels, p.reduction, p.rho), labels, workers, tell).planes()


def farm(p: Params, x: Examples, labels: Labels, workers: int, tell: Tell = quiet) -> Boosted:
    """What `boost` gives, by so many processes; one is none but this."""
    check(1 <= workers <= MOST, f"workers must be a whole number from 1 to {MOST}")
    parts = dealt(x, workers)
    if len(parts) < 2:
        return boost(p, x, labels, tell)
    with _hired(p, parts, labels) as ask:
        return lead(p, x.features, ask, tell)


def dealt(x: Examples, workers: int) -> list[Part]:
    """Ranges of terms with about as many occurrences each, none of them empty."""
    occurrences = np.cumsum(np.bincount(x.columns, minlength=len(x.features)) + 1)
    total = int(occurrences[-1]) if len(occurrences) else 0
    cuts = np.searchsorted(occurrences, [total * k / workers for k in range(1, workers)], side="right")
    ends = np.unique([0, *cuts, len(x.features)]).tolist()
    terms = np.arange(len(x.features))
    return [(a, x.only((terms >= a) & (terms < b))) for a, b in pairwise(ends)]


@contextmanager
def _hired(p: Params, parts: Sequence[Part], labels: Labels) -> Iterator[Ask]:
    context = multiprocessing.get_context("spawn")
    pipes = [context.Pipe() for _ in parts]
    processes = [
        context.Process(target=_work, args=(p, first, x, labels, pipe[1]), daemon=True)
        for (first, x), pipe in zip(parts, pipes, strict=True)
    ]
    try:
        for process in processes:
            process.start()
        for _, theirs in pipes:
            theirs.close()  # so that a worker's death closes its pipe, and is noticed here
        yield _asking([ours for ours, _ in pipes])
    finally:
        for ours, _ in pipes:
            ours.close()
        for process in processes:
            if process.pid is not None:
                process.terminate()
                process.join()
                process.close()


def _asking(pipes: Sequence[Connection]) -> Ask:
    def ask(chosen: Chosen | None, K: int) -> list[Candidates]:
        try:
            for pipe in pipes:
                pipe.send((chosen, K))
            return [cast(Candidates, pipe.recv()) for pipe in pipes]
        except (EOFError, OSError) as e:
            raise RuntimeError("a worker of the farm has died") from e

    return ask


def _work(p: Params, first: int, x: Examples, labels: Labels, pipe: Connection) -> None:
    rounds = Rounds(p, x, labels, first)
    while True:
        try:
            chosen, K = pipe.recv()
        except EOFError:  # nobody will ask any more
            return
        pipe.send(rounds.next(chosen, K))
