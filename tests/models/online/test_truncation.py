"""Which weights are served, and in which order: compared with sorting all of them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from models.learners.vocabulary import Vocabulary
from models.online.truncation import nonzero, strongest
from tests.support import reference

STEADY = settings(derandomize=True, max_examples=300)
feature_lists = st.lists(st.integers(0, 40) | st.integers(0, 2**64 - 1), max_size=60)
# Ties, pins (infinite), the smallest numbers there are, and whole ranges of them.
sizes = st.sampled_from([0.0, 0.25, 0.5, float("inf"), 1e-45, 3e38]) | st.floats(0, 1, width=32)


def vocabulary(features: list[int]) -> Vocabulary:
    met = Vocabulary()
    met.intern(np.array(features, np.uint64))
    return met


@STEADY
@given(st.lists(feature_lists, max_size=5))
def test_slots_come_in_the_order_of_their_features_however_often_they_were_asked_for(parts: list[list[int]]) -> None:
    met = Vocabulary()
    for part in parts:
        met.intern(np.array(part, np.uint64))
        assert met.ascending.tolist() == np.argsort(met.features).tolist()


@STEADY
@given(st.data(), st.integers(1, 70), st.sets(st.integers(0, 2**64 - 1), max_size=60))
def test_the_largest_are_kept_and_of_equal_ones_the_lowest_features(
    data: st.DataObject, room: int, features: set[int]
) -> None:
    """Also where the vector is shorter than the vocabulary, as one that was pocketed long ago."""
    met = vocabulary(sorted(features, key=hash))
    size = np.array(data.draw(st.lists(sizes, max_size=met.size)), np.float32)
    expected = reference.strongest(size.tolist(), room, met.features.tolist())
    assert strongest(size, room, met.ascending).tolist() == expected


def test_the_largest_of_thousands_are_kept() -> None:
    rng = np.random.default_rng(1996)
    met = vocabulary(rng.integers(2**63, size=5000).tolist())
    for size in (rng.lognormal(size=5000), rng.integers(9, size=5000), rng.random(5000) * 1e-40):
        single = size.astype(np.float32)
        expected = reference.strongest(single.tolist(), 2000, met.features.tolist())
        assert strongest(single, 2000, met.ascending).tolist() == expected


@STEADY
@given(st.lists(st.sampled_from([0.0, -0.0, 0.5, -0.25]), max_size=60), feature_lists)
def test_what_weighs_comes_in_the_order_of_features(weights: list[float], features: list[int]) -> None:
    met = vocabulary(features)
    w = np.array(weights[: met.size])
    order = np.argsort(met.features[: len(w)])
    order = order[w[order] != 0]
    weighed, kept = nonzero(w, met.features, met.ascending)
    assert weighed.tolist() == met.features[order].tolist()
    assert kept.tolist() == w[order].tolist()
