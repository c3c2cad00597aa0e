"""Thresholds for a goal: what each test of a cut is for, and that promises hold."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core import intervals
from models.goals import spending
from models.goals.evidence import BOUND_CONFIDENCE, EDGE_SIZE, MIN_RELEVANT, PROMISE_CONFIDENCE
from models.goals.promises import Targets, certified_cut, choose
from models.goals.thresholds import MIN_SAMPLE, NEVER, Band, HandCuts
from tests.models.goals.judged import judged, ranking

STEADY = settings(derandomize=True, max_examples=100, deadline=None)
USUAL = Band(0.2, 0.3, 0.8)
NO_STREAM = np.empty(0)


# -- precision ---------------------------------------------------------------------------------------------------------


def test_sixteen_clean_documents_promise_nine_of_ten() -> None:
    """.9¹⁵ = .206: so often would a topic with a precision of .9 show no miss among fifteen, which is too often."""
    assert certified_cut(*ranking([True] * 15), 0.9) == NEVER
    assert certified_cut(*ranking([True] * 16), 0.9) < 1.0


def test_no_cut_is_tried_after_one_that_failed() -> None:
    """Two misses in the first twenty-nine are too many, and a hundred hits after them do not make up for it."""
    scores, relevant = ranking([True] * 3 + [False] * 2 + [True] * 100)
    assert intervals.low(103, 105, PROMISE_CONFIDENCE) > 0.9
    assert certified_cut(scores, relevant, 0.9) == NEVER


def test_one_miss_at_the_top_does_not_end_the_sequence() -> None:
    """It is no evidence against the goal: with .9 there is one among sixteen more often than not."""
    scores, relevant = ranking([False] + [True] * 60)
    assert certified_cut(scores, relevant, 0.9) < NEVER
    assert certified_cut(scores[:41], relevant[:41], 0.9) == NEVER  # the miss is still at the edge


def test_a_cut_that_breaks_the_goal_is_seldom_taken_however_many_are_tried() -> None:
    """Every cut has a precision a little below the goal. Some cut passes the bound far more often than it says; one
    that is reached in sequence does not: that the strictest may fail adds a hundredth, since the edge must be clean."""
    random = np.random.default_rng(4)
    runs, n, goal = 400, 300, 0.9
    lowest = sequence = 0
    for _ in range(runs):
        scores, relevant = ranking((random.random(n) < goal - 1e-9).tolist())
        hits = np.cumsum(relevant)
        passes = [intervals.low(int(k), i + 1, PROMISE_CONFIDENCE) >= goal for i, k in enumerate(hits)]
        lowest += any(passes[MIN_RELEVANT - 1 :])
        sequence += certified_cut(scores, relevant, goal) < NEVER
    assert lowest > 0.4 * runs
    assert sequence <= (1 - PROMISE_CONFIDENCE) * runs


def test_the_sure_ones_do_not_pay_for_a_tail() -> None:
    """Two hundred hits and nine misses are still promised as a whole, but the misses all stand at the end."""
    scores, relevant = ranking([True] * 200 + [False] * 9)
    assert intervals.low(200, 209, PROMISE_CONFIDENCE) > 0.9
    cut = certified_cut(scores, relevant, 0.9)
    assert 150 < np.count_nonzero(scores > cut) <= 200


def test_nothing_is_accepted_that_scores_as_what_was_never_shown() -> None:
    """Half of what was shown is relevant, down to the lowest, and a quarter is all that is asked for. It is no sample
    of the stream down there, which a cut below all of it would accept as a whole."""
    scores, relevant = ranking([True, False] * 60)
    sample, stream = judged(scores / 100, relevant), np.linspace(0, 0.5, 1000)
    goal = Targets(min_precision=0.25)
    assert certified_cut(sample.held_out, sample.relevant, 0.25) < 0.1
    assert choose(goal, sample, stream, Band(0.4, 0.5)).accept_above >= 0.4
    wide = choose(Targets(min_precision=0.25, min_recall=0.9, max_abstain=1.0), sample, stream, Band(0.4, 0.5))
    assert 0.5 * (1 - spending.LEARNING_SHARE) - 0.01 < wide.accept_above < 0.4


def test_equal_scores_are_never_separated() -> None:
    scores = np.array([1.0] * 20 + [0.5] * 20)
    relevant = np.array([True] * 20 + [True] * 10 + [False] * 10)
    assert certified_cut(scores, relevant, 0.9) == pytest.approx(0.75)


@STEADY
@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=120), st.sampled_from([0.5, 0.8, 0.9]))
def test_what_is_accepted_is_promised_and_clean_at_its_edge(rows: list[tuple[int, bool]], goal: float) -> None:
    scores, relevant = np.array([float(s) for s, _ in rows]), np.array([y for _, y in rows], np.bool_)
    cut = certified_cut(scores, relevant, goal)
    above = scores > cut
    if cut < NEVER:
        hits, n = int(np.count_nonzero(relevant & above)), int(np.count_nonzero(above))
        assert intervals.low(hits, n, PROMISE_CONFIDENCE) >= goal
        edge = relevant[np.argsort(-scores)][:n][-EDGE_SIZE:]
        assert edge.all() or intervals.low(int(edge.sum()), len(edge), BOUND_CONFIDENCE) >= goal


def test_promises_hold_on_streams_that_do_not_change() -> None:
    """P(relevant | score) is a steep curve; 300 judged documents, then the truth. Cuts that take what fits the sample
    best break one promise in three."""
    random = np.random.default_rng(3)
    kept, plugged, promised = 0, 0, 0
    for _ in range(300):
        scores = random.random(300)
        relevant = random.random(300) < 1 / (1 + np.exp(-14 * (scores - 0.55)))
        cut = certified_cut(scores, relevant, 0.9)
        order = np.argsort(-scores)
        precise = np.cumsum(relevant[order]) / np.arange(1, 301) >= 0.9
        plug = scores[order][np.flatnonzero(precise)[-1]]
        promised += cut < NEVER
        kept += cut < NEVER and _precision_above(cut) >= 0.9
        plugged += _precision_above(float(plug)) >= 0.9
    assert promised > 250
    assert kept > 0.9 * promised
    assert plugged < 0.7 * 300


def _precision_above(cut: float) -> float:
    s = np.linspace(cut, 1, 2000)
    return float(np.mean(1 / (1 + np.exp(-14 * (s - 0.55)))))


# -- what counts -------------------------------------------------------------------------------------------------------


def test_near_duplicates_are_counted_once() -> None:
    scores, relevant = ranking([True] * 40)
    current = np.arange(40) % 4 == 0
    assert choose(Targets(min_precision=0.9), judged(scores, relevant), NO_STREAM, USUAL).accept_above < NEVER
    assert (
        choose(Targets(min_precision=0.9), judged(scores, relevant, current=current), NO_STREAM, USUAL).accept_above
        == NEVER
    )


# -- abstention --------------------------------------------------------------------------------------------------------


@STEADY
@given(
    st.lists(st.floats(-1, 1), min_size=MIN_SAMPLE, max_size=400),
    st.floats(0, 1),
    st.sampled_from([None, 0.5]),
    st.sampled_from([None, 0.5]),
)
def test_no_more_is_abstained_from_than_allowed(
    stream: list[float], most: float, recall: float | None, precision: float | None
) -> None:
    goal = Targets(min_precision=precision, min_recall=recall, max_abstain=most)
    sample = judged(*ranking([True] * 5))
    band = choose(goal, sample, np.array(stream), USUAL)
    between = (np.array(stream) >= band.reject_below) & (np.array(stream) < band.accept_above)
    ties = np.unique(np.array(stream), return_counts=True)[1].max()
    assert np.count_nonzero(between) <= most * len(stream) + ties
    assert band.reject_below <= band.accept_above


def test_recall_spends_the_allowance_and_nothing_else_does() -> None:
    stream = np.linspace(0, 1, 1000)
    frugal = choose(Targets(max_abstain=0.6), judged(*ranking([])), stream, USUAL)
    assert (frugal.reject_below, frugal.accept_above) == (USUAL.reject_below, USUAL.accept_above)
    generous = choose(Targets(min_recall=0.9, max_abstain=0.2), judged(*ranking([])), stream, USUAL)
    share = np.mean((stream >= generous.reject_below) & (stream <= generous.accept_above))
    assert share == pytest.approx(spending.MIN_SPENT * 0.2, abs=0.002)  # .7 of the stream is accepted


def test_a_topic_that_accepts_little_spends_more() -> None:
    stream, goal = np.linspace(0, 1, 1000), Targets(min_recall=0.9, max_abstain=0.2)
    spent = []
    for accepted in (0.0, 0.1, 0.3, 0.9):
        band = choose(goal, judged(*ranking([])), stream, Band(0.05, 1 - accepted))
        spent.append(float(np.mean((stream >= band.reject_below) & (stream <= band.accept_above))))
    expected = [
        max(spending.MIN_SPENT, spending.SPENT_SHARE - spending.SPENT_LESS * a) * 0.2 for a in (0, 0.1, 0.3, 0.9)
    ]
    assert spent == pytest.approx(expected, abs=0.002)


def test_until_a_precision_is_promised_people_see_what_is_near_the_cut() -> None:
    stream, usual = np.linspace(0, 40, 1000), Band(38.0, 39.0)
    goal = Targets(min_precision=0.9, min_recall=0.9, max_abstain=0.2, mode="best")
    shares = []
    for labels in ([True] * 12, [True] * 40):
        scores, relevant = ranking(labels)
        band = choose(goal, judged(38 + scores / 20, relevant), stream, usual)
        accepted = float(np.mean(stream > band.accept_above))
        shares.append(float(np.mean((stream >= band.reject_below) & (stream <= band.accept_above))) / 0.2)
    assert shares[0] == pytest.approx(spending.LEARNING_SHARE, abs=0.01)
    least, most = (part - spending.SPENT_LESS * accepted for part in (spending.SPENT_SHARE, spending.MOST_SPENT))
    assert least - 0.01 <= shares[1] <= most + 0.01
    assert least > spending.LEARNING_SHARE


def test_a_topic_that_gets_no_promise_shows_people_more_in_the_end() -> None:
    stream, usual = np.linspace(0, 40, 1000), Band(38.0, 39.0)
    goal, shares = Targets(min_precision=0.9, min_recall=0.9, max_abstain=0.2, mode="best"), []
    for n in (spending.LEARNING_JUDGED - 1, spending.LEARNING_JUDGED):
        scores, relevant = ranking([i % 3 == 0 for i in range(n)])
        band = choose(goal, judged(scores, relevant), stream, usual)
        assert band.certified is False
        shares.append(float(np.mean((stream >= band.reject_below) & (stream <= min(band.accept_above, 40)))) / 0.2)
    assert shares[0] == pytest.approx(spending.LEARNING_SHARE, abs=0.01)
    assert shares[1] > 1.5 * shares[0]


# -- error -------------------------------------------------------------------------------------------------------------


def test_an_error_goal_rejects_no_further_than_audits_can_answer_for() -> None:
    """Relevant documents lie above .5; audits of everything below it find none, above it many."""
    random = np.random.default_rng(1)
    scores = random.random(2000)
    sample = replace(judged(scores, scores > 0.5, "audit"), chance=np.full(2000, 0.5))
    band = choose(Targets(max_error=0.05), sample, NO_STREAM, Band(0.9, 0.95))
    assert 0.45 < band.reject_below < 0.56
    nothing = judged(*ranking([]))
    assert choose(Targets(max_error=0.05), nothing, NO_STREAM, Band(0.9, 0.95)).reject_below == 0.9


def test_a_cut_that_audits_show_to_be_too_high_is_not_kept_though_no_other_can_be_shown_to_hold() -> None:
    """Of a common topic, a third is relevant at every score; few audits show that of the usual cut only."""
    scores = np.arange(30) / 30
    usual = Band(0.9, 0.95)
    common = choose(Targets(max_error=0.05), judged(scores, np.arange(30) % 3 == 0, "audit"), NO_STREAM, usual)
    assert common.reject_below < 0.3
    rare = choose(Targets(max_error=0.05), judged(scores, np.arange(30) == 29, "audit"), NO_STREAM, usual)
    assert rare.reject_below == 0.9


def test_audits_at_a_rate_that_was_changed_answer_for_what_they_stand_for() -> None:
    """A thousand at 1.0 find nothing; those at .02 find one in five. Lumped, they would hide it."""
    rng = np.random.default_rng(3)
    chance = np.concatenate((np.full(1000, 1.0), np.full(60, 0.02)))
    relevant = np.concatenate((np.zeros(1000, np.bool_), rng.random(60) < 0.2))
    sample = replace(judged(rng.random(1060) * 0.5, relevant, "audit"), chance=chance)
    assert choose(Targets(max_error=0.05), sample, NO_STREAM, Band(0.9, 0.95)).reject_below < 0.4
    lumped = replace(sample, chance=np.full(1060, 0.5))
    assert choose(Targets(max_error=0.05), lumped, NO_STREAM, Band(0.9, 0.95)).reject_below == 0.9


def test_documents_that_all_score_alike_are_not_all_abstained_from() -> None:
    """Documents without a word of the query do: to show one of them is to show all."""
    stream = np.concatenate((np.full(980, 0.014), 0.1 + np.arange(20) / 100))
    goal = Targets(min_recall=0.9, max_abstain=0.15)
    band = choose(goal, judged(*ranking([])), stream, Band(0.2, 0.3))
    assert 0.014 < band.reject_below <= 0.1
    for targets in (goal, Targets(min_recall=0.9, min_precision=0.9), Targets(min_recall=0.9)):
        alike = choose(targets, judged(*ranking([])), np.full(1000, 0.014), Band(0.2, 0.3))
        assert 0.014 < alike.reject_below <= 0.2  # the first that has a word of the query is shown


def test_error_comes_before_abstention() -> None:
    scores = np.random.default_rng(1).random(2000)
    sample = replace(judged(scores, scores > 0.5, "audit"), chance=np.full(2000, 0.5))
    band = choose(Targets(max_error=0.05, max_abstain=0.01), sample, np.linspace(0, 1, 1000), Band(0.9, 0.95))
    assert band.reject_below < 0.56


# -- cuts set by hand --------------------------------------------------------------------------------------------------


def test_cuts_set_by_hand_stay_whatever_the_goal_and_a_band_follows_the_cut_of_the_topic() -> None:
    scores, relevant = ranking([True] * 60 + [False] * 60)
    sample = judged(scores / 120, relevant)
    for goal in (Targets(), Targets(min_precision=0.9), Targets(max_abstain=0.3, mode="best")):
        fixed = choose(replace(goal, cuts=HandCuts(0.4, 0.7)), sample, NO_STREAM, USUAL)
        assert (fixed.reject_below, fixed.accept_above, fixed.f1) == (0.4, 0.7, USUAL.f1)
        band = choose(replace(goal, cuts=HandCuts(band=0.05)), sample, NO_STREAM, USUAL)
        assert (band.reject_below, band.accept_above) == pytest.approx((0.25, 0.35))
    silent = Band(0.2, NEVER)
    assert choose(Targets(cuts=HandCuts(band=0.05)), sample, NO_STREAM, silent) == silent
