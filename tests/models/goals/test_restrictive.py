"""Restrictive classification: every pair of cuts tried, by the definition, and what a topic gets from it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core import intervals
from models.core.measures import Bools
from models.core.names import Origin
from models.core.vectors import Reals
from models.goals import restrictive
from models.goals.evidence import MIN_RELEVANT
from models.goals.promises import Targets, choose
from models.goals.restrictive import Sample, best_pair, planned_loss
from models.goals.thresholds import NEVER, Band
from tests.models.goals.judged import judged
from tests.support import reference

STEADY = settings(derandomize=True, max_examples=150, deadline=None)
USUAL = Band(0.2, 0.3, 0.8)
NO_STREAM = np.empty(0)

documents = st.lists(
    st.tuples(st.integers(-3, 3), st.integers(0, 2), st.sampled_from([0.0, 0.2, 0.5, 0.9, 1.0])), min_size=1, max_size=9
)


def figures(rows: list[tuple[float, float, float]], cuts: tuple[float, float]) -> tuple[float, float]:
    loss, error = reference.loss_and_error(rows, *cuts)
    return round(loss, 9), round(error, 9)


@STEADY
@given(documents, st.sampled_from([0.0, 0.3, 0.5, 0.9]))
def test_no_other_pair_within_the_loss_has_less_error(rows: list[tuple[int, int, float]], max_loss: float) -> None:
    """Of pairs with that error, none has less loss. A vote has another score to reject by, which is no lower."""
    several = [(float(a), float(a + more), p) for a, more, p in rows]
    accepting, rejecting, p = (np.array(column) for column in zip(*several, strict=True))
    pair = best_pair(Sample(accepting, rejecting, p), max_loss)
    every = [each for each in reference.pairs_of_cuts(several) if each[0] <= max_loss + 1e-9]
    if pair is None:
        assert not every
        return
    loss, error = figures(several, pair)
    least = min(round(e, 9) for _, e in every)
    assert loss <= max_loss + 1e-9
    assert error == pytest.approx(least, abs=1e-7)
    assert loss == pytest.approx(min(lost for lost, e in every if e <= least + 1e-9), abs=1e-7)


@STEADY
@given(documents, st.sampled_from([0.0, 0.05, 0.2, 0.4]), st.sampled_from([1.0, 0.5]))
def test_no_other_pair_within_the_error_has_less_loss(
    rows: list[tuple[int, int, float]], max_error: float, max_loss: float
) -> None:
    """Where no pair keeps both, the one of least error within the loss is taken."""
    several = [(float(a), float(a), p) for a, _, p in rows]
    scores, p = np.array([a for a, _, _ in several]), np.array([p for *_, p in rows])
    pair = best_pair(Sample(scores, scores, p), max_loss, max_error)
    every = [each for each in reference.pairs_of_cuts(several) if each[0] <= max_loss + 1e-9]
    keep = [each for each in every if each[1] <= max_error + 1e-9]
    if pair is None:
        assert not every
        return
    loss, error = figures(several, pair)
    if keep:
        assert error <= max_error + 1e-7
        assert loss == pytest.approx(min(lost for lost, _ in keep), abs=1e-7)
    else:
        assert error == pytest.approx(min(e for _, e in every), abs=1e-7)


def test_the_cuts_lie_on_both_sides_of_what_is_not_sure() -> None:
    """Ten documents, the middle four in disorder: without them no error is left, and that costs a loss of .4."""
    scores, relevant = np.arange(10.0), np.array([0, 0, 0, 1, 0, 1, 0, 1, 1, 1], float)
    sample = Sample(scores, scores, relevant)
    assert best_pair(sample, 0.4) == (2.5, 6.5)
    assert best_pair(sample, 1.0) == (2.5, 6.5)  # no more than it takes
    assert best_pair(sample, 0.2) in ((2.5, 4.5), (4.5, 6.5))
    assert best_pair(sample, 1.0, max_error=0.0) == (2.5, 6.5)
    low, high = best_pair(sample, 1.0, max_error=0.2) or (0.0, 0.0)
    assert low == high  # of ten decisions two may be wrong, so all can be made


def test_loss_is_counted_on_what_passed_where_the_errors_are_known_of_others() -> None:
    scores = np.array([0.0, 1, 2, 3, 4, 5])
    given = Sample(scores, scores, np.array([0, 0, 1, 0, 1, 1], float))
    passed = Sample(np.full(10, 2.5), np.full(10, 2.5), np.zeros(10))  # all of it where nothing is sure
    assert best_pair(given, 0.4) == (1.5, 3.5)
    low, high = best_pair(given, 0.4, passed=passed) or (0.0, 0.0)
    assert not (low <= 2.5 <= high)


@pytest.mark.parametrize("documents", [200, 1000])
@pytest.mark.parametrize("allowed", [0.02, 0.1, 0.3, 0.9])
def test_the_planned_loss_leaves_room_for_chance(documents: int, allowed: float) -> None:
    planned = planned_loss(allowed, documents)
    n = round(planned * documents)
    assert intervals.high(n, documents, restrictive.LOSS_CONFIDENCE) <= allowed
    assert intervals.high(n + 1, documents, restrictive.LOSS_CONFIDENCE) > allowed
    assert planned_loss(1.0, documents) == 1.0


# -- a topic -----------------------------------------------------------------------------------------------------------


def drawn(n: int, seed: int, share: float = 0.3) -> tuple[Reals, Bools]:
    random = np.random.default_rng(seed)
    scores = random.random(n)
    return scores, random.random(n) < 1 / (1 + np.exp(-12 * (scores - (1 - share))))


def test_with_few_judgements_the_usual_band_stays() -> None:
    scores, relevant = drawn(2 * MIN_RELEVANT - 1, 1)
    assert choose(Targets(max_abstain=0.3, mode="best"), judged(scores, relevant), NO_STREAM, USUAL) == USUAL


def test_documents_that_were_brought_along_are_enough_as_in_the_paper() -> None:
    scores, relevant = drawn(200, 2)
    sample = judged(scores, relevant, origin="given")
    rows = [(f, f, float(y)) for f, y in zip(scores.tolist(), relevant, strict=True)]
    for allowed in (0.1, 0.3, 0.5):
        band = choose(Targets(max_abstain=allowed, mode="best"), sample, NO_STREAM, USUAL)
        loss, error = reference.loss_and_error(rows, band.reject_below, band.accept_above)
        within = [e for lost, e in reference.pairs_of_cuts(rows) if lost <= allowed + 1e-9]
        assert loss <= allowed + 1e-9
        assert error == pytest.approx(min(within))


def test_on_a_stream_the_loss_is_kept_and_the_error_is_near_the_least() -> None:
    """People judged what scored in the upper half, and one in ten of the others by audit. Most of the background is not
    judged. The truth is known of another twenty thousand."""
    scores, relevant = drawn(800, 3)
    random = np.random.default_rng(4)
    shown, audited = scores > 0.5, random.random(800) < 0.1
    seen = shown | audited
    origins: list[Origin] = ["shown" if score > 0.5 else "audit" for score in scores[seen]]
    sample = judged(scores[seen], relevant[seen], origin=origins)
    background, later = drawn(1000, 12)[0], drawn(20_000, 6)
    for allowed in (0.1, 0.3):
        band = choose(Targets(max_abstain=allowed, mode="best"), sample, background, USUAL)
        accepted, rejected = later[0] > band.accept_above, later[0] < band.reject_below
        decided = accepted | rejected
        error = float(np.mean((accepted != later[1])[decided]))
        truth = 1 / (1 + np.exp(-12 * (later[0] - 0.7)))
        sure = np.argsort(-np.abs(truth - 0.5))[: int((1 - allowed) * 20_000)]
        least = float(np.mean(np.minimum(truth, 1 - truth)[sure]))
        assert 1 - decided.mean() <= allowed
        assert error < least + 0.02


def test_within_an_error_as_much_as_possible_is_decided_and_nothing_is_certain_without_audits() -> None:
    scores, relevant = drawn(600, 7)
    seen = scores > 0.4
    sample = judged(scores[seen], relevant[seen])
    background = drawn(1000, 8)[0]
    bands = [choose(Targets(max_error=e, mode="best"), sample, background, USUAL) for e in (0.2, 0.06, 0.02)]
    losses = [float(np.mean((background >= b.reject_below) & (background <= b.accept_above))) for b in bands]
    assert losses == sorted(losses)
    assert losses[0] == 0 < losses[-1] < 0.7
    assert [b.certified for b in bands] == [False, False, False]
    assert all(b.accept_above < NEVER for b in bands)


def test_an_error_is_certain_once_shown_documents_and_audits_say_so() -> None:
    random = np.random.default_rng(9)
    scores = np.concatenate([random.uniform(0.6, 1, 150), random.uniform(0, 0.4, 150)])
    relevant = scores > 0.5
    origins: list[Origin] = ["shown" if score > 0.5 else "audit" for score in scores]
    sample = judged(scores, relevant, origin=origins)
    background = np.concatenate([random.uniform(0.6, 1, 200), random.uniform(0, 0.4, 200)])
    certain, strict_share = (choose(Targets(max_error=e, mode="best"), sample, background, USUAL) for e in (0.1, 0.001))
    assert certain.certified
    assert not strict_share.certified
    assert 0.4 < certain.accept_above < 0.6


def test_a_strict_goal_is_as_it_was() -> None:
    scores, relevant = drawn(400, 10)
    sample, background = judged(scores, relevant), drawn(1000, 11)[0]
    strict = choose(Targets(max_abstain=0.3), sample, background, USUAL)
    assert strict.accept_above == USUAL.accept_above
    assert choose(Targets(max_abstain=0.3, mode="best"), sample, background, USUAL).accept_above != USUAL.accept_above
