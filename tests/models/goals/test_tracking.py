"""The cut that is steered by what was delivered: the formula, what it guarantees, and when it is promised."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core import intervals
from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals.evidence import BOUND_CONFIDENCE, MIN_RELEVANT, PROMISE_CONFIDENCE, JudgedWindow
from models.goals.promises import Targets, choose
from models.goals.thresholds import NEVER, Band
from models.goals.tracking import AIM, EDGE, FADE, GAIN, SLACK, level, tracked_cut
from tests.models.goals.judged import judged, ranking

STEADY = settings(derandomize=True, max_examples=200, deadline=None)
GOALS = st.sampled_from([0.5, 0.8, 0.9, 0.95])
USUAL = 0.123
NOTHING = np.empty(0)


def level_of(rows: list[tuple[bool, bool]], goal: float) -> float:
    relevant, accepted = (np.array([row[i] for row in rows], np.bool_) for i in (0, 1))
    return level(relevant, accepted, goal)


def reference_level(rows: list[tuple[bool, bool]], goal: float) -> float:
    """λ by its formula, a judgement at a time."""
    first = now = goal + AIM * (1 - goal)
    for relevant, accepted in rows:
        if accepted:
            now = max(goal, now + GAIN * (1 - goal) * ((0 if relevant else 1) - (1 - goal)))
        else:
            now = now + FADE * (first - now)
    return now


def reference_cut(scores: Reals, relevant: Bools, reached: float, goal: float, shown: float) -> tuple[float, bool]:
    """The rule, cut by cut, from the formula."""
    if relevant.sum() < MIN_RELEVANT:
        return USUAL, False
    runs = sorted(set(scores.tolist()), reverse=True)
    promised = served = best = None
    highest = -1.0
    for run, below in zip(runs, [*runs[1:], runs[-1] - max(1e-9, runs[0] - runs[-1])], strict=True):
        cut = (run + below) / 2
        above = scores > cut
        n, m = int(above.sum()), int((above & ~relevant).sum())
        if cut < shown or n < MIN_RELEVANT:
            continue
        estimate = (n - m) / (n + 1)
        if estimate > highest:
            best, highest = (cut, n - m, n), estimate
        end = np.sort(scores[above])[min(n, EDGE) - 1]
        edge = above & (scores <= end)
        wrong, e = int((edge & ~relevant).sum()), int(edge.sum())
        if estimate >= reached and wrong <= (1 - (reached - SLACK * (1 - goal))) * e:
            served = cut
            if wrong == 0 and intervals.low(n - m, n, PROMISE_CONFIDENCE) >= goal:
                promised = cut
    if promised is not None:
        return promised, True
    if served is not None:
        return served, False
    if best is None:
        return USUAL, False
    return (best[0] if intervals.high(best[1], best[2], BOUND_CONFIDENCE) >= goal else NEVER), False


def sample(labels: list[bool], accepted: list[bool] | None = None, ties: int = 1) -> JudgedWindow:
    scores, relevant = ranking(labels)
    window = judged(np.floor(scores / ties) * ties, relevant)
    return replace(window, accepted=np.array(accepted, np.bool_)) if accepted else window


@STEADY
@given(rows=st.lists(st.tuples(st.booleans(), st.booleans()), max_size=200), goal=GOALS)
def test_the_level_is_that_of_the_formula_and_never_below_the_goal(rows: list[tuple[bool, bool]], goal: float) -> None:
    assert level_of(rows, goal) == pytest.approx(reference_level(rows, goal), rel=1e-12)
    assert level_of(rows, goal) >= goal


@STEADY
@given(
    labels=st.lists(st.sampled_from([True, True, True, False]), min_size=1, max_size=150),
    goal=GOALS,
    ties=st.integers(1, 4),
    shown=st.sampled_from([-np.inf, 20.0]),
)
def test_the_cut_is_that_of_the_formula(labels: list[bool], goal: float, ties: int, shown: float) -> None:
    window = sample(labels, ties=ties)
    reached = level(window.relevant, window.accepted, goal)
    expected = reference_cut(window.held_out, window.relevant, reached, goal, shown)
    assert tracked_cut(window, goal, USUAL, shown) == expected
    assert tracked_cut(window, goal, USUAL, shown) == expected  # and the same every time


@STEADY
@given(
    rows=st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=200),
    place=st.integers(0, 199),
    goal=GOALS,
)
def test_a_miss_in_place_of_a_hit_never_lowers_the_level(
    rows: list[tuple[bool, bool]], place: int, goal: float
) -> None:
    worse = list(rows)
    worse[place % len(rows)] = (False, rows[place % len(rows)][1])
    assert level_of(worse, goal) >= level_of(rows, goal)


@STEADY
@given(
    wishes=st.lists(st.tuples(st.sampled_from([True, True, True, False]), st.booleans()), max_size=400),
    spite=st.booleans(),
    goal=GOALS,
)
def test_misses_stay_within_the_guarantee_on_any_sequence(
    wishes: list[tuple[bool, bool]], spite: bool, goal: float
) -> None:
    """An adversary delivers whenever it may, which is below a level of 1, and, out of spite, nothing but misses."""
    rows: list[tuple[bool, bool]] = []
    for wants, relevant in wishes:
        rows.append((relevant and not spite, wants and level_of(rows, goal) < 1))
        delivered = [relevant for relevant, accepted in rows if accepted]
        others, most = len(rows) - len(delivered), (1 - AIM) / GAIN + goal
        assert delivered.count(False) <= (1 - goal) * len(delivered) + most * (1 + FADE * others) + 1e-9


def test_deliveries_are_steered_to_the_goal_where_held_out_scores_flatter() -> None:
    """Where a cut seems to have a precision of λ, it has λ − .08: .84 at the level at which it starts. Of what is shown
    and judged, a fifth is not accepted."""
    random, now, hits = np.random.default_rng(2), level_of([], 0.9), []
    rows: list[tuple[bool, bool]] = []
    for _ in range(3000):
        now = level_of(rows, 0.9)
        rows.append((bool(random.random() < now - 0.08), now < 1 and bool(random.random() < 0.8)))
        hits += [rows[-1][0]] if rows[-1][1] else []
    assert np.mean(hits) == pytest.approx(0.89, abs=0.01)


def test_a_level_of_one_silences_and_judging_what_is_shown_ends_that() -> None:
    hits, misses = [True] * 60, [False] * 6
    silent = sample(hits + misses, [False] * 60 + [True] * 6)
    assert tracked_cut(silent, 0.9, USUAL) == (NEVER, False)
    few = sample([True] * 5 + misses, [False] * 5 + [True] * 6)
    assert tracked_cut(few, 0.9, USUAL) == (NEVER, False)  # not even by the usual cut
    again = np.concatenate((np.ones(60, np.bool_), np.zeros(6, np.bool_), np.ones(30, np.bool_)))
    accepted = np.arange(96) // 6 == 10
    assert level(again, accepted, 0.9) < 1


def test_before_there_is_evidence_the_cut_is_the_usual_one() -> None:
    assert tracked_cut(sample([True] * 7), 0.9, USUAL) == (USUAL, False)
    assert tracked_cut(sample([]), 0.9, USUAL) == (USUAL, False)


def test_where_the_goal_is_out_of_reach_nothing_is_accepted_and_where_it_is_not_the_best_is() -> None:
    assert tracked_cut(sample([True, False] * 40), 0.9, USUAL) == (NEVER, False)
    near, promised = tracked_cut(sample([True] * 7 + [False] + [True, False] * 10), 0.9, USUAL)
    assert USUAL != near < NEVER
    assert not promised


def test_sixteen_clean_documents_promise_nine_of_ten_and_one_miss_at_the_edge_does_not() -> None:
    assert tracked_cut(sample([True] * 15), 0.9, USUAL)[1] is False
    assert tracked_cut(sample([True] * 16), 0.9, USUAL)[1] is True
    assert tracked_cut(sample([True] * 20 + [False]), 0.9, USUAL)[1] is True  # above the miss
    assert tracked_cut(sample([True] * 15 + [False] + [True] * 19), 0.9, USUAL)[1] is False
    assert tracked_cut(sample([True] * 15 + [False] + [True] * 20), 0.9, USUAL)[1] is True


def test_best_accepts_where_strict_does_not_and_only_a_certified_cut_is_called_so() -> None:
    usual = Band(0.0, 5.0)
    few, many = sample([True] * 9 + [False] * 9), sample([True] * 60)
    strict, best = Targets(min_precision=0.9), Targets(min_precision=0.9, mode="best")
    assert choose(strict, few, NOTHING, usual).accept_above == NEVER
    band = choose(best, few, NOTHING, usual)
    assert band.accept_above < NEVER
    assert band.certified is False
    assert choose(best, many, NOTHING, usual).certified is True
    assert choose(best, many, NOTHING, usual).accept_above <= choose(strict, many, NOTHING, usual).accept_above
    assert choose(Targets(max_abstain=0.1, mode="best"), few, NOTHING, usual).certified is None
    by_error = choose(Targets(max_error=0.1, mode="best"), few, NOTHING, usual)
    assert (by_error.accept_above, by_error.certified) == (band.accept_above, False)
