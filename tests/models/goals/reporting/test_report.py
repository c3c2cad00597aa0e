"""What a report says about a goal is true, and a person can act on it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.goals.evidence import Evidence
from models.goals.ledger import Ledger
from models.goals.objectives import BreakEven, FBeta, Utility
from models.goals.promises import Targets
from models.goals.reporting.report import HOW_TO_AUDIT, Report, pooled_recall, recall, report
from models.goals.reporting.volume import StreamCounts

STEADY = settings(derandomize=True, max_examples=200, deadline=None)
LATELY = StreamCounts(1000, 20, 100)


def report_on(goal: Targets, evidence: Evidence, ever: StreamCounts = LATELY, lately: StreamCounts = LATELY) -> Report:
    result = report(goal, evidence, ever, lately)
    assert result is not None
    return result


def test_without_a_goal_nothing_is_said() -> None:
    assert report(Targets(), Evidence(), LATELY, LATELY) is None


def test_a_promised_precision_is_met_with_the_counts_behind_it() -> None:
    part = report_on(Targets(min_precision=0.9), Evidence(accepted=50, hits=49, certified=True)).precision
    assert part is not None
    assert part.share is not None
    assert (part.state, part.judged) == ("met", 50)
    assert part.share.low >= 0.9
    assert "Of 50 judged documents that would be accepted now, 49 are relevant." in part.detail


def test_a_precision_that_is_not_promised_says_what_is_missing() -> None:
    result = report_on(Targets(min_precision=0.9), Evidence(missing=37, missing_range=(25, 61)))
    assert result.state == "learning"
    assert "needs 25 to 61 more judgements" in result.detail
    assert result.precision is not None
    assert result.precision.needed == (25, 61)
    unknown = report_on(Targets(min_precision=0.9), Evidence(missing=37))
    assert unknown.detail.endswith("A promise needs more judgements of shown documents.")


def test_a_goal_that_may_accept_by_the_best_estimate_says_how_good_that_is_and_that_it_is_not_certain() -> None:
    best = Targets(min_precision=0.9, mode="best")
    first = report_on(best, Evidence())
    assert first.state == "learning"
    assert first.detail.startswith("A precision of 0.9 is not certain yet; until it is, documents are accepted by the")
    some = report_on(best, Evidence(accepted=20, hits=17))
    assert some.state == "learning"
    assert "17 are relevant: about 0.85 so far; 0.9 is not certain yet." in some.detail
    none = report_on(best, Evidence(silent=True))
    assert none.detail.startswith("By the best estimate no threshold has a precision of 0.9, so nothing is accepted.")
    assert report_on(best, Evidence(accepted=50, hits=49, certified=True)).state == "met"


def test_what_is_accepted_without_a_promise_is_said_to_be_so() -> None:
    few = report_on(Targets(min_precision=0.9), Evidence(accepted=6, hits=6))
    assert (few.state, few.detail) == (
        "learning",
        "Of 6 judged documents that would be accepted now, 6 are relevant: about 1 so far; 0.9 is not certain yet. "
        "A promise needs more judgements of shown documents.",
    )
    wrong = report_on(Targets(min_precision=0.9), Evidence(accepted=60, hits=30))
    assert wrong.state == "at_risk"
    assert wrong.detail.endswith("30 are relevant: the precision is below 0.9.")


def test_where_nothing_was_rejected_no_share_is_claimed() -> None:
    result = report_on(Targets(min_recall=0.9), Evidence(shown=5, kept=1), StreamCounts(50, 0, 50))
    assert result.detail == "Nothing has been rejected yet, so nothing has been missed."


def test_a_precision_out_of_reach_is_called_that() -> None:
    result = report_on(Targets(min_precision=0.9), Evidence(accepted=0, reach=0.62))
    assert result.state == "unreachable"
    assert "at most 62 %" in result.detail


def test_recall_says_between_which_numbers_of_audits_it_will_be_shown_if_that_can_be_told() -> None:
    goal, evidence, passed = (
        Targets(min_recall=0.9),
        Evidence(shown=1200, kept=1000, audits=150),
        StreamCounts(10_000, 800, 400),
    )
    part = report_on(goal, evidence, passed).recall
    assert part is not None
    assert part.needed is not None
    low, high = part.needed
    assert 0 < low <= high <= 4 * low
    assert "more audits" in part.detail
    assert report_on(goal, replace(evidence, audits=150 + low), passed).state == "met"
    assert report_on(goal, replace(evidence, audits=int(0.9 * (150 + low))), passed).state == "learning"
    rare = report_on(goal, replace(evidence, shown=20, kept=10), passed).recall
    assert rare is not None
    assert rare.needed is None
    assert rare.detail.endswith("That needs more audits.")


def test_recall_without_audits_is_bounded_but_not_estimated() -> None:
    """What was rejected may all have been relevant, or none of it: nothing says which."""
    passed = StreamCounts(12, 2, 0)
    part = report_on(Targets(min_recall=0.9), Evidence(shown=2, kept=2), passed).recall
    assert part is not None
    assert part.share is not None
    assert (part.estimated, part.share.low, part.share.high) == (False, 2 / 12, 1.0)
    audited = report_on(Targets(min_recall=0.9), Evidence(shown=2, kept=2, audits=1), passed).recall
    assert audited is not None
    assert audited.estimated
    all_shown = report_on(Targets(min_recall=0.9), Evidence(shown=2, kept=2), StreamCounts(2, 2, 0)).recall
    assert all_shown is not None
    assert all_shown.estimated


def test_misses_that_somebody_noticed_put_recall_at_risk() -> None:
    result = report_on(
        Targets(min_recall=0.9), Evidence(shown=60, kept=50, audits=500, lost=20), StreamCounts(9000, 100, 100)
    )
    assert result.state == "at_risk"


def test_abstention_is_of_what_has_passed_lately() -> None:
    assert report_on(Targets(max_abstain=0.15), Evidence()).state == "met"
    assert report_on(Targets(max_abstain=0.05), Evidence()).state == "at_risk"
    assert report_on(Targets(max_abstain=0.15), Evidence(), lately=StreamCounts(10, 1, 1)).state == "learning"


def test_a_topic_that_may_leave_nothing_undecided_says_that_it_will_never_learn_what_to_accept() -> None:
    stuck = report_on(Targets(min_precision=0.99, max_abstain=0.0), Evidence(missing=220))
    learns = report_on(Targets(min_precision=0.99, max_abstain=0.05), Evidence(missing=220))
    assert stuck.precision is not None
    assert learns.precision is not None
    assert (stuck.precision.state, learns.precision.state) == ("unreachable", "learning")
    assert "Allow more abstention" in stuck.detail


def test_error_needs_judgements_of_what_is_rejected() -> None:
    assert report_on(Targets(max_error=0.02), Evidence(accepted=500, hits=500)).state == "learning"
    half = StreamCounts(1000, 480, 40)
    assert report_on(Targets(max_error=0.02), Evidence(accepted=500, hits=497, audits=400), lately=half).state == "met"
    assert (
        report_on(Targets(max_error=0.02), Evidence(accepted=500, hits=400, audits=400), lately=half).state == "at_risk"
    )


def test_the_worst_state_is_the_topics_and_its_sentences_are_shown() -> None:
    result = report_on(Targets(min_precision=0.9, max_abstain=0.05), Evidence(accepted=50, hits=49, certified=True))
    assert result.state == "at_risk"
    assert result.precision is not None
    assert result.precision.state == "met"
    assert "abstained" in result.detail


counts = st.integers(0, 50).flatmap(
    lambda kept: st.builds(
        Evidence,
        kept=st.just(kept),
        shown=st.integers(kept, kept + 50),
        audits=st.integers(5, 60),
        finds=st.integers(0, 5),
        lost=st.integers(0, 10),
    )
)


@STEADY
@given(counts, st.integers(0, 5000), st.integers(0, 100), st.integers(0, 100))
def test_recall_lies_between_its_bounds(evidence: Evidence, rejected: int, accepted: int, abstained: int) -> None:
    result = recall(evidence, StreamCounts(rejected + accepted + abstained, accepted, abstained))
    if result is not None:
        assert 0 <= result.low <= result.estimate <= result.high <= 1


@pytest.mark.parametrize(("prevalence", "missed", "part"), [(0.02, 0.1, 1.0), (0.02, 0.5, 0.5), (0.2, 0.3, 1.0)])
def test_recall_intervals_cover_as_often_as_they_say_where_the_naive_estimate_is_far_off(
    prevalence: float, missed: float, part: float
) -> None:
    """Only what is shown, and one rejected document in fifty, is judged. Counted plainly, recall seems to be near 1."""
    random = np.random.default_rng(7)
    documents, runs = 4000, 400
    covered, naive = 0, []
    for _ in range(runs):
        relevant = random.random(documents) < prevalence
        shown = np.where(relevant, random.random(documents) >= missed, random.random(documents) < 0.05)
        judged, drawn = shown & (random.random(documents) < part), ~shown & (random.random(documents) < 0.02)
        evidence = Evidence(
            shown=int(judged.sum()),
            kept=int((judged & relevant).sum()),
            audits=int(drawn.sum()),
            finds=int((drawn & relevant).sum()),
        )
        truth = float(shown[relevant].mean())
        result = recall(evidence, StreamCounts(documents, int(shown.sum()), 0))
        covered += result is None or result.low <= truth <= result.high
        naive.append(evidence.kept / max(1, evidence.kept + evidence.finds))
    assert covered >= 0.9 * runs
    assert np.mean(naive) > 1 - missed + 0.04


def test_audits_at_a_rate_that_was_changed_count_for_what_they_stand_for() -> None:
    """Half of the stream is audited wholly and holds nothing; the other half, where all is missed, one in fifty."""
    random = np.random.default_rng(9)
    runs, n, kept, missed = 500, 700, 94, 106
    truth, low, plain = kept / (kept + missed), 0, 0
    for _ in range(runs):
        finds = int(random.binomial(missed, 0.02))
        audits = finds + int(random.binomial(n - missed, 0.02))
        evidence = Evidence(shown=kept, kept=kept, audits=n + audits, finds=finds)
        passed = StreamCounts(2 * n + kept, kept, 0)
        weighed = recall(replace(evidence, drawn=((0.02, audits, finds), (1.0, n, 0))), passed)
        lumped = recall(evidence, passed)
        assert weighed is not None
        assert lumped is not None
        low, plain = low + (weighed.low <= truth), plain + (lumped.low <= truth)
    assert low >= 0.95 * runs
    assert plain < 0.2 * runs


def test_where_everything_rejected_was_audited_recall_is_known() -> None:
    result = report_on(Targets(min_recall=0.9), Evidence(shown=10, kept=2, audits=90), StreamCounts(100, 5, 5))
    assert result.state == "met"
    assert result.recall is not None
    assert result.recall.share is not None
    assert result.recall.share.low == 1.0


def test_few_relevant_documents_are_no_misses() -> None:
    """To be certain, next to all that is rejected must be audited; but nothing is known to be missed."""
    result = report_on(Targets(min_recall=0.9), Evidence(shown=10, kept=2, audits=20), StreamCounts(1000, 5, 5))
    assert result.state == "learning"
    assert result.detail.endswith("That needs more audits.")


def test_a_promise_that_was_not_kept_lately_is_at_risk_whatever_held_out_scores_say() -> None:
    goal, lately = Targets(min_precision=0.9), StreamCounts(1000, 60, 100)
    certified = Evidence(accepted=50, hits=50, certified=True, delivered=40, right=33)
    assert (
        report_on(goal, certified, lately=lately).state == "met"
    )  # one in two hundred such tests, if the goal is just kept
    broken = replace(certified, right=25)
    assert report_on(goal, broken, lately=lately).state == "at_risk"
    assert "25 are relevant" in report_on(goal, broken, lately=lately).detail
    assert (
        report_on(goal, replace(broken, accepted=0, hits=0, certified=False), lately=lately).state == "at_risk"
    )  # by a rule
    assert (
        report_on(goal, broken, lately=StreamCounts(1000, 20, 100)).state == "met"
    )  # most were accepted under other settings


def test_a_promise_that_nobody_looks_at_any_more_is_at_risk() -> None:
    """It rests on 50 judged documents: when more than as many have been accepted since one was judged, nothing says
    that it is still kept. One more judgement of something accepted, and it stands again."""
    goal, promise = Targets(min_precision=0.9), Evidence(accepted=50, hits=49, certified=True, delivered=40, right=40)

    def report_after(watched: int, accepted: int, pause: float = 1.0) -> Report:
        passed = StreamCounts(10_000, accepted, 1000)
        return report_on(goal, replace(promise, watched=watched, pause=pause), passed, passed)

    assert report_after(300, 350).state == "met"
    result = report_after(300, 800)
    assert (result.state, result.unwatched) == ("at_risk", 500)
    assert result.detail.startswith("None of the last 500 accepted documents has been judged: judge some of them.")
    assert report_after(800, 800).state == "met"
    assert report_after(300, 800, pause=100.0).state == "met"  # this reader judges one in a hundred
    assert report_after(300, 900, pause=100.0).unwatched == 600
    assert report_after(0, 800).state == "met"  # an old log, which does not say when they were judged
    unjudged = replace(promise, delivered=0, right=0)  # the promise rests on what was abstained from
    assert report_on(goal, unjudged, StreamCounts(10_000, 51, 1000)).state == "at_risk"
    assert report_on(goal, unjudged, StreamCounts(10_000, 50, 1000)).state == "met"


def test_an_error_that_nobody_looks_at_any_more_is_at_risk_and_only_what_is_promised_is() -> None:
    half = StreamCounts(1000, 480, 40)
    evidence = Evidence(accepted=400, hits=397, audits=400, delivered=40, right=40, watched=10)
    assert report_on(Targets(max_error=0.02), evidence, half, half).state == "at_risk"
    assert report_on(Targets(max_error=0.02), replace(evidence, watched=100), half, half).state == "met"
    learning = report_on(Targets(min_precision=0.9), replace(evidence, accepted=0, hits=0, missing=20), half, half)
    assert (learning.state, learning.unwatched) == ("learning", 0)


@pytest.mark.parametrize("share", [1.0, 0.3, 0.01])
@pytest.mark.parametrize("at_once", [1, 200])
def test_a_reader_who_goes_on_is_seldom_said_to_have_gone_and_one_who_stops_is(share: float, at_once: int) -> None:
    """A reader judges all, or one in a hundred, of what is accepted, one by one or a day's the next morning."""
    rng = np.random.default_rng(5)
    ledger, states = Ledger(), []

    def state(accepted: int) -> str:
        watch, passed = ledger.watch(), StreamCounts(10 * accepted, accepted, 0)
        evidence = Evidence(accepted=20, hits=20, certified=True, delivered=20, right=20)
        return report_on(
            Targets(min_precision=0.85), replace(evidence, watched=watch.last, pause=watch.pause), passed, passed
        ).state

    for accepted in range(at_once, 20_001, at_once):
        for _ in range(rng.binomial(at_once, share)):
            features = rng.integers(1, 1 << 63, 20, dtype=np.uint64)
            ledger.add(features, True, "shown", 0.0, accepted=True, accepted_before=accepted)
        if ledger.size >= 20:
            states.append(state(accepted + at_once - 1))
        if ledger.size >= 400:
            break
    assert states.count("at_risk") <= 0.01 * len(states)
    assert state(ledger.watch().last + 8 * round(max(at_once, 1 / share)) + 20) == "at_risk"


