"""Each view against its formula in plain numpy, and properties of any document."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.names import VIEWS, View
from models.core.vectors import Bag, Reals
from models.core.views import values_into, view

STEADY = settings(deadline=None, derandomize=True)

counts = st.one_of(st.integers(1, 100).map(float), st.floats(2**-10, 2**20, width=32))
idfs = st.floats(0, 30, width=32)
occurrences = st.lists(st.tuples(counts, idfs), max_size=40)


def bag_of(pairs: list[tuple[float, float]]) -> Bag:
    return Bag(
        np.arange(1, len(pairs) + 1, dtype=np.uint64),
        np.array([n for n, _ in pairs], dtype=np.float32),
        np.array([idf for _, idf in pairs], dtype=np.float32),
    )


def plainly(name: View, bag: Bag) -> Reals:
    n, idf = bag.counts.astype(np.float64), bag.idf.astype(np.float64)
    if name == "presence":
        return np.ones(len(n))
    if name == "tf":
        return n
    if name == "sqrt":
        return np.sqrt(n)
    u = np.sqrt(n) if name == "strength" else np.log(1 + n) * idf
    norm = float(u.sum() if name == "strength" else np.linalg.norm(u))
    return u / norm if norm else u


@pytest.mark.parametrize("name", VIEWS)
@given(pairs=occurrences)
@STEADY
def test_a_view_is_its_formula(name: View, pairs: list[tuple[float, float]]) -> None:
    bag = bag_of(pairs)
    seen = view(name, bag)
    assert seen.features is bag.features
    np.testing.assert_allclose(seen.values, plainly(name, bag), rtol=1e-12)


@pytest.mark.parametrize("name", VIEWS)
@given(pairs=occurrences)
@STEADY
def test_the_kernel_writes_singles_into_a_slice_and_answers_their_sum(
    name: View, pairs: list[tuple[float, float]]
) -> None:
    bag = bag_of(pairs)
    out = np.full(len(pairs) + 2, 7, dtype=np.float32)
    total = values_into(VIEWS.index(name), bag.counts, bag.idf, out[1:-1])
    exact = view(name, bag).values
    assert (float(out[0]), float(out[-1])) == (7, 7)
    np.testing.assert_allclose(out[1:-1], exact, rtol=3e-7, atol=1e-38)  # below which a single has fewer digits
    np.testing.assert_allclose(total, exact.sum(), rtol=1e-12)


@given(pairs=occurrences.filter(lambda pairs: any(idf > 1e-3 for _, idf in pairs)))
@STEADY
def test_strengths_sum_to_one_and_tfidf_has_length_one(pairs: list[tuple[float, float]]) -> None:
    bag = bag_of(pairs)
    assert view("strength", bag).values.sum() == pytest.approx(1)
    assert np.linalg.norm(view("tfidf", bag).values) == pytest.approx(1)


@pytest.mark.parametrize("name", VIEWS)
def test_a_document_without_words_or_with_words_of_no_weight_has_no_nan(name: View) -> None:
    assert len(view(name, bag_of([])).values) == 0
    assert np.isfinite(view(name, bag_of([(1, 0), (2, 0)])).values).all()


def test_the_strengths_of_a_small_document_worked_by_hand() -> None:
    bag = bag_of([(4, 1), (1, 2), (9, 0.5)])
    assert view("sqrt", bag).values.tolist() == [2, 1, 3]
    assert view("strength", bag).values.tolist() == pytest.approx([1 / 3, 1 / 6, 1 / 2])
    u = [np.log(5), 2 * np.log(2), 0.5 * np.log(10)]
    assert view("tfidf", bag).values.tolist() == pytest.approx([x / np.hypot(np.hypot(u[0], u[1]), u[2]) for x in u])


def test_a_bag_that_cannot_be_written_to_is_seen_like_any_other() -> None:
    bag = bag_of([(3, 2), (1, 1)])
    features, counts, idf = bag.features.copy(), bag.counts.copy(), bag.idf.copy()
    for array in (features, counts, idf):
        array.flags.writeable = False
    assert view("tfidf", Bag(features, counts, idf)).values.tolist() == view("tfidf", bag).values.tolist()
