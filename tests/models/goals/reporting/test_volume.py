"""A topic that falls silent or floods its reader is flagged, and one that goes on as before is not."""

import numpy as np
import pytest

from models.goals.reporting.volume import StreamCounts, check_volume


def test_a_topic_from_which_nothing_comes_any_more_is_silent() -> None:
    alert = check_volume([StreamCounts(10_000, 100, 50), StreamCounts(2000, 0, 0)])
    assert (alert.silent, alert.flooded) == (True, False)
    assert "2000" in alert.detail


def test_a_rare_topic_may_be_quiet_for_long() -> None:
    assert not check_volume([StreamCounts(10_000, 2, 1), StreamCounts(2000, 0, 0)]).silent
    assert not check_volume([StreamCounts(0, 0, 0), StreamCounts(100_000, 0, 0)]).silent


def test_a_topic_that_accepts_many_times_what_it_did_is_flooded() -> None:
    assert check_volume([StreamCounts(10_000, 100, 50), StreamCounts(1000, 60, 5)]).flooded
    assert check_volume([StreamCounts(5000, 0, 0), StreamCounts(1000, 60, 5)]).flooded
    assert check_volume([StreamCounts(), StreamCounts(1000, 700, 0)]).flooded


def test_little_more_than_before_is_no_flood() -> None:
    assert not check_volume([StreamCounts(10_000, 1000, 0), StreamCounts(10_000, 1500, 0)]).flooded
    assert not check_volume([StreamCounts(10_000, 10, 0), StreamCounts(1000, 4, 0)]).flooded


def test_of_few_documents_nothing_is_said() -> None:
    assert (
        check_volume([]) == check_volume([StreamCounts(10_000, 5000, 0), StreamCounts(100, 0, 0)]) == (False, False, "")
    )


@pytest.mark.parametrize("share", [0.002, 0.02, 0.2])
def test_a_steady_topic_is_hardly_ever_flagged(share: float) -> None:
    rng = np.random.default_rng(30)
    flags = 0
    for _ in range(500):
        before, lately = rng.binomial(10_000, share), rng.binomial(2000, share)
        alert = check_volume([StreamCounts(10_000, int(before), 0), StreamCounts(2000, int(lately), 0)])
        flags += alert.silent or alert.flooded
    assert flags <= 5
