"""Where batch training starts: against section 7.2 of Lewis et al. 1996, written out in dense form."""

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.batch import refit, registry
from models.batch.passes import in_passes
from models.batch.refit import Dataset
from models.batch.starting import document
from models.core.names import LEARNER_NAMES
from models.core.vectors import Bag, Reals
from models.core.views import view
from models.methods.matrix import Examples, Planes
from models.online.model import Example
from models.online.pins import PinnedTerms
from tests.support import reference

D = 12  # words that documents have
ABSENT = 50  # a word of the query that no document has


def bag(words: list[int]) -> Bag:
    features, counts = np.unique(np.array(words, np.uint64) + np.uint64(1), return_counts=True)
    return Bag(features, counts.astype(np.float32), np.ones(len(features), np.float32))


QUERY = bag([0, 1, ABSENT])


def documents(seed: int, n: int = 40) -> tuple[list[Bag], Reals]:
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 4 == 0).astype(float)
    words = [[*rng.integers(3, D, 5).tolist(), *([0, 2] if t else [int(rng.integers(3))])] for t in y]
    return [bag(one) for one in words], y


def dense(bags: list[Bag]) -> Reals:
    X = np.zeros((len(bags), ABSENT + 1))
    for row, one in zip(X, bags, strict=True):
        row[one.features.astype(int) - 1] = view("tfidf", one).values
    return X


def fitted(kind: str, params: Mapping[str, object], bags: list[Bag], y: Reals, query: Bag | None = QUERY) -> Planes:
    p = registry.parse(kind, params)
    x = Examples.of([*bags, query or bag([])], p.view)
    rows = np.arange(x.size) < len(bags)
    queries = [document(x, len(bags)) if query else None]
    return registry.fit(p, x.rows(rows), (y > 0)[:, None], seed=0, queries=queries)


def weights(planes: Planes) -> Reals:
    """The whole weight of every word that is a column."""
    w = np.zeros(ABSENT + 1)
    w[planes.features.astype(int) - 1] = planes.w[0] + planes.rest[0]
    return w


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), alpha=st.sampled_from([0.0, 1.0, 1000.0]))
def test_rocchio_adds_alpha_times_the_query(seed: int, alpha: float) -> None:
    bags, y = documents(seed)
    w = reference.rocchio(dense(bags), y, dense([QUERY])[0], alpha, 2.0, 0.5)
    np.testing.assert_allclose(weights(fitted("rocchio", {"alpha": alpha}, bags, y)), w, atol=1e-9)


def test_what_alpha_is_changes_what_is_served() -> None:
    """It did not: batch Rocchio had no query, and α = 0, 1 and 1,000 gave one model."""
    bags, y = documents(1)
    data = Dataset.of([Example(f"d{i}", bool(t), b) for i, (b, t) in enumerate(zip(bags, y, strict=True))], {})
    linears = [refit.refit("rocchio", {"alpha": a}, data, 100, query=QUERY).linear for a in (0.0, 1.0, 1000.0)]
    shares = []
    for linear in linears:
        absent = linear.weights[linear.features == ABSENT + 1]
        shares.append(float(absent.sum() / np.abs(linear.weights).sum()))
    assert shares[0] == 0
    assert 0.01 < shares[1] < 0.3
    assert shares[2] == pytest.approx(1 / 3, abs=0.01)  # the query is nearly all there is, and has three words


@pytest.mark.parametrize("start", ["query", "none"])
@pytest.mark.parametrize("kind", LEARNER_NAMES)
def test_every_learner_starts_with_the_query_unless_told_not_to(kind: str, start: str) -> None:
    bags, y = documents(2)
    planes, without = fitted(kind, {"start": start}, bags, y), fitted(kind, {}, bags, y, None)
    assert (weights(planes)[ABSENT] > weights(without)[ABSENT] + planes.rest[0]) == (start == "query")


