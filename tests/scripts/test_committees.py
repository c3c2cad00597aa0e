"""The paper's parts of a complete list, and a classifier that abstains by distance."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.measures import Bools
from models.online.committee import MAX_MEMBERS, Method, least_distance
from scripts.evaluation.committees import METHODS, parts, restrictive

STEADY = settings(derandomize=True, deadline=None, max_examples=100)
labels = st.lists(st.booleans(), min_size=1, max_size=60).map(lambda rows: np.array(rows, np.bool_))
ks = st.integers(1, MAX_MEMBERS)
seeds = st.integers(0, 2**32 - 1)


def test_a_partition_has_the_papers_size() -> None:
    """Section 5.1: 375 for a total training set of 500 documents and k = 2."""
    relevant = np.arange(500) < 250
    assert [len(part) for part in parts("resample_a", relevant, 2, 1)] == [375, 375]
    assert [len(part) for part in parts("resample_b", relevant, 2, 1)] == [375, 375]
    assert [len(part) for part in parts("split", relevant, 2, 1)] == [250, 250]


@STEADY
@given(labels, ks, seeds)
def test_a_split_is_a_partition_that_deals_both_kinds_evenly(relevant: Bools, k: int, seed: int) -> None:
    dealt = parts("split", relevant, k, seed)
    assert sorted(np.concatenate(dealt).tolist()) == list(range(len(relevant)))
    for kind in (True, False):
        sizes = [int(np.count_nonzero(relevant[part] == kind)) for part in dealt]
        assert max(sizes) - min(sizes) <= 1


@STEADY
@given(labels, ks, seeds)
def test_without_replacement_no_member_has_an_example_twice(relevant: Bools, k: int, seed: int) -> None:
    assert all(len(np.unique(part)) == len(part) for part in parts("resample_b", relevant, k, seed))


@pytest.mark.parametrize("method", METHODS)
@STEADY
@given(labels, ks, seeds)
def test_the_same_seed_gives_the_same_parts(method: Method, relevant: Bools, k: int, seed: int) -> None:
    first, second = (parts(method, relevant, k, seed) for _ in range(2))
    assert [part.tolist() for part in first] == [part.tolist() for part in second]


@STEADY
@given(st.lists(st.integers(-1000, 1000), min_size=1, max_size=50, unique_by=abs), st.floats(0, 1))
def test_a_loss_is_kept_to_the_document(distances: list[int], loss: float) -> None:
    d = np.array(distances, np.float64)
    lost = np.count_nonzero(restrictive(d, least_distance(d, loss)) == 0)
    wanted = int(np.ceil(loss * len(d) - 1e-9))
    assert lost == wanted or (wanted == 0 and lost == np.count_nonzero(d == 0))
