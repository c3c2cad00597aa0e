"""Worked examples that can be checked by hand, and properties of any ranking."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.measures import (
    Bools,
    Contingency,
    break_even,
    contingency,
    f_beta,
    gain,
    macro,
    micro,
    ndcg,
    r_precision,
    sap,
    t11su,
)
from models.core.vectors import Reals
from tests.support import reference

STEADY = settings(derandomize=True, max_examples=200)

#        rank      1    2    3    4    5    6
SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
RELEVANT = np.array([True, False, True, True, False, False])


def test_sap_is_the_mean_precision_at_each_relevant_document() -> None:
    assert sap(SCORES, RELEVANT) == pytest.approx((1 / 1 + 2 / 3 + 3 / 4) / 3)


def test_r_precision_and_break_even_agree_where_nothing_is_tied() -> None:
    assert r_precision(SCORES, RELEVANT) == pytest.approx(2 / 3)
    assert break_even(SCORES, RELEVANT) == pytest.approx(2 / 3)


def test_ndcg_compares_the_ranking_with_the_best_one() -> None:
    """The six grades of the example in the article that the lecture names, by the gains 7, 3, 7, 0, 1 and 3."""
    gains = np.array([gain(grade > 0, grade) for grade in (3, 2, 3, 0, 1, 2)], float)
    best = 7 + 7 / math.log2(3) + 3 / 2 + 3 / math.log2(5) + 1 / math.log2(6)
    dcg = 7 + 3 / math.log2(3) + 7 / 2 + 1 / math.log2(6) + 3 / math.log2(7)
    assert ndcg(SCORES, gains) == pytest.approx(dcg / best) == pytest.approx(0.9488, abs=1e-4)
    assert [gain(False, None), gain(True, None), gain(False, 0)] == [0, 1, 0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20).filter(any), st.randoms(use_true_random=False))
def test_ndcg_is_that_of_the_reference(grades: list[int], rng: random.Random) -> None:
    order = list(range(len(grades)))
    rng.shuffle(order)
    gains = np.array([gain(grade > 0, grade) for grade in grades], float)
    scores = np.empty(len(grades))
    scores[order] = -np.arange(len(grades), dtype=float)
    assert ndcg(scores, gains) == pytest.approx(reference.ndcg([grades[i] for i in order]))
    assert ndcg(gains, gains) == pytest.approx(1)
    assert ndcg(np.zeros(len(grades)), gains) == pytest.approx(reference.ndcg(sorted(grades)))


def test_ties_rank_irrelevant_first_and_break_even_takes_the_mean_over_their_orders() -> None:
    scores, relevant = np.array([2.0, 1.0, 1.0, 1.0]), np.array([True, True, False, False])
    assert sap(scores, relevant) == pytest.approx((1 / 1 + 2 / 4) / 2)
    assert r_precision(scores, relevant) == pytest.approx(1 / 2)
    assert break_even(scores, relevant) == pytest.approx((1 + 1 / 3) / 2)


def test_f_beta_weighs_recall_by_beta_squared() -> None:
    c = Contingency(tp=6, fp=2, fn=4)
    assert c.precision == pytest.approx(3 / 4)
    assert c.recall == pytest.approx(3 / 5)
    assert f_beta(c) == pytest.approx(12 / 18)
    assert f_beta(c, 2) == pytest.approx(30 / 48)
    assert f_beta(c, 2) == pytest.approx(5 * 0.75 * 0.6 / (4 * 0.75 + 0.6))


def test_nothing_to_find_and_nothing_accepted_is_perfect() -> None:
    assert f_beta(Contingency(0, 0, 0)) == 1
    assert f_beta(Contingency(0, 3, 0)) == 0


@pytest.mark.parametrize(
    ("table", "value"),
    [
        (Contingency(10, 0, 0), 1.0),  # perfect
        (Contingency(0, 0, 10), 1 / 3),  # the do-nothing line
        (Contingency(6, 2, 4), (10 / 20 + 0.5) / 1.5),
        (Contingency(1, 500, 9), 0.0),  # floored
        (Contingency(0, 0, 0), 1 / 3),
        (Contingency(0, 2, 0), 0.0),
    ],
)
def test_t11su(table: Contingency, value: float) -> None:
    assert t11su(table) == pytest.approx(value)


def test_micro_and_macro_precision_of_two_classes_are_the_lecture_s() -> None:
    one, other = Contingency(tp=10, fp=10, fn=10), Contingency(tp=90, fp=10, fn=10)
    assert macro([one.precision, other.precision]) == pytest.approx(0.7)
    assert micro([one, other]) == Contingency(100, 20, 20)
    assert micro([one, other]).precision == pytest.approx(100 / 120)


def test_micro_averages_decisions_and_macro_averages_topics() -> None:
    large, small = Contingency(90, 10, 10), Contingency(0, 1, 1)
    assert f_beta(micro([large, small])) == pytest.approx(180 / (180 + 11 + 11))
    assert macro([f_beta(large), f_beta(small)]) == pytest.approx(0.45)
    assert macro([0.5, math.nan]) == 0.5
    assert math.isnan(macro([]))


def test_a_ranking_without_a_relevant_document_cannot_be_measured() -> None:
    for measure in (sap, r_precision, break_even):
        assert math.isnan(measure(np.array([1.0, 2.0]), np.array([False, False])))
        assert math.isnan(measure(np.empty(0), np.empty(0, np.bool_)))


rankings = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), min_size=1, max_size=30).map(
    lambda rows: (np.array([float(s) for s, _ in rows]), np.array([r for _, r in rows]))
)


@STEADY
@given(rankings)
def test_pessimistic_ranking_is_the_worst_order_of_the_ties(ranking: tuple[Reals, Bools]) -> None:
    scores, relevant = ranking
    if relevant.any():
        optimistic = scores + 1e-6 * relevant
        assert 0 < sap(scores, relevant) <= sap(optimistic, relevant) <= 1
        assert r_precision(scores, relevant) <= break_even(scores, relevant) + 1e-12
        assert break_even(scores, relevant) <= r_precision(optimistic, relevant) + 1e-12


@STEADY
@given(rankings)
def test_the_order_of_arrival_is_irrelevant(ranking: tuple[Reals, Bools]) -> None:
    scores, relevant = ranking
    order = np.random.default_rng(len(scores)).permutation(len(scores))
    for measure in (sap, r_precision, break_even):
        assert measure(scores[order], relevant[order]) == pytest.approx(measure(scores, relevant), nan_ok=True)


@STEADY
@given(rankings, st.floats(-4, 4))
def test_decisions_are_counted_once_each(ranking: tuple[Reals, Bools], threshold: float) -> None:
    scores, relevant = ranking
    c = contingency(scores > threshold, relevant)
    assert c.tp + c.fn == relevant.sum()
    assert c.tp + c.fp == (scores > threshold).sum()
    assert 0 <= f_beta(c) <= 1
    assert 0 <= t11su(c) <= 1
