"""Boosting equals its slow form, keeps what the paper proves of it, and depends on no order."""

from collections.abc import Callable
from math import log

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from models.batch.registry import parse
from models.core.vectors import Reals
from models.methods.boosting import REFRESH_ROUNDS, VARIANTS, Params, Rounds, Variant, boost, choose, fit
from models.methods.feature_selection import Reduction, term_scores
from models.methods.matrix import Examples, Labels
from tests.support import reference


def examples(X: Reals) -> Examples:
    """Features are numbered from 10, and not one after the other."""
    rows, columns = np.nonzero(X)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=len(X)))])
    features = 10 + 3 * np.arange(X.shape[1], dtype=np.uint64)
    return Examples("presence", features, indptr, columns.astype(np.int32), np.ones(len(columns)))


@st.composite
def corpora(draw: st.DrawFn, g: int = 12, r: int = 6, m: int = 3) -> tuple[Reals, Labels]:
    """Some documents have no term, some topics no document."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    shape = [draw(st.integers(1, most)) for most in (g, r, m)]
    X = (rng.random(shape[:2]) < rng.random((1, shape[1]))).astype(np.float64)
    return X, rng.random((shape[0], shape[2])) < rng.random((1, shape[2]))


def test_a_round_by_hand() -> None:
    """Four documents, one topic; word 0 is in both relevant ones and in one other, word 1 in two that differ.

    W of word 0 is ½ and ¼ with it, 0 and ¼ without: Z = 2(√(½·¼) + √(0·¼)) = 1/√2. Word 1 says nothing: Z = 1.
    With ε = 1/(mg) = ¼: c_1 = ½ ln(¾/½), c_0 = ½ ln(¼/½).
    """
    X, Y = np.array([[1, 1], [1, 0], [1, 1], [0, 0.0]]), np.array([[1], [1], [0], [0]], np.bool_)
    rounds = Rounds(Params(S=1, C=0), examples(X), Y)
    chosen = choose([rounds.next(None, 1)], 1)
    pivots, c0, c1, documents = chosen
    assert pivots.tolist() == [0]
    assert [which.tolist() for which in documents] == [[0, 1, 2]]
    assert c1[0, 0] == pytest.approx(log(1.5) / 2)
    assert c0[0, 0] == pytest.approx(-log(2) / 2)
    Z = rounds.apply(chosen)
    after = np.array([1.5**-0.5, 1.5**-0.5, 1.5**0.5, 2**-0.5]) / 4
    assert pytest.approx(after.sum()) == Z
    assert rounds.distribution[:, 0] == pytest.approx(after / after.sum())


@pytest.mark.parametrize(
    ("S", "C", "N", "hypotheses"),
    [(50, 1, 5, 275), (97, 1, 10, 520), (100, 1, 20, 300), (200, 1, 20, 1100), (500, 1, 80, 1820), (500, 1, 200, 900)],
)
def test_as_many_hypotheses_as_in_table_1(S: int, C: int, N: int, hypotheses: int) -> None:
    """The rows of C > 1 have fewer there than the formula gives (docs/boosting.md), so they are not asked for."""
    p = Params(S=S, C=C, N=N)
    assert sum(p.members(s) for s in range(1, S + 1)) == hypotheses


@pytest.mark.parametrize("variant", VARIANTS)
@given(corpus=corpora(), S=st.integers(1, 8), C=st.integers(0, 2), N=st.integers(1, 3))
def test_equals_the_slow_form(variant: Variant, corpus: tuple[Reals, Labels], S: int, C: int, N: int) -> None:
    X, Y = corpus
    p = Params(variant, S=S, C=C, N=N)
    phi, Z, D = reference.boost(X, Y, S, C, N, variant, 1 / Y.size)
    boosted = boost(p, examples(X), Y)
    np.testing.assert_allclose(boosted.Z, Z, rtol=1e-9)
    np.testing.assert_allclose(boosted.planes().scores(examples(X)), phi, rtol=1e-7, atol=1e-9)
    rounds = Rounds(p, examples(X), Y)
    for s in range(S):
        np.testing.assert_allclose(rounds.distribution, D[s], rtol=1e-7, atol=1e-12)
        rounds.apply(choose([rounds.next(None, p.members(s + 1))], p.members(s + 1)))


@pytest.mark.parametrize("variant", VARIANTS)
@given(corpus=corpora(), seed=st.integers(0, 10**6))
def test_pairs_that_nobody_knows_have_no_part_in_it(variant: Variant, corpus: tuple[Reals, Labels], seed: int) -> None:
    X, Y = corpus
    known = Y | (np.random.default_rng(seed).random(Y.shape) < 0.7)
    known[0] = True
    p = Params(variant, S=6, C=1, N=2)
    phi, Z, _ = reference.boost(X, Y, p.S, p.C, p.N, variant, 1 / known.sum(), known)
    assume(variant != "D" or Z.min() > 1e-6)  # a round that separates all leaves nothing but rounding to take signs of
    boosted = boost(p, examples(X), Y, known=known)
    np.testing.assert_allclose(boosted.Z, Z, rtol=1e-9)
    np.testing.assert_allclose(boosted.planes().scores(examples(X)), phi, rtol=1e-7, atol=1e-9)


def test_terms_are_chosen_by_the_documents_that_each_topic_knows() -> None:
    rng = np.random.default_rng(5)
    X = (rng.random((30, 12)) < 0.4).astype(np.float64)
    Y = rng.random((30, 2)) < 0.4
    known = Y | (rng.random(Y.shape) < 0.6)
    slow_forms: dict[Reduction, Callable[[Reals, Labels], Reals]]
    slow_forms = {"chi2": reference.chi2_max, "mutual": reference.mutual_max}
    for by, slow in slow_forms.items():
        alone = [slow(X[known[:, i]], Y[known[:, i]][:, [i]]) for i in range(2)]
        np.testing.assert_allclose(term_scores(examples(X), Y, by, known), np.maximum(*alone), atol=1e-12)


@pytest.mark.parametrize("variant", VARIANTS)
def test_equals_the_slow_form_after_many_rounds(variant: Variant) -> None:
    """Sums that are corrected round by round stay those of the definition, also where they are summed again."""
    rng = np.random.default_rng(7)
    X = (rng.random((40, 15)) < 0.3).astype(np.float64)
    Y = (X[:, :4] + rng.random((40, 4))) > 0.9
    S = 2 * REFRESH_ROUNDS + 20
    p = Params(variant, S=S, C=1, N=30)
    phi, Z, _ = reference.boost(X, Y, S, 1, 30, variant, 1 / Y.size)
    boosted = boost(p, examples(X), Y)
    np.testing.assert_allclose(boosted.Z, Z, rtol=1e-7)
    np.testing.assert_allclose(boosted.planes().scores(examples(X)), phi, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("variant", VARIANTS)
@given(corpus=corpora(), C=st.integers(0, 2), epsilon=st.sampled_from([None, 1e-9, 0.1]))
def test_weights_sum_to_one_and_the_hamming_loss_is_bounded(
    variant: Variant, corpus: tuple[Reals, Labels], C: int, epsilon: float | None
) -> None:
    X, Y = corpus
    p = Params(variant, S=6, C=C, N=2, epsilon=epsilon)
    rounds, bound, phi = Rounds(p, examples(X), Y), 1.0, np.zeros(Y.shape)
    for s in range(1, p.S + 1):
        chosen = choose([rounds.next(None, p.members(s))], p.members(s))
        bound *= rounds.apply(chosen)
        assert rounds.distribution.sum() == pytest.approx(1)
        assert (rounds.distribution >= 0).all()
        for k, absent, present in zip(chosen.pivots, chosen.c0, chosen.c1, strict=True):
            phi += np.where(X[:, [k]] > 0, present, absent)
        wrong = np.where(Y, phi <= 0, phi >= 0)
        assert wrong.mean() <= bound * (1 + 1e-9)


@given(corpus=corpora())
def test_hypotheses_of_one_pivot_are_combined_without_loss(corpus: tuple[Reals, Labels]) -> None:
    """Equation (11): one weight for each pivot gives what the hypotheses give one after the other."""
    X, Y = corpus
    boosted = boost(Params(S=9, C=1, N=2), examples(X), Y)
    one_by_one = np.zeros(Y.shape)
    for k, c0, c1 in zip(boosted.pivots, boosted.c0, boosted.c1, strict=True):
        one_by_one += np.where(X[:, [k]] > 0, c1, c0)
    planes = boosted.planes()
    assert len(planes.features) == len(set(boosted.pivots.tolist())) < len(boosted.pivots) + 1
    np.testing.assert_allclose(planes.scores(examples(X)), one_by_one, atol=1e-9)


@given(corpus=corpora(), S=st.integers(1, 8))
def test_rounds_do_not_know_how_many_will_follow(corpus: tuple[Reals, Labels], S: int) -> None:
    X, Y = corpus
    long, short = (boost(Params(S=n, C=1, N=2), examples(X), Y) for n in (9, S))
    assert long.first(S).pivots.tolist() == short.pivots.tolist()
    assert long.first(S).planes().w.tobytes() == short.planes().w.tobytes()
    assert long.first(S).Z.tolist() == short.Z.tolist()


@given(corpus=corpora(), seed=st.integers(0, 99))
def test_the_order_of_documents_and_of_topics_does_not_matter(corpus: tuple[Reals, Labels], seed: int) -> None:
    X, Y = corpus
    rng = np.random.default_rng(seed)
    rows, topics = rng.permutation(len(Y)), rng.permutation(Y.shape[1])
    p = Params(S=6, C=1, N=2)
    one, other = boost(p, examples(X), Y), boost(p, examples(X[rows]), np.ascontiguousarray(Y[rows][:, topics]))
    assert one.pivots.tolist() == other.pivots.tolist()
    np.testing.assert_allclose(one.c1[:, topics], other.c1, atol=1e-9)


@given(corpus=corpora(), seed=st.integers(0, 99))
def test_the_order_of_terms_does_not_matter(corpus: tuple[Reals, Labels], seed: int) -> None:
    """But for ties, which the smaller feature wins; so only what a round is worth can be compared, of the first."""
    X, Y = corpus
    columns = np.random.default_rng(seed).permutation(X.shape[1])
    one, other = (boost(Params(S=1), examples(x), Y) for x in (X, np.ascontiguousarray(X[:, columns])))
    assert one.pivots[0] == min(k for k in range(X.shape[1]) if (X[:, k] == X[:, one.pivots[0]]).all())
    worth = [Rounds(Params(S=1), examples(x), Y) for x in (X, np.ascontiguousarray(X[:, columns]))]
    first = [rounds.apply(choose([rounds.next(None, X.shape[1])], X.shape[1])) for rounds in worth]
    assert first[0] == pytest.approx(first[1])
    assert one.features[0] == other.features[0]


@given(corpus=corpora(m=1))
def test_a_topic_that_is_there_twice_learns_what_it_learns_alone(corpus: tuple[Reals, Labels]) -> None:
    X, Y = corpus
    p = Params(S=5, C=1, N=2)
    alone, twice = (boost(p, examples(X), labels) for labels in (Y, np.hstack([Y, Y])))
    np.testing.assert_allclose(np.hstack([alone.c1, alone.c1]), twice.c1, atol=1e-9)
    np.testing.assert_allclose(alone.Z, twice.Z, rtol=1e-9)


def test_without_its_pivot_a_hypothesis_of_ra_abstains() -> None:
    X, Y = np.array([[1, 0], [1, 0], [0, 1], [0, 0.0]]), np.array([[1], [1], [0], [0]], np.bool_)
    p = Params("RA", S=3)
    planes = boost(p, examples(X), Y).planes()
    assert planes.bias.tolist() == [0.0]
    assert planes.scores(examples(np.zeros((1, 2)))).tolist() == [[0.0]]


def test_only_the_terms_that_are_left_are_pivots() -> None:
    rng = np.random.default_rng(1)
    X = (rng.random((60, 30)) < 0.3).astype(np.float64)
    Y = X[:, [4]] > 0
    planes = fit(Params(S=20, rho=0.9), examples(X), Y)
    assert len(planes.features) <= 3
    assert planes.features[0] == 10 + 3 * 4
    assert ((planes.scores(examples(X)) > 0) == Y).all()


@settings(max_examples=20)
@given(corpus=corpora())
def test_scores_are_finite_whatever_can_be_told_apart(corpus: tuple[Reals, Labels]) -> None:
    X, _ = corpus
    for Y in (X > 0, np.ones_like(X, np.bool_), np.zeros_like(X, np.bool_)):
        for variant in VARIANTS:
            p = Params(variant, S=70, C=1, N=30)
            assert np.isfinite(boost(p, examples(X), np.ascontiguousarray(Y)).planes().scores(examples(X))).all()


@pytest.mark.parametrize(
    "wrong", [{"S": 0}, {"C": -1}, {"N": 0}, {"epsilon": 0.0}, {"epsilon": float("nan")}, {"rho": 1.0}]
)
def test_parameters_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
        parse("boosting", wrong)
