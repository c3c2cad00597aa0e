"""Methods that learn all topics at once: the scores by which experiments choose their cuts."""

import pytest

from models.batch.folds import stratified_folds
from models.batch.registry import fit, parse
from models.methods.matrix import Examples
from scripts.evaluation.joint import held_out_scores
from tests.models.batch.test_registry import bag, corpus


def test_a_crossed_score_knows_nothing_of_its_document() -> None:
    """A word that only one document has can have no weight in the model that scores this document."""
    bags, labels = corpus(10, 30, 1)
    marked = [
        bag({**dict(zip(b.features.tolist(), b.counts.tolist(), strict=True)), 9000 + j: 5.0})
        for j, b in enumerate(bags)
    ]
    p = parse("bayes", {"rho": 0.0, "counts": "tf"})
    x = Examples.of(marked, p.view)
    fold, scores = stratified_folds(labels, 3, 0), held_out_scores(p, x, labels, 3, 0)
    rows = fold != fold[0]
    without = fit(p, x.rows(rows), labels[rows])
    assert scores[0, 0] == pytest.approx(without.scores(x)[0, 0])
