"""Every batch method: one contract for all, and each against its formula."""

from collections.abc import Mapping
from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.batch.registry import fit, parse
from models.core.names import METHOD_KINDS, View
from models.core.vectors import Bag, Reals
from models.core.views import view
from models.methods.matrix import Examples, Labels, Planes, Progress, no_progress
from models.text.analysis import Analysis
from models.text.analysis import bags as read_bags
from scripts.evaluation.joint import held_out_scores
from tests.support import reference

SMALL: Mapping[str, Mapping[str, object]] = {"boosting": {"S": 10, "rho": 0.0}, "bayes": {"rho": 0.0}}
SETTINGS = [(kind, SMALL.get(kind, {})) for kind in METHOD_KINDS] + [
    ("bayes", {"model": "bernoulli", "rho": 0.0}),
    ("svm", {"loss": "hinge"}),
    ("bayes", {"prior": 0.0, "rho": 0.0}),
    ("boosting", {"variant": "RA", "S": 30, "rho": 0.0}),
    ("wh", {"draws": 200}),
    ("wh", {"start": "rocchio", "expand": 20}),
    ("eg", {"start": "rocchio", "expand": 20, "draws": 200}),
    ("eg", {"draws": 200, "d": 100.0}),
    ("winnow", {"passes": 3, "discard": 20}),
    ("perceptron", {"passes": 3, "discard": 20, "alpha": 0.05}),
]


def bag(counts: Mapping[int, float]) -> Bag:
    features = np.array(sorted(counts), np.uint64)
    n = np.array([counts[f] for f in sorted(counts)], np.float32)
    return Bag(features, n, np.full(len(n), 2, np.float32))


def corpus(seed: int, g: int = 60, m: int = 3) -> tuple[list[Bag], Labels]:
    """Documents of common words; those of topic i have words of their own, 100·i and the next."""
    rng = np.random.default_rng(seed)
    labels = rng.random((g, m)) < 0.3
    bags = []
    for row in labels:
        words = {int(f): float(rng.integers(1, 4)) for f in rng.integers(1, 30, 8)}
        for i in np.flatnonzero(row):
            words |= {100 * int(i + 1) + int(k): 1.0 for k in rng.choice(4, 3, replace=False)}
        bags.append(bag(words))
    return bags, labels


def fit_bags(
    kind: str,
    params: Mapping[str, object],
    bags: list[Bag],
    labels: Labels,
    seed: int = 0,
    progress: Progress = no_progress,
) -> Planes:
    p = parse(kind, params)
    return fit(p, Examples.of(bags, p.view), labels, seed, progress)


