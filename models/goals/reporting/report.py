"""Whether a goal is met: estimates, bounds, how much evidence there is, and what is missing, in words users can act on.

What is known about a topic comes from two places. Judged documents show how the present thresholds do (`Evidence`, a
function of the log); the stream has been counted as it passed (`StreamCounts`).

    precision   hits / accepted, of judged documents that would be accepted now
    recall      kept / (kept + missed). `kept` are known relevant documents that were not rejected. What was missed is
                never known, but bounded: of the rejected documents at most high(finds, audits) are relevant, so
                low = kept / (kept + max(noticed, rejected · high(finds, audits)))
    error       accepted and irrelevant, or rejected and relevant; each at its bound, weighted by how many there are
    abstain     what lay between the thresholds, of what has passed lately and was decided by the same settings
    maximise    what the goal maximises, at the cut in force, by the estimate that led to it; nothing is promised

A promise about what is accepted holds as long as people go on judging. It is at risk once as many documents as it rests
on have been accepted with none of them judged, unless such a pause is usual: some people judge one in a hundred, some
all of a day at once. If they keep their pace, on average `pause` documents from one time to the next, a stretch of
−ln(1 − ALARM_CONFIDENCE) · pause without a judgement has a probability of 1 − ALARM_CONFIDENCE. (Recall needs no such
rule: its bound falls by itself while more is rejected and nothing is judged.)

Recall can rarely be certified for a rare topic: without a find, some 20 audits would be needed for each relevant
document in a hundred thousand. So the state stays `learning`, with the bound that does hold. How many judgements or
audits are missing is a range, given only if it is narrow enough to be of use (needed.py). A topic that does not audit
cannot know its recall at all, and says how to find out.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from scipy.special import betaincinv

from models.core import intervals
from models.core.intervals import Interval
from models.core.names import GoalState
from models.goals.evidence import BOUND_CONFIDENCE, MIN_RELEVANT, PROMISE_CONFIDENCE, Evidence
from models.goals.objectives import BreakEven, Objective
from models.goals.promises import Targets
from models.goals.reporting.needed import MAX_SPAN, QUARTILES
from models.goals.reporting.volume import StreamCounts
from models.goals.spending import LEARNING_SHARE
from models.goals.thresholds import MIN_SAMPLE

STATES: tuple[GoalState, ...] = ("unreachable", "at_risk", "learning", "met")  # worst first
MIN_ABSTAIN = 1 / (
    1000 * LEARNING_SHARE
)  # with less, none of the thousand documents that a band is chosen from is shown
MIN_AUDITS = 3  # −ln(1 − BOUND_CONFIDENCE): fewer, without a find, bound nothing
ALARM_CONFIDENCE = 0.995  # with which deliveries must contradict a promise: the test is made after every judgement
HOW_TO_AUDIT = "set `audit`, to .05 for example, and judge the audits that review offers."
MAX_PAUSES = -math.log(1 - ALARM_CONFIDENCE)  # without a judgement, in usual pauses


@dataclass(frozen=True, slots=True)
class PartReport:
    """How the topic stands to one of its targets."""

    state: GoalState
    share: Interval | None  # None while nothing is known
    judged: int  # judgements (for abstention: documents) behind the estimate
    detail: str
    confidence: float = BOUND_CONFIDENCE  # with which each bound holds
    estimated: bool = True  # else only the bounds of the share mean something
    needed: tuple[int, int] | None = None  # judgements that are probably still needed, if that is known well enough


@dataclass(frozen=True, slots=True)
class Report:
    """How the topic stands to its goal: the worst state of its parts, and their details."""

    state: GoalState
    detail: str
    precision: PartReport | None = None
    recall: PartReport | None = None
    error: PartReport | None = None
    abstain: PartReport | None = None
    maximise: PartReport | None = None
    unwatched: int = 0  # documents accepted since one was last judged, if people seem to have stopped; else 0


def report(
    goal: Targets, evidence: Evidence, ever: StreamCounts, lately: StreamCounts, audits: bool = True
) -> Report | None:
    """Reports on a goal; None if no target is set. `ever` counts the stream since the topic was created, `lately` since
    it has decided much as now; `audits` says whether rejected documents are drawn for audit."""
    precision = None if goal.min_precision is None else _precision(goal, goal.min_precision, evidence, lately)
    blind = not audits and not evidence.audits
    recall_ = None if goal.min_recall is None else _recall(goal.min_recall, evidence, ever, blind)
    error = None if goal.max_error is None else _error(goal.max_error, evidence, lately)
    promised = any(part and part.state == "met" for part in (precision, error))
    unwatched = _unwatched(evidence, ever) if promised else 0
    if unwatched:
        precision, error = (part and _at_risk_unwatched(part, unwatched) for part in (precision, error))
    abstain = None if goal.max_abstain is None else _abstain(goal.max_abstain, lately)
    maximise = _maximised(goal.maximise, evidence) if goal.maximise else None
    parts = [part for part in (precision, error, recall_, abstain, maximise) if part]
    if not parts:
        return None
    worst = min(parts, key=lambda part: STATES.index(part.state))
    detail = " ".join(part.detail for part in parts if part.state == worst.state)
    if blind and HOW_TO_AUDIT not in detail:
        detail += f" What the topic misses cannot be known, since it does not audit: {HOW_TO_AUDIT}"
    return Report(worst.state, detail, precision, recall_, error, abstain, maximise, unwatched)


def recall(evidence: Evidence, counts: StreamCounts) -> Interval | None:
    """The share of the relevant documents that is not rejected; None while no relevant document is known."""
    missed = Interval(*(counts.rejected * share for share in _missed(evidence, BOUND_CONFIDENCE)))
    # Audited documents are known; of the others, at most all were missed.
    limit = evidence.finds + max(0, counts.rejected - evidence.audits)
    return _kept(evidence, counts, missed._replace(high=min(missed.high, limit)))


def can_estimate_recall(evidence: Evidence, counts: StreamCounts) -> bool:
    """Whether recall can be estimated, not only bounded. Without audits nothing is known about what was rejected."""
    return evidence.audits > 0 or not counts.rejected


def pooled_recall(topics: Iterable[tuple[Evidence, StreamCounts]]) -> Interval | None:
    """Recall over all pairs of a document and a topic. It is certain long before that of any one topic.

    Each topic's audits speak for what that topic rejected. Simply added up, topics with more judged audits would speak
    for the others.
    """
    pairs = list(topics)
    if len(pairs) == 1:
        return recall(*pairs[0])
    evidence, counts = sum((e for e, _ in pairs), Evidence()), sum((c for _, c in pairs), StreamCounts())
    audited = [(finds, c.rejected * share) for e, c in pairs if e.audits >= MIN_AUDITS for finds, share in _weighted(e)]
    missed = intervals.total(audited, BOUND_CONFIDENCE) if audited else Interval(0.0, 0.0, 0.0)
    # Without audits nothing is known about what was rejected: all of it may have been missed.
    high = missed.high + sum(c.rejected for e, c in pairs if e.audits < MIN_AUDITS)
    return _kept(evidence, counts, missed._replace(high=min(high, counts.rejected)))


def _missed(evidence: Evidence, confidence: float) -> Interval:
    """The share of the rejected documents that is relevant."""
    if evidence.drawn:
        return Interval(*(min(share, 1.0) for share in intervals.total(_weighted(evidence), confidence)))
    share = intervals.interval(evidence.finds, evidence.audits, confidence)
    return share or Interval(0.0, 0.0, 1.0)


def _weighted(evidence: Evidence) -> list[tuple[int, float]]:
    """Finds, and the share of the rejected that each stands for: 1/c of Σ 1/c over the audits (see samples.py)."""
    drawn = evidence.drawn or ((1.0, evidence.audits, evidence.finds),)
    whole = sum(audits / chance for chance, audits, _ in drawn)
    return [(finds, 1 / chance / whole) for chance, _, finds in drawn]


def _kept(evidence: Evidence, counts: StreamCounts, missed: Interval) -> Interval | None:
    """Recall, from how many relevant documents were missed; None while no relevant document is known."""
    kept, noticed = evidence.kept, evidence.lost + evidence.finds
    if not kept + noticed:
        return None
    # Not everything that is shown is judged: it may hold more relevant documents than are known.
    shown = max(evidence.shown, 1)
    unjudged = max(0, counts.accepted + counts.abstained - evidence.shown)
    more = unjudged * kept / shown
    max_more = unjudged * intervals.high(min(kept, shown), shown, BOUND_CONFIDENCE)
    return Interval(
        _share(kept + more, max(noticed, missed.estimate)),
        _share(kept, max(noticed, missed.high)),
        _share(kept + max_more, max(noticed, missed.low)),
    )


def _share(part: float, other: float) -> float:
    return part / (part + other) if part + other else 1.0


def _precision(targets: Targets, goal: float, evidence: Evidence, counts: StreamCounts) -> PartReport:
    n, k, max_abstain = evidence.accepted, evidence.hits, targets.max_abstain
    share = intervals.interval(k, n, PROMISE_CONFIDENCE)
    needed = (evidence.missing_range[0], evidence.missing_range[1]) if evidence.missing_range else None

    def part(state: GoalState, detail: str) -> PartReport:
        return PartReport(state, share, n, detail, PROMISE_CONFIDENCE, needed=needed if state == "learning" else None)

    if evidence.worse_for:
        return part(
            "at_risk",
            f"The topic has become worse over the last {evidence.worse_for} judgements, and earlier ones no longer "
            "count. A precision is promised again once enough of what it has shown since then is judged.",
        )
    # Not what was accepted before the settings were changed.
    delivered = evidence.delivered if counts.accepted >= evidence.delivered else 0
    if intervals.high(evidence.right, delivered, ALARM_CONFIDENCE) < goal:
        return part(
            "at_risk",
            f"Of the last {delivered} accepted documents that were judged, {evidence.right} are relevant: "
            f"the precision is below {goal:g}.",
        )
    judged = f"Of {n} judged documents that would be accepted now, {k} are relevant"
    if n and evidence.certified:
        return part("met", f"{judged}.")
    more = f"A promise needs {_more(needed)} of shown documents."
    if share is not None:
        if share.high >= goal:
            detail = f"{judged}: about {share.estimate:.2g} so far; {goal:g} is not certain yet. {more}"
            return part("learning", detail)
        return part("at_risk", f"{judged}: the precision is below {goal:g}.")
    if evidence.reach < goal:
        return part(
            "unreachable",
            f"No threshold can promise a precision of {goal:g}: even among the documents that score highest, at most "
            f"{_percent(evidence.reach)} are relevant.",
        )
    if targets.mode == "best" and not evidence.silent:
        accepts = "documents are accepted by the best estimate"
        return part("learning", f"A precision of {goal:g} is not certain yet; until it is, {accepts}. {more}")
    not_yet = f"A precision of {goal:g} cannot be promised yet, so nothing is accepted"
    if targets.mode == "best":
        not_yet = f"By the best estimate no threshold has a precision of {goal:g}, so nothing is accepted"
    if max_abstain is not None and max_abstain < MIN_ABSTAIN:
        return part(
            "unreachable",
            f"{not_yet}; and with at most {_percent(max_abstain)} left undecided, nothing is shown that could be "
            "judged. Allow more abstention.",
        )
    return part("learning", f"{not_yet}. {more}")


def _more(needed: tuple[int, int] | None, what: str = "judgement") -> str:
    if needed is None:
        return f"more {what}s"
    low, high = map(_round, needed)
    return f"{low} to {high} more {what}s" if low < high else f"about {low} more {what}s"


def _unwatched(evidence: Evidence, counts: StreamCounts) -> int:
    """Documents accepted since one of them was last judged, if they are too many for a promise; else 0."""
    if evidence.delivered and not evidence.watched:
        return 0  # an old log does not have it
    since = counts.accepted - evidence.watched
    return since if since > max(evidence.accepted, MAX_PAUSES * evidence.pause) else 0


def _at_risk_unwatched(part: PartReport, documents: int) -> PartReport:
    """The same part, at risk if it was met, since none of so many accepted documents has been judged."""
    detail = f"None of the last {documents:,} accepted documents has been judged: judge some of them. {part.detail}"
    return replace(part, state="at_risk", detail=detail) if part.state == "met" else part


def _recall(goal: float, evidence: Evidence, counts: StreamCounts, blind: bool = False) -> PartReport:
    share, estimated = recall(evidence, counts), can_estimate_recall(evidence, counts)

    def part(state: GoalState, detail: str) -> PartReport:
        return PartReport(state, share, evidence.shown + evidence.audits, detail, estimated=estimated)

    if share is None:
        return part("learning", "No relevant document is known yet, so recall cannot be estimated.")
    if not (counts.rejected or evidence.lost or evidence.finds):
        detail = "Nothing has been rejected yet, so nothing has been missed."
        return part("learning" if counts.documents < MIN_SAMPLE else "met", detail)
    if share.low >= goal:
        detail = f"At least {_percent(share.low)} of the relevant documents are not rejected."
        return part("met", detail)
    if share.high < goal:
        detail = (
            f"At most {_percent(share.high)} of the relevant documents are not rejected. A recall of {goal:g} needs "
            "more abstention."
        )
        return part("at_risk", detail)
    certain = f"Recall is at least {_percent(share.low)}"
    may_be_missed = evidence.kept * (1 - goal) / goal if goal else math.inf
    if may_be_missed < evidence.lost + evidence.finds:
        detail = f"{certain}, but more documents are known to be missed than a recall of {goal:g} allows."
        return part("at_risk", detail)
    if blind:
        return part("learning", f"{certain}. More cannot be known, since the topic does not audit: {HOW_TO_AUDIT}")
    needed = _audits_needed(goal, evidence, counts)
    detail = f"{certain}; a recall of {goal:g} is not certain yet. That needs {_more(needed, 'audit')}."
    return replace(part("learning", detail), needed=needed)


def _audits_needed(goal: float, evidence: Evidence, counts: StreamCounts) -> tuple[int, int] | None:
    """The fewest and the most audits that it probably takes to make the recall certain; None if that is too uncertain.
    From one to the other, the share of finds among them runs from the lower to the upper quartile of its posterior."""
    finds, audits = evidence.finds, evidence.audits
    shares = [float(betaincinv(finds + 0.5, audits - finds + 0.5, q)) for q in QUARTILES]
    low, high = (_audits_at(share, goal, evidence, counts) for share in shares)
    return (low, high) if low and high and high <= MAX_SPAN * low else None


def _audits_at(share: float, goal: float, evidence: Evidence, counts: StreamCounts) -> int:
    """Audits after which the recall is certain if this share of them are finds; 0 if none of those left would do."""
    low, high, limit = 0, 1, counts.rejected - evidence.audits

    def certain(audits: int) -> bool:
        known = recall(_with_audits(evidence, audits, int(share * audits)), counts)
        return known is not None and known.low >= goal

    while high < limit and not certain(high):
        low, high = high, min(2 * high, limit)
    if high > limit or not certain(high):
        return 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if certain(middle) else (middle, high)
    return high


def _with_audits(evidence: Evidence, audits: int, finds: int) -> Evidence:
    """The evidence with so many more audits, some of them finds, drawn at the smallest chance."""
    first = [(c, n + audits, found + finds) for c, n, found in evidence.drawn[:1]]
    drawn = (*first, *evidence.drawn[1:])
    return replace(evidence, audits=evidence.audits + audits, finds=evidence.finds + finds, drawn=drawn)


def _error(goal: float, evidence: Evidence, counts: StreamCounts) -> PartReport:
    n = evidence.accepted + evidence.audits
    decided = counts.accepted + counts.rejected
    if not decided:
        return PartReport("learning", None, n, "Nothing has been decided yet under these settings.")
    if not evidence.audits:
        detail = "The error cannot be estimated until rejected documents are judged, too: see the audits in review."
        return PartReport("learning", None, n, detail)
    a, r = counts.accepted / decided, counts.rejected / decided
    # What the model would accept now, by scores the documents had no part in; if that is nothing, what was delivered.
    n_accepted, right = (
        (evidence.accepted, evidence.hits) if evidence.accepted else (evidence.delivered, evidence.right)
    )
    # Both bounds must hold at once.
    each = (1 + BOUND_CONFIDENCE) / 2
    accepted = intervals.interval(n_accepted - right, n_accepted, each)
    if accepted is None and counts.accepted:
        detail = "The error cannot be estimated until accepted documents are judged."
        return PartReport("learning", None, n, detail)
    accepted = accepted or Interval(0.0, 0.0, 0.0)
    share = Interval(*(a * wrong + r * missed for wrong, missed in zip(accepted, _missed(evidence, each), strict=True)))
    if share.high <= goal:
        return PartReport("met", share, n, f"At most {_percent(share.high)} of the decisions are wrong.")
    if share.low > goal:
        return PartReport("at_risk", share, n, f"At least {_percent(share.low)} of the decisions are wrong.")
    detail = (
        f"At most {_percent(share.high)} of the decisions are wrong. To show that no more than {_percent(goal)} are, "
        "judge more of what is shown and audited."
    )
    return PartReport("learning", share, n, detail)


def _abstain(goal: float, counts: StreamCounts) -> PartReport:
    n = counts.documents
    share = intervals.interval(counts.abstained, n, BOUND_CONFIDENCE)
    if share is None or n < MIN_SAMPLE:
        return PartReport("learning", share, n, f"Fewer than {MIN_SAMPLE} documents have passed under these settings.")
    abstained = f"The topic abstained from {_percent(share.estimate)} of the last {n} documents"
    if share.estimate <= goal:
        return PartReport("met", share, n, f"{abstained}.")
    return PartReport("at_risk", share, n, f"{abstained}, more than the {_percent(goal)} that the goal allows.")


def _maximised(objective: Objective, evidence: Evidence) -> PartReport:
    """Where the cut is by the best estimate. Its value is no share of a sample, so it has no bounds."""
    n = evidence.shown
    if evidence.value is None:
        return PartReport("learning", None, n, "No relevant document has been judged yet, so the query alone decides.")
    value = Interval(evidence.value, evidence.value, evidence.value)
    if evidence.silent:
        detail = f"By the best estimate no threshold has a {objective} that is worth it, so nothing is accepted."
        return PartReport("learning" if evidence.kept < MIN_RELEVANT else "met", value, n, detail)
    about = f"{evidence.value:,.0f}" if abs(evidence.value) >= 100 else f"{evidence.value:.3g}"
    which = "at the" if isinstance(objective, BreakEven) else "with the best"
    detail = f"Documents are accepted above the threshold {which} {objective}, about {about}"
    if evidence.kept < MIN_RELEVANT:
        few = f"fewer than {MIN_RELEVANT} relevant documents that were shown have been judged"
        return PartReport("learning", value, n, f"{detail}; {few}.")
    return PartReport("met", value, n, f"{detail}.")


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _round(number: int) -> int:
    """The number, rounded up to two digits: it is an estimate."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return math.ceil(number / step) * step