def test_error_of_what_a_rule_accepts_is_not_nothing() -> None:
    evidence = Evidence(delivered=40, right=8, audits=100)
    result = report_on(Targets(max_error=0.1), evidence, lately=StreamCounts(1000, 900, 0))
    assert result.state == "at_risk"
    assert result.error is not None
    assert result.error.share is not None
    assert result.error.share.estimate == pytest.approx(0.72)
    unknown = report_on(Targets(max_error=0.1), Evidence(audits=100), lately=StreamCounts(1000, 900, 0))
    assert (unknown.state, unknown.error.share if unknown.error else 0) == ("learning", None)


def test_recall_of_all_topics_together_is_certain_before_that_of_each() -> None:
    topic = (Evidence(shown=60, kept=50, audits=90), StreamCounts(9000, 30, 30))
    alone, together = recall(*topic), pooled_recall([topic] * 30)
    assert alone is not None
    assert together is not None
    assert alone.low < 0.2
    assert together.low > 0.8


@pytest.mark.parametrize(("often", "seldom"), [(20, 200), (200, 20), (0, 150)])
def test_topics_that_audit_seldom_are_not_spoken_for_by_those_that_audit_often(often: int, seldom: int) -> None:
    """Two topics reject 4,000 documents each and miss some; one audits half of them, the other one in fifty. Added up
    plainly, what the second misses counts for little."""
    random = np.random.default_rng(8)
    runs, n, kept = 1000, 4000, 300
    rates, missed = (0.5, 0.02), (often, seldom)
    truth = kept / (kept + sum(missed))
    low, high, plain = 0, 0, 0
    for _ in range(runs):
        topics = []
        for rate, many in zip(rates, missed, strict=True):
            finds = int(random.binomial(many, rate))
            audits = finds + int(random.binomial(n - many, rate))
            evidence = Evidence(shown=kept // 2, kept=kept // 2, audits=audits, finds=finds)
            topics.append((evidence, StreamCounts(n + kept // 2, kept // 2, 0)))
        evidences, counts = zip(*topics, strict=True)
        result, lumped = pooled_recall(topics), recall(evidences[0] + evidences[1], counts[0] + counts[1])
        assert result is not None
        assert lumped is not None
        low, high = low + (result.low <= truth), high + (result.high >= truth)
        plain += lumped.low <= truth <= lumped.high
    assert min(low, high) >= 0.95 * runs
    assert plain < 0.5 * runs


def test_what_nobody_audits_may_all_have_been_missed() -> None:
    audited = (Evidence(shown=60, kept=50, audits=90), StreamCounts(9000, 30, 30))
    silent = (Evidence(shown=60, kept=50), StreamCounts(1060, 30, 30))
    alone, together = pooled_recall([audited]), pooled_recall([audited, silent])
    assert alone is not None
    assert together is not None
    assert together.low < 100 / (100 + 1000)
    assert together.estimate == 1.0


def test_a_topic_that_does_not_audit_says_that_recall_stays_unknown_and_how_to_find_out() -> None:
    evidence, passed = Evidence(shown=20, kept=10), StreamCounts(1000, 10, 10)
    blind = report(Targets(min_recall=0.9), evidence, passed, passed, audits=False)
    asking = report(Targets(min_recall=0.9), evidence, passed, passed)
    assert blind is not None
    assert asking is not None
    assert (blind.state, asking.state) == ("learning", "learning")
    assert "cannot be known" in blind.detail
    assert HOW_TO_AUDIT in blind.detail
    assert HOW_TO_AUDIT not in asking.detail
    other = report(Targets(max_abstain=0.5), Evidence(), LATELY, LATELY, audits=False)
    assert other is not None
    assert other.state == "met"
    assert other.detail.endswith(f"What the topic misses cannot be known, since it does not audit: {HOW_TO_AUDIT}")


def test_what_is_maximised_is_told_with_its_estimate_and_never_promised() -> None:
    goal = Targets(maximise=FBeta(2.0))
    none = report_on(goal, Evidence())
    assert none.state == "learning"
    assert "query alone" in none.detail
    few = report_on(goal, Evidence(value=0.71, kept=3))
    assert few.state == "learning"
    assert few.detail.startswith("Documents are accepted above the threshold with the best F_2, about 0.71; fewer than")
    known = report_on(goal, Evidence(value=0.71, kept=30)).maximise
    assert known is not None
    assert known.state == "met"
    assert known.share is not None
    assert known.share.estimate == 0.71
    worth = report_on(Targets(maximise=Utility()), Evidence(value=1712.6, kept=30))
    assert worth.detail == "Documents are accepted above the threshold with the best utility, about 1,713."
    even = report_on(Targets(maximise=BreakEven()), Evidence(value=0.9, kept=30))
    assert even.detail == "Documents are accepted above the threshold at the break-even point, about 0.9."
    silent = report_on(Targets(maximise=Utility()), Evidence(value=0.0, kept=30, silent=True))
    assert "no threshold has a utility that is worth it, so nothing is accepted" in silent.detail
