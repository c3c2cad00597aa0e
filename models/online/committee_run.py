"""A committee at work on one topic: which member learns which judgement, how many members there are, how they vote.

`committee.py` has the formulas. Here they meet a log that grows: whoever learns an example is a function of the
example's number and the seed, so the members of a log are, bit for bit, those of the same log learned one by one.

If k is to be found, committees of 1, 2, 4 and 8 members learn side by side (four updates a judgement), and the search
chooses among them at every check of the pocket. Its estimates come from judged documents that a member was not shown,
cut where their F_1 is best; covariances from the same committee or, if it has no two members that leave documents to a
third, and for the KL estimator, from the smallest that has. That estimator is fitted to the two largest; with a given k
there is nothing to fit it to, and it is left out.

Every member has a cut of its own, and the form that votes is the score over that cut, so that all cut at 0.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from models.core.measures import Bools, contingency, f_beta
from models.core.vectors import Linear, Reals
from models.goals.thresholds import f_beta_cut
from models.learners.base import Vector
from models.learners.documents import DocumentWindow
from models.online.committee import Committee, Params, VotingRule, meta, rule, times_learned, votes
from models.online.committee_estimates import (
    LossAndError,
    accuracies,
    alike,
    correlation,
    difference,
    pair_covariance,
    regression,
    search,
    unanimous,
)
from models.online.registry import LEARNERS, parse_params
from models.online.run import LearnerRun

SEARCHED = (1, 2, 4, 8)
Estimator = Callable[[int], LossAndError]


class Council:
    def __init__(self, p: Params) -> None:
        self._p = p
        sizes = SEARCHED if p.k is None else (p.k,)
        self._of_size = {k: [LearnerRun(LEARNERS[p.of], parse_params(p.of, p.params)) for _ in range(k)] for k in sizes}
        self._k = sizes[0]
        self._met = [0, 0]  # irrelevant and relevant examples
        self._estimates: Mapping[str, LossAndError] = {}

    @property
    def lanes(self) -> list[LearnerRun]:
        """Every learner, of committees that are not served too."""
        return [lane for lanes in self._of_size.values() for lane in lanes]

    @property
    def members(self) -> list[LearnerRun]:
        return self._of_size[self._k]

    @property
    def voting(self) -> bool:
        return self._p.combine != "mean"

    def turns(self, relevant: bool) -> Iterator[int]:
        """How often each of `lanes` learns the next example."""
        nth = self._met[relevant]
        self._met[relevant] += 1
        for k in self._of_size:
            yield from times_learned(self._p.method, k, self._p.seed, relevant, nth).tolist()

    def check(self, window: DocumentWindow, relevant: Bools) -> None:
        """Estimates what the committee loses and errs, and takes the best size if that is to be found."""
        if self._p.method != "split" or relevant.all() or not relevant.any():
            return
        estimators = self._estimators(window, relevant)
        if self._p.k is None:
            self._k = search(estimators[self._p.estimator], self._p.max_loss, self._of_size).k
        self._estimates = {name: estimate(self._k) for name, estimate in estimators.items()}

    def mean(self) -> Vector:
        """The vector whose score is the mean of the members' scores."""
        vectors = [lane.vectors()[0] for lane in self.members]
        return Vector(
            _mean([v.w for v in vectors]),
            float(np.mean([v.bias for v in vectors])),
            float(np.mean([v.rest for v in vectors])),
        )

    def mean_held_out(self, v: Vector, window: DocumentWindow) -> Reals:
        """The mean of the members' scores of the newest judged documents, each without its own steps; members have only
        those weights that their mean, v, has kept."""
        kept = np.ones(len(v.w), np.bool_) if v.kept is None else v.kept
        held_out = [lane.held_out(_only(lane.vectors()[0], kept), window) for lane in self.members]
        mean: Reals = np.mean(np.stack(held_out), axis=0)
        return mean

    def report(self) -> Committee:
        return Committee(self._k, estimates=self._estimates)

    def convene(
        self, forms: Sequence[Linear], cuts: Sequence[float], over: Reals, relevant: Bools
    ) -> tuple[Committee, VotingRule, float | None]:
        """The members as they vote, by which rule, and the F_1 of that. `over` has held-out scores over the cuts, a
        column for each member."""
        unseen = np.stack([~lane.learned(len(relevant)) for lane in self.members], axis=1)
        quality = accuracies((over > 0) == relevant[:, None], unseen, doubt=1)
        combine = "unanimous" if self._p.combine == "mean" else self._p.combine
        by = rule(combine, quality.tolist())
        f1 = f_beta(contingency(meta(votes(over), by) > 0, relevant)) if relevant.any() else None
        members = tuple(replace(form, bias=form.bias - cut) for form, cut in zip(forms, cuts, strict=True))
        return replace(self.report(), members=members, rule=by), by, f1

    def _estimators(self, window: DocumentWindow, relevant: Bools) -> dict[str, Estimator]:
        right, unseen = {}, {}
        for k, lanes in self._of_size.items():
            held_out = np.stack([lane.held_out(lane.vectors()[0], window) for lane in lanes], axis=1)
            cuts = [f_beta_cut(column, relevant, guard=0.0).threshold for column in held_out.T]
            right[k] = (held_out > np.array(cuts)) == relevant[:, None]
            learned = np.stack([lane.learned(len(relevant)) for lane in lanes], axis=1)
            unseen[k] = ~learned if k > 1 else learned  # one member was shown everything: its own step is taken back
        accuracy = {k: float(accuracies(right[k], unseen[k]).mean()) for k in right}
        found: dict[str, Estimator] = {}
        several = [k for k in right if k > 2]
        if not several:
            return found if max(right) > 1 else {"cv": lambda k: unanimous([accuracy[k]] * k, 0.0)}
        cov = {k: pair_covariance(right[k], unseen[k]) for k in several}

        def beta(k: int) -> LossAndError:
            at = k if k in several else several[0]
            return alike(accuracy[k], correlation(right[at], unseen[at]), k)

        found = {"beta": beta, "cv": lambda k: unanimous([accuracy[k]] * k, cov.get(k, cov[several[0]]))}
        if len(several) > 1:
            differ = {k: _difference(lanes, window, relevant) for k, lanes in self._of_size.items()}
            line = regression([(differ[k], accuracy[k]) for k in several[-2:]])
            found["kl"] = lambda k: unanimous([line.at(differ[k])] * k, cov[several[0]])
        return found


