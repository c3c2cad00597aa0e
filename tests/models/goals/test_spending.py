"""How much is left undecided: between two bounds, and within them no more than recall seems to need."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals import prevalence, spending
from models.goals.spending import undecided
from tests.models.goals.judged import judged

STEADY = settings(derandomize=True, max_examples=50)
ABSTAIN = 0.2


def stream_with(separation: float, seed: int = 1, n: int = 1000) -> tuple[Reals, Bools]:
    """Documents of which a tenth is relevant, and scores higher by so many deviations."""
    rng = np.random.default_rng(seed)
    relevant = rng.random(n) < 0.1
    return rng.normal(separation * relevant, 1.0), relevant


@STEADY
@given(st.floats(0.0, 4.0), st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.floats(-2.0, 4.0), st.booleans())
def test_it_lies_between_the_bounds_and_a_higher_goal_never_needs_less(
    separation: float, recall: float, higher: float, cut: float, learning: bool
) -> None:
    scores, _ = stream_with(separation)
    sample = judged(*stream_with(separation, seed=2, n=400))
    recall, higher = sorted((recall, higher))
    low, high = (undecided(sample, scores, scores > cut, ABSTAIN, goal, learning) for goal in (recall, higher))
    share = float(np.mean(scores > cut))
    least = max(spending.MIN_SPENT, spending.SPENT_SHARE - spending.SPENT_LESS * share)
    most = max(least, spending.MOST_SPENT - spending.SPENT_LESS * share)
    first = min(least, spending.LEARNING_SHARE) if learning else least
    assert int(first * ABSTAIN * 1000) <= low <= high <= int((first if learning else most) * ABSTAIN * 1000)


def test_it_is_the_least_with_which_the_recall_seems_to_reach_the_goal() -> None:
    scores, _ = stream_with(1.5)
    sample = judged(*stream_with(1.5, seed=2, n=400))
    estimated = prevalence.estimate(sample.held_out, sample.relevant, np.ones(400, np.bool_), scores)
    assert estimated
    P = np.sort([p if p >= spending.UNLIKELY else 0.0 for p in estimated.probabilities(scores)])[::-1]
    least, most = (int(part * ABSTAIN * 1000) for part in (spending.SPENT_SHARE, spending.MOST_SPENT))
    nobody = np.zeros(1000, np.bool_)
    inside = []
    for goal in np.linspace(0.01, 0.99, 99):
        n = undecided(sample, scores, nobody, ABSTAIN, goal)
        reached = [P[:k].sum() >= goal * P.sum() for k in (n - 1, n)]
        if least < n < most:
            inside.append(n)
            assert reached == [False, True]
        else:
            assert n in (least, most)
    assert len(inside) > 2


def test_where_ranking_is_easy_less_is_spent_than_where_it_is_hard() -> None:
    spent = []
    for separation in (6.0, 1.0):
        scores, _ = stream_with(separation)
        sample = judged(*stream_with(separation, seed=2, n=400))
        spent.append(undecided(sample, scores, scores > 4, ABSTAIN, 0.9))
    assert spent[0] < spent[1]


def test_without_a_goal_for_recall_or_an_estimate_it_is_the_least() -> None:
    scores, relevant = stream_with(1.0)
    nobody, least = np.zeros(1000, np.bool_), int(spending.SPENT_SHARE * ABSTAIN * 1000)
    assert undecided(judged(scores, relevant), scores, nobody, ABSTAIN) == least
    assert undecided(judged(scores, relevant, "given"), scores, nobody, ABSTAIN, 0.99) == least


@pytest.mark.parametrize("shown", [0, spending.LEARNING_JUDGED])
def test_at_first_it_is_little(shown: int) -> None:
    scores, relevant = stream_with(1.0)
    n = undecided(judged(scores[:shown], relevant[:shown]), scores, scores > 9, ABSTAIN, 0.9, learning=True)
    assert (n == int(spending.LEARNING_SHARE * ABSTAIN * 1000)) == (shown == 0)
