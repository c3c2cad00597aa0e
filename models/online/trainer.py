"""The trainer: from a topic's query and its judgements, in order, to the model that is served.

    model = fold(spec, examples, background)

A `Trainer` is the fold stopped in the middle: learning one more example and asking for the model gives, bit for bit,
what folding all of them from the start would give. It is mutable and belongs to one caller at a time.

A *base* is a model that was made elsewhere: imported, or fitted to all judgements at once. Learning goes on from it.
Judged documents that it was fitted on are added, but not learned again: they count where documents are ranked and cut,
each with the score of a model that was fitted without it (see online/run.py).

With a *projection* (text/projection.py) learners that can see latent features beside the words: their view is
"semantic" in place of "tfidf". Bags come in without them, and the trainer adds them; the log never has them. A base of
words goes on in a semantic run, with latent weights of 0; latent weights of another projection are dropped. A topic
that bans terms keeps to words: the projection is one for all topics, and contains what a single one bans.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from models.core.measures import Bools, sap
from models.core.vectors import SERVED_WEIGHTS, Bag, Linear, Reals
from models.goals import calibration, promises
from models.goals.thresholds import Band
from models.learners.base import Vector
from models.learners.documents import Background, DocumentWindow
from models.online import pins, pocket
from models.online.committee_run import CommitteeRun
from models.online.features import TopicFeatures
from models.online.judged import JudgedDocuments
from models.online.model import Example, Model, Spec
from models.online.pins import NONE
from models.online.pocket import PocketCandidate
from models.online.refitted import RefittedRun
from models.online.registry import parse_committee
from models.online.run import LearnerRun
from models.online.scored import Scored, scale_of, usual_band
from models.text.projection import Projection


class Trainer:
    def __init__(
        self,
        spec: Spec,
        *,
        projection: Projection | None = None,
        base: Model | None = None,
        fitted: Mapping[str, float] = MappingProxyType({}),
        weights: int = SERVED_WEIGHTS,
    ) -> None:
        """`fitted` names the documents that the base was fitted on, judged or not, each with its score by a model that
        was fitted without it."""
        self._spec = spec
        self._projection = None if spec.terms.ban else projection
        self._features = TopicFeatures(spec.terms, weights, self._projection)
        self._base = self._adopted(base) if base else None
        self._fitted = fitted
        semantic = self._projection is not None
        self._committee = CommitteeRun(parse_committee(spec.params), semantic) if spec.kind == "committee" else None
        self._runs = self._committee.runs if self._committee else LearnerRun.all_of(spec.kind, spec.params, semantic)
        self._served = (0, 0)  # the run, and which of its vectors
        self._pocket: PocketCandidate | None = None  # the winner of the last check, as it was then
        self._frozen = False  # whether the pocketed vector is served, not the current one of its learner
        self._sap: float | None = None
        self._learned = 0  # judgements since the base
        if self._base is None:
            self._start()
        else:
            self._resume(self._base.linear)
        self._judged = JudgedDocuments(list(dict.fromkeys(run.view for run in self._runs)))
        # Members of a committee are fitted, and their estimates made, at checks: a committee has them in any case.
        self._every = spec.pocket.every or (pocket.CHECK_EVERY if self._committee else None)
        self._check_at = self._every
        self._voted = (0, np.empty(0))  # the number of judgements at the last vote, and the scores of the newest in it

    def learn(self, example: Example) -> None:
        """Learn one more judgement, and check the pocket if it is time."""
        slots, seen = self._features.document(example.bag, self._judged.views)
        for run, times in zip(self._runs, self._times(example.relevant), strict=True):
            run.learn(seen[run.view], example.relevant, times)
        self._learned += 1
        self._judged.add(example, slots, seen)
        if self._judged.size == self._check_at:
            self._plan_check()
            self._check()

    def add_fitted(self, example: Example) -> None:
        """Add a judged document that the base was fitted on. Only runs that do not go on from the base learn it."""
        if self._base is None:
            raise ValueError("without a base nothing can have been fitted")
        slots, seen = self._features.document(example.bag, self._judged.views)
        linear = self._base.linear
        offset = self._fitted[example.document] - self._features.score(linear, example.bag)
        for run, times in zip(self._runs, self._times(example.relevant), strict=True):
            if run.has_base:
                run.add_fitted(offset)
            else:
                run.learn(seen[run.view], example.relevant, times)
        self._judged.add(example, slots, seen)
        self._plan_check()

    def model(self, background: Background) -> Model:
        """The model of all judgements so far; the background is a sample of the stream, for the thresholds."""
        if self._base is not None and not self._judged.size:
            return self._base_model(self._base)
        background = background.under(self._projection)
        if self._committee and self._committee.voting:
            return self._voted_model(self._committee, background)
        run, v = self._served_vector()
        unjudged, since = self._judged.unjudged(background), self._judged.ledger.last_change()
        scored = self._scored(run, v, background, unjudged, wide=since > 0)
        if (faded := self._judged.ledger.faded_since(scored.held_out, scored.band.accept_above)) > since:
            scored = scored if since else self._scored(run, v, background, unjudged, wide=True)
            since = faded
        goal, band, unseen = self._spec.goal, scored.band, scored.unseen
        judged = self._judged.ledger.window(scored.held_out, since)
        if goal.asks:
            unseen = self._judged.put_held_out(scored.held_out, unseen, background)
            band = promises.choose(goal, judged, unseen, band)
        return Model(
            scored.linear,
            band.reject_below,
            band.accept_above,
            self._judged.figures(self._sap, band.f1),
            self._judged.evidence(goal, judged, band, since),
            calibration.calibrate(judged, unseen[unjudged & (unseen < band.reject_below)]),
            self._committee.report() if self._committee else None,
        )

    def held_out(self) -> dict[str, float]:
        """The scores of the newest judged documents as the model would give them, each without its own influence."""
        if self._committee and self._committee.voting:
            if self._voted[0] != self._judged.size:
                self._voted_model(self._committee, Background())
            return self._judged.by_document(self._voted[1].tolist())
        run, v = self._served_vector()
        window = self._judged.window(run.view)
        scores = self._judged.without_groups(self._without_own(run, v, window), run, v, window)
        return self._judged.by_document(scores.tolist())

    def score_unseen(self, model: Model, documents: Mapping[str, Bag]) -> Reals:
        """The scores that the model, this trainer's last, gives documents that it did not learn from. Those that the
        base was fitted on are scored as if it had not been."""
        run, linear, base = self._runs[self._served[0]], model.linear, self._base
        scores = np.array([self._features.score(linear, bag) for bag in documents.values()])
        if run.has_base and base:
            for n, (document, bag) in enumerate(documents.items()):
                if document in self._fitted:
                    scores[n] += self._fitted[document] - self._features.score(base.linear, bag)
        return scores

    @property
    def unique(self) -> Bools:
        """Which of the documents learned from are not near-duplicates of an earlier one."""
        return self._judged.ledger.unique

    @property
    def signatures(self) -> NDArray[np.uint32]:
        """The signatures of the documents learned from, by which near-duplicates are recognised."""
        return self._judged.ledger.groups.signatures

    @property
    def nbytes(self) -> int:
        shared = self._features.nbytes + self._judged.nbytes
        return shared + sum(run.nbytes for run in self._runs) + 4096

    def _times(self, relevant: bool) -> Iterator[int]:
        """How often each run learns the next example."""
        return self._committee.times(relevant) if self._committee else repeat(1, len(self._runs))

    def _voted_model(self, committee: CommitteeRun, background: Background) -> Model:
        unjudged = self._judged.unjudged(background)
        members = [
            self._scored(run, self._features.truncated(run.vectors()[0]), background, unjudged)
            for run in committee.members
        ]
        model, scores = committee.voted_model(members, self._judged, self._spec.goal, background, unjudged)
        self._voted = self._judged.size, scores
        return model

    def _scored(
        self, run: LearnerRun, v: Vector, background: Background, unjudged: Bools, wide: bool = False
    ) -> Scored:
        linear, scale, window = self._features.linear(v, run.view), scale_of(v, run.view), self._judged.window(run.view)
        held_out, unseen = self._without_own(run, v, window), self._unseen(run, linear, background)
        relevant, sampled = self._judged.relevant, self._judged.sampled
        voting = self._committee and self._committee.voting
        objective = None if voting else self._spec.goal.maximise  # the votes are cut by it, not the members
        band = usual_band(v, scale, window, relevant, held_out, unseen, unjudged, sampled, wide, objective)
        return Scored(linear, scale, self._judged.without_groups(held_out, run, v, window), unseen, band)

    def _without_own(self, run: LearnerRun, v: Vector, window: DocumentWindow) -> Reals:
        """The scores that v gives the window, each document without its own steps."""
        if self._committee and not self._committee.voting:
            return self._committee.mean_held_out(v, window)
        return run.held_out(v, window)

    def _unseen(self, run: LearnerRun, linear: Linear, background: Background) -> Reals:
        """The scores of the background, of documents that the run's base was fitted on as if it had not been."""
        scores = background.scores(linear)
        if run.has_base and self._base and self._fitted:
            places, numbers = background.common({document: n for n, document in enumerate(self._fitted)})
            without = np.fromiter(self._fitted.values(), float)
            scores[places] += without[numbers] - background.scores(self._base.linear)[places]
        return scores

    def _served_vector(self) -> tuple[LearnerRun, Vector]:
        """The run that is served (of a committee, its first), and the vector."""
        run = self._runs[self._served[0]]
        if self._committee:
            return run, self._features.truncated(self._committee.mean())
        # Until something is learned, a base is served as it is, which a learner without a bias, say, would not do.
        pocketed = self._pocket if self._frozen or not self._learned else None
        return run, self._features.truncated(pocketed.vector if pocketed else run.vectors()[self._served[1]])

    def _start(self) -> None:
        query = self._spec.query
        for run in self._runs:
            seen = self._features.document(query, [run.view])[1] if query else None
            run.start(seen[run.view] if seen else None, self._features.pins)

    def _resume(self, base: Linear) -> None:
        """Let learners of the base's view go on from it, and the others begin with the query. The base competes with
        them: as what the pocket already holds, or, if the first learner cannot go on from it, in a run of its own.
        A base that was fitted to judged documents is ranked as if it had not been; so are, for fairness, the learners
        beside it that were taught the same documents."""
        v, slots = self._features.vector(base), self._features.pins
        self._start()
        for run in self._runs:
            if self._goes_on(run, base):
                run.resume(v)
        if self._goes_on(self._runs[0], base):
            self._pocket = PocketCandidate(0, 0, pins.raised(v, slots, pins.floor(v.w, v.rest)) if len(slots) else v)
        elif not self._committee:
            self._runs.append(LearnerRun.fixed(base.view))
            self._runs[-1].start(None, slots)
            self._runs[-1].resume(v)
            self._served = (len(self._runs) - 1, 0)

    def _goes_on(self, run: LearnerRun, base: Linear) -> bool:
        if isinstance(run, RefittedRun):
            return False  # it is fitted to the same documents again
        return run.view == base.view or (run.view == "semantic" and base.view == "tfidf")

    def _adopted(self, base: Model) -> Model:
        """The base without what only another projection understands."""
        if base.linear.view != "semantic":
            return base
        linear, committee = self._features.adopted(base.linear), base.committee
        if committee:
            committee = dataclasses.replace(committee, members=tuple(map(self._features.adopted, committee.members)))
        return dataclasses.replace(base, linear=linear, committee=committee)

    def _plan_check(self) -> None:
        n = self._judged.size
        self._check_at = n + pocket.check_interval(n, self._every) if self._every else None

    def _check(self) -> None:
        relevant = self._judged.relevant
        if self._committee:
            self._committee.check(self._judged.window(self._runs[0].view), relevant, self._judged.group)
            return
        if not relevant.any():
            return
        by = self._spec.pocket.by
        live = [PocketCandidate(i, k, v) for i, run in enumerate(self._runs) for k, v in enumerate(run.vectors())]
        learned = [self._sap_of(candidate, relevant) for candidate in live]
        held_out = learned if by == "learned" else [self._sap_of(c, relevant, held_out=True) for c in live]
        pocketed = self._sap_of(self._pocket, relevant) if self._pocket else None
        place, self._sap = pocket.choose(by, held_out, learned, pocketed)
        self._frozen = place is None
        if place is not None:
            self._pocket = live[place]
            self._served = (self._pocket.run, self._pocket.which)

    def _sap_of(self, candidate: PocketCandidate, relevant: Bools, *, held_out: bool = False) -> float:
        """The SAP of its ranking of the judged documents, each without its own step or with it."""
        run = self._runs[candidate.run]
        window = self._judged.window(run.view)
        if held_out or (self._fitted and not run.has_base):
            return sap(run.held_out(candidate.vector, window), relevant)
        return sap(run.scores(candidate.vector, window), relevant)

    def _base_model(self, base: Model) -> Model:
        """The base at its own cuts, or those that its user has set, as it is served before anything is learned."""
        terms, cuts = self._spec.terms, self._spec.goal.cuts
        if cuts:
            band = cuts.of(Band(base.reject_below, base.accept_above))
            base = dataclasses.replace(base, reject_below=band.reject_below, accept_above=band.accept_above)
        if terms == NONE:
            return base
        linear, committee = pins.applied(base.linear, terms), base.committee
        if committee:
            members = tuple(pins.applied(member, terms) for member in committee.members)
            committee = dataclasses.replace(committee, members=members)
        return dataclasses.replace(base, linear=linear, committee=committee)


def fold(
    spec: Spec,
    examples: Iterable[Example],
    background: Background,
    *,
    projection: Projection | None = None,
    base: Model | None = None,
    weights: int = SERVED_WEIGHTS,
) -> Model:
    """The model that these judgements make, in their order."""
    trainer = Trainer(spec, projection=projection, base=base, weights=weights)
    for example in examples:
        trainer.learn(example)
    return trainer.model(background)
