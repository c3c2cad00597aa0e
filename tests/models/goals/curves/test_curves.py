"""A sample that stands for a stream: weights that add up, and the two curves over it, beside slow references."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.goals.curves import precision_recall, tradeoff
from models.goals.curves.weighted import StreamSample
from models.goals.reporting.samples import Trial
from models.goals.reporting.volume import StreamCounts

STEADY = settings(derandomize=True, max_examples=100, deadline=None)
#                             (score, relevant, weight)
DOCUMENTS = st.lists(st.tuples(st.integers(-4, 4), st.booleans(), st.sampled_from([1, 2, 5])), min_size=1, max_size=14)


def sample_of(documents: list[tuple[int, bool, int]], unseen: float = 0.0) -> StreamSample:
    ordered = sorted(documents, key=lambda each: each[0])
    scores, relevant, weights = (np.array(column) for column in zip(*ordered, strict=True))
    return StreamSample(scores.astype(float), relevant.astype(np.bool_), weights.astype(float), unseen)


# -- weights -----------------------------------------------------------------------------------------------------------


def test_each_document_stands_for_those_that_were_decided_like_it() -> None:
    trials = [
        Trial("accept", 0.9, True, "shown"),
        Trial("accept", 0.8, False, "shown"),
        Trial("abstain", 0.5, True, "shown"),
        Trial("reject", 0.1, False, "audit", 0.1),
        Trial("reject", 0.2, True, "audit", 0.2),
        Trial("reject", 0.3, True, "found"),
        Trial("accept", 0.7, True, "given"),
    ]
    counts = StreamCounts(documents=100, accepted=8, abstained=2)
    sample = StreamSample.of(trials, [t.score for t in trials], counts)
    assert sample.scores.tolist() == [0.1, 0.2, 0.5, 0.8, 0.9]
    assert sample.weights.tolist() == pytest.approx([60, 30, 2, 4, 4])  # 90 rejected: 10 parts and 5 of 15
    assert sample.total == pytest.approx(100)
    assert sample.unseen == 0


def test_parts_that_nobody_judged_are_unseen_and_a_stream_that_was_not_counted_weighs_by_chance() -> None:
    shown, audit = Trial("accept", 1.0, True, "shown"), Trial("reject", 0.0, False, "audit", 0.05)
    sample = StreamSample.of([shown], [1.0], StreamCounts(documents=50, accepted=5, abstained=3))
    assert (sample.weights.tolist(), sample.unseen, sample.total) == ([5.0], 45.0, 50.0)
    sample = StreamSample.of([shown, audit], [1.0, 0.0], StreamCounts())
    assert (sample.weights.tolist(), sample.unseen) == ([20.0, 1.0], 0.0)


def test_other_scores_take_the_place_of_those_by_which_documents_were_decided() -> None:
    trials = [Trial("accept", 1.0, True, "shown"), Trial("accept", 2.0, False, "shown")]
    sample = StreamSample.of(trials, [7.0, 3.0], StreamCounts())
    assert (sample.scores.tolist(), sample.relevant.tolist()) == ([3.0, 7.0], [False, True])


# -- error and loss ----------------------------------------------------------------------------------------------------


def slow_least_error(documents: list[tuple[int, bool, int]], unseen: float, max_loss: float) -> tuple[float, float]:
    """Tries every pair of cuts; a cut lies below a score, or above all of them."""
    cuts = [min(s for s, _, _ in documents) - 0.5, *(s + 0.5 for s in {s for s, _, _ in documents})]
    total = sum(w for _, _, w in documents) + unseen
    found = []
    for reject_below in cuts:
        for accept_above in cuts:
            if reject_below <= accept_above:
                decided = unseen + sum(w for s, _, w in documents if s < reject_below or s > accept_above)
                wrong = sum(w for s, r, w in documents if (s < reject_below and r) or (s > accept_above and not r))
                if decided and 1 - decided / total <= max_loss + 1e-9:
                    found.append((round(wrong / decided, 9), round(1 - decided / total, 9)))
    return min(found)


@STEADY
@given(documents=DOCUMENTS, unseen=st.sampled_from([0.0, 3.0]), max_loss=st.sampled_from([0.0, 0.1, 0.3, 0.62, 0.98]))
def test_no_pair_of_cuts_has_less_error_within_the_loss(
    documents: list[tuple[int, bool, int]], unseen: float, max_loss: float
) -> None:
    points = tradeoff.curve(sample_of(documents, unseen), [max_loss])
    if not any(relevant for _, relevant, _ in documents):
        assert points == []
        return
    (point,) = points
    assert (point.error, point.loss) == pytest.approx(slow_least_error(documents, unseen, max_loss), abs=1e-6)


@STEADY
@given(documents=DOCUMENTS)
def test_a_curve_trades_error_for_loss_and_its_cuts_give_what_it_says(documents: list[tuple[int, bool, int]]) -> None:
    sample = sample_of(documents)
    points = tradeoff.curve(sample)
    for one, other in pairwise(points):
        assert one.loss < other.loss
        assert one.error > other.error
    for point in points:
        assert point.reject_below <= point.accept_above
        assert 0 <= point.low <= point.error <= point.high <= 1
        assert tradeoff.at(sample, point.reject_below, point.accept_above) == point
    if points:
        assert points[0].loss == pytest.approx(0)


def test_error_is_counted_among_the_decided_and_loss_among_all() -> None:
    sample = sample_of([(1, False, 1), (2, True, 1), (3, False, 1), (4, True, 1)])
    point = tradeoff.at(sample, 1.5, 2.5)  # rejects 1, abstains from 2, accepts 3 and 4
    assert point.loss == pytest.approx(1 / 4)
    assert point.error == pytest.approx(1 / 3)
    nothing = tradeoff.at(sample, 0.0, 9.0)
    assert (nothing.loss, nothing.error, nothing.high) == (1.0, 0.0, 1.0)


def test_what_nobody_judged_may_be_wrong() -> None:
    documents = [(1, False, 1), (2, True, 1)]
    known, unknown = (tradeoff.at(sample_of(documents, unseen), 1.5, 1.5) for unseen in (0.0, 50.0))
    assert (known.error, unknown.error) == (0, 0)
    assert unknown.high > 0.95


@pytest.mark.parametrize("chance", [0.05, 0.2])
def test_the_bounds_of_fixed_cuts_hold_for_the_stream_that_was_sampled(chance: float) -> None:
    rng = np.random.default_rng(17)
    failed, runs = 0, 200
    for _ in range(runs):
        relevant = rng.random(4000) < 0.1
        scores = rng.normal(size=4000) + 2 * relevant
        wrong = np.where(scores > 1.5, ~relevant, relevant) & ((scores > 1.5) | (scores < 0.8))
        error = wrong.sum() / ((scores > 1.5) | (scores < 0.8)).sum()
        shown, drawn = scores >= 0.8, rng.random(4000) < chance
        decision = np.where(scores > 1.5, "accept", np.where(shown, "abstain", "reject")).tolist()
        trials = [
            Trial(decision[i], scores[i], bool(relevant[i]), "shown" if shown[i] else "audit", chance)
            for i in np.flatnonzero(drawn | (shown & (rng.random(4000) < 0.5)))
        ]
        counts = StreamCounts(4000, decision.count("accept"), decision.count("abstain"))
        point = tradeoff.at(StreamSample.of(trials, [t.score for t in trials], counts), 0.8, 1.5)
        failed += not point.low <= error <= point.high
    assert failed / runs <= 1 - tradeoff.CONFIDENCE


# -- precision and recall ----------------------------------------------------------------------------------------------


@STEADY
@given(documents=DOCUMENTS)
def test_precision_and_recall_are_those_of_counting(documents: list[tuple[int, bool, int]]) -> None:
    sample = sample_of(documents)
    points = precision_recall.curve(sample)
    relevant = sum(w for _, r, w in documents if r)
    assert bool(points) == (relevant > 0)
    for point in points:
        above = [(r, w) for s, r, w in documents if s > point.accept_above]
        hits = sum(w for r, w in above if r)
        assert point.precision.estimate == pytest.approx(hits / sum(w for _, w in above))
        assert point.recall.estimate == pytest.approx(hits / relevant)
        for figure in (point.precision, point.recall):
            assert 0 <= figure.low <= (figure.estimate or 0) <= figure.high <= 1
    recalls = [point.recall.estimate or 0 for point in points]
    assert recalls == sorted(recalls)
    assert not points or recalls[-1] == 1


def test_the_break_even_point_lies_where_as_many_are_accepted_as_are_relevant() -> None:
    ranked = sample_of([(6, True, 1), (5, False, 1), (4, True, 1), (3, True, 1), (2, False, 1), (1, False, 1)])
    assert precision_recall.break_even(ranked) == pytest.approx(2 / 3)
    tied = sample_of([(2, True, 1), (1, True, 1), (1, False, 1), (1, False, 1)])
    assert precision_recall.break_even(tied) == pytest.approx((1 + 1 / 3) / 2)
    assert precision_recall.break_even(sample_of([(1, False, 1)])) is None
