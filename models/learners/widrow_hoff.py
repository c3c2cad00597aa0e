"""Widrow-Hoff (LMS): gradient descent on the squared error, one example at a time.

    w_{t+1} = w_t − 2η (w_t·x_t − y_t) x_t            y ∈ {0, 1}
    w̄ = (w_1 + … + w_{n+1}) / (n+1)                    the average, which is served (see averaged.py)

Lewis, Schapire, Callan & Papka, "Training algorithms for linear text classifiers", SIGIR 1996.

Parameters. Paper: η = 1/(4X²), X being the longest document (here: so far; `eta: null`), and no bias. Ours, better on a
stream with few judgements: η = .35 and a constant feature of value .2 in every document (AP higher by .003 to .012 on
three corpora than with .5 and .3). The average ranks better where topics stand still, the last vector where they move:
the pocket compares the two. Batch fits of the same judgements, background documents as examples, steps of other sizes
and many more did not do better: docs/experiments.md.

Differences from the formula:
* η never exceeds 1/‖x‖², the rate of the paper's routing experiments: beyond it a step overshoots further than it was
  off, and in a view that is not normalised the weights would grow without bound.
* The query is the first example, and relevant.
"""

from dataclasses import dataclass

from models.core.arrays import check
from models.core.names import WordView
from models.learners import averaged
from models.learners.base import DocumentVector, Vector


@dataclass(frozen=True, slots=True)
class Params:
    eta: float | None = 0.35
    bias: float = 0.2
    average: bool = True
    view: WordView = "tfidf"

    def __post_init__(self) -> None:
        check(
            self.eta is None or 0 < self.eta <= 100, "eta must be null, for 1/(4X²), or a number above 0 and up to 100"
        )
        check(0 <= self.bias <= 100, "bias must be a number from 0 to 100")


@dataclass(slots=True)
class State(averaged.State):
    X2: float = 0.0  # the largest ‖x‖² so far


def start(p: Params, query: DocumentVector | None) -> State:
    s = State()
    if query is not None:
        update(p, s, query, True)
    return s


def resume(p: Params, v: Vector) -> State:
    s = averaged.resume(p, v)
    return State(s.w, s.a, s.w0)


def update(p: Params, s: State, x: DocumentVector, y: bool) -> float:
    """Learn in place; the step is the document's coefficient in w."""
    s.meet(x)
    x2 = x.square + p.bias**2
    s.X2 = max(s.X2, x2)
    if x2 == 0:
        return 0.0
    eta = min(p.eta if p.eta is not None else 1 / (4 * s.X2), 1 / x2)
    return s.add(-2 * eta * (s.score(x, p.bias) - y), x, p.bias)


vectors, held_out = averaged.vectors, averaged.held_out
