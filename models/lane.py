"""One learner at work on one topic, with what it must remember of each judgement.

A member of a committee does not learn every judgement, and may be shown one several times in a row: then its steps are
added up, as if all were taken at the last of these times.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from models import fixed
from models.collection import Window
from models.dense import Document, Vector
from models.learners import AUTO, LEARNERS, Learner, parse_params
from models.measures import Bools
from models.vectors import Reals, View
from models.vocabulary import grown


class Lane:
    def __init__(self, learner: Learner, params: Any) -> None:
        self.view: View = params.view
        self._learner = learner
        self._params = params
        self._state = learner.start(params, None)
        self._steps = np.zeros(16)
        self._at = np.zeros(16, np.int64)  # after how many updates each judgement was learned; 0 if it was not
        self._judged = 0
        self._updates = 0
        self._before = 0  # updates that no judgement caused, but the query

    @classmethod
    def all_of(cls, kind: str, params: Mapping[str, object]) -> "list[Lane]":
        """The lanes of a topic: one, or under `auto` one for each learner that competes."""
        first = parse_params(kind, params)
        if kind != "auto":
            return [cls(LEARNERS[kind], first)]
        return [cls(LEARNERS[one], parse_params(one, {})) for one in AUTO]

    @classmethod
    def fixed(cls, view: View) -> "Lane":
        return cls(fixed, fixed.Params(view))

    def start(self, query: Document | None) -> None:
        self._state = self._learner.start(self._params, query)
        self._before = self.vectors()[0].at

    def resume(self, v: Vector) -> None:
        self._state = self._learner.resume(self._params, v)
        self._before = 0

    def learn(self, x: Document, y: bool, times: int = 1) -> None:
        step = 0.0
        for _ in range(times):
            step += self._learner.update(self._params, self._state, x, y)
        self._updates += times
        self._steps, self._at = grown(self._steps, self._judged + 1), grown(self._at, self._judged + 1)
        self._steps[self._judged] = step
        self._at[self._judged] = self._before + self._updates if times else 0
        self._judged += 1

    def learned(self, n: int) -> Bools:
        """Which of the newest n judgements this learner was shown."""
        return self._at[self._judged - n : self._judged] > 0

    def vectors(self) -> tuple[Vector, ...]:
        return self._learner.vectors(self._params, self._state)

    def held_out(self, v: Vector, window: Window) -> Reals:
        """The scores that v gives the newest judged documents, each without its own step."""
        first = self._judged - window.size
        judged = slice(first, self._judged)
        return self._learner.held_out(self._params, v, window, self._steps[judged], self._at[judged])

    @property
    def nbytes(self) -> int:
        parts = (getattr(self._state, f.name) for f in dataclasses.fields(self._state))
        return self._steps.nbytes + self._at.nbytes + sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
