"""Figures from judgements that are a biased sample: the intervals hold where the naive figure is far off."""

from collections import Counter
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from models.goals.reporting import rankings
from models.goals.reporting.prequential import CONFIDENCE, confusion, errors, quality, windows
from models.goals.reporting.samples import Trial
from models.goals.reporting.volume import StreamCounts
from tests.models.goals.judged import trial
from tests.support import reference

RUNS = 300


# -- a stream of which people see a part -------------------------------------------------------------------------------

DOCUMENTS, PREVALENCE = 8000, 0.03
APART, LOW, HIGH = 2.5, 1.5, 2.5  # scores are normal, those of relevant documents around APART


def true_figures() -> dict[str, float]:
    """The figures of the stream itself, from the normal distribution."""
    accept, keep = [[float(norm.sf(cut - APART)), float(norm.sf(cut))] for cut in (HIGH, LOW)]
    tp, fp = PREVALENCE * accept[0], (1 - PREVALENCE) * accept[1]
    missed, kept = PREVALENCE * (1 - keep[0]), PREVALENCE * keep[0]
    shown = kept + (1 - PREVALENCE) * keep[1]
    nu = (2 * tp - fp) / (2 * PREVALENCE)
    u = np.linspace(LOW, APART + 9, 20001)
    weight = norm.pdf(u - APART)
    above = PREVALENCE * norm.sf(u - APART)
    precision = above / (above + (1 - PREVALENCE) * norm.sf(u))
    cuts = np.linspace(LOW, APART + 9, 20001)
    as_high = PREVALENCE * norm.sf(cuts - APART) + (1 - PREVALENCE) * norm.sf(cuts)
    even = PREVALENCE * norm.sf(cuts[np.argmin(np.abs(as_high - kept))] - APART) / kept
    return {
        "r_precision": float(even),
        "break_even": float(even),
        "precision": tp / (tp + fp),
        "recall": keep[0],
        "f1": 2 * tp / (2 * tp + fp + PREVALENCE - tp),
        "error": (fp + missed) / (tp + fp + 1 - shown),
        "abstain": shown - tp - fp,
        "sap": float((weight * precision).sum() / weight.sum()),
        "t11su": (max(nu, -0.5) + 0.5) / 1.5,
    }


def true_ndcg(shown: list[Trial]) -> float:
    """Of rankings of as many documents of each kind as these, if every document came at its expected rank."""
    k = sum(t.relevant for t in shown)
    j = np.arange(1, k + 1)
    score = APART + norm.isf((j - 0.5) / k * norm.sf(LOW - APART))
    rank = j + (len(shown) - k) * norm.sf(score) / norm.sf(LOW)
    return float((1 / np.log2(1 + rank)).sum() / (1 / np.log2(1 + j)).sum())


def judged_stream(
    rng: np.random.Generator, chance: float, judged: float, volunteered: float, ignored: float = 0.0
) -> tuple[list[Trial], StreamCounts]:
    """A stream as its readers judge it: a share of what is shown, audits that are not ignored, and a few finds."""
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
    rng, truth, covered, naive = np.random.default_rng(20), true_figures(), Counter[str](), []
    for _ in range(RUNS):
        trials, passed = judged_stream(rng, chance, judged, 0.05, ignored)
        figures = quality(trials, passed if counted else None)
        for name, figure in asdict(figures).items():
            assert figure is not None, name
            true = true_ndcg([t for t in trials if t.origin == "shown"]) if name == "ndcg" else truth[name]
            covered[name] += figure[1] <= true <= figure[2]
        relevant = [t for t in trials if t.relevant]
        naive.append(sum(t.decision != "reject" for t in relevant) / len(relevant))
    assert min(covered.values()) >= binom.ppf(0.001, RUNS, CONFIDENCE), covered
    assert np.mean(naive) > truth["recall"] + 0.08


def test_estimates_are_right_on_average() -> None:
    rng, truth = np.random.default_rng(21), true_figures()
    streams = [judged_stream(rng, chance=0.2, judged=0.5, volunteered=0.0) for _ in range(RUNS)]
    expected_ndcg = np.mean([true_ndcg([t for t in trials if t.origin == "shown"]) for trials, _ in streams])
    runs = [quality(*stream) for stream in streams]
    for name in ("precision", "recall", "f1", "error", "abstain", "t11su", "sap", "r_precision", "break_even"):
        values = [getattr(run, name).estimate for run in runs]
        assert np.mean(values) == pytest.approx(truth[name], abs=0.02), name
    ndcg = [run.ndcg.estimate for run in runs if run.ndcg and run.ndcg.estimate]
    assert np.mean(ndcg) == pytest.approx(expected_ndcg, abs=0.02)


# -- what is known, and what is not ------------------------------------------------------------------------------------


