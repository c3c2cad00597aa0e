import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.arrays import check, grown, popcount


@given(st.integers(0, 2**64 - 1))
@settings(deadline=None, derandomize=True)  # the first call may compile a kernel
def test_bits_are_counted(word: int) -> None:
    assert int(popcount(np.uint64(word))) == word.bit_count()


@given(st.lists(st.integers(1, 100), max_size=20), st.integers(0, 200))
def test_a_grown_array_keeps_its_items_and_is_zero_behind_them(items: list[int], size: int) -> None:
    array = np.array(items, np.int32)
    longer = grown(array, size)
    assert longer[: len(items)].tolist() == items
    assert not longer[len(items) :].any()
    if size <= len(items):
        assert longer is array
    else:
        assert size <= len(longer) < 2 * size
        assert len(longer).bit_count() == 1


def test_a_condition_that_nan_fails_is_refused_with_its_message() -> None:
    check(0 < 0.5 < 1, "eta must lie between 0 and 1")
    with pytest.raises(ValueError, match="eta must lie"):
        check(0 < float("nan") < 1, "eta must lie between 0 and 1")
