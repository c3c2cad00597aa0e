"""A batch method's run: the method's plane of what the run was given, and scores in which a document had no part."""

from collections.abc import Sequence

import numpy as np
import pytest

from models.batch import registry
from models.core.vectors import Bag, Reals
from models.learners.base import DocumentVector
from models.learners.documents import Collection, DocumentWindow
from models.methods.matrix import Examples
from models.online.refitted import FOLDS, RefittedRun
from tests.models.online.test_trainer import bag

KINDS = {"svm": {}, "centroid": {}, "bayes": {"rho": 0.0}, "logistic": {}, "boosting": {"S": 5, "rho": 0.0}}
each = pytest.mark.parametrize("kind", KINDS)
rng = np.random.default_rng(3)
LABELS = np.arange(30) % 3 == 0
BAGS = [
    bag([4 + i % 2 if y else 10 + i % 2, *(20 + int(f) for f in rng.integers(0, 9, 3))]) for i, y in enumerate(LABELS)
]
ALONE = np.arange(30)  # nothing is a near-duplicate


def taught(kind: str, times: Sequence[int]) -> tuple[RefittedRun, DocumentWindow]:
    """A run that was given the first documents so often, and a window of them. The slot of a feature is its number."""
    run = RefittedRun(kind, KINDS[kind])
    documents = Collection([run.view])
    for i, n in enumerate(times):
        x = Examples.of([BAGS[i]], run.view)
        run.learn(DocumentVector(x.features.astype(np.int32), x.values), bool(LABELS[i]), n)
        documents.add(x.features.astype(np.int32), [x.values])
    return run, documents.newest(len(times), run.view)


def expected(kind: str, shown: Sequence[int], scored: Sequence[Bag]) -> Reals:
    """The scores by the batch method, fitted to the documents with these numbers."""
    p = registry.parse(kind, KINDS[kind])
    planes = registry.fit(p, Examples.of([BAGS[i] for i in shown], p.view), LABELS[list(shown)][:, None])
    scores: Reals = planes.scores(Examples.of(scored, p.view))[:, 0]
    return scores


@each
def test_its_plane_is_the_methods_of_the_judgements_it_was_given_as_often_as_it_was(kind: str) -> None:
    times = [(i % 4 != 1) * (1 + i % 2) for i in range(30)]
    run, window = taught(kind, times)
    run.refit(window, LABELS, ALONE)
    (v,) = run.vectors()
    shown = [i for i in range(30) for _ in range(times[i])]
    np.testing.assert_allclose(run.scores(v, window), expected(kind, shown, BAGS), rtol=1e-3, atol=1e-4)


@each
def test_a_document_is_scored_without_the_third_that_it_is_in(kind: str) -> None:
    run, window = taught(kind, [1] * 30)
    run.refit(window, LABELS, ALONE)
    held_out = run.held_out(run.vectors()[0], window)
    for n in range(FOLDS):
        out = [*np.flatnonzero(LABELS)[n::FOLDS].tolist(), *np.flatnonzero(~LABELS)[n::FOLDS].tolist()]
        rest = [i for i in range(30) if i not in out]
        scores = expected(kind, rest, [BAGS[i] for i in out])
        np.testing.assert_allclose(held_out[out], scores, rtol=1e-3, atol=1e-4)


def test_near_duplicates_are_left_out_together() -> None:
    copies = [1, 4, 7, 10, 13]
    run, window = taught("centroid", [1] * 30)
    run.refit(window, LABELS, np.where(np.isin(ALONE, copies), 1, ALONE))
    held_out = run.held_out(run.vectors()[0], window)
    others = [i for i in np.flatnonzero(~LABELS).tolist() if i not in copies]
    dealt = sorted([*others, 1])  # the copies take the place of the first of them
    out = [*np.flatnonzero(LABELS)[0::FOLDS].tolist(), *copies, *[i for i in dealt[0::FOLDS] if i != 1]]
    rest = [i for i in range(30) if i not in out]
    np.testing.assert_allclose(held_out[copies], expected("centroid", rest, [BAGS[i] for i in copies]), rtol=1e-3)


def test_what_came_after_the_fit_is_scored_by_the_plane_alone_until_the_next() -> None:
    run, window = taught("svm", [1] * 30)
    first = DocumentWindow(window.indptr[:25], window.slots, window.values)
    run._judged = 24
    run.refit(first, LABELS[:24], ALONE[:24])
    run._judged = 30
    (v,) = run.vectors()
    held_out, scores = run.held_out(v, window), run.scores(v, window)
    assert (held_out[24:] == scores[24:]).all()
    assert (held_out[:24] != scores[:24]).any()


def test_until_there_are_two_of_each_it_is_widrow_hoff() -> None:
    run, window = taught("svm", [1, 1, 1])
    before = run.vectors()
    run.refit(window, LABELS[:3], ALONE[:3])
    assert len(before) == len(run.vectors()) == 2
    np.testing.assert_array_equal(run.vectors()[0].w, before[0].w)
    assert not run.apart_from_duplicates
