"""The cut by the best estimate: where the goal seems to hold, the usual one before anything is known."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core import intervals
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals.best_estimate import likely_cut
from models.goals.evidence import BOUND_CONFIDENCE, MIN_RELEVANT
from models.goals.promises import Targets, certified_cut, choose
from models.goals.thresholds import NEVER, Band
from tests.models.goals.judged import judged, ranking

STEADY = settings(derandomize=True, max_examples=200, deadline=None)
USUAL = 0.123


def reference(scores: Reals, relevant: Bools, goal: float, usual: float) -> float:
    """The rule, cut by cut, from the formula."""
    if relevant.sum() < MIN_RELEVANT:
        return usual
    levels = sorted(set(scores.tolist()), reverse=True)
    found: float | None = None
    best: tuple[float, float, int, int] | None = None
    for level, below in zip(levels, [*levels[1:], None], strict=True):
        above = scores >= level
        n, k = int(above.sum()), int((above & relevant).sum())
        if n < MIN_RELEVANT:
            continue
        cut = (level + below) / 2 if below is not None else level - max(1e-9, levels[0] - levels[-1]) / 2
        estimate = (k + 0.5) / (n + 1)
        if estimate >= goal:
            found = cut
        if best is None or estimate > best[0]:
            best = estimate, cut, k, n
    if found is not None:
        return found
    assert best is not None
    return best[1] if intervals.high(best[2], best[3], BOUND_CONFIDENCE) >= goal else NEVER


@STEADY
@given(
    labels=st.lists(st.booleans(), min_size=1, max_size=80),
    goal=st.sampled_from([0.5, 0.8, 0.9, 0.95]),
    ties=st.integers(1, 4),
)
def test_it_is_the_rule_of_the_formula(labels: list[bool], goal: float, ties: int) -> None:
    scores, relevant = ranking(labels)
    scores = np.floor(scores / ties) * ties
    assert likely_cut(scores, relevant, goal, USUAL) == reference(scores, relevant, goal, USUAL)


def test_before_there_is_evidence_the_cut_is_the_usual_one() -> None:
    assert likely_cut(*ranking([True] * 7), 0.9, USUAL) == USUAL
    assert likely_cut(*ranking([]), 0.9, USUAL) == USUAL


def test_where_the_goal_is_out_of_reach_nothing_is_accepted_and_where_it_is_not_the_best_is() -> None:
    assert likely_cut(*ranking([True, False] * 40), 0.9, USUAL) == NEVER
    near = likely_cut(*ranking([True] * 7 + [False] + [True, False] * 10), 0.9, USUAL)
    assert USUAL != near < NEVER


@STEADY
@given(labels=st.lists(st.sampled_from([True, True, True, False]), min_size=30, max_size=120))
def test_what_is_certain_is_never_looser_than_what_is_likely(labels: list[bool]) -> None:
    scores, relevant = ranking(labels)
    certain = certified_cut(scores, relevant, 0.8)
    if certain < NEVER:
        assert likely_cut(scores, relevant, 0.8, USUAL) <= certain


def test_best_accepts_where_strict_does_not_and_only_a_certified_cut_is_called_so() -> None:
    usual, nothing = Band(0.0, 5.0), np.empty(0)
    few, many = judged(*ranking([True] * 9 + [False] * 9)), judged(*ranking([True] * 60))
    strict, best = Targets(min_precision=0.9), Targets(min_precision=0.9, mode="best")
    assert choose(strict, few, nothing, usual).accept_above == NEVER
    band = choose(best, few, nothing, usual)
    assert band.accept_above < NEVER
    assert band.certified is False
    assert choose(best, many, nothing, usual) == choose(strict, many, nothing, usual)
    assert choose(best, many, nothing, usual).certified is True
    assert choose(Targets(max_abstain=0.1, mode="best"), few, nothing, usual).certified is None
    by_error = choose(Targets(max_error=0.1, mode="best"), few, nothing, usual)
    assert (by_error.accept_above, by_error.certified) == (band.accept_above, False)
