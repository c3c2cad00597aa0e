"""One learner at work on one topic, with what it must remember of each judgement."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from models import fixed
from models.collection import Window
from models.dense import Document, Vector
from models.learners import AUTO, LEARNERS, Learner, parse_params
from models.vectors import Reals, View
from models.vocabulary import grown


class Lane:
    def __init__(self, learner: Learner, params: Any) -> None:
        self.view: View = params.view
        self._learner = learner
        self._params = params
        self._state = learner.start(params, None)
        self._steps = np.zeros(16)
        self._judged = 0
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

    def learn(self, x: Document, y: bool) -> None:
        self._steps = grown(self._steps, self._judged + 1)
        self._steps[self._judged] = self._learner.update(self._params, self._state, x, y)
        self._judged += 1

    def vectors(self) -> tuple[Vector, ...]:
        return self._learner.vectors(self._params, self._state)

    def held_out(self, v: Vector, window: Window) -> Reals:
        """The scores that v gives the newest judged documents, each without its own step."""
        first = self._judged - window.size
        t = self._before + 1 + np.arange(first, self._judged)
        return self._learner.held_out(self._params, v, window, self._steps[first : self._judged], t)

    @property
    def nbytes(self) -> int:
        parts = (getattr(self._state, f.name) for f in dataclasses.fields(self._state))
        return self._steps.nbytes + sum(part.nbytes for part in parts if isinstance(part, np.ndarray))
