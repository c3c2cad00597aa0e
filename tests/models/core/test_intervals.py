"""Bounds on a share: against tables, against the definition, and how often they hold."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, poisson

from models.core import intervals

STEADY = settings(derandomize=True, max_examples=200, deadline=None)
tries = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


def test_eight_of_ten_by_the_published_table() -> None:
    """Clopper and Pearson's chart and every table since: 8 of 10 at 95 % lies between .444 and .975."""
    assert intervals.low(8, 10, 0.975) == pytest.approx(0.4439, abs=1e-4)
    assert intervals.high(8, 10, 0.975) == pytest.approx(0.9748, abs=1e-4)


def test_without_a_miss_the_bound_is_a_root() -> None:
    """P(Bin(n, p) = n) = pⁿ, so low = (1 − c)^(1/n): fourteen clean documents promise .9 at 75 %, thirteen do not."""
    assert intervals.low(14, 14, 0.75) == pytest.approx(0.25 ** (1 / 14))
    assert intervals.low(13, 13, 0.75) < 0.9 < intervals.low(14, 14, 0.75)


def test_nothing_tried_says_nothing() -> None:
    assert intervals.interval(0, 0, 0.9) is None
    assert (intervals.low(0, 0, 0.9), intervals.high(0, 0, 0.9)) == (0.0, 1.0)


@STEADY
@given(tries, st.sampled_from([0.6, 0.75, 0.9, 0.95]))
def test_the_bounds_are_where_the_tail_has_the_confidence_left_over(kn: tuple[int, int], c: float) -> None:
    k, n = kn
    low, high = intervals.low(k, n, c), intervals.high(k, n, c)
    assert 0 <= low <= k / n <= high <= 1
    if k:
        assert binom.sf(k - 1, n, low) == pytest.approx(1 - c)
    if k < n:
        assert binom.cdf(k, n, high) == pytest.approx(1 - c)


@pytest.mark.parametrize("share", [0.02, 0.5, 0.9])
@pytest.mark.parametrize("n", [5, 30, 200])
def test_each_bound_holds_as_often_as_it_says(share: float, n: int) -> None:
    """Summed over every outcome, not drawn."""
    chance = binom.pmf(np.arange(n + 1), n, share).tolist()
    assert sum(p for k, p in enumerate(chance) if intervals.low(k, n, 0.9) <= share) >= 0.9
    assert sum(p for k, p in enumerate(chance) if intervals.high(k, n, 0.9) >= share) >= 0.9


@STEADY
@given(st.floats(0.01, 0.99), st.sampled_from([0.6, 0.75, 0.95]))
def test_the_table_of_allowed_misses_says_what_the_bound_says(goal: float, c: float) -> None:
    allowed = intervals.allowed_misses(goal, c, 60)
    for n in range(1, 61):
        promised = [m for m in range(n + 1) if intervals.low(n - m, n, c) >= goal]
        assert allowed[n] == max(promised, default=-1), n


def test_certainty_is_never_promised() -> None:
    assert (intervals.allowed_misses(1.0, 0.75, 100) == -1).all()


def test_counts_of_equal_weight_have_the_exact_bounds_of_their_sum() -> None:
    """P(Poisson(high) ≤ x) = 1 − c = P(Poisson(low) ≥ x), whatever strata the x events fell into."""
    total = intervals.total([(3, 10.0), (0, 10.0), (4, 10.0)], 0.95)
    assert total.estimate == 70
    assert poisson.cdf(7, total.high / 10) == pytest.approx(0.05)
    assert poisson.sf(6, total.low / 10) == pytest.approx(0.05)


def test_without_an_event_the_largest_weight_counts() -> None:
    total = intervals.total([(0, 1.0), (0, 100.0)], 0.95)
    assert (total.estimate, total.low) == (0, 0)
    assert total.high == pytest.approx(-100 * np.log(0.05))


@pytest.mark.parametrize("means", [(0.5, 0.5, 0.5), (5, 1, 0.2), (0.2, 1, 5), (20, 20, 20), (0, 0, 2.5)])
def test_bounds_of_a_weighted_total_hold_as_often_as_they_say(means: tuple[float, ...]) -> None:
    random = np.random.default_rng(5)
    weights, runs = (1.0, 7.0, 50.0), 2000
    truth = sum(w * m for w, m in zip(weights, means, strict=True))
    totals = [intervals.total(list(zip(row, weights, strict=True)), 0.9) for row in random.poisson(means, (runs, 3))]
    assert np.mean([total.low <= truth for total in totals]) >= 0.9
    assert np.mean([total.high >= truth for total in totals]) >= 0.9
