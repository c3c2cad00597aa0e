"""Which terms are left, and that it is those which the formulas say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.core.vectors import Reals
from models.methods.feature_selection import best_terms, reduced, term_scores
from models.methods.matrix import Labels
from tests.models.methods.test_boosting import corpora, examples
from tests.support import reference


def test_chi_squared_by_hand() -> None:
    """Eight documents, four relevant: the term is in three of these and in one other.

    P(t,c)P(t̄,c̄) − P(t,c̄)P(t̄,c) = (3·3 − 1·1)/64 = 1/8;  8·(1/8)² / (½·½·½·½) = 2
    """
    X = np.array([[1, 1, 1, 0, 1, 0, 0, 0.0]]).T
    Y = np.array([[1, 1, 1, 1, 0, 0, 0, 0]], np.bool_).T
    assert term_scores(examples(X), Y, "chi2").tolist() == [pytest.approx(2.0)]


def test_chi_squared_of_jaguar_and_autos_is_the_lecture_s() -> None:
    """2 of 5 documents with the word are in the class, and 500 of 10,000 without it. Expected are .25, 4.75, 502 and
    9498; χ² is 12.9, above the 10.83 of a confidence of .999."""
    X = np.repeat([[1.0], [1.0], [0.0], [0.0]], (2, 3, 500, 9500), axis=0)
    Y = np.repeat([[True], [False], [True], [False]], (2, 3, 500, 9500), axis=0)
    assert term_scores(examples(X), Y, "chi2").tolist() == [pytest.approx(12.9, abs=0.06)]
    observed = np.array([[2, 3], [500, 9500.0]])
    expected = observed.sum(axis=1, keepdims=True) * observed.sum(axis=0) / observed.sum()
    assert term_scores(examples(X), Y, "chi2")[0] == pytest.approx(((observed - expected) ** 2 / expected).sum())


@given(corpus=corpora())
def test_worths_are_those_of_the_formulas(corpus: tuple[Reals, Labels]) -> None:
    X, Y = corpus
    np.testing.assert_allclose(term_scores(examples(X), Y, "chi2"), reference.chi2_max(X, Y), atol=1e-9)
    np.testing.assert_allclose(term_scores(examples(X), Y, "mutual"), reference.mutual_max(X, Y), atol=1e-9)
    np.testing.assert_allclose(term_scores(examples(X), Y, "frequency"), X.sum(axis=0))


@given(worths=st.lists(st.integers(0, 5), max_size=30), rho=st.floats(0, 0.99))
def test_the_best_are_left_and_of_equals_the_first(worths: list[int], rho: float) -> None:
    kept = best_terms(np.array(worths, np.float64), rho)
    n = min(len(worths), max(1, round((1 - rho) * len(worths))))
    ranked = sorted(range(len(worths)), key=lambda k: (-worths[k], k))
    assert np.flatnonzero(kept).tolist() == sorted(ranked[:n])


@given(corpus=corpora(), seed=st.integers(0, 99))
def test_the_order_of_documents_and_topics_does_not_matter(corpus: tuple[Reals, Labels], seed: int) -> None:
    X, Y = corpus
    rng = np.random.default_rng(seed)
    rows, topics = rng.permutation(len(Y)), rng.permutation(Y.shape[1])
    for by in ("chi2", "mutual", "frequency"):
        one = reduced(examples(X), Y, by, 0.5)
        other = reduced(examples(X[rows]), np.ascontiguousarray(Y[rows][:, topics]), by, 0.5)
        assert one.features.tolist() == other.features.tolist()


def test_documents_keep_the_values_of_what_is_left() -> None:
    X = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 0.0]])
    x = examples(X).only(np.array([True, False, True]))
    assert x.features.tolist() == [10, 16]
    assert x.indptr.tolist() == [0, 1, 2, 3]
    assert x.columns.tolist() == [0, 1, 0]


def test_a_share_that_leaves_nothing_is_refused() -> None:
    X, Y = np.ones((2, 2)), np.ones((2, 1), np.bool_)
    for rho in (1.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match="rho must be"):
            reduced(examples(X), Y, "chi2", rho)