def test_what_was_read_becomes_examples_without_a_bag_for_each() -> None:
    texts = [("Oil", "crude oil"), ("", ""), ("", "wheat and oil"), ("Wheat", "")]
    read = read_bags(texts, Analysis())
    bags = [Bag(*read[i], np.ones(len(read[i][0]), np.float32)) for i in range(len(texts))]
    one, other = Examples.of_presence(read), Examples.of(bags, "presence")
    for name in ("features", "indptr", "columns", "values"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()
        assert getattr(one, name).dtype == getattr(other, name).dtype


def dense(bags: list[Bag], through: View) -> Reals:
    features = np.unique(np.concatenate([b.features for b in bags]))
    X = np.zeros((len(bags), len(features)))
    for j, b in enumerate(bags):
        X[j, np.searchsorted(features, b.features)] = view(through, b).values
    return X


@pytest.mark.parametrize(("kind", "params"), SETTINGS)
def test_what_can_be_told_apart_is_learned(kind: str, params: Mapping[str, object]) -> None:
    """Every topic ranks documents that it has not learned from, the relevant ones first, nearly always."""
    bags, labels = corpus(1, 200)
    p = parse(kind, params)
    x = Examples.of(bags, p.view)
    scores = held_out_scores(p, x, labels, folds=3, seed=0)
    for i in range(labels.shape[1]):
        above = scores[labels[:, i], i][:, None] > scores[~labels[:, i], i][None]
        assert above.mean() > 0.9, (kind, i)


@pytest.mark.parametrize(("kind", "params"), SETTINGS)
def test_planes_score_as_the_linear_form_does(kind: str, params: Mapping[str, object]) -> None:
    bags, labels = corpus(2)
    planes = fit_bags(kind, params, bags, labels)
    probes = [*corpus(3, 5)[0], bag({}), bag({7_000_001: 2.0}), bag({1: 1.0, 7_000_001: 1.0})]
    scores = planes.scores(Examples.of(probes, planes.view))
    for i in range(labels.shape[1]):
        linear = planes.linear(i)
        assert (np.diff(linear.features.astype(np.int64)) > 0).all()
        alone = [linear.score(view(linear.view, probe)) for probe in probes]
        np.testing.assert_allclose(scores[:, i], alone, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("kind", "params"), SETTINGS)
def test_the_same_again_is_the_same_bit_for_bit(kind: str, params: Mapping[str, object]) -> None:
    bags, labels = corpus(4)
    one, two = (fit_bags(kind, params, bags, labels, seed=5) for _ in range(2))
    assert one.w.tobytes() == two.w.tobytes()
    assert one.bias.tobytes() == two.bias.tobytes()


@pytest.mark.parametrize(("kind", "params"), SETTINGS)
def test_a_topic_with_documents_of_one_kind_only_is_finite(kind: str, params: Mapping[str, object]) -> None:
    bags, labels = corpus(6, 20, 2)
    labels[:, 0], labels[:, 1] = True, False
    scores = fit_bags(kind, params, bags, labels).scores(Examples.of(bags, parse(kind, params).view))
    assert np.isfinite(scores).all()


@pytest.mark.parametrize(("kind", "params"), SETTINGS)
def test_one_hears_how_far_it_is(kind: str, params: Mapping[str, object]) -> None:
    reported: list[float] = []
    bags, labels = corpus(7, 20)
    fit_bags(kind, params, bags, labels, progress=reported.append)
    assert reported == sorted(reported)
    assert reported[-1] == 1.0


@pytest.mark.parametrize("kind", ["bayes", "centroid", "svm", "logistic"])
def test_methods_that_learn_each_topic_alone_do_not_mind_the_others(kind: str) -> None:
    bags, labels = corpus(8)
    p = parse(kind, SMALL.get(kind, {}))
    x = Examples.of(bags, p.view)
    together = fit(p, x, labels)
    for i in range(labels.shape[1]):
        alone = fit(p, x, np.ascontiguousarray(labels[:, [i]]))
        np.testing.assert_allclose(together.w[i], alone.w[0])


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.1, 1.0]), prior=st.sampled_from([0.0, 0.5, 1.0]))
def test_naive_bayes_equals_the_product_of_probabilities(seed: int, alpha: float, prior: float) -> None:
    bags, labels = corpus(seed, 12, 2)
    for model, through, slow in (
        ("multinomial", "tf", reference.multinomial),
        ("bernoulli", "presence", reference.bernoulli),
    ):
        params = {"model": model, "counts": "tf", "alpha": alpha, "prior": prior, "rho": 0.0}
        planes = fit_bags("bayes", params, bags, labels)
        X = dense(bags, planes.view)
        assert planes.view == through
        scores = planes.scores(Examples.of(bags, planes.view))
        for j, i in np.ndindex(3, 2):
            y = labels[:, i].astype(float)
            pi = prior if 0 < y.sum() < len(y) else max(prior, 1.0)
            assert scores[j, i] == pytest.approx(slow(X, y, alpha, pi, X[j]))


