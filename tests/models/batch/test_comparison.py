"""Which ranking is better: the interval says how certain that is, and covers as often as it claims."""

import numpy as np
import pytest

from models.batch.comparison import difference
from models.core.measures import Bools, sap
from models.core.vectors import Reals


def rankings(rng: np.random.Generator, n_relevant: int, good: float, other: float) -> tuple[Reals, Reals, Bools]:
    """Scores by two models that often agree, of relevant documents among a thousand others."""
    relevant = np.arange(n_relevant + 1000) < n_relevant
    common, *noises = rng.normal(size=(3, len(relevant)))
    first, second = (np.sqrt(0.7) * common + np.sqrt(0.3) * noise for noise in noises)
    return first + good * relevant, second + other * relevant, relevant


@pytest.mark.parametrize(
    ("n_relevant", "good", "other"), [(10, 3.0, 3.0), (10, 2.5, 2.0), (30, 3.0, 2.7), (100, 3.0, 3.0)]
)
def test_the_interval_covers_about_as_often_as_it_says(n_relevant: int, good: float, other: float) -> None:
    rng = np.random.default_rng(20)
    pairs = [rankings(rng, n_relevant, good, other) for _ in range(600)]
    truth = float(np.mean([sap(first, relevant) - sap(second, relevant) for first, second, relevant in pairs]))
    intervals = [difference(first, second, relevant) for first, second, relevant in pairs[:200]]
    assert np.mean([interval.low <= truth <= interval.high for interval in intervals]) >= 0.84


def test_one_that_is_clearly_better_is_surely_so_and_equals_never_are() -> None:
    first, second, relevant = rankings(np.random.default_rng(1), 60, 4.0, 1.0)
    assert difference(first, second, relevant).significant
    assert not difference(second, first, relevant).significant
    assert difference(first, first, relevant) == (0.0, 0.0, 0.0)
    assert not difference(first, first, relevant).significant


def test_a_worked_example() -> None:
    """Two relevant documents, so two groups. Without either, one ranking is perfect and the other finds its relevant
    document second: SAP 1 and .5."""
    relevant = np.array([True, True, False, False])
    first, second = np.array([4.0, 3.0, 2.0, 1.0]), np.array([3.0, 2.0, 4.0, 1.0])
    result = difference(first, second, relevant, duplicates=np.array([0, 1, 2, 2]))
    assert result.estimate == pytest.approx(1 - (1 / 2 + 2 / 3) / 2)
    assert result.low <= result.estimate <= result.high


def test_near_duplicates_do_not_make_it_surer() -> None:
    first, second, relevant = rankings(np.random.default_rng(2), 12, 3.0, 2.6)
    again = np.tile(np.arange(len(relevant)), 5)
    alone = difference(first, second, relevant)
    repeated = difference(first[again], second[again], relevant[again], duplicates=again)
    assert repeated.high - repeated.low > 0.8 * (alone.high - alone.low)


def test_nothing_is_sure_of_one_relevant_document_or_none() -> None:
    scores = np.array([2.0, 1.0, 0.0])
    for relevant in (np.array([True, False, False]), np.zeros(3, np.bool_)):
        assert difference(scores, -scores, relevant)[1:] == (-1.0, 1.0)
