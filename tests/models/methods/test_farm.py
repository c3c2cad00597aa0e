"""Several processes give what one gives, bit for bit, and none stays behind."""

import multiprocessing

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.core.vectors import Reals
from models.methods.boosting import VARIANTS, Boosted, Candidates, Chosen, Params, Variant, boost, run_rounds
from models.methods.farm import MAX_WORKERS, WorkerDied, farm, fit, shares
from models.methods.matrix import Examples, Labels
from service.jobs.farm.local import Processes
from tests.models.methods.test_boosting import corpora, examples


def corpus(g: int = 80, r: int = 40, m: int = 5) -> tuple[Examples, Labels]:
    rng = np.random.default_rng(3)
    X = (rng.random((g, r)) < rng.random(r) ** 2).astype(np.float64)
    return examples(X), (X[:, :m] + 0.5 * rng.random((g, m))) > 0.9


def assert_same(one: Boosted, other: Boosted) -> None:
    assert one.pivots.tolist() == other.pivots.tolist()
    for a, b in ((one.c0, other.c0), (one.c1, other.c1), (one.Z, other.Z)):
        assert a.tobytes() == b.tobytes()


def test_processes_give_what_one_gives_fit_after_fit() -> None:
    """The second fit has other parameters, and fewer terms than there are workers."""
    x, labels = corpus()
    p, reported = Params(S=70, C=1, N=20), list[float]()
    few = x.only(np.arange(40) < 2)
    with Processes(3) as crew:
        assert_same(farm(p, x, labels, crew, reported.append), boost(p, x, labels))
        assert_same(farm(Params("RA", S=5), few, labels, crew), boost(Params("RA", S=5), few, labels))
    assert reported[-1] == 1.0
    assert multiprocessing.active_children() == []


def test_one_process_is_none_but_this() -> None:
    x, labels = corpus()
    with Processes(1) as crew:
        assert multiprocessing.active_children() == []
        assert_same(farm(Params(S=9), x, labels, crew), boost(Params(S=9), x, labels))


@pytest.mark.parametrize("variant", VARIANTS)
@given(corpus=corpora(), workers=st.integers(1, 4), C=st.integers(0, 2))
def test_however_terms_are_dealt_out_the_same_are_chosen(
    variant: Variant, corpus: tuple[Reals, Labels], workers: int, C: int
) -> None:
    """Without processes, so that many ways can be tried; terms that are equally good stand in different parts."""
    X, Y = corpus
    X = np.hstack([X, X[:, ::-1]])
    p = Params(variant, S=6, C=C, N=2)
    parts = [part.rounds(Y) for part in shares(p, examples(X), workers)]

    def ask(chosen: Chosen | None, K: int) -> list[Candidates]:
        return [part.next(chosen, K) for part in parts]

    assert_same(run_rounds(p, examples(X).features, ask), boost(p, examples(X), Y))


@given(corpus=corpora(), workers=st.integers(1, 9))
def test_every_term_is_dealt_to_one_worker(corpus: tuple[Reals, Labels], workers: int) -> None:
    x = examples(corpus[0])
    parts = shares(Params(), x, workers)
    assert 1 <= len(parts) <= workers
    assert np.concatenate([part.x.features for part in parts]).tolist() == x.features.tolist()
    assert [part.first for part in parts] == np.cumsum([0, *(len(part.x.features) for part in parts)])[:-1].tolist()
    assert all(len(part.x.features) and part.x.size == x.size for part in parts)


def test_a_fit_that_is_broken_off_ends_the_crew() -> None:
    x, labels = corpus()

    def stop(done: float) -> None:
        raise KeyboardInterrupt

    with Processes(2) as crew:
        with pytest.raises(KeyboardInterrupt):
            farm(Params(S=5), x, labels, crew, stop)
        assert multiprocessing.active_children() == []
        with pytest.raises(RuntimeError, match="the crew has ended"):
            farm(Params(S=5), x, labels, crew)


def test_a_worker_that_is_killed_is_an_error_and_not_a_wait() -> None:
    x, labels = corpus()

    def kill(done: float) -> None:
        for process in multiprocessing.active_children()[:1]:
            process.kill()
            process.join()

    with Processes(2) as crew, pytest.raises(WorkerDied, match="a worker of the farm has died"):
        farm(Params(S=5), x, labels, crew, kill)
    assert multiprocessing.active_children() == []


def test_terms_are_reduced_before_they_are_dealt_out() -> None:
    x, labels = corpus()
    with Processes(2) as crew:
        planes = fit(Params(S=10, rho=0.9), x, labels, crew)
    assert len(planes.features) <= 4


@pytest.mark.parametrize("size", [0, MAX_WORKERS + 1])
def test_a_crew_of_no_size_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="must be a whole number from 1 to"):
        Processes(size)
    with pytest.raises(ValueError, match="must be a whole number from 1 to"):
        shares(Params(), corpus()[0], size)