@pytest.mark.parametrize("kind", ["svm", "boosting", "bayes", "centroid"])
def test_methods_without_a_starting_vector_do_not_see_the_query(kind: str) -> None:
    bags, y = documents(3)
    data = Dataset.of([Example(f"d{i}", bool(t), b) for i, (b, t) in enumerate(zip(bags, y, strict=True))], {})
    with_query, without = refit.refit(kind, {}, data, 100, query=QUERY), refit.refit(kind, {}, data, 100)
    assert with_query.linear.features.tolist() == without.linear.features.tolist()
    assert with_query.linear.weights.tolist() == without.linear.weights.tolist()


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), average=st.booleans())
def test_widrow_hoff_goes_on_from_the_output_of_rocchio(seed: int, average: bool) -> None:
    bags, y = documents(seed)
    X, order = dense(bags), in_passes(len(bags), 2, 0)
    w = [reference.rocchio(X, y, dense([QUERY])[0], 1.0, 2.0, 0.5)]
    for i in order.tolist():
        w.append(w[-1] - 2 * 0.2 * (w[-1] @ X[i] - y[i]) * X[i])
    params = {"eta": 0.2, "bias": 0.0, "average": average, "start": "rocchio", "passes": 2}
    expected = np.mean(w, axis=0) if average else w[-1]
    np.testing.assert_allclose(weights(fitted("wh", params, bags, y)), expected, atol=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), average=st.booleans())
def test_eg_goes_on_from_the_output_of_rocchio_as_a_distribution(seed: int, average: bool) -> None:
    bags, y = documents(seed)
    order = in_passes(len(bags), 2, 0)
    X, q = dense(bags), dense([QUERY])[0]
    w = reference.rocchio(X, y, q, 1.0, 2.0, 0.5)
    last, mean = reference.eg(X[order], y[order], 2.0, 0.5, 0.0, ABSENT + 1, w / w.sum())
    params = {"eta": 2.0, "target": 0.5, "average": average, "start": "rocchio", "passes": 2}
    np.testing.assert_allclose(weights(fitted("eg", params, bags, y)), mean if average else last, atol=1e-9)


@settings(max_examples=25)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 6))
def test_only_the_query_and_the_best_terms_of_relevant_documents_are_shown(seed: int, n: int) -> None:
    bags, y = documents(seed)
    X, q = dense(bags), dense([QUERY])[0]
    rank = 2 * X[y > 0].mean(axis=0) - 0.5 * X[y == 0].mean(axis=0)
    others = [f for f in range(ABSENT + 1) if X[y > 0][:, f].any() and not q[f]]
    best = sorted(others, key=lambda f: (-round(rank[f], 12), f))[:n]
    shown = np.isin(np.arange(ABSENT + 1), [0, 1, ABSENT, *best])
    w = weights(fitted("wh", {"eta": 0.2, "bias": 0.0, "average": False, "start": "none", "expand": n}, bags, y))
    order = in_passes(len(bags), 1, 0)
    last, _ = reference.wh((X * shown)[order], y[order], 0.2, 0.0)
    np.testing.assert_allclose(w, last[: ABSENT + 1], atol=1e-9)


def test_a_term_that_is_not_shown_weighs_nothing_even_for_eg() -> None:
    bags, y = documents(4)
    planes = fitted("eg", {"expand": 2, "d": 100.0}, bags, y)
    assert planes.rest[0] == 0.0
    assert np.count_nonzero(planes.w[0]) == 3 + 2


def test_a_banned_term_of_the_query_is_no_part_of_the_start() -> None:
    bags, y = documents(5)
    data = Dataset.of([Example(f"d{i}", bool(t), b) for i, (b, t) in enumerate(zip(bags, y, strict=True))], {})
    linear = refit.refit("rocchio", {}, data, 100, PinnedTerms(ban=(ABSENT + 1,)), query=QUERY).linear
    assert ABSENT + 1 not in linear.features.tolist()
