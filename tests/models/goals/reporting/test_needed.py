"""The range of judgements that a promise still needs: narrow enough to be of use, or none; and it shrinks."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core import intervals
from models.goals.reporting.needed import MAX_SPAN, judged_in_all, needed_range

STEADY = settings(derandomize=True, max_examples=200, deadline=None)
CONFIDENCE, MOST = 0.8, 2000


@STEADY
@given(n=st.integers(1, 300), missed=st.integers(0, 30), others=st.integers(0, 300))
def test_there_is_a_range_only_if_it_is_of_use(n: int, missed: int, others: int) -> None:
    k = max(0, n - missed)
    needed = needed_range(0.9, k, n, n + others, CONFIDENCE, MOST)
    if needed:
        low, high = needed
        assert 1 <= low <= high <= MAX_SPAN * low


def test_without_a_miss_there_is_a_range_from_ten_judgements_until_sixteen_certify_it() -> None:
    given = [n for n in range(1, 301) if needed_range(0.9, n, n, n, CONFIDENCE, MOST)]
    assert given == list(range(10, 16))


def test_a_clean_ranking_needs_what_the_bound_says() -> None:
    for goal in (0.8, 0.9, 0.95):
        n = judged_in_all(goal, 1.0, CONFIDENCE, MOST)
        assert intervals.low(n, n, CONFIDENCE) >= goal > intervals.low(n - 1, n - 1, CONFIDENCE)
    assert judged_in_all(0.9, 0.85, CONFIDENCE, MOST) == 0


def test_it_shrinks_as_judgements_are_made_and_the_promise_comes_within_it() -> None:
    """Streams of which 97 in a hundred are relevant, until .9 is certain: seen from half-way, the range has the number
    that it took more often than not, and later ranges are narrower."""
    random, within, given, narrower = np.random.default_rng(7), 0, 0, []
    for _ in range(200):
        hits = np.cumsum(random.random(MOST) < 0.97)
        took = next(n for n in range(16, MOST) if intervals.low(int(hits[n - 1]), n, CONFIDENCE) >= 0.9)
        ranges = {
            n: span for n in range(4, took) if (span := needed_range(0.9, int(hits[n - 1]), n, n, CONFIDENCE, MOST))
        }
        if ranges:
            middle = sorted(ranges)[len(ranges) // 2]
            within += ranges[middle][0] <= took - middle <= ranges[middle][1]
            given += 1
            first, last = ranges[min(ranges)], ranges[max(ranges)]
            narrower.append(last[1] <= first[1])
    assert given > 100
    assert within > 0.5 * given
    assert np.mean(narrower) > 0.8
