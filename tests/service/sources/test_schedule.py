"""When a source is polled next."""

from hypothesis import given
from hypothesis import strategies as st

from service.sources.schedule import MAX_BACKOFF_S, next_poll_s

chances = st.floats(0, 1)


@given(st.floats(10, 1e6), chances)
def test_a_source_that_works_is_polled_at_its_pace(every_s: float, chance: float) -> None:
    assert 0.899 * every_s <= next_poll_s(every_s, 0, 0, chance) <= 1.101 * every_s


@given(st.floats(10, 1e6), st.integers(1, 10_000), chances)
def test_one_that_fails_is_polled_less_and_less_but_never_given_up(
    every_s: float, failures: int, chance: float
) -> None:
    pause_s = next_poll_s(every_s, failures, 0, chance)
    assert next_poll_s(every_s, failures + 1, 0, chance) >= pause_s >= 0.899 * every_s
    assert pause_s <= 1.101 * max(MAX_BACKOFF_S, every_s)


@given(st.floats(10, 1e6), st.integers(0, 50), st.floats(0, 86_400), chances)
def test_nobody_is_asked_before_the_time_that_they_named(every_s: float, n: int, wait_s: float, chance: float) -> None:
    assert next_poll_s(every_s, n, wait_s, chance) >= wait_s
