"""Figures from judgements that are a biased sample: the intervals hold where the naive figure is far off."""

from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from models.core.names import Origin
from models.goals.prequential import CONFIDENCE, TAIL, errors, quality, windows
from models.goals.reliability import reliability
from models.goals.samples import RejectedSample, Trial
from models.goals.volume import StreamCounts

RUNS = 300


def trial(decision: str, relevant: bool, origin: Origin = "shown", chance: float = 0.0, score: float = 0.0) -> Trial:
    return Trial(decision, score, relevant, origin, chance)


# -- a stream of which people see a part -------------------------------------------------------------------------------

DOCUMENTS, PREVALENCE = 8000, 0.03
APART, LOW, HIGH = 2.5, 1.5, 2.5  # scores are normal, those of relevant documents around APART


def world() -> dict[str, float]:
    """What is true of the stream, by the normal distribution."""
    accept, keep = [[float(norm.sf(cut - APART)), float(norm.sf(cut))] for cut in (HIGH, LOW)]
    tp, fp = PREVALENCE * accept[0], (1 - PREVALENCE) * accept[1]
    missed, kept = PREVALENCE * (1 - keep[0]), PREVALENCE * keep[0]
    shown = kept + (1 - PREVALENCE) * keep[1]
    nu = (2 * tp - fp) / (2 * PREVALENCE)
    u = np.linspace(LOW, APART + 9, 20001)
    weight = norm.pdf(u - APART)
    above = PREVALENCE * norm.sf(u - APART)
    precision = above / (above + (1 - PREVALENCE) * norm.sf(u))
    return {
        "precision": tp / (tp + fp),
        "recall": keep[0],
        "f1": 2 * tp / (2 * tp + fp + PREVALENCE - tp),
        "error": (fp + missed) / (tp + fp + 1 - shown),
        "abstain": shown - tp - fp,
        "sap": float((weight * precision).sum() / weight.sum()),
        "t11su": (max(nu, -0.5) + 0.5) / 1.5,
    }


def watched(
    rng: np.random.Generator, chance: float, judged: float, volunteered: float, ignored: float = 0.0
) -> tuple[list[Trial], StreamCounts]:
    """A stream as its readers judge it: a share of what is shown, audits but for a share, and now and then a find."""
    relevant = rng.random(DOCUMENTS) < PREVALENCE
    scores = rng.normal(size=DOCUMENTS) + APART * relevant
    luck = rng.random(DOCUMENTS)
    trials = []
    for s, r, x in zip(scores.tolist(), relevant.tolist(), luck.tolist(), strict=True):
        if s >= LOW:
            if x < judged:
                trials.append(Trial("accept" if s > HIGH else "abstain", s, r, "shown"))
        elif x < chance:
            if x >= ignored * chance:
                trials.append(Trial("reject", s, r, "audit", chance))
        elif r and x < chance + volunteered:
            trials.append(Trial("reject", s, r, "found"))
    accepted, shown = int((scores > HIGH).sum()), int((scores >= LOW).sum())
    return trials, StreamCounts(DOCUMENTS, accepted, shown - accepted)


@pytest.mark.parametrize(
    ("chance", "judged", "ignored", "counted"),
    [(0.05, 1.0, 0.0, False), (0.02, 1.0, 0.0, True), (0.1, 0.4, 0.0, True), (0.1, 0.7, 0.6, True)],
)
def test_intervals_cover_as_often_as_they_say_where_the_naive_figure_is_far_off(
    chance: float, judged: float, ignored: float, counted: bool
) -> None:
    rng, truth, covered, naive = np.random.default_rng(20), world(), Counter[str](), []
    for _ in range(RUNS):
        trials, passed = watched(rng, chance, judged, 0.05, ignored)
        found = quality(trials, passed if counted else None)
        for name, said in asdict(found).items():
            assert said is not None, name
            covered[name] += said[1] <= truth[name] <= said[2]
        relevant = [t for t in trials if t.relevant]
        naive.append(sum(t.decision != "reject" for t in relevant) / len(relevant))
    assert min(covered.values()) >= binom.ppf(0.001, RUNS, CONFIDENCE), covered
    assert np.mean(naive) > truth["recall"] + 0.08


def test_estimates_are_right_on_average() -> None:
    rng, truth = np.random.default_rng(21), world()
    runs = [quality(*watched(rng, chance=0.2, judged=0.5, volunteered=0.0)) for _ in range(RUNS)]
    for name in ("precision", "recall", "f1", "error", "abstain", "t11su", "sap"):
        values = [getattr(run, name).estimate for run in runs]
        assert np.mean(values) == pytest.approx(truth[name], abs=0.02), name


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
    assert min(low, high) >= (1 - TAIL - 0.025) * RUNS  # and some luck


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


# -- what is known, and what is not ------------------------------------------------------------------------------------


