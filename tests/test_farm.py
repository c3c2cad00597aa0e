"""Several processes give what one gives, bit for bit, and none stays behind."""

import multiprocessing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.boosting import VARIANTS, Boosted, Candidates, Chosen, Params, Rounds, Variant, boost, lead
from models.examples import Examples, Labels
from models.farm import dealt, farm, fit
from models.vectors import Reals
from tests.test_boosting import corpora, examples


def corpus(g: int = 80, r: int = 40, m: int = 5) -> tuple[Examples, Labels]:
    rng = np.random.default_rng(3)
    X = (rng.random((g, r)) < rng.random(r) ** 2).astype(np.float64)
    return examples(X), (X[:, :m] + 0.5 * rng.random((g, m))) > 0.9


def assert_same(one: Boosted, other: Boosted) -> None:
    assert one.pivots.tolist() == other.pivots.tolist()
    for a, b in ((one.c0, other.c0), (one.c1, other.c1), (one.Z, other.Z)):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_farm_gives_what_one_process_gives(workers: int) -> None:
    x, labels = corpus()
    p, told = Params(S=70, C=1, N=20), list[float]()
    assert_same(farm(p, x, labels, workers, told.append), boost(p, x, labels))
    assert told[-1] == 1.0
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("variant", VARIANTS)
@given(corpus=corpora(), workers=st.integers(1, 4), C=st.integers(0, 2))
def test_however_terms_are_dealt_out_the_same_are_chosen(
    variant: Variant, corpus: tuple[Reals, Labels], workers: int, C: int
) -> None:
    """Without processes, so that many ways can be tried; terms that are equally good stand in different parts."""
    X, Y = corpus
    X = np.hstack([X, X[:, ::-1]])
    p = Params(variant, S=6, C=C, N=2)
    parts = [Rounds(p, x, Y, first) for first, x in dealt(examples(X), workers)]

    def ask(chosen: Chosen | None, K: int) -> list[Candidates]:
        return [part.next(chosen, K) for part in parts]

    assert_same(lead(p, examples(X).features, ask), boost(p, examples(X), Y))


@given(corpus=corpora(), workers=st.integers(1, 9))
def test_every_term_is_dealt_to_one_worker(corpus: tuple[Reals, Labels], workers: int) -> None:
    x = examples(corpus[0])
    parts = dealt(x, workers)
    assert 1 <= len(parts) <= workers
    assert np.concatenate([part.features for _, part in parts]).tolist() == x.features.tolist()
    assert [first for first, _ in parts] == np.cumsum([0, *(len(part.features) for _, part in parts)])[:-1].tolist()
    assert all(len(part.features) and part.size == x.size for _, part in parts)


def test_what_fails_leaves_no_process_behind() -> None:
    x, labels = corpus()

    def stop(done: float) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        farm(Params(S=5), x, labels, 2, stop)
    assert multiprocessing.active_children() == []


def test_a_worker_that_is_killed_is_an_error_and_not_a_wait() -> None:
    x, labels = corpus()

    def kill(done: float) -> None:
        for process in multiprocessing.active_children()[:1]:
            process.kill()
            process.join()

    with pytest.raises(RuntimeError, match="a worker of the farm has died"):
        farm(Params(S=5), x, labels, 2, kill)


def test_terms_are_reduced_before_they_are_dealt_out() -> None:
    x, labels = corpus()
    planes = fit(Params(S=10, rho=0.9), x, labels, 2)
    assert len(planes.features) <= 4
    with pytest.raises(ValueError, match="workers must be"):
        farm(Params(), x, labels, 0)
