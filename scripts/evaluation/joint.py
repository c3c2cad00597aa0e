"""Methods that learn from all training documents, and most of them from all topics, at once (models/batch/registry.py).

They are measured as in scripts/evaluation/batch.py. The cut is one of

    zero       where the method itself cuts: Φ > 0, as in Sebastiani, Sperduti & Valdambrini 2000
    crossed    F1-optimal on scores of models trained without a tenth of the documents; for topics with few relevant
               documents, which alone are too little evidence, the middle between this cut and that on known documents
    middle     the middle between two F1-optimal cuts: on scores of the training documents by the model itself, which
               errs upwards (it knows them), and by models trained without a third of them, which errs downwards

Micro-F1 (macro-F1) on the last quarter of the training documents of Reuters, for two random assignments to folds:

                    zero           crossed                        middle
    boosting KR     .738 (.340)    .769 (.425)  .771 (.428)       .773 (.425)  .773 (.420)
    svm             .811 (.370)    .847 (.571)  .849 (.585)       .845 (.538)  .846 (.521)
    centroid        .703 (.472)    .758 (.491)  .754 (.486)       .756 (.480)  .755 (.473)
    naive Bayes     .541 (.222)    .729 (.448)  .726 (.438)       .723 (.384)  .723 (.381)

The rounds of boosting are nested: a run of 500 begins with the run of 100. So rows that differ in S alone are one run,
cut off at several places.
"""

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from models.batch.folds import stratified_folds
from models.batch.registry import fit, parse
from models.core.measures import break_even, contingency, sap
from models.core.vectors import Reals
from models.methods import boosting
from models.methods.feature_selection import reduced
from models.methods.matrix import Examples, Labels, Planes
from scripts.evaluation.batch import TopicResult, VectorCorpus, threshold

MIN_RELEVANT = 5  # documents; scores of fewer left-out ones alone are too little evidence


@dataclass(frozen=True, slots=True)
class Joint:
    """A method, its parameters, and where to cut. With a cut of zero nothing about it is random."""

    kind: str
    params: Mapping[str, object] = field(default_factory=dict)
    cut: Literal["zero", "crossed", "middle"] = "crossed"


class JointRuns:
    """Runs of several methods on the same corpus and topics."""

    def __init__(self, vectors: VectorCorpus, names: Sequence[str]) -> None:
        self._vectors = vectors
        self._labels: Labels = np.stack([vectors.corpus.relevant(name) for name in names], axis=1)
        self._boosted: dict[boosting.Params, boosting.Boosted] = {}

    def measure(self, joint: Joint, seed: int) -> list[TopicResult]:
        """The result of each topic, in their order."""
        p = parse(joint.kind, joint.params)
        x, test = self._vectors.examples(p.view)
        known, truth = self._labels[: x.size], self._labels[x.size :]
        planes = self._fit(p, x, known, seed)
        cuts = [0.0] * len(known.T) if joint.cut == "zero" else self._cuts(joint, p, planes, x, known, seed)
        scores = planes.scores(test)
        return [
            TopicResult(contingency(s > cut, t), break_even(s, t), sap(s, t))
            for s, t, cut in zip(scores.T, truth.T, cuts, strict=True)
        ]

    def _fit(self, p: Any, x: Examples, labels: Labels, seed: int) -> Planes:
        if not isinstance(p, boosting.Params):
            return fit(p, x, labels, seed)
        family = dataclasses.replace(p, S=1)
        run = self._boosted.get(family)
        if run is None or len(run.Z) < p.S:
            run = boosting.boost(p, reduced(x, labels, p.reduction, p.rho), labels)
            self._boosted[family] = run
        return run.first(p.S).planes()

    def _cuts(self, joint: Joint, p: Any, planes: Planes, x: Examples, labels: Labels, seed: int) -> list[float]:
        alone = joint.cut == "crossed"
        known, unknown = planes.scores(x), held_out_scores(p, x, labels, 10 if alone else 3, seed)
        return [
            threshold(y, (b,) if alone and np.count_nonzero(y) >= MIN_RELEVANT else (a, b))
            for y, a, b in zip(labels.T, known.T, unknown.T, strict=True)
        ]


def held_out_scores(p: Any, x: Examples, labels: Labels, folds: int, seed: int) -> Reals:
    """Φ of each document and topic, by a model that was fitted without the document's fold."""
    fold, scores = stratified_folds(labels, folds, seed), np.zeros(labels.shape)
    for k in range(folds):
        out = fold == k
        if out.any() and not out.all():
            scores[out] = fit(p, x.rows(~out), labels[~out], seed).scores(x.rows(out))
    return scores
