"""A committee on one topic: which member learns which judgement, how many members there are, and how they vote.

committee.py has the formulas. Here they meet a log that grows: which members learn an example depends on the example's
number and the seed alone, so learning a log at once gives, bit for bit, the members of learning it one by one.

If k is to be found, committees of 1, 2, 4 and 8 members learn side by side (four updates a judgement), and of a batch
method 16, too; the search chooses among them at every check of the pocket. Its estimates come from judged documents
that a member did not learn, cut where their F_1 is best. Covariances come from the same committee; for the KL
estimator, and where the committee has fewer than three members, so that no document is new to two of them, from the
smallest that has three or more. With a given k there is nothing to fit the KL estimator to, and it is left out.

The KL estimator is fitted to the two largest committees other than the one that it is asked about, so that it never
repeats its input. (The paper fits it to 10 and 20 members, which it does not search among.)

A bound on the loss that allows more members does not always get more: the search takes the least error. With members of
Widrow-Hoff, one pass over 30 documents each, the error of those that agree rises with k; with SVM it falls (of twelve
pairs of newsgroups, plain text, 250 documents: measured, and estimated by `beta`).

Every member has a cut of its own. What votes is the score less that cut, so that all members cut at 0.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from models.core.measures import Bools, contingency, f_beta
from models.core.vectors import Reals
from models.goals import calibration, promises
from models.goals.promises import Targets
from models.goals.thresholds import Band, estimated_cut, f_beta_cut
from models.learners.base import Vector
from models.learners.documents import Background, DocumentWindow
from models.methods.registry import METHODS
from models.online.committee import (
    Committee,
    Params,
    VotingRule,
    halved,
    least_distance,
    mean_form,
    meta,
    times_learned,
    turning_points,
    votes,
    voting_rule,
)
from models.online.committee_estimates import (
    CommitteeRates,
    accuracies,
    alike,
    correlation,
    difference,
    pair_covariance,
    regression,
    search,
    unanimous,
)
from models.online.judged import JudgedDocuments
from models.online.model import Model
from models.online.refitted import RefittedRun
from models.online.registry import LEARNERS, parse_params
from models.online.run import LearnerRun
from models.online.scored import Scored

SEARCHED_SIZES = (1, 2, 4, 8)
SEARCHED_OF_METHODS = (*SEARCHED_SIZES, 16)
Estimator = Callable[[int], CommitteeRates]


class CommitteeRun:
    def __init__(self, p: Params, semantic: bool = False) -> None:
        self._p = p
        searched = SEARCHED_OF_METHODS if p.of in METHODS else SEARCHED_SIZES
        sizes = searched if p.k is None else (p.k,)
        self._of_size = {k: [_member(p, semantic) for _ in range(k)] for k in sizes}
        self._k = sizes[0]
        self._counts = [0, 0]  # of irrelevant and relevant examples
        self._estimates: Mapping[str, CommitteeRates] = {}

    @property
    def runs(self) -> list[LearnerRun]:
        """The members of every committee, also of those that are not served."""
        return [run for runs in self._of_size.values() for run in runs]

    @property
    def members(self) -> list[LearnerRun]:
        """The members of the committee that is served."""
        return self._of_size[self._k]

    @property
    def voting(self) -> bool:
        return self._p.combine != "mean"

    def times(self, relevant: bool) -> Iterator[int]:
        """How often each of `runs` learns the next example."""
        nth = self._counts[relevant]
        self._counts[relevant] += 1
        for k in self._of_size:
            yield from times_learned(self._p.method, k, self._p.seed, relevant, nth).tolist()

    def check(self, window: DocumentWindow, relevant: Bools, group: NDArray[np.int64]) -> None:
        """Fit members of a batch method again, estimate the loss and error of the committee, and choose its size if
        that is to be found."""
        for run in self.runs:
            if isinstance(run, RefittedRun):
                run.refit(window, relevant, group)
        if self._p.method != "split" or relevant.all() or not relevant.any():
            return
        estimators = self._estimators(window, relevant)
        if self._p.k is None:
            self._k = search(estimators[self._p.estimator], self._p.max_loss, self._of_size).k
        self._estimates = {name: estimate(self._k) for name, estimate in estimators.items()}

    def mean(self) -> Vector:
        """The vector whose score is the mean of the members' scores."""
        vectors = [run.vectors()[0] for run in self.members]
        return Vector(
            _mean([v.w for v in vectors]),
            float(np.mean([v.bias for v in vectors])),
            float(np.mean([v.rest for v in vectors])),
        )

    def mean_held_out(self, v: Vector, window: DocumentWindow) -> Reals:
        """The mean of the members' scores of a window, each document without its own steps. Members are cut down to the
        weights that their mean, v, has kept."""
        kept = np.ones(len(v.w), np.bool_) if v.kept is None else v.kept
        held_out = [run.held_out(_only(run.vectors()[0], kept), window) for run in self.members]
        mean: Reals = np.mean(np.stack(held_out), axis=0)
        return mean

    def report(self) -> Committee:
        """The size and the estimates, without members."""
        return Committee(self._k, estimates=self._estimates)

    def voted_model(
        self,
        members: Sequence[Scored],
        judged: JudgedDocuments,
        goal: Targets,
        background: Background,
        unjudged: Bools,
    ) -> tuple[Model, Reals]:
        """The model of members that vote, and scores of the window that, compared with its thresholds, give the votes'
        decisions. Without a goal all members vote at their own cuts; what a goal
        maximises moves them all alike."""
        cuts = np.array([member.member_cut for member in members])
        over = np.stack([member.held_out for member in members], axis=1) - cuts
        rule = self._voting_rule(over, judged.relevant)
        if self._p.member_loss:
            h = np.array([least_distance(distances, self._p.member_loss) for distances in over.T])
            members, cuts, rule = [*members, *members], np.concatenate([cuts + h, cuts - h]), halved(rule)
            over = np.concatenate([over - h, over + h], axis=1)
        forms = tuple(
            replace(m.linear, bias=m.linear.bias - cut) for m, cut in zip(members, cuts.tolist(), strict=True)
        )
        unseen = np.stack([member.unseen for member in members], axis=1) - cuts
        unseen = judged.put_held_out(over, unseen, background)
        f1 = f_beta(contingency(meta(votes(over), rule) > 0, judged.relevant)) if judged.relevant.any() else None
        points, unseen_points = turning_points(over, rule), turning_points(unseen, rule)
        since = max(judged.ledger.last_change(), judged.ledger.faded_since(points.accepted_below, 0.0))
        accepting, rejecting = (judged.ledger.window(scores, since) for scores in points)
        usual = Band(0.0, 0.0, f1)
        if goal.maximise and judged.relevant.any():
            scores, passed = points.accepted_below, unseen_points.accepted_below[unjudged]
            best = estimated_cut(goal.maximise, scores, judged.relevant, judged.sampled, passed)
            usual = Band(min(0.0, best.threshold), best.threshold, f1, value=best.value)
        band = promises.choose(
            goal,
            accepting,
            unseen_points.accepted_below,
            usual,
            (rejecting, unseen_points.rejected_above),
        )
        rejected = unjudged & (unseen_points.rejected_above < band.reject_below)
        means = judged.ledger.window(over.mean(axis=1), since)
        model = Model(
            mean_form(forms),
            band.reject_below,
            band.accept_above,
            judged.figures(None, f1),
            judged.evidence(goal, accepting, band, since),
            calibration.calibrate(means, unseen.mean(axis=1)[rejected]),
            replace(self.report(), members=forms, rule=rule),
        )
        return model, points.decision_score(band.reject_below, band.accept_above)

    def _voting_rule(self, over: Reals, relevant: Bools) -> VotingRule:
        """The rule by which members vote. `over` has held-out scores less cuts, a column a member."""
        unseen = np.stack([~run.learned(len(relevant)) for run in self.members], axis=1)
        quality = accuracies((over > 0) == relevant[:, None], unseen, doubt=1)
        return voting_rule(self._p.combine, quality.tolist(), self._p.accept_votes, self._p.reject_votes)

    def _estimators(self, window: DocumentWindow, relevant: Bools) -> dict[str, Estimator]:
        right, unseen = {}, {}
        for k, runs in self._of_size.items():
            held_out = np.stack([run.held_out(run.vectors()[0], window) for run in runs], axis=1)
            cuts = [f_beta_cut(column, relevant, guard=0.0).threshold for column in held_out.T]
            right[k] = (held_out > np.array(cuts)) == relevant[:, None]
            learned = np.stack([run.learned(len(relevant)) for run in runs], axis=1)
            unseen[k] = ~learned if k > 1 else learned  # a single member learned all of them, but scores are held out
        accuracy = {k: float(accuracies(right[k], unseen[k]).mean()) for k in right}
        several = [k for k in right if k > 2]
        if not several:
            return {} if max(right) > 1 else {"cv": lambda k: unanimous([accuracy[k]] * k, 0.0)}
        cov = {k: pair_covariance(right[k], unseen[k]) for k in several}

        def beta(k: int) -> CommitteeRates:
            at = k if k in several else several[0]
            return alike(accuracy[k], correlation(right[at], unseen[at]), k)

        estimators: dict[str, Estimator] = {
            "beta": beta,
            "cv": lambda k: unanimous([accuracy[k]] * k, cov.get(k, cov[several[0]])),
        }
        if len(several) > 1:
            differ = {k: _difference(runs, window, relevant) for k, runs in self._of_size.items()}

            def kl(k: int) -> CommitteeRates:
                others = [other for other in right if 1 < other != k][-2:]
                line = regression([(differ[other], accuracy[other]) for other in others])
                return unanimous([line.at(differ[k])] * k, cov[several[0]])

            estimators["kl"] = kl
        return estimators


