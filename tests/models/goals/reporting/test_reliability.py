"""Reliability: bins and Brier scores show whether probabilities could be trusted."""

import numpy as np
import pytest

from models.goals.reporting.prequential import TAIL
from models.goals.reporting.reliability import reliability
from models.goals.reporting.samples import Trial
from tests.models.goals.judged import trial


def test_reliability_tells_a_calibrated_probability_from_one_that_is_too_sure() -> None:
    rng = np.random.default_rng(23)
    p = rng.random(3000)
    relevant = rng.random(3000) < p

    def bins_that_hold(given: np.ndarray) -> list[bool]:
        trials = [
            Trial("accept", 0.0, r, "shown", 0.0, q) for q, r in zip(given.tolist(), relevant.tolist(), strict=True)
        ]
        table = reliability(trials, TAIL)
        assert table.brier
        assert table.brier.estimate == pytest.approx(float(np.mean((given - relevant) ** 2)))
        assert sum(b.documents for b in table.bins) == 3000
        return [b.observed.low <= b.mean <= b.observed.high for b in table.bins]

    assert sum(bins_that_hold(p)) >= 9
    assert sum(bins_that_hold(np.where(p > 0.5, p**0.25, p**4))) <= 4


def test_without_a_probability_there_is_no_reliability() -> None:
    assert reliability([trial("accept", True)], TAIL).bins == ()
    assert reliability([trial("accept", True)], TAIL).brier is None