def test_naive_bayes_by_hand() -> None:
    """One relevant document "a a b" and one irrelevant "b": r = 2, α = 1.

    P(a|c) = (1+2)/(2+3) = 3/5, P(b|c) = 2/5;  P(a|c̄) = (1+0)/(2+1) = 1/3, P(b|c̄) = 2/3
    """
    bags, labels = [bag({1: 2.0, 2: 1.0}), bag({2: 1.0})], np.array([[True], [False]])
    linear = fit_bags("bayes", {"counts": "tf", "alpha": 1.0, "rho": 0.0}, bags, labels).linear(0)
    assert linear.weights.tolist() == [pytest.approx(log(9 / 5)), pytest.approx(log(3 / 5))]
    assert linear.bias == 0.0


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_centroid_equals_the_difference_of_distances(seed: int) -> None:
    bags, labels = corpus(seed, 12, 2)
    X = dense(bags, "tfidf")
    scores = fit_bags("centroid", {}, bags, labels).scores(Examples.of(bags, "tfidf"))
    for j, i in np.ndindex(3, 2):
        assert scores[j, i] == pytest.approx(reference.centroid(X, labels[:, i].astype(float), X[j]), abs=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6))
def test_centroid_by_cosine_is_the_difference_of_cosines(seed: int) -> None:
    bags, labels = corpus(seed, 12, 2)
    X = dense(bags, "tfidf")
    scores = fit_bags("centroid", {"by": "cosine"}, bags, labels).scores(Examples.of(bags, "tfidf"))
    for j, i in np.ndindex(3, 2):
        means = [X[labels[:, i] == kind].sum(axis=0) for kind in (True, False)]
        near = [X[j] @ mean / (np.linalg.norm(mean) or 1) for mean in means]  # documents have length 1
        assert scores[j, i] == pytest.approx(near[0] - near[1], abs=1e-9)


def test_centroid_by_hand() -> None:
    """Means at 1 on either axis: the cut is where x_1 = x_2."""
    bags, labels = [bag({1: 3.0}), bag({2: 1.0})], np.array([[True], [False]])
    linear = fit_bags("centroid", {}, bags, labels).linear(0)
    assert linear.weights.tolist() == [1.0, -1.0]
    assert linear.bias == 0.0


def test_svm_is_where_its_gradient_vanishes() -> None:
    """w = 2C Σ y_j max(0, 1 − y_j Φ_j) x_j, and the same with a constant 1 for the bias."""
    bags, labels = corpus(9, 80, 2)
    X, C = dense(bags, "tfidf"), 0.5
    planes = fit_bags("svm", {"C": C}, bags, labels)
    scores = planes.scores(Examples.of(bags, "tfidf"))
    for i in range(2):
        y = np.where(labels[:, i], 1, -1)
        slack = 2 * C * y * np.maximum(0, 1 - y * scores[:, i])
        np.testing.assert_allclose(planes.w[i], slack @ X, atol=2e-3)
        assert planes.bias[i] == pytest.approx(slack.sum(), abs=2e-3)


def test_svm_by_hand() -> None:
    """One document of each kind, on two axes: by symmetry w = (a, −a), b = 0, and a = 2C(1 − a): with C = 1, a = ⅔."""
    bags, labels = [bag({1: 1.0}), bag({2: 1.0})], np.array([[True], [False]])
    linear = fit_bags("svm", {}, bags, labels).linear(0)
    assert linear.weights.tolist() == [pytest.approx(2 / 3, abs=1e-3), pytest.approx(-2 / 3, abs=1e-3)]
    assert linear.bias == pytest.approx(0, abs=1e-3)


def test_the_soft_margin_costs_what_its_dual_says() -> None:
    """The lecture's dual: Q(α) = Σ α_j − ½ ΣΣ α_i α_j y_i y_j x_i·x_j, Σ α_j y_j = 0, 0 ≤ α_j ≤ C. At the optimum the
    primal ½ ‖w‖² + C Σ ξ_j equals it, and w = Σ α_j y_j x_j."""
    bags, labels = corpus(11, 25, 2)
    X, C = dense(bags, "tfidf"), 2.0
    planes = fit_bags("svm", {"C": C, "loss": "hinge"}, bags, labels)
    for i in range(2):
        y = np.where(labels[:, i], 1.0, -1.0)
        alpha = reference.soft_margin(X, y, C)
        slack = np.maximum(0, 1 - y * (X @ planes.w[i] + planes.bias[i]))
        primal = planes.w[i] @ planes.w[i] / 2 + C * slack.sum()
        w = (alpha * y) @ X
        assert primal == pytest.approx(alpha.sum() - w @ w / 2, rel=1e-4)
        np.testing.assert_allclose(planes.w[i], w, atol=5e-3)


