"""Learning to rank: the pairs that judgements say, the weights that order them, and what they gain held out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.vectors import Reals
from models.ranking import ranker
from models.ranking.features import NAMES
from models.ranking.pairs import Label, pairs
from models.ranking.svm import fit
from service.schemas import LearnedRanking
from tests.support import reference

DEFAULT = LearnedRanking(kind="pairwise").C
LABELS = st.lists(st.sampled_from([False, True, 0, 1, 2, 3]), min_size=1, max_size=12)


def label(said: bool | int) -> Label:
    return Label(bool(said), None if isinstance(said, bool) else said)


@given(LABELS)
def test_pairs_are_those_that_judgements_say(said: list[bool | int]) -> None:
    known = pairs([label(each) for each in said])
    found = dict(
        zip(zip(known.better.tolist(), known.worse.tolist(), strict=True), known.weights.tolist(), strict=True)
    )
    assert found == reference.preferred(said)


def test_a_judgement_without_a_grade_is_better_than_nothing_and_no_more() -> None:
    known = pairs([label(each) for each in (True, 1, 3, False)])
    assert list(zip(known.better.tolist(), known.worse.tolist(), strict=True)) == [(0, 3), (1, 3), (2, 1), (2, 3)]
    assert known.weights.tolist() == [1, 1, 6, 7]


@settings(deadline=None, max_examples=25)
@given(LABELS, st.integers(0, 1000), st.sampled_from([0.1, 1.0, 20.0]))
def test_weights_are_the_minimum_of_the_formula(said: list[bool | int], seed: int, C: float) -> None:
    rng = np.random.default_rng(seed)
    psi, start = rng.normal(size=(len(said), 3)), rng.normal(size=3)
    w = fit(psi, pairs([label(each) for each in said]), C, start)
    assert w.tolist() == pytest.approx(reference.ranking_svm(psi, said, C, start).tolist(), abs=1e-4)


def test_the_lectures_two_features_order_what_can_be_ordered() -> None:
    """Cosine α and window ω: relevant documents have a high cosine, and among these the shorter window is better."""
    psi = np.array([[0.9, 2.0], [0.9, 5.0], [0.8, 3.0], [0.3, 2.0], [0.2, 4.0], [0.4, 9.0]])
    said: list[bool | int] = [3, 2, 2, 0, 0, 0]
    w = fit(psi, pairs([label(each) for each in said]), 1000.0, np.zeros(2))
    scores = psi @ w
    assert all(scores[i] > scores[k] for i, k in reference.preferred(said))
    assert w[0] > 0 > w[1]


def test_without_pairs_the_order_is_that_of_the_score() -> None:
    psi = np.random.default_rng(1).normal(size=(6, len(NAMES)))
    fitted = ranker.learn(psi, [label(True)] * 6, 1.0)
    assert np.argsort(fitted.scores(psi)).tolist() == np.argsort(psi[:, ranker.SCORE]).tolist()
    assert not ranker.enough([label(True)] * 6)
    assert ranker.enough([label(True)] * 5 + [label(False)] * 5)


def judged(n: int, seed: int, by_score: float) -> tuple[Reals, list[Label]]:
    """Documents whose grade depends on the score, and on the title or not."""
    rng = np.random.default_rng(seed)
    psi = rng.normal(size=(n, len(NAMES)))
    wanted = by_score * psi[:, ranker.SCORE] + (1 - by_score) * psi[:, NAMES.index("title")] + 0.5 * rng.normal(size=n)
    grades = np.searchsorted(np.quantile(wanted, [0.4, 0.7, 0.9]), wanted)
    return psi, [Label(bool(grade), int(grade)) for grade in grades.tolist()]


def test_what_the_score_does_not_know_is_learned() -> None:
    compared = ranker.compare(*judged(300, 2, by_score=0.3), C=DEFAULT)
    assert compared.gain.low > 0


def test_where_the_score_knows_all_little_is_lost() -> None:
    gains = [ranker.compare(*judged(60, seed, by_score=1.0), C=DEFAULT).gain.estimate for seed in range(10)]
    assert np.mean(gains) > -0.01


def test_held_out_scores_do_not_know_their_own_grade() -> None:
    """Grades that are chance are learned by a ranker that has seen them, and not by one that has not."""
    own, held_out = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        psi = rng.normal(size=(30, len(NAMES)))
        labels = [Label(bool(grade), int(grade)) for grade in rng.integers(0, 4, 30)]
        gains = np.array([each.gain for each in labels], float)
        own.append(np.corrcoef(ranker.learn(psi, labels, 100.0).scores(psi), gains)[0, 1])
        held_out.append(np.corrcoef(ranker.held_out(psi, labels, 100.0), gains)[0, 1])
    assert np.mean(own) > 0.3
    assert np.mean(held_out) < 0.1


def test_what_lies_beyond_all_judged_documents_counts_as_the_most_extreme() -> None:
    psi, labels = judged(50, 4, by_score=0.5)
    age = NAMES.index("age")
    psi[:, age] = np.linspace(0, 0.01, 50)
    fitted = ranker.learn(psi, labels, 1.0)
    older, oldest = psi.copy(), psi.copy()
    older[:, age], oldest[:, age] = 0.01, 9.0
    assert fitted.scores(oldest).tolist() == fitted.scores(older).tolist()
    better = psi.copy()
    better[:, ranker.SCORE] += 100
    assert (fitted.scores(better) > fitted.scores(psi).max()).all() == (fitted.w[ranker.SCORE] > 0)


def test_a_constant_feature_counts_for_nothing() -> None:
    psi, labels = judged(50, 4, by_score=0.5)
    psi[:, NAMES.index("source")] = 0.3
    fitted = ranker.learn(psi, labels, 1.0)
    elsewhere = psi.copy()
    elsewhere[:, NAMES.index("source")] = 9.0
    assert fitted.scores(elsewhere).tolist() == fitted.scores(psi).tolist()
