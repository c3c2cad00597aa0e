"""A change for the worse is detected soon, and without a change there is seldom a false alarm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.measures import Bools
from models.goals import drift
from tests.support import reference

STREAMS = 400


def errors(rng: np.random.Generator, *regimes: tuple[int, float]) -> Bools:
    return np.concatenate([rng.random(n) < share for n, share in regimes])


def delay(series: Bools, change: int) -> int:
    """How many judgements after the change it is detected."""
    for upto in range(change, len(series) + 1):
        if drift.regime_start(series[:upto]):
            return upto - change
    return len(series)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 2)), max_size=60), st.sampled_from([0.05, 0.5, 1.9]))
def test_every_cut_is_looked_at_between_documents_that_did_not_come_together(
    series: list[tuple[bool, int]], delta: float
) -> None:
    """With a δ above 1, which bounds nothing, short series have changes, too."""
    wrong, arrived = [error for error, _ in series], np.cumsum([later for _, later in series], dtype=np.int64)
    assert drift.regime_start(np.array(wrong, np.bool_), arrived, delta) == reference.since(
        wrong, arrived.tolist(), delta
    )


@pytest.mark.parametrize("share", [0.02, 0.1, 0.3, 0.5])
def test_a_stream_that_stays_as_it_is_raises_no_alarm(share: float) -> None:
    rng = np.random.default_rng(10)
    alarms = sum(drift.regime_start(errors(rng, (600, share))) > 0 for _ in range(STREAMS))
    assert alarms <= drift.DELTA * STREAMS


def test_a_topic_that_learns_raises_no_alarm() -> None:
    rng = np.random.default_rng(11)
    assert not any(drift.regime_start(errors(rng, (50, 0.6), (100, 0.3), (300, 0.1))) for _ in range(STREAMS))


@pytest.mark.parametrize(("after", "within"), [(0.9, 15), (0.6, 35), (0.4, 90)])
def test_a_planted_change_is_found_within_so_many_judgements(after: float, within: int) -> None:
    """From one error in ten, after 300 judgements; in nine streams of ten."""
    rng = np.random.default_rng(12)
    delays = [delay(errors(rng, (300, 0.1), (200, after)), 300) for _ in range(50)]
    assert np.quantile(delays, 0.9) <= within


def test_the_change_is_dated() -> None:
    rng = np.random.default_rng(13)
    starts = [drift.regime_start(errors(rng, (300, 0.1), (80, 0.6))) for _ in range(100)]
    assert np.quantile(np.abs(np.array(starts) - 300), 0.9) <= 10


def test_the_signal_goes_out_when_the_change_has_been_learned() -> None:
    rng = np.random.default_rng(14)
    assert drift.regime_start(errors(rng, (300, 0.1), (40, 0.7)))
    assert not drift.regime_start(errors(rng, (300, 0.1), (40, 0.7), (500, 0.05)))


def test_of_two_changes_the_later_counts() -> None:
    rng = np.random.default_rng(15)
    assert drift.regime_start(errors(rng, (300, 0.02), (300, 0.3), (100, 0.95))) == pytest.approx(600, abs=15)


def test_what_is_long_ago_is_not_looked_at() -> None:
    rng = np.random.default_rng(16)
    assert not drift.regime_start(errors(rng, (500, 0.0), (drift.WINDOW_SIZE, 0.5)))
    assert (
        drift.regime_start(errors(rng, (500, 0.5), (drift.WINDOW_SIZE // 2, 0.1), (drift.WINDOW_SIZE // 2, 0.5))) > 900
    )


def test_nothing_and_little_are_no_change() -> None:
    assert drift.regime_start(np.zeros(0, np.bool_)) == 0
    assert drift.regime_start(np.ones(1, np.bool_)) == 0
    assert drift.regime_start(np.array([False, True, True])) == 0


def test_a_change_in_how_much_is_audited_is_no_change_of_the_filter() -> None:
    """Of what is accepted four tenths are wrong all the time, of the audits next to nothing, and these become rare."""
    rng = np.random.default_rng(12)
    alarms = mixed = 0
    for _ in range(STREAMS):
        accepted = np.concatenate((rng.random(800) < 0.1, rng.random(160) < 0.9))
        wrong = rng.random(960) < np.where(accepted, 0.4, 0.01)
        arrived = np.arange(1, 961)
        alarms += drift.latest_change(wrong, accepted, arrived) is not None
        mixed += drift.regime_start(wrong, arrived) > 0
    assert alarms <= drift.DELTA * STREAMS
    assert mixed > 0.9 * STREAMS


def test_a_change_of_either_kind_is_found_and_the_latest_is_told() -> None:
    rng = np.random.default_rng(13)
    accepted = rng.random(600) < 0.5
    arrived = np.arange(1, 601)
    worse = rng.random(600) < np.where(arrived > 400, 0.7, 0.1)
    for kind in (accepted, ~accepted):
        change = drift.latest_change(worse & kind, accepted, arrived)
        assert change is not None
        assert 380 <= change.place <= 420
        assert change.before.mean() < 0.2 < 0.5 < change.after.mean()
    both = drift.latest_change(
        np.where(accepted, rng.random(600) < np.where(arrived > 500, 0.8, 0.05), worse), accepted, arrived
    )
    assert both is not None
    assert 480 <= both.place <= 520
