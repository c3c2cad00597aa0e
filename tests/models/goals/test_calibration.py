"""A probability to be taken at its word: it rises with the score, and of ten documents at .7 seven are relevant."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.core.names import ORIGINS, Origin
from models.core.vectors import Reals
from models.goals import calibration, sigmoid
from models.goals.evidence import JudgedWindow
from models.goals.sigmoid import Calibration
from tests.support import reference

STEADY = settings(deadline=None, derandomize=True, max_examples=100)
documents = st.lists(
    st.tuples(st.floats(-2, 2, width=16), st.booleans(), st.sampled_from([0.1, 0.5, 1.0])), min_size=2, max_size=12
).filter(lambda rows: len({relevant for _, relevant, _ in rows}) == 2)


def arrays(rows: list[tuple[float, bool, float]]) -> tuple[Reals, np.ndarray, Reals]:
    f, relevant, weights = zip(*rows, strict=True)
    return np.array(f), np.array(relevant), np.array(weights)


def judged(f: Reals, relevant: np.ndarray, origin: Origin = "shown", current: np.ndarray | None = None) -> JudgedWindow:
    kinds = np.full(len(f), ORIGINS.index(origin), np.int8)
    alone = np.ones(len(f), np.bool_) if current is None else current
    return JudgedWindow(f, relevant, kinds, alone, alone, np.zeros(len(f)), np.zeros(len(f), np.bool_))


def test_two_scores_give_the_sigmoid_through_their_targets() -> None:
    """Ten documents at 0, of which one is relevant, and ten at 1, of which nine are: with as many parameters as
    different scores, the fit passes through the mean target of each. t₊ = 11/12 and t₋ = 1/12, so the means are
    (11 + 9)/120 = 1/6 and 5/6, hence B = ln 5 and A = −2 ln 5."""
    f = np.repeat([0.0, 1.0], 10)
    relevant = np.arange(20) % 10 == 0
    relevant[10:] = ~relevant[10:]
    A, B = sigmoid.fit(f, relevant, np.ones(20))
    assert pytest.approx((-2 * np.log(5), np.log(5)), rel=1e-6) == (A, B)
    assert Calibration(A, B).probability(0.0) == pytest.approx(1 / 6)
    assert Calibration(A, B).probability(0.5) == pytest.approx(1 / 2)


@settings(STEADY, max_examples=25)
@given(documents)
def test_the_fit_is_that_of_the_reference(rows: list[tuple[float, bool, float]]) -> None:
    f, relevant, weights = arrays(rows)
    fitted = sigmoid.fit(f, relevant, weights)
    a, b = reference.platt(f.tolist(), relevant.tolist(), weights.tolist())
    if a < -1e-3 and max(abs(a), abs(b)) < 50:
        for x in f.tolist():
            assert fitted.probability(x) == pytest.approx(Calibration(a, b).probability(x), abs=1e-3)


@STEADY
@given(documents, st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_higher_score_is_never_less_probable(rows: list[tuple[float, bool, float]], x: float, y: float) -> None:
    fitted = sigmoid.fit(*arrays(rows))
    low, high = sorted((x, y))
    assert 0 <= fitted.probability(low) <= fitted.probability(high) <= 1


@STEADY
@given(documents, st.sampled_from([1e-3, 4.0, 1e4]), st.floats(-100, 100))
def test_the_scale_of_the_scores_does_not_matter(rows: list[tuple[float, bool, float]], by: float, to: float) -> None:
    f, relevant, weights = arrays(rows)
    if f.std() < 1e-2:
        return  # what differs by rounding alone is another matter
    here, there = sigmoid.fit(f, relevant, weights), sigmoid.fit(by * f + to, relevant, weights)
    for x in f.tolist():
        assert here.probability(x) == pytest.approx(there.probability(by * x + to), abs=1e-4)


def test_scores_without_meaning_give_the_share_of_the_relevant() -> None:
    rng = np.random.default_rng(1)
    relevant = rng.random(2000) < 0.3
    for f in (np.zeros(2000), -relevant.astype(np.float64)):
        fitted = sigmoid.fit(f, relevant, np.ones(2000))
        assert fitted.A == 0
        assert fitted.probability(5.0) == fitted.probability(-5.0) == pytest.approx(0.3, abs=0.02)


def test_of_what_it_calls_seventy_per_cent_seventy_are_relevant() -> None:
    rng = np.random.default_rng(2)
    f = rng.normal(size=4000)
    relevant = rng.random(4000) < 1 / (1 + np.exp(-3 * f + 1))
    fitted = calibration.calibrate(judged(f[:2000], relevant[:2000]), np.empty(0))
    assert fitted is not None
    p = np.array([fitted.probability(x) for x in f[2000:]])
    for low in np.arange(0, 1, 0.2):
        here = (p >= low) & (p < low + 0.2)
        assert relevant[2000:][here].mean() == pytest.approx(p[here].mean(), abs=0.06)


@pytest.mark.parametrize("each", [8, 16, 30])
@pytest.mark.parametrize(("slope", "least"), [(1.0, 0.8), (2.0, 1.0), (4.0, 1.0)])
def test_with_few_judgements_it_is_hardly_too_sure(each: int, slope: float, least: float) -> None:
    """The slope of a regression of the truth on the probabilities, over many topics with so many judgements of each
    kind. Below 1 would be too sure. A ridge on A was proposed against that; the smoothed targets do what it would."""
    rng = np.random.default_rng(4)
    logits, truth, lost = [], [], []
    for _ in range(200):
        f = rng.normal(size=20 * each)
        relevant = rng.random(len(f)) < 1 / (1 + np.exp(-slope * f))
        rows = np.concatenate((np.flatnonzero(relevant)[:each], np.flatnonzero(~relevant)[:each]))
        fitted = sigmoid.fit(f[rows], relevant[rows], np.ones(len(rows)))
        new = rng.normal(size=50)
        is_relevant = rng.random(50) < 1 / (1 + np.exp(-slope * new))
        p = np.array([fitted.probability(x) for x in new])
        logits.append(np.log(p / (1 - p)))
        truth.append(is_relevant)
        lost.append(-np.log(np.where(is_relevant, p, 1 - p)).mean())
    again = sigmoid.fit(np.concatenate(logits), np.concatenate(truth), np.ones(50 * 200))
    assert least < -again.A
    assert np.mean(lost) < np.log(2)


def test_nothing_is_said_before_there_is_evidence_of_both_kinds() -> None:
    f = np.linspace(-1, 1, 100)
    assert calibration.calibrate(judged(f, f > 0.9), np.empty(0)) is None
    assert calibration.calibrate(judged(f, f > -2), np.empty(0)) is None
    assert calibration.calibrate(judged(f[:15], f[:15] > -0.86), np.zeros(1000)) is None
    assert calibration.calibrate(judged(f, f > 0), np.empty(0)) is not None


def test_what_a_user_brought_along_does_not_count_nor_does_the_same_text_twice() -> None:
    f = np.linspace(-1, 1, 100)
    assert calibration.calibrate(judged(f, f > 0, "given"), np.empty(0)) is None
    assert calibration.calibrate(judged(f, f > 0, "found"), np.empty(0)) is None
    once = np.arange(100) % 20 == 0
    assert calibration.calibrate(judged(f, f > 0, current=once), np.empty(0)) is None


def test_the_rejected_make_low_scores_improbable() -> None:
    rng = np.random.default_rng(3)
    f = rng.uniform(0, 1, 200)
    relevant = rng.random(200) < 0.3 + 0.4 * f
    alone = calibration.calibrate(judged(f, relevant), np.empty(0))
    below = calibration.calibrate(judged(f, relevant), rng.uniform(-1, 0, 1000))
    assert alone
    assert below
    assert below.probability(-0.5) < alone.probability(-0.5) / 2
