"""Training in passes and by draws, against a dense twin that keeps every vector."""

import numpy as np
import pytest

from models.batch.passes import POCKET_INTERVAL, in_passes, random_draws, train
from models.core.measures import Bools, sap
from models.core.vectors import Reals
from models.learners.base import DocumentVector
from models.learners.documents import Collection, DocumentWindow
from models.online.registry import LEARNERS, parse_params

N, D = 60, 25


@pytest.fixture(scope="module")
def dense() -> tuple[Reals, Bools]:
    """Documents of unit length of which the relevant ones use the first features more often."""
    rng = np.random.default_rng(5)
    relevant = np.arange(N) % 4 == 0
    X = rng.random((N, D)) * (rng.random((N, D)) < 0.3)
    X[relevant, :4] += rng.random((relevant.sum(), 4))
    X[:, -1] += 0.1  # none is empty
    return X / np.sqrt((X**2).sum(axis=1, keepdims=True)), relevant


def sparse(X: Reals) -> tuple[list[DocumentVector], DocumentWindow]:
    documents = [DocumentVector(np.flatnonzero(x).astype(np.int32), x[x > 0]) for x in X]
    collection = Collection(["tfidf"])
    for document in documents:
        collection.add(document.slots, [document.values])
    return documents, collection.newest(len(X), "tfidf")


def widrow_hoff(X: Reals, y: Bools, order: list[int], eta: float) -> list[Reals]:
    """Every vector from the first, which is zero, to the last."""
    w = [np.zeros(X.shape[1])]
    for i in order:
        w.append(w[-1] - 2 * eta * (w[-1] @ X[i] - y[i]) * X[i])
    return w


def test_each_pass_takes_every_document_once_in_an_order_of_its_own() -> None:
    order = in_passes(N, 3, seed=1).reshape(3, N)
    assert [sorted(one) for one in order.tolist()] == [list(range(N))] * 3
    assert len({tuple(one) for one in order.tolist()}) == 3
    assert (order.ravel() == in_passes(N, 3, seed=1)).all()
    assert not (order.ravel() == in_passes(N, 3, seed=2)).all()


def test_balanced_draws_take_both_kinds_equally_often(dense: tuple[Reals, Bools]) -> None:
    _, relevant = dense
    assert abs(relevant[random_draws(relevant, 4000, 1, balanced=True)].mean() - 0.5) < 0.03
    assert abs(relevant[random_draws(relevant, 4000, 1)].mean() - relevant.mean()) < 0.03
    assert len(random_draws(np.zeros(5, np.bool_), 10, 1, balanced=True)) == 10  # of one kind only: whatever there is


@pytest.mark.parametrize("average", [True, False])
def test_passes_give_the_vector_of_the_dense_twin(dense: tuple[Reals, Bools], average: bool) -> None:
    X, y = dense
    order = in_passes(N, 3, seed=3)
    trained = train("wh", {"bias": 0.0, "eta": 0.2, "average": average}, *sparse(X), y, order)
    steps = widrow_hoff(X, y, order.tolist(), 0.2)
    w = np.mean(steps, axis=0) if average else steps[-1]
    np.testing.assert_allclose(trained.vector.w[:D], w, atol=1e-12)
    np.testing.assert_allclose(trained.scores, X @ w, atol=1e-6)  # documents are kept in single precision


@pytest.mark.parametrize("average", [True, False])
def test_held_out_takes_all_steps_of_a_document_back(dense: tuple[Reals, Bools], average: bool) -> None:
    X, y = dense
    order = in_passes(N, 3, seed=4).tolist()
    trained = train("wh", {"bias": 0.0, "eta": 0.2, "average": average}, *sparse(X), y, np.array(order))
    w = widrow_hoff(X, y, order, 0.2)
    for i in (0, 1, 17, 40):
        own = [(t, w[t + 1] - w[t]) for t, j in enumerate(order) if j == i]
        n = len(order)
        taken = sum((step * ((n - t) / (n + 1) if average else 1.0) for t, step in own), np.zeros(D))
        v = (np.mean(w, axis=0) if average else w[-1]) - taken
        assert trained.held_out[i] == pytest.approx(X[i] @ v, abs=1e-6)


@pytest.mark.parametrize("kind", ["wh", "eg"])
def test_the_pocket_holds_the_best_of_the_vectors_it_has_ranked(dense: tuple[Reals, Bools], kind: str) -> None:
    X, y = dense
    documents, window = sparse(X)
    order = random_draws(y, 20 * POCKET_INTERVAL, 6, balanced=kind == "eg")
    trained = train(kind, {"average": False}, documents, window, y, order, pocket=True)
    p, learner = parse_params(kind, {"average": False}), LEARNERS[kind]
    s, saps = learner.start(p, None), []
    for t, i in enumerate(order.tolist(), 1):
        learner.update(p, s, documents[i], bool(y[i]))
        if t % POCKET_INTERVAL == 0:
            v = learner.vectors(p, s)[0]
            saps.append(sap(window.scores(v.w, v.bias, v.rest), y))
    assert sap(trained.scores, y) == max(saps)
    assert trained.vector.at == POCKET_INTERVAL * (1 + int(np.argmax(saps)))


@pytest.mark.parametrize("kind", list(LEARNERS))
def test_every_learner_can_be_trained_in_passes(dense: tuple[Reals, Bools], kind: str) -> None:
    X, y = dense
    trained = train(kind, {}, *sparse(X), y, in_passes(N, 4, 1))
    assert sap(trained.scores, y) > y.mean() + 0.2
    assert np.isfinite(trained.held_out).all()
    assert (trained.held_out - trained.scores)[y].mean() <= 0  # without its own steps a relevant one scores less
