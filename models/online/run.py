"""One learner's run on one topic: the learner's state, and the step that each judgement caused.

A member of a committee does not learn every judgement, and may learn one several times in a row: then its steps are
added up, as if all were taken at the last of these times.

A run that goes on from a base does not learn again what the base was fitted on. Such a document has no step that could
be taken out of its score. It has an offset instead: the score by a model that was fitted without the document, less the
score by the base. Later steps are other documents', so v·x + offset is a score in which the document had no part.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from models.core.arrays import grown
from models.core.measures import Bools
from models.core.names import View
from models.core.vectors import Reals
from models.learners import fixed
from models.learners.base import DocumentVector, Vector
from models.learners.documents import DocumentWindow
from models.learners.vocabulary import Slots
from models.online.pins import floor, raised
from models.online.registry import AUTO, LEARNERS, LearnerModule, parse_params, takes_signed_values

NO_PINS = np.empty(0, np.int32)


class LearnerRun:
    def __init__(self, learner: LearnerModule, params: Any, semantic: bool = False) -> None:
        """A semantic run sees latent features beside the words, if the learner can and works on tf-idf."""
        semantic = semantic and params.view == "tfidf" and takes_signed_values(params)
        self.view: View = "semantic" if semantic else params.view
        self._learner = learner
        self._params = params
        self._state = learner.start(params, None)
        self._steps = np.zeros(16)
        self._learned_at = np.zeros(16, np.int64)  # the update with which each judgement was learned; 0 if it was not
        self._judged = 0
        self._updates = 0
        self._query_updates = 0  # those that the query caused, before any judgement
        self._offsets = np.zeros(16)
        self.has_base = False  # whether it goes on from a base
        self._pins: Slots = NO_PINS
        self._floor = 0.0  # the least that a pinned term weighs

    @classmethod
    def all_of(cls, kind: str, params: Mapping[str, object], semantic: bool = False) -> "list[LearnerRun]":
        """The runs of a topic: one, or under `auto` one for each learner that competes."""
        first = parse_params(kind, params)
        if kind != "auto":
            return [cls(LEARNERS[kind], first, semantic)]
        return [cls(LEARNERS[name], parse_params(name, {}), semantic) for name in AUTO]

    @classmethod
    def fixed(cls, view: View) -> "LearnerRun":
        return cls(fixed, fixed.Params(view))

    def start(self, query: DocumentVector | None, pins: Slots = NO_PINS) -> None:
        self._state = self._learner.start(self._params, query)
        self._pins = pins
        if len(pins):
            alone = self._learner.start(self._params, DocumentVector(np.zeros(1, np.int32), np.ones(1)))
            self._floor = max((float(v.w[0]) + v.rest for v in self._vectors(alone) if len(v.w)), default=0.0)
        self._query_updates = self.vectors()[0].at

    def resume(self, v: Vector) -> None:
        self._state = self._learner.resume(self._params, v)
        if len(self._pins):
            self._floor = max(floor(v.w, v.rest) for v in self._vectors(self._state))
        self._query_updates = 0
        self.has_base = True

    def learn(self, x: DocumentVector, y: bool, times: int = 1) -> None:
        step = 0.0
        for _ in range(times):
            step += self._learner.update(self._params, self._state, x, y)
        self._updates += times
        self._remember(step, self._query_updates + self._updates if times else 0, 0.0)

    def add_fitted(self, offset: float) -> None:
        """Add a judgement that the base was fitted on, and that is not learned again."""
        self._remember(0.0, 0, offset)

    @property
    def apart_from_duplicates(self) -> bool:
        """Whether held-out scores are without what near-duplicates of the document taught, too."""
        return False

    def learned(self, n: int) -> Bools:
        """Which of the newest n judgements this run has learned."""
        return self._learned_at[self._judged - n : self._judged] > 0

    def vectors(self) -> tuple[Vector, ...]:
        vectors = self._vectors(self._state)
        return tuple(raised(v, self._pins, self._floor) for v in vectors) if len(self._pins) else vectors

    def held_out(self, v: Vector, window: DocumentWindow) -> Reals:
        """The scores that v gives the window, the newest judged documents, each without its own step."""
        judged = slice(self._judged - window.size, self._judged)
        learned = window if v.imposed is None else window.without(v.imposed)
        scores = self._learner.held_out(self._params, v, learned, self._steps[judged], self._learned_at[judged])
        if v.imposed is not None:
            w = np.zeros(len(v.w))
            w[v.imposed] = v.w[v.imposed] + v.rest
            scores += window.scores(w, 0.0, 0.0)
        return scores + self._offsets[judged] if self.has_base else scores

    def scores(self, v: Vector, window: DocumentWindow) -> Reals:
        """The same scores with each document's own step, but still without what the base was fitted on."""
        scores = window.scores(v.w, v.bias, v.rest)
        return scores + self._offsets[self._judged - window.size : self._judged] if self.has_base else scores

    @property
    def nbytes(self) -> int:
        parts = [getattr(self._state, f.name) for f in dataclasses.fields(self._state)]
        parts += [self._steps, self._learned_at, self._offsets]
        return sum(part.nbytes for part in parts if isinstance(part, np.ndarray))

    def _vectors(self, state: Any) -> tuple[Vector, ...]:
        return self._learner.vectors(self._params, state)

    def _remember(self, step: float, at: int, offset: float) -> None:
        n = self._judged
        self._steps, self._offsets = grown(self._steps, n + 1), grown(self._offsets, n + 1)
        self._learned_at = grown(self._learned_at, n + 1)
        self._steps[n], self._learned_at[n], self._offsets[n] = step, at, offset
        self._judged += 1