def _difference(lanes: Sequence[LearnerRun], window: DocumentWindow, relevant: Bools) -> float:
    """diff, the mean over the members."""
    sizes = np.diff(window.indptr)
    slots = window.slots[window.indptr[0] : window.indptr[-1]]
    span = int(slots.max(initial=0)) + 1

    def shares(part: Bools) -> tuple[Reals, Reals]:
        sides = [part & (relevant == kind) for kind in (True, False)]
        one, other = (
            np.bincount(slots[np.repeat(side, sizes)], minlength=span) / max(int(np.count_nonzero(side)), 1)
            for side in sides
        )
        return one, other

    whole = shares(np.ones(len(relevant), np.bool_))
    return float(np.mean([difference(shares(lane.learned(len(relevant))), whole) for lane in lanes]))


def _mean(arrays: Sequence[Reals]) -> Reals:
    """Of arrays by slot: beyond its end an array is 0."""
    total = np.zeros(max(map(len, arrays)))
    for array in arrays:
        total[: len(array)] += array
    return total / len(arrays)


def _only(v: Vector, kept: Bools) -> Vector:
    n = min(len(v.w), len(kept))
    w, minus = np.zeros(len(kept)), None if v.minus is None else np.zeros(len(kept))
    w[:n] = v.w[:n] * kept[:n]
    if v.minus is not None and minus is not None:
        minus[:n] = v.minus[:n] * kept[:n]
    return replace(v, w=w, minus=minus, kept=kept)
