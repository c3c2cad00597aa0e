"""How common a topic is: compared with a slow fit, and on streams that are made up."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.core.measures import Bools
from models.core.vectors import Reals
from models.goals import prevalence
from models.goals.sigmoid import Calibration
from tests.support import reference

STEADY = settings(derandomize=True, max_examples=50)


def stream_with(share: float, n: int, seed: int) -> tuple[Reals, Bools]:
    """Documents of which this share is relevant, and scores three deviations higher."""
    rng = np.random.default_rng(seed)
    relevant = rng.random(n) < share
    return rng.normal(0.2 + 0.3 * relevant, 0.1), relevant


def estimated(scores: Reals, relevant: Bools, stream: Reals) -> Calibration:
    found = prevalence.estimate(scores, relevant, np.ones(len(scores), np.bool_), stream)
    assert found
    return found


judgements = st.lists(st.tuples(st.floats(-1, 1).map(lambda f: round(f, 3)), st.booleans()), min_size=1, max_size=12)


@STEADY
@given(judgements, st.integers(0, 9))
def test_it_is_the_sigmoid_that_a_slow_fit_gives(judged: list[tuple[float, bool]], seed: int) -> None:
    assume(any(y for _, y in judged))
    stream = np.random.default_rng(seed).normal(size=60)
    held_out, relevant = np.array([f for f, _ in judged]), np.array([y for _, y in judged])
    a, b = reference.prevalence(judged, stream.tolist(), prevalence.HALF_LIFE, prevalence.PRIOR_IRRELEVANT)
    slow, found = Calibration(a, b), estimated(held_out, relevant, stream)
    for f in (-1.0, 0.0, 1.0) if a < -1e-3 else ():  # where it would fall, a constant is taken
        assert found.probability(f) == pytest.approx(slow.probability(f), abs=2e-3)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5, 0.8])
def test_the_share_is_found_from_judgements_of_what_scores_high_and_of_a_few_others(share: float) -> None:
    scores, relevant = stream_with(share, 2000, seed=1)
    stream, truth = stream_with(share, 1000, seed=2)
    judged = (scores > np.quantile(scores, 1 - share)) | (np.arange(2000) % 20 == 0)
    found = prevalence.share(estimated(scores[judged], relevant[judged], stream), stream)
    assert found == pytest.approx(truth.mean(), abs=0.08)  # the prior is still felt


def test_it_follows_a_stream_whose_mix_shifts_within_some_dozen_judgements() -> None:
    before, rare = stream_with(0.1, 300, seed=3)
    after, common = stream_with(0.9, 60, seed=4)
    stream, _ = stream_with(0.9, 1000, seed=5)
    early = prevalence.share(estimated(before, rare, stream), stream)
    late = prevalence.share(estimated(np.concatenate((before, after)), np.concatenate((rare, common)), stream), stream)
    assert late > early
    middle = 0.35  # where documents are of both kinds, they are more often relevant than before
    assert estimated(np.concatenate((before, after)), np.concatenate((rare, common)), stream).probability(
        middle
    ) > 1.5 * estimated(before, rare, stream).probability(middle)


def test_what_users_brought_along_says_nothing_about_the_stream() -> None:
    stream, _ = stream_with(0.1, 1000, seed=6)
    given_scores, given_relevant = np.array([0.5, 0.6, 0.4]), np.ones(3, np.bool_)
    assert prevalence.estimate(given_scores, given_relevant, np.zeros(3, np.bool_), stream) is None
    shown_scores, shown_relevant = np.array([0.45, 0.2]), np.array([True, False])
    alone = prevalence.estimate(shown_scores, shown_relevant, np.ones(2, np.bool_), stream)
    both = prevalence.estimate(
        np.concatenate((given_scores, shown_scores)),
        np.concatenate((given_relevant, shown_relevant)),
        np.array([False, False, False, True, True]),
        stream,
    )
    assert alone == both is not None


def test_without_a_stream_or_something_relevant_there_is_no_estimate() -> None:
    scores, shown = np.array([0.5, 0.2]), np.ones(2, np.bool_)
    assert prevalence.estimate(scores, np.array([True, False]), shown, np.zeros(prevalence.MIN_STREAM - 1)) is None
    assert prevalence.estimate(scores, np.array([False, False]), shown, np.linspace(0, 1, 100)) is None
    assert prevalence.share(None, np.linspace(0, 1, 100)) == 0.0


def test_a_rare_topic_is_believed_rare_after_a_few_relevant_documents() -> None:
    stream, _ = stream_with(0.0, 1000, seed=7)
    few = estimated(np.array([0.5, 0.6, 0.7]), np.ones(3, np.bool_), stream)
    assert prevalence.share(few, stream) < 0.1


@STEADY
@given(judgements, st.integers(0, 9), st.floats(0.01, 100), st.floats(-5, 5))
def test_the_unit_of_scores_is_of_no_matter(
    judged: list[tuple[float, bool]], seed: int, unit: float, zero: float
) -> None:
    assume(any(y for _, y in judged))
    stream = np.random.default_rng(seed).normal(size=80)
    held_out, relevant = np.array([f for f, _ in judged]), np.array([y for _, y in judged])
    here = prevalence.share(estimated(held_out, relevant, stream), stream)
    there = estimated(unit * held_out + zero, relevant, unit * stream + zero)
    assert prevalence.share(there, unit * stream + zero) == pytest.approx(here, abs=1e-4)
    assert 0 <= here <= 1


@STEADY
@given(judgements, st.integers(0, 9))
def test_it_falls_as_far_as_a_slow_search_finds(judged: list[tuple[float, bool]], seed: int) -> None:
    assume(len(judged) > 1 and any(y for _, y in judged))
    stream = np.random.default_rng(seed).normal(size=60)
    held_out, relevant = np.array([f for f, _ in judged]), np.array([y for _, y in judged])
    a, _ = reference.prevalence(judged, stream.tolist(), np.inf, prevalence.PRIOR_IRRELEVANT)
    assume(a < -1e-3)  # where it would fall, a constant is taken
    constants = prevalence.HALF_LIFE, prevalence.PRIOR_IRRELEVANT, prevalence.DEVIATION
    slow = reference.fall(judged, stream.tolist(), *constants)
    assert prevalence.fall(held_out, relevant, np.ones(len(judged), np.bool_), stream) == pytest.approx(slow, abs=2e-3)


def fallen(shares: tuple[float, float], n: tuple[int, int]) -> float:
    """δ after judgements of everything, while this share of the stream was relevant and then that."""
    before, relevant = stream_with(shares[0], n[0], seed=7)
    after, still_relevant = stream_with(shares[1], n[1], seed=8)
    stream, _ = stream_with(shares[1], 1000, seed=9)
    scores, labels = np.concatenate((before, after)), np.concatenate((relevant, still_relevant))
    return prevalence.fall(scores, labels, np.ones(len(scores), np.bool_), stream)


def test_a_topic_whose_share_falls_is_noticed_and_more_so_the_more_it_falls() -> None:
    assert fallen((0.6, 0.05), (1000, 200)) < fallen((0.6, 0.2), (1000, 200)) < -0.1
    assert fallen((0.6, 0.05), (1000, 200)) < fallen((0.6, 0.05), (1000, 30)) <= 0


@pytest.mark.parametrize("share", [0.01, 0.1, 0.6])
def test_a_topic_that_stays_as_common_as_it_was_hardly_falls(share: float) -> None:
    assert fallen((share, share), (1000, 200)) > -0.05


def test_a_topic_that_becomes_more_common_does_not_fall() -> None:
    assert fallen((0.1, 0.6), (1000, 200)) == 0
    assert fallen((0.1, 0.6), (1, 1)) == 0
