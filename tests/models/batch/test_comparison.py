"""Which ranking is better: the interval says how sure that is, and keeps its word."""

import numpy as np
import pytest

from models.batch.comparison import difference
from models.core.measures import Bools, sap
from models.core.vectors import Reals


def rankings(rng: np.random.Generator, found: int, good: float, other: float) -> tuple[Reals, Reals, Bools]:
    """Scores by two models that often agree, of relevant documents among a thousand others."""
    relevant = np.arange(found + 1000) < found
    common, *own = rng.normal(size=(3, len(relevant)))
    one, two = (np.sqrt(0.7) * common + np.sqrt(0.3) * each for each in own)
    return one + good * relevant, two + other * relevant, relevant


@pytest.mark.parametrize(("found", "good", "other"), [(10, 3.0, 3.0), (10, 2.5, 2.0), (30, 3.0, 2.7), (100, 3.0, 3.0)])
def test_the_interval_covers_about_as_often_as_it_says(found: int, good: float, other: float) -> None:
    rng = np.random.default_rng(20)
    pairs = [rankings(rng, found, good, other) for _ in range(600)]
    truth = float(np.mean([sap(one, relevant) - sap(two, relevant) for one, two, relevant in pairs]))
    intervals = [difference(one, two, relevant) for one, two, relevant in pairs[:200]]
    assert np.mean([each.low <= truth <= each.high for each in intervals]) >= 0.84


def test_one_that_is_clearly_better_is_surely_so_and_equals_never_are() -> None:
    one, two, relevant = rankings(np.random.default_rng(1), 60, 4.0, 1.0)
    assert difference(one, two, relevant).sure
    assert not difference(two, one, relevant).sure
    assert difference(one, one, relevant) == (0.0, 0.0, 0.0)
    assert not difference(one, one, relevant).sure


def test_a_worked_example() -> None:
    """Two relevant documents, so two groups. Without either, one ranking is perfect and the other finds its relevant
    document second: SAP 1 and .5."""
    relevant = np.array([True, True, False, False])
    one, two = np.array([4.0, 3.0, 2.0, 1.0]), np.array([3.0, 2.0, 4.0, 1.0])
    found = difference(one, two, relevant, near=np.array([0, 1, 2, 2]))
    assert found.estimate == pytest.approx(1 - (1 / 2 + 2 / 3) / 2)
    assert found.low <= found.estimate <= found.high


def test_near_duplicates_do_not_make_it_surer() -> None:
    one, two, relevant = rankings(np.random.default_rng(2), 12, 3.0, 2.6)
    again = np.tile(np.arange(len(relevant)), 5)
    alone, repeated = difference(one, two, relevant), difference(one[again], two[again], relevant[again], near=again)
    assert repeated.high - repeated.low > 0.8 * (alone.high - alone.low)


def test_nothing_is_sure_of_one_relevant_document_or_none() -> None:
    scores = np.array([2.0, 1.0, 0.0])
    for relevant in (np.array([True, False, False]), np.zeros(3, np.bool_)):
        assert difference(scores, -scores, relevant)[1:] == (-1.0, 1.0)