def test_the_widest_margin_by_hand() -> None:
    """(1, 1) and (2, 0) against (2, 3), not separable by less: w is along (1, 2), the nearest points (1, 1) and (2, 3),
    so w = (2/5, 4/5), and b = 1 − w·(2, 3) = −11/5. A bias that were penalised would give another plane."""
    bags = [bag({1: 1.0, 2: 1.0}), bag({1: 2.0}), bag({1: 2.0, 2: 3.0})]
    labels = np.array([[False], [False], [True]])
    linear = fit_bags("svm", {"C": 1e4, "loss": "hinge", "view": "tf"}, bags, labels).linear(0)
    assert linear.weights.tolist() == [pytest.approx(2 / 5, abs=1e-3), pytest.approx(4 / 5, abs=1e-3)]
    assert linear.bias == pytest.approx(-11 / 5, abs=1e-3)


def test_logistic_regression_is_where_its_gradient_vanishes() -> None:
    """w = C Σ y_j σ(−y_j Φ_j) x_j, and for the bias, which is free, 0 = Σ y_j σ(−y_j Φ_j)."""
    bags, labels = corpus(12, 80, 2)
    X, C = dense(bags, "tfidf"), 3.0
    planes = fit_bags("logistic", {"C": C}, bags, labels)
    for i in range(2):
        y = np.where(labels[:, i], 1, -1)
        pull = y / (1 + np.exp(y * (X @ planes.w[i] + planes.bias[i])))
        np.testing.assert_allclose(planes.w[i], C * pull @ X, atol=1e-3)
        assert pull.sum() == pytest.approx(0, abs=1e-3)


def test_logistic_regression_by_hand() -> None:
    """Three of four equal documents are relevant: a weight costs and the bias does not, so w = 0, and b = ln(3/1)."""
    labels = np.array([[True], [True], [True], [False]])
    linear = fit_bags("logistic", {}, [bag({1: 1.0})] * 4, labels).linear(0)
    assert linear.bias == pytest.approx(log(3), abs=1e-3)
    assert np.abs(linear.weights).sum() == pytest.approx(0, abs=1e-3)


def test_parameters_are_refused_in_a_sentence() -> None:
    wrong: list[tuple[str, Mapping[str, object], str]] = [
        ("nothing", {}, "the method must be one of boosting, bayes"),
        ("svm", {"C": 0}, "the parameter C must be a number above 0"),
        ("svm", {"c": 1}, "there is no parameter 'c'; svm has C, loss, view"),
        ("bayes", {"alpha": float("nan")}, "the parameter alpha must be a finite number"),
        ("bayes", {"counts": "presence"}, "the parameter counts must be one of tf"),
        ("wh", {"passes": 0}, "the parameter passes must be a whole number from 1"),
        ("wh", {"passes": 1.5}, "the parameter passes must be a whole number"),
        ("eg", {"draws": -1}, "the parameter draws must be"),
        ("eg", {"kind": "wh"}, "there is no parameter 'kind'; eg has "),
        ("wh", {"eta": -1}, "the parameter eta must be"),
        ("wh", {"expand": 0}, "the parameter expand must be null"),
        ("wh", {"start": "there"}, "the parameter start must be one of query, rocchio, none"),
        ("rocchio", {"start": "rocchio"}, "the parameter start must be query or none"),
    ]
    for kind, params, sentence in wrong:
        with pytest.raises(ValueError, match=sentence):
            parse(kind, params)