def test_a_worked_example() -> None:
    """Ten accepted, of which eight are relevant; four abstained from, of which two; of the rejected a fifth was drawn,
    twenty documents with one find. So five are missed of fifteen, and a hundred were rejected."""
    trials = [trial("accept", n < 8, score=float(20 - n)) for n in range(10)]
    trials += [trial("abstain", n < 2, score=float(4 - n)) for n in range(4)]
    trials += [trial("reject", n < 1, "audit", 0.2) for n in range(20)]
    found = quality(trials)
    assert found.precision
    assert found.precision.estimate == 0.8
    assert found.precision.low == pytest.approx(0.493099)  # Clopper & Pearson, 95 % on each side
    assert found.recall
    assert found.recall.estimate == pytest.approx(10 / 15)
    assert found.f1
    assert found.f1.estimate == pytest.approx(2 * 8 / (2 * 8 + 2 + 7))
    assert found.error
    assert found.error.estimate == pytest.approx((2 + 5) / 110)
    assert found.abstain
    assert found.abstain.estimate == pytest.approx(4 / 114)
    assert found.t11su
    assert found.t11su.estimate == pytest.approx(((2 * 8 - 2) / 30 + 0.5) / 1.5)
    assert found.sap
    assert found.sap.estimate == pytest.approx((8 + 9 / 11 + 10 / 12) / 10)


def test_without_audits_nothing_is_claimed_of_what_was_missed() -> None:
    found = quality([trial("accept", True)] * 20)
    assert found.precision
    assert found.recall is None
    assert found.error is None
    assert found.abstain is None
    assert found.f1 is None
    assert found.t11su
    assert found.t11su.estimate is None
    assert found.t11su.low == pytest.approx(1 / 3)  # what is accepted does not cost


def test_a_document_that_somebody_came_across_is_a_known_miss_and_no_more() -> None:
    kept = [trial("accept", True)] * 20
    found = quality([*kept, *[trial("reject", True, "found")] * 20]).recall
    assert found
    assert found.estimate is None
    assert found.low == 0
    assert found.high < 0.75
    audited = [*kept, *[trial("reject", False, "audit", 0.5)] * 100]
    without, with_one = quality(audited).recall, quality([*audited, trial("reject", True, "found")]).recall
    assert without
    assert with_one
    assert without.estimate == 1
    assert with_one.estimate == 20 / 21
    assert with_one.low == without.low


def test_what_a_user_brought_along_tells_nothing() -> None:
    assert asdict(quality([trial("accept", True, "given"), trial("reject", True, "given")] * 50)) == asdict(quality([]))
    assert all(figure is None for figure in asdict(quality([])).values())


def test_accepting_nothing_is_worth_a_third() -> None:
    found = quality([trial("abstain", True)] * 10 + [trial("reject", False, "audit", 0.5)] * 50)
    assert found.t11su
    assert found.t11su.estimate == pytest.approx(1 / 3)
    assert found.f1
    assert found.f1.estimate == 0


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    st.lists(
        st.builds(
            trial,
            st.sampled_from(["accept", "abstain"]),
            st.booleans(),
            st.just("shown"),
            st.just(0.0),
            st.floats(-1, 1, width=16),
        )
        | st.builds(trial, st.just("reject"), st.booleans(), st.just("audit"), st.sampled_from([0.01, 0.3, 1.0]))
        | st.builds(trial, st.just("reject"), st.just(True), st.just("found")),
        max_size=40,
    ),
    st.none() | st.builds(StreamCounts, st.integers(100, 200), st.integers(0, 60), st.integers(0, 40)),
)
def test_an_estimate_lies_between_its_bounds_and_these_in_0_to_1(
    trials: list[Trial], passed: StreamCounts | None
) -> None:
    for name, said in asdict(quality(trials, passed)).items():
        if said is not None:
            estimate, low, high = said
            assert 0 <= low <= high <= 1, name
            assert estimate is None or low - 1e-9 <= estimate <= high + 1e-9, name


@given(st.integers(0, 6000))
def test_a_series_has_every_judgement_once_in_at_most_fifty_points(n: int) -> None:
    found = windows(n)
    assert [i for window in found for i in range(window.start, window.stop)] == list(range(n))
    assert len(found) <= 50
    assert all(window.stop - window.start >= 20 for window in found[1:])


def test_errors_are_those_of_decisions_that_were_tested() -> None:
    trials = [
        trial("accept", True),
        trial("accept", False),
        trial("abstain", False),
        trial("reject", True, "audit", 0.1),
        trial("reject", False, "audit", 0.1),
        trial("reject", True, "found"),
        trial("accept", False, "given"),
    ]
    places, wrong = errors(trials)
    assert places == [0, 1, 3, 4]
    assert wrong.tolist() == [False, True, True, False]


# -- reliability -------------------------------------------------------------------------------------------------------


def test_reliability_tells_a_calibrated_probability_from_one_that_is_too_sure() -> None:
    rng = np.random.default_rng(23)
    p = rng.random(3000)
    relevant = rng.random(3000) < p

    def said(given: np.ndarray) -> list[bool]:
        trials = [
            Trial("accept", 0.0, r, "shown", 0.0, q) for q, r in zip(given.tolist(), relevant.tolist(), strict=True)
        ]
        found = reliability(trials, TAIL)
        assert found.brier
        assert found.brier.estimate == pytest.approx(float(np.mean((given - relevant) ** 2)))
        assert sum(one.documents for one in found.bins) == 3000
        return [one.observed.low <= one.mean <= one.observed.high for one in found.bins]

    assert sum(said(p)) >= 9
    assert sum(said(np.where(p > 0.5, p**0.25, p**4))) <= 4


def test_without_a_probability_there_is_no_reliability() -> None:
    assert reliability([trial("accept", True)], TAIL).bins == ()
    assert reliability([trial("accept", True)], TAIL).brier is None


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