def test_a_worked_example() -> None:
    """Ten accepted, of which eight are relevant; four abstained from, of which two; of the rejected a fifth was drawn,
    twenty documents with one find. So five are missed of fifteen, and a hundred were rejected."""
    trials = [trial("accept", n < 8, score=float(20 - n)) for n in range(10)]
    trials += [trial("abstain", n < 2, score=float(4 - n)) for n in range(4)]
    trials += [trial("reject", n < 1, "audit", 0.2) for n in range(20)]
    figures = quality(trials)
    assert figures.precision
    assert figures.precision.estimate == 0.8
    assert figures.precision.low == pytest.approx(0.493099)  # Clopper & Pearson, 95 % on each side
    assert figures.recall
    assert figures.recall.estimate == pytest.approx(10 / 15)
    assert figures.f1
    assert figures.f1.estimate == pytest.approx(2 * 8 / (2 * 8 + 2 + 7))
    assert figures.error
    assert figures.error.estimate == pytest.approx((2 + 5) / 110)
    assert figures.abstain
    assert figures.abstain.estimate == pytest.approx(4 / 114)
    assert figures.t11su
    assert figures.t11su.estimate == pytest.approx(((2 * 8 - 2) / 30 + 0.5) / 1.5)
    assert figures.sap
    assert figures.sap.estimate == pytest.approx((8 + 9 / 11 + 10 / 12) / 10)
    for figure in (figures.r_precision, figures.break_even):
        assert figure
        assert figure.estimate == pytest.approx(8 / 10)
        assert figure.low <= 0.8 <= figure.high


def test_ndcg_goes_by_the_grades_and_needs_two_of_them() -> None:
    graded = [trial("accept", True, score=float(9 - n))._replace(grade=grade) for n, grade in enumerate((1, 3, 1, 2))]
    figures = quality([*graded, trial("abstain", False, score=0.0)])
    assert figures.ndcg
    assert figures.ndcg.estimate == pytest.approx(reference.ndcg([1, 3, 1, 2, 0]))
    assert 0 < figures.ndcg.low < reference.ndcg([1, 3, 1, 2, 0]) < figures.ndcg.high <= 1
    assert quality([graded[0], graded[2]]).ndcg is None


def test_bounds_of_ndcg_close_in_on_it() -> None:
    rng = np.random.default_rng(22)
    widths = []
    for n in (20, 200, 2000):
        grades = rng.integers(0, 4, n)
        scores = rng.normal(size=n) + grades
        figure = rankings.ndcg(scores, np.exp2(grades) - 1, 0.05)
        assert figure
        assert figure.low <= (figure.estimate or 0) <= figure.high
        widths.append(figure.high - figure.low)
    assert widths[0] > widths[1] > widths[2]
    assert widths[2] < 0.2


def test_confusion_counts_are_those_of_the_stream_where_only_a_part_was_judged() -> None:
    """Of forty accepted ten were judged, and eight of these are relevant: thirty-two of forty."""
    trials = [trial("accept", n < 8) for n in range(10)] + [trial("reject", n < 1, "audit", 0.2) for n in range(20)]
    table = confusion(trials, StreamCounts(documents=145, accepted=40, abstained=5))
    accepted, abstained, rejected = table
    assert (accepted.documents, accepted.relevant.estimate, accepted.irrelevant.estimate) == (40, 32, 8)
    assert (abstained.documents, abstained.relevant) == (5, (None, 0, 5))
    assert (rejected.documents, rejected.relevant.estimate, rejected.irrelevant.estimate) == (100, 5, 95)
    for part in table:
        assert part.relevant.low + part.irrelevant.high == pytest.approx(part.documents)
        assert part.relevant.high + part.irrelevant.low == pytest.approx(part.documents)


def test_without_audits_nothing_is_claimed_of_what_was_missed() -> None:
    figures = quality([trial("accept", True)] * 20)
    assert figures.precision
    assert figures.recall is None
    assert figures.error is None
    assert figures.abstain is None
    assert figures.f1 is None
    assert figures.t11su
    assert figures.t11su.estimate is None
    assert figures.t11su.low == pytest.approx(1 / 3)  # what is accepted does not cost


def test_a_document_that_somebody_came_across_is_a_known_miss_and_no_more() -> None:
    kept = [trial("accept", True)] * 20
    figure = quality([*kept, *[trial("reject", True, "found")] * 20]).recall
    assert figure
    assert figure.estimate is None
    assert figure.low == 0
    assert figure.high < 0.75
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
    figures = quality([trial("abstain", True)] * 10 + [trial("reject", False, "audit", 0.5)] * 50)
    assert figures.t11su
    assert figures.t11su.estimate == pytest.approx(1 / 3)
    assert figures.f1
    assert figures.f1.estimate == 0


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
    for name, figure in asdict(quality(trials, passed)).items():
        if figure is not None:
            estimate, low, high = figure
            assert 0 <= low <= high <= 1, name
            assert estimate is None or low - 1e-9 <= estimate <= high + 1e-9, name


@given(st.integers(0, 6000))
def test_a_series_has_every_judgement_once_in_at_most_fifty_points(n: int) -> None:
    parts = windows(n)
    assert [i for window in parts for i in range(window.start, window.stop)] == list(range(n))
    assert len(parts) <= 50
    assert all(window.stop - window.start >= 20 for window in parts[1:])


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
