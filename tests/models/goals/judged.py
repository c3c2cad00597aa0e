"""Judged documents for tests of what they are evidence of."""

from collections.abc import Sequence

import numpy as np

from models.core.measures import Bools
from models.core.names import ORIGINS, Origin
from models.core.vectors import Reals
from models.goals.evidence import JudgedWindow
from models.goals.reporting.samples import Trial


def judged(
    scores: Reals, relevant: Bools, origin: Origin | Sequence[Origin] = "shown", current: Bools | None = None
) -> JudgedWindow:
    n = len(scores)
    unique = np.ones(n, np.bool_) if current is None else current
    return JudgedWindow(
        scores,
        relevant,
        np.array([ORIGINS.index(o) for o in ([origin] * n if isinstance(origin, str) else origin)], np.int8),
        unique,
        unique,
        np.full(n, 0.1),
        np.zeros(n, np.bool_),
    )


def ranking(relevant: list[bool]) -> tuple[Reals, Bools]:
    """Scores n, n − 1, …, 1 of documents with these judgements."""
    return np.arange(len(relevant), 0, -1.0), np.array(relevant, np.bool_)


def trial(decision: str, relevant: bool, origin: Origin = "shown", chance: float = 0.0, score: float = 0.0) -> Trial:
    return Trial(decision, score, relevant, origin, chance)
