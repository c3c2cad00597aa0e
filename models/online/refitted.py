"""A batch method's run on one topic: fitted again, at every check, to the judgements that it was given.

    fit      v = the method's plane of the judgements so far (models/methods); it stays so until the next check
    w/o i    v·x_i without the document's own influence, or that of its near-duplicates: the score by a plane that was
             fitted without the third of the judgements that they are in

A batch method has no steps, so nothing can be taken back as for a learner. A document that came after the fit had no
part in it. Until there are two relevant and two irrelevant judgements, the run is one of Widrow-Hoff, which begins with
the query; the methods do not see the query.

A check comes after every ten judgements, and more rarely when there are many, so all fits for n judgements cost about
fifty times the last one, not n times. Rejected: going on from the fit with steps of Widrow-Hoff. It is a means for
bases, which are fitted once; here the next fit is near, and between two fits a member would be neither.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from models.core.arrays import grown
from models.core.measures import Bools
from models.core.names import View
from models.core.vectors import Reals
from models.learners import widrow_hoff
from models.learners.base import DocumentVector, Vector
from models.learners.documents import DocumentWindow
from models.methods.matrix import Examples
from models.methods.registry import METHODS, fit, takes_signed_values
from models.online.pins import floor, raised
from models.online.registry import read_params
from models.online.run import LearnerRun

FOLDS = 3
MIN_OF_EACH = 2  # relevant, and irrelevant, judgements


class RefittedRun(LearnerRun):
    def __init__(self, kind: str, params: Mapping[str, object], semantic: bool = False) -> None:
        self._method = read_params(kind, METHODS[kind].Params, params)
        semantic = semantic and takes_signed_values(self._method)
        super().__init__(widrow_hoff, widrow_hoff.Params(view=self._method.view), semantic)
        self._times = np.zeros(16, np.int64)  # how often it was given each judgement
        self._plane: Vector | None = None  # of the last fit; None before the first
        self._own = np.empty(0)  # what each judgement of the last fit adds to its own score
        self._fitted_from = 0  # the number of the first of these

    def learn(self, x: DocumentVector, y: bool, times: int = 1) -> None:
        self._times = grown(self._times, self._judged + 1)
        self._times[self._judged] = times
        super().learn(x, y, times)

    def refit(self, window: DocumentWindow, relevant: Bools, group: NDArray[np.int64]) -> None:
        """Fits the method to the judgements of the window, the newest ones, that this run was given. Near-duplicates
        have the same number in `group`."""
        first = self._judged - window.size
        times = self._times[first : self._judged]
        given = times > 0
        if min(np.count_nonzero(given & relevant), np.count_nonzero(given & ~relevant)) < MIN_OF_EACH:
            return
        plane = self._fit(window, relevant, times)
        scores = window.scores(plane.w, plane.bias, plane.rest)
        own = np.zeros(window.size)
        fold = _folds(given, relevant, group)
        for n in range(FOLDS):
            out = fold == n
            if out.any():
                v = self._fit(window, relevant, np.where(out, 0, times))
                own[out] = (scores - window.scores(v.w, v.bias, v.rest))[out]
        self._plane, self._own, self._fitted_from = plane, own, first
        if len(self._pins):
            self._floor = floor(plane.w, plane.rest)

    @property
    def apart_from_duplicates(self) -> bool:
        return self._plane is not None

    def vectors(self) -> tuple[Vector, ...]:
        if self._plane is None:
            return super().vectors()
        return (raised(self._plane, self._pins, self._floor) if len(self._pins) else self._plane,)

    def held_out(self, v: Vector, window: DocumentWindow) -> Reals:
        """The scores that v, the plane or a part of it, gives the window, each document without its own influence."""
        if self._plane is None:
            return super().held_out(v, window)
        scores = self.scores(v, window)
        numbers = np.arange(self._judged - window.size, self._judged) - self._fitted_from
        fitted = (numbers >= 0) & (numbers < len(self._own))
        scores[fitted] -= self._own[numbers[fitted]]
        return scores

    @property
    def nbytes(self) -> int:
        plane = self._plane.w.nbytes if self._plane else 0
        return super().nbytes + self._times.nbytes + self._own.nbytes + plane

    def _fit(self, window: DocumentWindow, relevant: Bools, times: NDArray[np.int64]) -> Vector:
        rows = np.repeat(np.arange(window.size), times)
        x = _examples(window, rows, self.view)
        if not len(x.features):  # documents without words, which some methods refuse
            return Vector(np.zeros(1), 0.0, 0.0)
        planes = fit(self._method, x, relevant[rows][:, None])
        slots = planes.features.astype(np.int64)
        w = np.zeros(int(slots.max(initial=-1)) + 1)
        w[slots] = planes.w[0]
        return Vector(w, float(planes.bias[0]), float(planes.rest[0]))


def _folds(given: Bools, relevant: Bools, group: NDArray[np.int64]) -> NDArray[np.int64]:
    """The fold of each judgement, −1 for those that were not given: groups are dealt out in the order of their first
    judgements, those that begin with a relevant one apart from the others."""
    fold = np.full(len(given), -1)
    places = np.flatnonzero(given)
    _, first, of_group = np.unique(group[places], return_index=True, return_inverse=True)
    dealt = np.zeros(len(first), np.int64)
    for kind in (True, False):
        of_kind = np.flatnonzero(relevant[places[first]] == kind)
        dealt[of_kind[np.argsort(first[of_kind])]] = np.arange(len(of_kind)) % FOLDS
    fold[places] = dealt[of_group]
    return fold


def _examples(window: DocumentWindow, rows: NDArray[np.int64], view: View) -> Examples:
    """These documents of the window, one after the other; a feature is the number of its slot."""
    sizes = np.diff(window.indptr)[rows]
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(window.indptr[rows] - indptr[:-1], sizes) + np.arange(indptr[-1])
    slots, columns = np.unique(window.slots[places], return_inverse=True)
    values = window.values[places].astype(np.float64)
    return Examples(view, slots.astype(np.uint64), indptr, columns.astype(np.int32), values)
