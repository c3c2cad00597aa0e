"""Parts of the examples, votes and what follows from them; against the paper's figures and a slow reference."""

from fractions import Fraction
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.online.committee import (
    MAX_MEMBERS,
    Combine,
    Method,
    Params,
    decide,
    halved,
    least_distance,
    members_weights,
    meta,
    times_learned,
    turning_points,
    votes,
    voting_rule,
)
from tests.support import reference

STEADY = settings(derandomize=True, deadline=None, max_examples=100)
ks = st.integers(1, MAX_MEMBERS)
seeds = st.integers(0, 2**32 - 1)


# -- parts -------------------------------------------------------------------------------------------------------------


@STEADY
@given(st.integers(1, 60), ks, seeds, st.booleans())
def test_in_a_growing_log_every_example_has_one_member_and_members_grow_alike(
    n: int, k: int, seed: int, relevant: bool
) -> None:
    dealt = np.array([times_learned("split", k, seed, relevant, i) for i in range(n)])
    assert (dealt.sum(axis=1) == 1).all()
    assert np.ptp(dealt.sum(axis=0)) <= 1


@pytest.mark.parametrize("k", [2, 4, 8])
@pytest.mark.parametrize("method", ["resample_a", "resample_b"])
def test_in_a_growing_log_a_member_is_shown_the_papers_share(method: Method, k: int) -> None:
    times = np.array([times_learned(method, k, 7, i % 2 == 0, i // 2) for i in range(4000)])
    assert times.mean(axis=0) == pytest.approx(np.full(k, 1.5 / k), rel=0.1)
    assert (times.max() > 1) == (method == "resample_a")


# -- votes -------------------------------------------------------------------------------------------------------------


def test_what_each_rule_makes_of_the_same_votes() -> None:
    cast = np.array([[1, 1, 1], [1, 1, -1], [-1, 0, 1], [-1, -1, 0], [-1, -1, -1]], np.int8)
    assert meta(cast, voting_rule("unanimous", [0.9] * 3)).tolist() == [1, 0, 0, 0, -1]
    assert meta(cast, voting_rule("vote", [0.9] * 3)).tolist() == [1, 1, 0, -1, -1]
    assert meta(cast, voting_rule("weighted", [0.6, 0.6, 0.99])).tolist() == [1, -1, 1, -1, -1]


def test_a_member_no_better_than_a_coin_has_no_say() -> None:
    assert voting_rule("weighted", [0.5, 0.4, 0.8]).weights == (0, 0, 1)
    assert voting_rule("weighted", [0.5, 0.5]) == voting_rule("vote", [0.5, 0.5])


vote_strategy = st.integers(1, 8).flatmap(
    lambda k: st.lists(st.lists(st.sampled_from([-1, 0, 1]), min_size=k, max_size=k), min_size=1, max_size=20)
)


@pytest.mark.parametrize("combine", ["unanimous", "vote"])
@STEADY
@given(vote_strategy)
def test_a_committee_decides_as_the_formula_says(combine: Literal["unanimous", "vote"], cast: list[list[int]]) -> None:
    k = len(cast[0])
    decided = meta(np.array(cast, np.int8), voting_rule(combine, [0.8] * k))
    assert decided.tolist() == reference.meta(cast, [Fraction(1, k)] * k, combine == "unanimous")


@STEADY
@given(vote_strategy, st.data())
def test_a_committee_that_needs_so_many_votes_counts_them(cast: list[list[int]], data: st.DataObject) -> None:
    k = len(cast[0])
    accept = data.draw(st.integers(1, k))
    reject = data.draw(st.integers(k + 1 - accept, k))
    decided = meta(np.array(cast, np.int8), voting_rule("vote", [0.8] * k, accept, reject))
    assert decided.tolist() == reference.votes_counted(cast, accept, reject)


@pytest.mark.parametrize("k", range(1, MAX_MEMBERS + 1))
def test_a_majority_and_unanimity_are_numbers_of_votes(k: int) -> None:
    rows = np.array([[1] * n + [-1] * (k - n) for n in range(k + 1)], np.int8)
    named: list[tuple[Combine, int]] = [("vote", k // 2 + 1), ("unanimous", k)]
    for combine, needed in named:
        by_name = meta(rows, voting_rule(combine, [0.8] * k))
        assert by_name.tolist() == meta(rows, voting_rule("vote", [0.8] * k, needed, needed)).tolist()


@STEADY
@given(
    st.integers(1, 6).flatmap(
        lambda k: st.tuples(
            st.lists(st.lists(st.integers(-3, 3), min_size=k, max_size=k), min_size=1),
            st.lists(st.integers(0, 2), min_size=k, max_size=k),
        )
    ),
    st.sampled_from(["unanimous", "vote", "weighted"]),
    st.integers(-4, 3),
    st.integers(0, 4),
)
def test_a_member_that_abstains_votes_as_two_halves_would(
    drawn: tuple[list[list[int]], list[int]], combine: Literal["unanimous", "vote", "weighted"], low: int, wide: int
) -> None:
    rows, bands = drawn
    scores, h, reject_below, accept_above = np.array(rows, np.float64), np.array(bands), low + 0.5, low + 0.5 + wide
    rule = voting_rule(combine, np.linspace(0.55, 0.95, scores.shape[1]).tolist())
    accepts = votes(scores, accept_above - h, accept_above + h)
    rejects = votes(scores, reject_below - h, reject_below + h)
    expected = (meta(accepts, rule) > 0).astype(int) - (meta(rejects, rule) < 0).astype(int)
    twice = np.concatenate([scores - h, scores + h], axis=1)
    decided = [decide(row, reject_below, accept_above, halved(rule)) for row in twice.tolist()]
    assert decided == expected.tolist()
    assert members_weights(halved(rule), len(bands)) == pytest.approx(rule.weights)


@STEADY
@given(st.lists(st.floats(-1, 1), min_size=1, max_size=40), st.floats(0, 0.99))
def test_a_member_abstains_on_the_share_of_documents_nearest_to_its_cut(d: list[float], loss: float) -> None:
    distances = np.array(d)
    within = np.count_nonzero(np.abs(distances) <= least_distance(distances, loss)) if loss else 0
    assert within >= loss * len(d) - 1e-6


@STEADY
@given(vote_strategy)
def test_the_opposite_votes_give_the_opposite_decision(cast: list[list[int]]) -> None:
    rows = np.array(cast, np.int8)
    quality = np.linspace(0.55, 0.95, rows.shape[1]).tolist()
    for combine in ("unanimous", "vote", "weighted"):
        rule = voting_rule(combine, quality)
        assert (meta(-rows, rule) == -meta(rows, rule)).all()
        assert sum(rule.weights) == pytest.approx(1)


@STEADY
@given(
    st.integers(1, 6).flatmap(lambda k: st.lists(st.lists(st.integers(-3, 3), min_size=k, max_size=k), min_size=1)),
    st.sampled_from(["unanimous", "vote", "weighted"]),
    st.integers(-4, 3),
    st.integers(0, 4),
)
def test_where_a_vote_turns_is_where_its_decision_does(
    rows: list[list[int]], combine: Literal["unanimous", "vote", "weighted"], low: int, wide: int
) -> None:
    """Cuts lie between whole numbers, and scores are whole."""
    scores, reject_below, accept_above = np.array(rows, np.float64), low + 0.5, low + 0.5 + wide
    rule = voting_rule(combine, np.linspace(0.55, 0.95, scores.shape[1]).tolist())
    decisions = [decide(row, reject_below, accept_above, rule) for row in scores.tolist()]
    points = turning_points(scores, rule)
    assert ((points.accepted_below > accept_above) == (np.array(decisions) > 0)).all()
    assert ((points.rejected_above < reject_below) == (np.array(decisions) < 0)).all()
    assert (points.accepted_below <= points.rejected_above).all()
    single = points.decision_score(reject_below, accept_above)
    assert votes(single, reject_below, accept_above).tolist() == decisions
    assert decisions == reference.voted_twice(rows, rule.weights, rule.t1, rule.t2, reject_below, accept_above)


def test_between_the_thresholds_nothing_is_said() -> None:
    assert votes(np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), -1.0, 1.0).tolist() == [-1, 0, 0, 0, 1]


# -- parameters --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "k must be null"),
        ({"k": MAX_MEMBERS + 1}, "k must be null"),
        ({"k": None, "method": "resample_a"}, "k can be null only for a split"),
        ({"max_loss": 0.0}, "max_loss"),
        ({"max_loss": float("nan")}, "max_loss"),
        ({"seed": -1}, "seed"),
        ({"member_loss": 1.0}, "member_loss must be a number from 0 and below 1"),
        ({"k": 4, "accept_votes": 5}, "accept_votes must be null or a whole number from 1 to k, which is 4"),
        ({"k": 4, "reject_votes": 0}, "reject_votes must be null or a whole number from 1 to k, which is 4"),
        ({"k": None, "accept_votes": 1}, "accept_votes must be null unless k is given"),
        ({"combine": "mean", "reject_votes": 3}, "reject_votes must be null where the mean"),
        ({"combine": "mean", "member_loss": 0.1}, "member_loss must be 0 where the mean"),
        ({"k": 5, "accept_votes": 2, "reject_votes": 3}, "2 and 3 are not more than 5"),
    ],
)
def test_parameters_out_of_range_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Params(**given)
