"""The fold: from a topic's query and its judgements, in order, to the model that is served.

    model = fold(spec, examples, background)

A `Trainer` is the fold stopped in the middle: learning one more example and asking for the model gives, bit for bit,
what folding all of them from the start would give. It is mutable and belongs to one caller at a time.

A *base* is a model that was made elsewhere: imported, or fitted to all judgements at once. The fold goes on from it.
What it was fitted on is *recalled*: not learned again, but still there where documents are ranked and cut, each with
the score of a model that was fitted without it (see online/run.py).
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from itertools import repeat
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from models.core.measures import Bools
from models.core.names import View
from models.core.vectors import SERVED_WEIGHTS, Bag, Features, Linear, Reals
from models.core.views import view
from models.goals import calibration, promises, thresholds
from models.goals.evidence import collect_evidence
from models.goals.ledger import Ledger
from models.goals.promises import Targets
from models.goals.thresholds import Band
from models.learners.base import DocumentVector, Vector
from models.learners.documents import Background, Collection, DocumentWindow
from models.learners.vocabulary import Slots, Vocabulary
from models.online import pins, pocket
from models.online.committee import mean_form, turning_points
from models.online.committee_run import Council
from models.online.model import Example, Model, ModelFigures, Spec
from models.online.pins import NONE
from models.online.pocket import Candidate
from models.online.registry import parse_committee
from models.online.run import LearnerRun
from models.online.truncation import strongest, weighing
from models.text import minhash

# Σ x_f and ‖x‖ of a document of 60 different words, seen through each view
USUAL: Mapping[View, tuple[float, float]] = {
    "presence": (60.0, 7.7),
    "tf": (90.0, 14.0),
    "sqrt": (70.0, 9.5),
    "strength": (1.0, 0.13),
    "tfidf": (7.0, 1.0),
}


class Trainer:
    def __init__(
        self,
        spec: Spec,
        *,
        base: Model | None = None,
        fitted: Mapping[str, float] = MappingProxyType({}),
        weights: int = SERVED_WEIGHTS,
    ) -> None:
        """`fitted` names the documents that the base was fitted on, judged or not, each with its score by a model that
        was fitted without it."""
        self._base = base
        self._fitted = fitted
        self._weights = weights
        self._query = spec.query
        self._goal = spec.goal
        self._terms = spec.terms
        self._banned = spec.terms.banned
        self._vocabulary = Vocabulary()
        self._pins = self._vocabulary.intern(spec.terms.pinned)
        self._council = Council(parse_committee(spec.params)) if spec.kind == "committee" else None
        self._lanes = self._council.lanes if self._council else LearnerRun.all_of(spec.kind, spec.params)
        self._served = (0, 0)  # the lane, and which of its vectors
        self._pocket: Candidate | None = None  # the winner of the last check, as it was then
        self._frozen = False  # whether the pocketed vector itself is served, or its learner as it goes on
        self._learned = 0  # judgements since the base
        if base is None:
            self._start()
        else:
            self._resume(base.linear)
        self._collection = Collection(list(dict.fromkeys(lane.view for lane in self._lanes)))
        self._ledger = Ledger()
        self._check_at = pocket.EVERY
        self._documents: dict[str, int] = {}
        self._sap: float | None = None
        self._voted = (0, np.empty(0))  # of how many judgements, and what the last model's members made of the newest

    def learn(self, example: Example) -> None:
        slots, seen = self._seen(example.bag, self._collection.views)
        turns = self._council.turns(example.relevant) if self._council else repeat(1, len(self._lanes))
        for lane, times in zip(self._lanes, turns, strict=True):
            lane.learn(seen[lane.view], example.relevant, times)
        self._learned += 1
        self._keep(example, slots, seen)
        if self._collection.size == self._check_at:
            self._check_at += pocket.rhythm(self._collection.size)
            self._check()

    def recall(self, example: Example) -> None:
        """A judged document that the base was fitted on. Only lanes that do not go on from the base learn it."""
        if self._base is None:
            raise ValueError("without a base nothing can have been fitted")
        slots, seen = self._seen(example.bag, self._collection.views)
        turns = self._council.turns(example.relevant) if self._council else repeat(1, len(self._lanes))
        linear = self._base.linear
        offset = self._fitted[example.document] - linear.score(view(linear.view, example.bag))
        for lane, times in zip(self._lanes, turns, strict=True):
            if lane.based:
                lane.recall(offset)
            else:
                lane.learn(seen[lane.view], example.relevant, times)
        self._keep(example, slots, seen)
        self._check_at = self._collection.size + pocket.rhythm(self._collection.size)

    def model(self, background: Background) -> Model:
        n = self._collection.size
        if self._base is not None and not n:
            return self._base_model(self._base)
        if self._council and self._council.voting:
            return self._committee_model(self._council, background)
        lane, v = self._served_run()
        linear = self._compiled(v, lane.view)
        window = self._window(lane.view)
        held_out = self._without_own(lane, v, window)
        unseen, unjudged = self._unseen(lane, linear, background), background.without(self._documents.keys())
        since = self._ledger.last_change()
        band = self._usual_band(v, window, held_out, unseen, unjudged, wide=since > 0)
        held_out = self._without_group(held_out, lane, v, window)
        judged = self._ledger.window(held_out, since)
        if self._goal != Targets():
            unseen = self._held_out_among(background, held_out, unseen)
            band = promises.choose(self._goal, judged, unseen, band)
        calibrated = calibration.calibrate(judged, unseen[unjudged & (unseen < band.reject_below)])
        evidence = collect_evidence(
            self._goal.min_precision, judged, band, self._worse_for(since), self._ledger.watch()
        )
        report = self._council.report() if self._council else None
        figures = self._figures(band.f1)
        return Model(linear, band.reject_below, band.accept_above, figures, evidence, calibrated, report)

    def _committee_model(self, council: Council, background: Background) -> Model:
        """The model of a committee that votes. Without a goal all vote at their own cuts."""
        name, unjudged = council.members[0].view, background.without(self._documents.keys())
        window = self._window(name)
        forms, cuts, held_out, scores = [], [], [], []
        for lane in council.members:
            v = self._truncated(lane.vectors()[0])
            forms.append(self._compiled(v, name))
            mine = lane.held_out(v, window)
            scores.append(self._unseen(lane, forms[-1], background))
            band = self._usual_band(v, window, mine, scores[-1], unjudged)
            cuts.append(min(band.accept_above, _beyond(v, name)))
            held_out.append(self._without_group(mine, lane, v, window))
        over = np.stack(held_out, axis=1) - np.array(cuts)
        unseen = self._held_out_among(background, over, np.stack(scores, axis=1) - np.array(cuts))
        committee, by, f1 = council.convene(forms, cuts, over, self._judged())
        since, told, passed = self._ledger.last_change(), turning_points(over, by), turning_points(unseen, by)
        high, low = (self._ledger.window(one, since) for one in told)
        band = promises.choose(
            self._goal, high, passed.accepted_below, Band(0.0, 0.0, f1), (low, passed.rejected_above)
        )
        self._voted = self._collection.size, told.decision_score(band.reject_below, band.accept_above)
        rejected = unjudged & (passed.rejected_above < band.reject_below)
        calibrated = calibration.calibrate(self._ledger.window(over.mean(axis=1), since), unseen.mean(axis=1)[rejected])
        evidence = collect_evidence(self._goal.min_precision, high, band, self._worse_for(since), self._ledger.watch())
        linear, figures = mean_form(committee.members), self._figures(f1)
        return Model(linear, band.reject_below, band.accept_above, figures, evidence, calibrated, committee)

    def _voted_scores(self, council: Council) -> list[float]:
        """What members that vote make of judged documents, as one score that lies to the cuts of the last model as the
        vote does."""
        if self._voted[0] != self._collection.size:
            self._committee_model(council, Background())
        return self._voted[1].tolist()

    def held_out(self) -> dict[str, float]:
        """The scores of the newest judged documents as the model would give them, each without its own influence."""
        if self._council and self._council.voting:
            scores = self._voted_scores(self._council)
        else:
            lane, v = self._served_run()
            window = self._window(lane.view)
            scores = self._without_group(self._without_own(lane, v, window), lane, v, window).tolist()
        first = self._collection.size - len(scores)
        return {document: scores[n - first] for document, n in self._documents.items() if n >= first}

    def score_unseen(self, model: Model, documents: Mapping[str, Bag]) -> Reals:
        """What the model, this trainer's last, says of documents that were not learned from; of those that the base was
        fitted on, as if it had not been."""
        lane, linear, base = self._lanes[self._served[0]], model.linear, self._base
        scores = np.array([linear.score(view(linear.view, bag)) for bag in documents.values()])
        if lane.based and base:
            for n, (document, bag) in enumerate(documents.items()):
                if document in self._fitted:
                    scores[n] += self._fitted[document] - base.linear.score(view(base.linear.view, bag))
        return scores

    @property
    def alone(self) -> Bools:
        """Which of the documents learned from are not near an earlier one."""
        return self._ledger.unique

    @property
    def signatures(self) -> NDArray[np.uint32]:
        """Of the documents learned from, by which near-duplicates are known."""
        return self._ledger.groups.signatures

    @property
    def nbytes(self) -> int:
        shared = self._vocabulary.nbytes + self._collection.nbytes + self._ledger.nbytes
        return shared + sum(lane.nbytes for lane in self._lanes) + 4096

    def _keep(self, example: Example, slots: Slots, seen: Mapping[View, DocumentVector]) -> None:
        self._documents[example.document] = self._collection.size
        self._collection.add(slots, [x.values for x in seen.values()])
        how = example.origin, example.chance, example.accepted, example.came, example.after
        self._ledger.add(example.bag.features, example.relevant, *how)

    def _unseen(self, lane: LearnerRun, linear: Linear, background: Background) -> Reals:
        """The scores of the background; of documents that the lane's base was fitted on, as if it had not been."""
        scores = background.scores(linear)
        if lane.based and self._base and self._fitted:
            places, numbers = background.among({document: n for n, document in enumerate(self._fitted)})
            without = np.fromiter(self._fitted.values(), float)
            scores[places] += without[numbers] - background.scores(self._base.linear)[places]
        return scores

    def _served_run(self) -> tuple[LearnerRun, Vector]:
        """The lane that is served (of a committee, one of them), and the vector."""
        lane = self._lanes[self._served[0]]
        if self._council:
            return lane, self._truncated(self._council.mean())
        # Until something is learned, a base is served as it is, which a learner without a bias, say, would not do.
        held = self._pocket if self._frozen or not self._learned else None
        v = held.vector if held else lane.vectors()[self._served[1]]
        return lane, self._truncated(v)

    def _without_own(self, lane: LearnerRun, v: Vector, window: DocumentWindow) -> Reals:
        return self._council.mean_held_out(v, window) if self._council else lane.held_out(v, window)

    def _without_group(self, held_out: Reals, lane: LearnerRun, v: Vector, window: DocumentWindow) -> Reals:
        """The same scores without what near-duplicates taught, too."""
        if self._ledger.unique.all():
            return held_out
        group = self._ledger.groups.group[self._collection.size - window.size :]
        return minhash.without_group(held_out, lane.scores(v, window), group)

    def _held_out_among(self, background: Background, held_out: Reals, scores: Reals) -> Reals:
        """The scores of the background in which judged documents have those without their own influence."""
        places, numbers = background.among(self._documents)
        first = self._collection.size - len(held_out)
        learned = numbers >= first
        scores[places[learned]] = held_out[numbers[learned] - first]
        return scores

    def _usual_band(
        self, v: Vector, window: DocumentWindow, held_out: Reals, unseen: Reals, unjudged: Bools, wide: bool = False
    ) -> thresholds.Band:
        return thresholds.choose(
            held_out,
            self._judged(),
            unseen,
            unjudged,
            _scale(v, self._lanes[self._served[0]].view),
            window.scores(v.w, v.bias, v.rest) if self._collection.size <= thresholds.MAX_SEPARATED else None,
            wide=wide,
        )

    def _worse_for(self, since: int) -> int:
        return int(np.count_nonzero(self._ledger.arrived_since(since))) if since else 0

    def _figures(self, f1: float | None) -> ModelFigures:
        n = self._collection.size
        positive = int(np.count_nonzero(self._ledger.relevant))
        return ModelFigures(positive, n - positive, self._sap, f1)

    def _start(self) -> None:
        for lane in self._lanes:
            seen = self._seen(self._query, [lane.view])[1] if self._query else None
            lane.start(seen[lane.view] if seen else None, self._pins)

    def _resume(self, base: Linear) -> None:
        """Learners of the base's view go on from it, the others begin with the query; the base itself competes with
        them: as what the pocket already holds, or, if the first learner cannot go on from it, in a lane of its own.
        Beside a base that was fitted to judged documents and is ranked as if it had not been, learners that were taught
        the same documents are ranked without their own steps."""
        kept = self._kept(base.features)
        slots = self._vocabulary.intern(base.features[kept])
        w = np.zeros(self._vocabulary.size)
        w[slots] = base.weights[kept]
        v = Vector(w, base.bias, base.rest)
        self._start()
        for lane in self._lanes:
            if lane.view == base.view:
                lane.resume(v)
        if self._lanes[0].view == base.view:
            held = pins.raised(v, self._pins, pins.least(w, base.rest)) if len(self._pins) else v
            self._pocket = Candidate(0, 0, held)
        elif not self._council:
            self._lanes.append(LearnerRun.fixed(base.view))
            self._lanes[-1].start(None, self._pins)
            self._lanes[-1].resume(v)
            self._served = (len(self._lanes) - 1, 0)

    def _check(self) -> None:
        relevant = self._judged()
        if self._council:
            self._council.check(self._window(self._lanes[0].view), relevant)
            return
        if not relevant.any():
            return
        candidates = [Candidate(i, k, v) for i, lane in enumerate(self._lanes) for k, v in enumerate(lane.vectors())]
        live = len(candidates)
        if self._pocket:
            candidates.append(self._pocket)
        scores = [self._ranking(self._lanes[c.lane], c.vector) for c in candidates]
        winner, self._sap = pocket.best(scores, relevant)
        self._pocket = candidates[winner]
        self._served = (self._pocket.lane, self._pocket.which)
        self._frozen = winner >= live

    def _ranking(self, lane: LearnerRun, v: Vector) -> Reals:
        window = self._window(lane.view)
        return lane.held_out(v, window) if self._fitted and not lane.based else lane.scores(v, window)

    def _judged(self) -> Bools:
        return self._ledger.relevant[-pocket.WINDOW :]

    def _window(self, name: View) -> DocumentWindow:
        return self._collection.newest(pocket.WINDOW, name)

    def _kept(self, features: Features) -> Bools | slice:
        """Which of the features are not banned."""
        return ~np.isin(features, self._banned) if len(self._banned) else slice(None)

    def _seen(self, bag: Bag, views: Sequence[View]) -> tuple[Slots, dict[View, DocumentVector]]:
        """The document as the topic sees it: without banned terms, whose values are part of its length all the same."""
        kept = self._kept(bag.features)
        slots = self._vocabulary.intern(bag.features[kept])
        return slots, {name: DocumentVector(slots, view(name, bag).values[kept]) for name in views}

    def _base_model(self, base: Model) -> Model:
        """The base, served before anything is learned, at its own cuts."""
        if self._terms == NONE:
            return base
        linear, together = pins.applied(base.linear, self._terms), base.committee
        if together:
            members = tuple(pins.applied(member, self._terms) for member in together.members)
            together = dataclasses.replace(together, members=members)
        return dataclasses.replace(base, linear=linear, committee=together)

    def _truncated(self, v: Vector) -> Vector:
        """The vector with only its strongest weights, rounded as they are served."""
        w = v.w[: self._vocabulary.size].astype(np.float32)
        size = np.abs(w)
        if len(self._pins):
            size[self._pins[self._pins < len(w)]] = np.inf
        room = max(self._weights - (len(self._banned) if v.rest else 0), len(self._pins), 1)
        kept = strongest(size, room, self._vocabulary.ascending)
        minus = None if v.minus is None else v.minus[: len(w)] * kept
        rest = pins.rounded(v.rest) if len(self._banned) else v.rest
        # A product, because w[~kept] = 0 asks of each weight what no processor can foresee: ten times as slow.
        return dataclasses.replace(v, w=(w * kept).astype(np.float64), rest=rest, minus=minus, kept=kept)

    def _compiled(self, v: Vector, name: View) -> Linear:
        vocabulary = self._vocabulary
        linear = Linear(name, *weighing(v.w, vocabulary.features, vocabulary.ascending), v.bias, v.rest)
        return pins.silenced(linear, self._terms)


def _scale(v: Vector, name: View) -> thresholds.Scale:
    """What v says of an unrelated document, and of one that points where v points, both of usual length."""
    total, length = USUAL[name]
    zero = v.bias + v.rest * total
    return thresholds.Scale(zero, zero + length * float(np.sqrt(np.square(v.w).sum())))


def _beyond(v: Vector, name: View) -> float:
    """A cut for a member that had better accept nothing: NEVER is too large to be subtracted from a score."""
    scale = _scale(v, name)
    return scale.zero + max(scale.one - scale.zero, 1.0)


def fold(
    spec: Spec,
    examples: Iterable[Example],
    background: Background,
    *,
    base: Model | None = None,
    weights: int = SERVED_WEIGHTS,
) -> Model:
    """The model that these judgements make, in their order."""
    trainer = Trainer(spec, base=base, weights=weights)
    for example in examples:
        trainer.learn(example)
    return trainer.model(background)
