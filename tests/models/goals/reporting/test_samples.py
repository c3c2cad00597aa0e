"""How many documents were missed: bounds from audits hold, whatever people come across besides."""

import numpy as np
import pytest

from models.goals.reporting.prequential import TAIL
from models.goals.reporting.samples import RejectedSample
from tests.models.goals.judged import trial

RUNS = 300


@pytest.mark.parametrize("chance", [0.02, 0.2, 0.7])
@pytest.mark.parametrize("missed", [0, 3, 40, 400])
def test_what_was_missed_lies_within_its_bounds(chance: float, missed: int) -> None:
    rng = np.random.default_rng(22)
    low = high = 0
    for _ in range(RUNS):
        finds = int(rng.binomial(missed, chance))
        trials = [trial("reject", n < finds, "audit", chance) for n in range(finds + 20)]
        bounds = RejectedSample.of(trials, None).relevant(TAIL)
        low += bounds.low <= missed
        high += missed <= bounds.high
    assert min(low, high) >= (1 - TAIL - 0.025) * RUNS  # and a margin for chance


@pytest.mark.parametrize(("often", "seldom"), [(0, 100), (60, 60), (100, 0)])
def test_what_was_missed_lies_within_its_bounds_when_the_rate_of_audits_has_changed(often: int, seldom: int) -> None:
    """Of 2,000 rejected documents half were audited, of the next 2,000 one in fifty. Bounds by an effective number of
    audits once covered .85 where all that was missed came after the change."""
    rng = np.random.default_rng(24)
    low = high = 0
    for _ in range(RUNS):
        trials = []
        for missed, chance in ((often, 0.5), (seldom, 0.02)):
            finds, others = int(rng.binomial(missed, chance)), int(rng.binomial(2000 - missed, chance))
            trials += [trial("reject", n < finds, "audit", chance) for n in range(finds + others)]
        bounds = RejectedSample.of(trials, 4000).relevant(TAIL)
        low += bounds.low <= often + seldom
        high += often + seldom <= bounds.high
    assert min(low, high) >= (1 - TAIL - 0.025) * RUNS


@pytest.mark.parametrize("chance", [0.02, 0.2, 1.0])
@pytest.mark.parametrize(("audited", "found"), [(1.0, 0.5), (0.5, 0.5), (0.2, 0.3)])
def test_misses_that_people_come_across_are_overstated_by_as_much_as_is_said_and_never_understated(
    chance: float, audited: float, found: float
) -> None:
    """Those drawn count as audits. That is a bias only as far as audits are not judged, whatever the chance."""
    rng = np.random.default_rng(14)
    rejected, missed = 20_000, 400
    finds = audits = held = 0
    for _ in range(60):
        relevant = np.arange(rejected) < missed
        drawn = rng.random(rejected) < chance
        judged = (drawn & (rng.random(rejected) < audited)) | (relevant & (rng.random(rejected) < found))
        trials = [
            trial("reject", bool(relevant[i]), "audit" if drawn[i] else "found", chance if drawn[i] else 0.0)
            for i in np.flatnonzero(judged).tolist()
        ]
        share = RejectedSample.of(trials, rejected)
        finds, audits = finds + share.finds, audits + share.audits
        held += share.relevant(TAIL).high >= missed
    expected = (audited + found * (1 - audited)) / audited  # of relevant ones, against ...
    expected /= 1 + (missed / rejected) * (expected - 1)  # ... all that are judged, among which there are more of them
    assert finds / audits == pytest.approx(expected * missed / rejected, rel=0.02 + 3 / np.sqrt(finds))
    assert held >= 0.9 * 60
