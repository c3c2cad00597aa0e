"""PA-I, the passive-aggressive algorithm: the smallest step that puts an example right by a margin of 1, up to C.

    ℓ = max(0, 1 − y w·x)                    y ∈ {−1, 1}
    w ← w + τ y x,    τ = min(C, ℓ / ‖x‖²)

Crammer, Dekel, Keshet, Shalev-Shwartz & Singer, "Online passive-aggressive algorithms", JMLR 2006.

Parameters. The paper leaves C open. Ours: C = 1, tf-idf cosine, a constant feature of value .3, and the average of all
vectors (see averaged.py). The query is the first example, and relevant.
"""

from dataclasses import dataclass

from models.core.arrays import check
from models.core.names import WordView
from models.learners import averaged
from models.learners.base import DocumentVector


@dataclass(frozen=True, slots=True)
class Params:
    C: float = 1.0
    bias: float = 0.3
    average: bool = True
    view: WordView = "tfidf"

    def __post_init__(self) -> None:
        check(0 < self.C <= 1e6, "C must be a number above 0 and up to 1e6")
        check(0 <= self.bias <= 100, "bias must be a number from 0 to 100")


State = averaged.State


def start(p: Params, query: DocumentVector | None) -> State:
    s = State()
    if query is not None:
        update(p, s, query, True)
    return s


def update(p: Params, s: State, x: DocumentVector, y: bool) -> float:
    """Learn in place; the step is the document's coefficient in w."""
    s.meet(x)
    sign = 1 if y else -1
    loss = 1 - sign * s.score(x, p.bias)
    x2 = x.square + p.bias**2
    if loss <= 0 or x2 == 0:
        return 0.0
    return s.add(sign * min(p.C, loss / x2), x, p.bias)


resume, vectors, held_out = averaged.resume, averaged.vectors, averaged.held_out
