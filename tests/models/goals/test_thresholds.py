"""Cuts worked by hand, cuts compared with trying every one, and the band that a topic without a goal gets."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t as student

from models.core import measures
from models.core.measures import Bools, contingency
from models.core.vectors import Reals
from models.goals import prevalence, thresholds
from models.goals.objectives import MIN_F, BreakEven, FBeta, Objective, Utility
from models.goals.thresholds import NEVER, Band, Scale, best_cut, choose, estimated_cut, f_beta_cut
from tests.support import reference

STEADY = settings(derandomize=True, max_examples=200)

SCORES = np.array([0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
RELEVANT = np.array([True, False, True, True, False, False])
SCALE = Scale(0.0, 1.0)
NONE = np.empty(0)
NO = np.empty(0, np.bool_)


def test_the_best_f1_is_after_the_third_relevant_document() -> None:
    cut = f_beta_cut(SCORES, RELEVANT)
    assert cut.threshold == pytest.approx(0.55)
    assert cut.value == pytest.approx(6 / 7)


def test_a_small_beta_wants_precision() -> None:
    assert f_beta_cut(SCORES, RELEVANT, beta=0.25).threshold == pytest.approx(0.85)


def test_utility_counts_two_for_a_hit_and_minus_one_for_a_miss() -> None:
    cut = best_cut(Utility(), SCORES, RELEVANT)
    assert cut.threshold == pytest.approx(0.55)
    assert cut.value == pytest.approx(2 * 3 - 1)


def test_utility_accepts_nothing_where_that_is_best() -> None:
    assert best_cut(Utility(), np.array([3.0, 2.0, 1.0, 0.0]), np.array([False, False, False, True])).threshold == NEVER


def test_break_even_accepts_as_many_as_are_relevant() -> None:
    cut = best_cut(BreakEven(), SCORES, RELEVANT)
    assert cut.threshold == pytest.approx(0.65)
    assert cut.value == pytest.approx(measures.break_even(SCORES, RELEVANT))


def test_a_bad_ranking_accepts_nothing() -> None:
    scores = np.arange(100.0)
    assert f_beta_cut(scores, scores < 1).threshold == NEVER
    assert f_beta_cut(scores, scores > 98).threshold < NEVER


def test_without_a_relevant_document_there_is_no_cut() -> None:
    for objective in (FBeta(), Utility(), BreakEven()):
        assert best_cut(objective, np.array([1.0, 2.0]), np.array([False, False])).threshold == NEVER
        assert best_cut(objective, NONE, NO).threshold == NEVER


rankings = st.lists(st.tuples(st.integers(-4, 4), st.booleans()), min_size=1, max_size=20).map(
    lambda rows: (np.array([float(s) for s, _ in rows]), np.array([r for _, r in rows]))
)


@STEADY
@given(rankings, st.sampled_from([0.5, 1.0, 2.0]))
def test_no_other_cut_is_better_and_equal_scores_are_never_separated(ranking: tuple[Reals, Bools], beta: float) -> None:
    scores, relevant = ranking
    cuts = [contingency(scores > t, relevant) for t in np.arange(-5, 5) + 0.5]
    if relevant.any():
        cut = f_beta_cut(scores, relevant, beta=beta)
        assert cut.threshold not in scores
        assert cut.value == pytest.approx(measures.f_beta(contingency(scores > cut.threshold, relevant), beta))
        assert cut.value == pytest.approx(max(measures.f_beta(c, beta) for c in cuts))
        cut = best_cut(Utility(), scores, relevant)
        assert cut.value == pytest.approx(max(0, *(2 * c.tp - c.fp for c in cuts)))


OBJECTIVES: list[tuple[str, tuple[float, ...], Objective]] = [
    ("f_beta", (0.5,), FBeta(0.5, 0.0)),
    ("f_beta", (2.0,), FBeta(2.0, 0.0)),
    ("utility", (2.0, 1.0, 0.0), Utility()),
    ("utility", (1.0, 3.0, 5.0), Utility(1.0, 3.0, 5.0)),
    ("utility", (0.0, 1.0, 4.0), Utility(0.0, 1.0, 4.0)),
]


@STEADY
@given(rankings, st.sampled_from(OBJECTIVES))
def test_the_best_cut_is_that_of_the_definition(
    ranking: tuple[Reals, Bools], asked: tuple[str, tuple[float, ...], Objective]
) -> None:
    scores, relevant = ranking
    name, numbers, objective = asked
    rows = [(float(f), float(y), 1.0) for f, y in zip(scores, relevant, strict=True)]
    every = [reference.measured(name, numbers, rows, t) for t in np.arange(-5, 5) + 0.5]
    cut = best_cut(objective, scores, relevant)
    if not relevant.any():
        assert cut.threshold == NEVER
    elif cut.threshold < NEVER:
        assert cut.value == pytest.approx(max(every))
        assert reference.measured(name, numbers, rows, cut.threshold) == pytest.approx(cut.value)
    else:  # accepting nothing, as the highest of these does, is as good
        assert max(every) == pytest.approx(reference.measured(name, numbers, rows, 4.5))


def test_the_more_recall_is_worth_the_more_is_accepted() -> None:
    random = np.random.default_rng(8)
    relevant = random.random(400) < 0.2
    scores = random.normal(0.2 + 0.2 * relevant, 0.1)
    by_beta = [best_cut(FBeta(beta), scores, relevant).threshold for beta in (0.5, 1, 2, 5)]
    by_cost = [best_cut(Utility(2, cost, 0), scores, relevant).threshold for cost in (4, 1, 0.5, 0.1)]
    by_miss = [best_cut(Utility(1, 1, miss), scores, relevant).threshold for miss in (0, 1, 4, 20)]
    for thresholds_ in (by_beta, by_cost, by_miss):
        assert thresholds_ == sorted(thresholds_, reverse=True)
        assert thresholds_[0] > thresholds_[-1]


@STEADY
@given(rankings, st.data())
def test_a_weight_counts_as_so_many_documents(ranking: tuple[Reals, Bools], data: st.DataObject) -> None:
    scores, relevant = ranking
    times = np.array(data.draw(st.lists(st.integers(1, 3), min_size=len(scores), max_size=len(scores))))
    assert f_beta_cut(scores, relevant, times.astype(float)) == f_beta_cut(
        np.repeat(scores, times), np.repeat(relevant, times)
    )


# -- the band ----------------------------------------------------------------------------------------------------------


def test_before_any_judgement_the_scale_decides() -> None:
    band = choose(NONE, NO, NONE, NO, Scale(0.05, 0.55))
    assert band.accept_above == pytest.approx(0.05 + 0.1 * 0.5)
    assert band.reject_below == pytest.approx(0.05 + 0.05 * 0.5)


def test_a_query_of_common_words_does_not_accept_the_whole_stream() -> None:
    background = np.linspace(0.2, 0.4, 1000)
    band = choose(NONE, NO, background, np.ones(1000, np.bool_), SCALE)
    assert (background > band.accept_above).mean() <= 0.051


def test_a_topic_that_says_nothing_rejects_everything() -> None:
    assert choose(NONE, NO, NONE, NO, Scale(0.3, 0.3)) == Band(NEVER, NEVER)


def test_many_judgements_outweigh_what_was_believed() -> None:
    judged = np.concatenate([np.full(100, 0.9), np.full(100, 0.5)])
    relevant = np.arange(200) < 100
    assert 0.5 < choose(judged, relevant, NONE, NO, SCALE).accept_above < 0.9


def test_a_few_relevant_judgements_alone_do_not_open_the_gate() -> None:
    """Three relevant documents, no irrelevant one and no background: the best F1 would be to accept everything."""
    band = choose(np.array([0.03, 0.2, 0.3]), np.ones(3, np.bool_), NONE, NO, SCALE)
    assert band.accept_above > 0.05


def test_the_band_holds_its_share_of_the_stream() -> None:
    background = np.linspace(0, 0.4, 1000)
    judged, relevant = np.linspace(0.3, 0.8, 50), np.linspace(0.3, 0.8, 50) > 0.45
    band = choose(judged, relevant, background, np.ones(1000, np.bool_), SCALE)
    between = (background >= band.reject_below) & (background <= band.accept_above)
    assert between.mean() == pytest.approx(thresholds.ABSTAIN_SHARE, abs=0.002)


@STEADY
@given(rankings, st.lists(st.floats(-5, 5), max_size=300), st.floats(-1, 1), st.floats(0, 3))
def test_the_band_is_ordered_and_finite(
    ranking: tuple[Reals, Bools], unjudged: list[float], zero: float, height: float
) -> None:
    band = choose(*ranking, np.array(unjudged), np.ones(len(unjudged), np.bool_), Scale(zero, zero + height))
    assert band.reject_below <= band.accept_above
    assert np.isfinite([band.reject_below, band.accept_above]).all()


@STEADY
@given(rankings, st.lists(st.floats(-5, 5), max_size=300), st.floats(0.1, 3), st.booleans())
def test_the_cut_has_the_best_expected_f1_of_all_and_leans_on_the_prior(
    ranking: tuple[Reals, Bools], passed: list[float], length: float, shown: bool
) -> None:
    held_out, relevant = ranking
    if not relevant.any():
        return
    background, scale, sampled = np.array(passed, float), Scale(0.0, length), np.full(len(relevant), shown)
    estimated = prevalence.estimate(held_out, relevant, sampled, background)
    unrelated = thresholds.UNRELATED_WEIGHT * max(0.0, 1 - len(background) / thresholds.MIN_SAMPLE)
    rows = [(float(f), float(y), 1.0) for f, y in zip(held_out, relevant, strict=True)]
    for heights, weight, y in (
        (thresholds.RELEVANT_AT, thresholds.RELEVANT_WEIGHT, 1.0),
        (thresholds.UNRELATED_AT, unrelated, 0.0),
    ):
        rows += [(scale.at(height), y, weight / len(heights)) for height in heights]
    for f in passed:
        p = estimated.probability(f) if estimated else 0.0
        rows.append((f, p if p >= thresholds.MIN_P else 0.0, 1.0 if estimated else thresholds.UNJUDGED_WEIGHT))
    best, cuts = reference.best_expected_f1(rows)
    band = choose(held_out, relevant, background, np.ones(len(background), np.bool_), scale, None, sampled)
    if best < MIN_F:
        assert (band.f1, band.accept_above) == (0.0, NEVER)
        return
    assert band.f1 == pytest.approx(best, abs=1e-9)
    n, prior = int(relevant.sum()), scale.at(thresholds.PRIOR_ACCEPT)
    if len(background) < thresholds.MIN_SAMPLE and n == len(relevant) and (shown or n == 1):
        means = [(n * cut + thresholds.PRIOR_WEIGHT * prior) / (n + thresholds.PRIOR_WEIGHT) for cut in cuts]
        assert min(abs(band.accept_above - mean) for mean in means) < 1e-9


@STEADY
@given(rankings, st.lists(st.floats(-5, 5), min_size=200, max_size=300), st.sampled_from(OBJECTIVES))
def test_a_goal_that_maximises_gets_the_cut_with_the_best_expected_value(
    ranking: tuple[Reals, Bools], passed: list[float], asked: tuple[str, tuple[float, ...], Objective]
) -> None:
    """Over judged documents, imagined relevant ones and the stream, of which each is relevant with a probability."""
    held_out, relevant = ranking
    if not relevant.any():
        return
    name, numbers, objective = asked
    background, scale, sampled = np.array(passed, float), Scale(0.0, 1.0), np.ones(len(relevant), np.bool_)
    estimated = prevalence.estimate(held_out, relevant, sampled, background)
    assert estimated
    rows = [(float(f), float(y), 1.0) for f, y in zip(held_out, relevant, strict=True)]
    heights = thresholds.RELEVANT_AT
    rows += [(scale.at(height), 1.0, thresholds.RELEVANT_WEIGHT / len(heights)) for height in heights]
    worth = 1 / (1 + numbers[0] ** 2) if name == "f_beta" else numbers[1] / sum(numbers)
    for f in passed:
        p = estimated.probability(f)
        rows.append((f, p if p >= min(0.1, 0.2 * worth) else 0.0, 1.0))
    values = [reference.measured(name, numbers, rows, np.nextafter(f, -np.inf)) for f in {row[0] for row in rows}]
    band = choose(
        held_out, relevant, background, np.ones(len(passed), np.bool_), scale, None, sampled, objective=objective
    )
    assert band.value is not None
    if band.accept_above < NEVER:
        assert band.value == pytest.approx(max(values), abs=1e-6)


def test_votes_are_cut_over_judged_and_unjudged_documents() -> None:
    rng = np.random.default_rng(5)
    background, truth = stream_with(0.2, rng)
    scores, relevant = stream_with(0.2, rng)
    everything = np.ones(1000, np.bool_)
    wide, narrow = (
        estimated_cut(FBeta(beta), scores, relevant, everything, background).threshold for beta in (3.0, 0.3)
    )
    assert wide < estimated_cut(FBeta(), scores, relevant, everything, background).threshold < narrow
    assert best_cut(FBeta(3.0), background, truth).threshold == pytest.approx(wide, abs=0.1)


def stream_with(share: float, rng: np.random.Generator) -> tuple[Reals, Bools]:
    """A thousand documents of which this share is relevant, and scores three deviations higher."""
    relevant = rng.random(1000) < share
    return rng.normal(0.2 + 0.3 * relevant, 0.1), relevant


@STEADY
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=12), st.integers(0, 199))
def test_a_topic_that_knows_relevant_documents_only_accepts_what_is_more_typical_than_they_are(
    scores: list[float], known: int
) -> None:
    background = np.linspace(-1, 1, known)
    held_out, unjudged = np.array(scores), np.ones(known, np.bool_)
    band = choose(held_out, np.ones(len(scores), np.bool_), background, unjudged, SCALE)
    mean, s, n = held_out.mean(), held_out.std(ddof=1), len(scores)
    bound = mean + student.ppf(thresholds.CERTAIN_SHARE, n - 1) * s * np.sqrt(1 + 1 / n)
    if band.accept_above < NEVER:
        assert band.accept_above >= bound - 1e-9
        assert band.reject_below == pytest.approx(min(mean, band.accept_above))


@pytest.mark.parametrize("share", [0.02, 0.2, 0.5, 0.8])
def test_a_cut_is_good_however_common_the_topic_is(share: float) -> None:
    """A hundred judgements of what scored highest, some by chance: F1 on the stream is nearly the best there is."""
    rng = np.random.default_rng(17)
    background, truth = stream_with(share, rng)
    scores, relevant = stream_with(share, rng)
    chosen = np.concatenate((np.argsort(-scores)[:85], rng.permutation(1000)[:15]))
    sampled = np.ones(len(chosen), np.bool_)
    band = choose(scores[chosen], relevant[chosen], background, np.ones(1000, np.bool_), SCALE, None, sampled)
    best = f_beta_cut(background, truth).value
    assert measures.f_beta(contingency(background > band.accept_above, truth)) > 0.85 * best
    if share < 0.1:  # where the unjudged ones count as irrelevant, as they nearly are, this is no harder
        return
    old = choose(scores[chosen], relevant[chosen], background, np.ones(1000, np.bool_), SCALE)
    assert old.accept_above > band.accept_above
    shown = (background >= band.reject_below) & (background <= band.accept_above)
    assert shown.mean() > 2 * thresholds.ABSTAIN_SHARE


def test_the_cut_follows_a_topic_whose_share_of_the_stream_falls() -> None:
    best, cut, old = 0.0, 0.0, 0.0
    for seed in range(18, 24):
        rng = np.random.default_rng(seed)
        (before, common), (after, rare), (background, truth) = (stream_with(share, rng) for share in (0.6, 0.03, 0.03))
        judged = np.concatenate((before, after[:400])), np.concatenate((common, rare[:400]))
        sampled = np.ones(1400, np.bool_)
        band = choose(*judged, background, np.ones(1000, np.bool_), SCALE, None, sampled)
        best += f_beta_cut(background, truth).value
        cut += measures.f_beta(contingency(background > band.accept_above, truth))
        old += measures.f_beta(contingency(background > f_beta_cut(*judged).threshold, truth))
    assert cut > 0.9 * best > 1.1 * old