def _member(p: Params, semantic: bool) -> LearnerRun:
    if p.of in METHODS:
        return RefittedRun(p.of, p.params, semantic)
    return LearnerRun(LEARNERS[p.of], parse_params(p.of, p.params), semantic)


def _difference(runs: Sequence[LearnerRun], window: DocumentWindow, relevant: Bools) -> float:
    """The mean of diff over the members (see committee_estimates.py)."""
    sizes = np.diff(window.indptr)
    slots = window.slots[window.indptr[0] : window.indptr[-1]]
    span = int(slots.max(initial=0)) + 1

    def shares(part: Bools) -> tuple[Reals, Reals]:
        sides = [part & (relevant == kind) for kind in (True, False)]
        of_relevant, of_irrelevant = (
            np.bincount(slots[np.repeat(side, sizes)], minlength=span) / max(int(np.count_nonzero(side)), 1)
            for side in sides
        )
        return of_relevant, of_irrelevant

    whole = shares(np.ones(len(relevant), np.bool_))
    return float(np.mean([difference(shares(run.learned(len(relevant))), whole) for run in runs]))


def _mean(arrays: Sequence[Reals]) -> Reals:
    """The mean of arrays by slot; beyond its end an array is 0."""
    total = np.zeros(max(map(len, arrays)))
    for array in arrays:
        total[: len(array)] += array
    return total / len(arrays)


def _only(v: Vector, kept: Bools) -> Vector:
    """The vector with only these weights."""
    n = min(len(v.w), len(kept))
    w, minus = np.zeros(len(kept)), None if v.minus is None else np.zeros(len(kept))
    w[:n] = v.w[:n] * kept[:n]
    if v.minus is not None and minus is not None:
        minus[:n] = v.minus[:n] * kept[:n]
    return replace(v, w=w, minus=minus, kept=kept)
