"""The estimated loss and error of a committee: the paper's own rows, every outcome counted, members simulated."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.online.committee_estimates import (
    CommitteeRates,
    accuracies,
    alike,
    correlation,
    covariance,
    difference,
    divergence,
    pair_covariance,
    regression,
    search,
    unanimous,
)
from tests.support import reference

STEADY = settings(derandomize=True, deadline=None, max_examples=150)
chances = st.floats(0.05, 0.95)


def test_the_papers_rows_follow_from_each_other() -> None:
    """Figure 6, SVM with 250 documents, CV estimator. Two members agree in 1 − .247 of cases, .11 of them wrongly:
    that gives p and cov at k = 2. The same cov, and the p that explains the estimated loss, must explain the error."""
    rows = {2: (0.247, 0.11), 4: (0.581, 0.046), 8: (0.91, 0.008)}
    loss, error = rows[2]
    right = (1 - loss) * (1 - error)
    p = right + loss / 2
    cov = right - p * p
    assert unanimous([p, p], cov) == pytest.approx(rows[2])
    for k, (loss, error) in rows.items():
        grid = np.linspace(0.6, 0.9, 3001)
        p = min(grid, key=lambda p: abs(unanimous([p] * k, cov).loss - loss))
        assert unanimous([p] * k, cov).error == pytest.approx(error, abs=0.007)


@STEADY
@given(st.lists(chances, min_size=1, max_size=7), st.floats(0, 1))
def test_formulas_equal_counting_every_outcome(p: list[float], share: float) -> None:
    """At any covariance that every pair of neighbours can have."""
    max_cov = min((min(a, b) - a * b for a, b in pairwise(p)), default=0.0)
    cov = share * max_cov
    loss, error = reference.unanimous(p, cov)
    estimate = unanimous(p, cov)
    assert estimate.loss == pytest.approx(loss, abs=1e-9)
    assert estimate.error == pytest.approx(error, abs=1e-9)


@STEADY
@given(st.lists(st.floats(0, 1), min_size=1, max_size=16), st.floats(-1, 1))
def test_no_covariance_makes_an_estimate_that_cannot_be(p: list[float], cov: float) -> None:
    estimate = unanimous(p, cov)
    assert -1e-9 <= estimate.loss <= 1 + 1e-9
    assert 0 <= estimate.error <= 1


@STEADY
@given(chances, st.floats(0, 1))
def test_more_members_lose_more(p: float, share: float) -> None:
    losses = [unanimous([p] * k, share * p * (1 - p)).loss for k in range(1, 9)]
    assert losses[0] == pytest.approx(0)
    assert all(a <= b + 1e-12 for a, b in pairwise(losses))


@STEADY
@given(st.floats(0, 1), st.floats(-1, 2), st.integers(1, 16))
def test_alike_members_give_an_estimate_that_can_be(p: float, rho: float, k: int) -> None:
    estimate = alike(p, rho, k)
    assert -1e-9 <= estimate.loss <= 1 + 1e-9
    assert 0 <= estimate.error <= 1


@STEADY
@given(chances, st.floats(0, 0.99))
def test_two_members_are_a_chain(p: float, rho: float) -> None:
    """The estimators differ only in what a third member depends on: its neighbour, or the document."""
    assert alike(p, rho, 2) == pytest.approx(unanimous([p, p], rho * p * (1 - p)))
    assert alike(p, rho, 5).loss <= unanimous([p] * 5, rho * p * (1 - p)).loss + 1e-9


def test_the_beta_estimate_holds_where_some_documents_are_harder_than_others() -> None:
    p, rho, k, n = 0.9, 0.2, 6, 200_000
    rng = np.random.default_rng(4)
    easy = rng.beta(p * (1 - rho) / rho, (1 - p) * (1 - rho) / rho, n)
    right = rng.random((n, k)) < easy[:, None]
    assert correlation(right, np.ones_like(right)) == pytest.approx(rho, abs=0.01)
    agreed = right.all(axis=1) | ~right.any(axis=1)
    estimate = alike(p, rho, k)
    assert estimate.loss == pytest.approx(1 - agreed.mean(), abs=0.005)
    assert estimate.error == pytest.approx((~right.any(axis=1)).sum() / agreed.sum(), abs=0.002)


def test_members_that_never_differ_lose_nothing_and_err_as_one() -> None:
    loss, error = unanimous([0.8] * 6, 0.8 * 0.2)
    assert (loss, error) == pytest.approx((0, 0.2))


def test_covariance_and_accuracy_count_only_what_was_not_seen() -> None:
    right = np.array([[1, 0], [1, 1], [0, 1], [0, 0], [1, 1]], np.bool_)
    unseen = np.array([[0, 1], [1, 0], [1, 1], [1, 1], [1, 1]], np.bool_)
    assert accuracies(right, unseen).tolist() == [2 / 4, 2 / 4]
    both = slice(2, 5)
    assert pair_covariance(right, unseen) == pytest.approx(np.cov(right[both, 0], right[both, 1])[0, 1])
    assert accuracies(right, np.zeros_like(unseen)).tolist() == [0.5, 0.5]
    assert pair_covariance(right, np.zeros_like(unseen)) == 0


@STEADY
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=2, max_size=40))
def test_covariance_is_numpys(rows: list[tuple[bool, bool]]) -> None:
    x = np.array(rows, np.bool_)
    assert covariance(x[:, 0], x[:, 1]) == pytest.approx(float(np.cov(x.T.astype(float))[0, 1]), abs=1e-12)


documents = st.lists(st.sets(st.integers(0, 12), min_size=1), min_size=2, max_size=12)


@STEADY
@given(documents, st.integers(1, 11))
def test_divergence_equals_counting(whole: list[set[int]], size: int) -> None:
    assume(size < len(whole))
    matrix = np.array([[feature in document for feature in range(13)] for document in whole], np.float64)
    shares = matrix[:size].mean(axis=0), matrix.mean(axis=0)
    assert divergence(*shares) == pytest.approx(reference.divergence(whole[:size], whole), abs=1e-9)
    assert divergence(shares[1], shares[1]) == 0
    same = difference((shares[0], shares[1]), (shares[1], shares[1]))
    assert same == pytest.approx(max(divergence(*shares), 0))


def test_a_line_through_two_points_and_its_ends() -> None:
    line = regression([(2.0, 0.9), (4.0, 0.8)])
    assert line.at(3.0) == pytest.approx(0.85)
    assert line.at(0.0) == pytest.approx(1.0)
    assert (line.at(-100.0), line.at(100.0)) == (1.0, 0.0)
    assert regression([(2.0, 0.9), (2.0, 0.7)]).at(7.0) == pytest.approx(0.8)


def test_the_search_stops_at_the_bound_and_takes_the_least_error() -> None:
    table = {
        1: CommitteeRates(0.0, 0.05),
        2: CommitteeRates(0.04, 0.03),
        3: CommitteeRates(0.08, 0.035),
        4: CommitteeRates(0.2, 0.01),
        5: CommitteeRates(0.05, 0.0),  # never tried: loss is assumed to grow with k
    }
    chosen = search(table.__getitem__, 0.1, range(1, 6))
    assert chosen.k == 2
    assert list(chosen.estimates) == [1, 2, 3, 4]
    assert search(table.__getitem__, 0.01, range(1, 6)).k == 1
    assert search(table.__getitem__, 1.0, range(1, 5)).k == 4


def test_the_estimate_holds_for_members_that_depend_on_their_neighbours() -> None:
    p, cov, k, n = 0.85, 0.03, 5, 200_000
    rng = np.random.default_rng(3)
    right = rng.random(n) < p
    all_right, all_wrong = right.copy(), ~right
    for _ in range(k - 1):
        chance = np.where(right, (p * p + cov) / p, (p - p * p - cov) / (1 - p))
        right = rng.random(n) < chance
        all_right, all_wrong = all_right & right, all_wrong & ~right
    estimate = unanimous([p] * k, cov)
    agreed = all_right | all_wrong
    assert estimate.loss == pytest.approx(1 - agreed.mean(), abs=4 * math.sqrt(0.25 / n))
    assert estimate.error == pytest.approx(all_wrong.sum() / agreed.sum(), abs=0.002)
