"""Whether a goal is met, said honestly: estimates, bounds, how much evidence is behind them, and what is missing.

What is known when a topic is asked comes from two places. The fold says what judged documents tell about the present
thresholds (`Evidence`, a function of the log); the stream has been counted as it passed (`Passed`).

    precision   hits / accepted, of judged documents that would be accepted now
    recall      kept / (kept + missed). `kept` are relevant documents that are known and not rejected. What was missed
                is never known, but bounded: of the rejected documents at most high(finds, audits) are relevant, so
                low = kept / (kept + max(noticed, rejected · high(finds, audits)))
    error       accepted and irrelevant, or rejected and relevant; each at its bound, weighed by how many there are
    abstain     what lay between the thresholds, of what has passed lately and was decided by the same settings

A promise about what is accepted stands as long as somebody looks. It is at risk when as many documents as it rests on
have been accepted, and none of them judged, and that is no usual pause: people judge one in a hundred, or all of a day
at once. If they go on at the pace at which they have, in the mean `pause` documents apart, a stretch of
−ln(1 − ALARM) · pause without a judgement has a chance of 1 − ALARM. (Recall needs no such rule: its bound falls by
itself while more is rejected and nothing is judged.)

Recall can rarely be certified for a rare topic: without a find, some 20 audits for each relevant document in a hundred
thousand would be needed. So the state stays `learning`, with the bound that does hold and the audits that are missing.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from models.core import intervals
from models.core.intervals import Interval
from models.core.names import GoalState
from models.goals.evidence import BOUND_CONFIDENCE, PROMISE_CONFIDENCE, Evidence
from models.goals.promises import SPENT_SHARE, Targets
from models.goals.thresholds import MIN_SAMPLE

STATES: tuple[GoalState, ...] = ("unreachable", "at_risk", "learning", "met")
SHOWS = 1 / (1000 * SPENT_SHARE)  # abstention that shows one of the thousand documents from which a band is chosen
FEW = 3  # audits: −ln(1 − SURE)
ALARM = 0.995  # with which what was delivered must contradict a promise: it is looked at after every judgement
LONG = -math.log(1 - ALARM)  # usual pauses


@dataclass(frozen=True, slots=True)
class StreamCounts:
    """How documents were decided as they passed."""

    documents: int = 0
    accepted: int = 0
    abstained: int = 0

    @property
    def rejected(self) -> int:
        return self.documents - self.accepted - self.abstained

    def __add__(self, other: "StreamCounts") -> "StreamCounts":
        return StreamCounts(
            self.documents + other.documents, self.accepted + other.accepted, self.abstained + other.abstained
        )


@dataclass(frozen=True, slots=True)
class PartReport:
    """How one of the goals stands."""

    state: GoalState
    share: Interval | None  # None while nothing is known
    judged: int  # judgements (of abstention: documents) behind the estimate
    detail: str
    confidence: float = BOUND_CONFIDENCE  # with which each bound holds


@dataclass(frozen=True, slots=True)
class Report:
    state: GoalState
    detail: str
    precision: PartReport | None = None
    recall: PartReport | None = None
    error: PartReport | None = None
    abstain: PartReport | None = None
    unwatched: int = 0  # documents that were accepted since one was judged, if nobody seems to look any more


def report(goal: Targets, evidence: Evidence, ever: StreamCounts, lately: StreamCounts) -> Report | None:
    """How a goal stands; None without one. `ever`: since the topic was made; `lately`: while it decided much as now."""
    precision = (
        None if goal.min_precision is None else _precision(goal.min_precision, goal.max_abstain, evidence, lately)
    )
    recall_ = None if goal.min_recall is None else _recall(goal.min_recall, evidence, ever)
    error = None if goal.max_error is None else _error(goal.max_error, evidence, lately)
    promised = any(part and part.state == "met" for part in (precision, error))
    unseen = _unwatched(evidence, ever) if promised else 0
    if unseen:
        precision, error = (part and _unseen(part, unseen) for part in (precision, error))
    abstain = None if goal.max_abstain is None else _abstain(goal.max_abstain, lately)
    parts = [part for part in (precision, error, recall_, abstain) if part]
    if not parts:
        return None
    worst = min(parts, key=lambda part: STATES.index(part.state))
    detail = " ".join(part.detail for part in parts if part.state == worst.state)
    return Report(worst.state, detail, precision, recall_, error, abstain, unseen)


def recall(evidence: Evidence, passed: StreamCounts) -> Interval | None:
    """The share of the relevant documents that is not rejected; None while nothing relevant is known."""
    missed = Interval(*(passed.rejected * share for share in _missed(evidence, BOUND_CONFIDENCE)))
    # What was audited is known, and of the rest not more than all can have been missed.
    most = evidence.finds + max(0, passed.rejected - evidence.audits)
    return _kept(evidence, passed, missed._replace(high=min(missed.high, most)))


def pooled(topics: Iterable[tuple[Evidence, StreamCounts]]) -> Interval | None:
    """Recall over the pairs of a document and a topic, all topics together: certain long before that of any one.

    Every topic speaks for what it rejected itself, by the audits of it that were judged: added up plainly, those of
    which more are judged would speak for the others.
    """
    every = list(topics)
    if len(every) == 1:
        return recall(*every[0])
    everything = sum((e for e, _ in every), Evidence()), sum((p for _, p in every), StreamCounts())
    # Fewer audits than FEW, without a find, would say less than that all of it may have been missed.
    audited = [(finds, p.rejected * share) for e, p in every if e.audits >= FEW for finds, share in _weighed(e)]
    missed = intervals.total(audited, BOUND_CONFIDENCE) if audited else Interval(0.0, 0.0, 0.0)
    # Of what is rejected without an audit nothing is known: all of it may have been missed.
    most = missed.high + sum(p.rejected for e, p in every if e.audits < FEW)
    return _kept(*everything, missed._replace(high=min(most, everything[1].rejected)))


def _missed(evidence: Evidence, confidence: float) -> Interval:
    """The share of the rejected documents that is relevant."""
    if evidence.drawn:
        return Interval(*(min(share, 1.0) for share in intervals.total(_weighed(evidence), confidence)))
    found = intervals.interval(evidence.finds, evidence.audits, confidence)
    return found or Interval(0.0, 0.0, 1.0)


def _weighed(evidence: Evidence) -> list[tuple[int, float]]:
    """Finds, and for how much of what was rejected each stands: 1/c of Σ 1/c over the audits (see samples.py)."""
    drawn = evidence.drawn or ((1.0, evidence.audits, evidence.finds),)
    whole = sum(audits / chance for chance, audits, _ in drawn)
    return [(finds, 1 / chance / whole) for chance, _, finds in drawn]


def _kept(evidence: Evidence, passed: StreamCounts, missed: Interval) -> Interval | None:
    """The share that was not missed."""
    kept, noticed = evidence.kept, evidence.lost + evidence.finds
    if not kept + noticed:
        return None
    # Not everything that is shown is judged: there may be more relevant documents among it than are known.
    shown = max(evidence.shown, 1)
    unjudged = max(0, passed.accepted + passed.abstained - evidence.shown)
    more = unjudged * kept / shown
    most_more = unjudged * intervals.high(min(kept, shown), shown, BOUND_CONFIDENCE)
    return Interval(
        _share(kept + more, max(noticed, missed.estimate)),
        _share(kept, max(noticed, missed.high)),
        _share(kept + most_more, max(noticed, missed.low)),
    )


def _share(part: float, other: float) -> float:
    return part / (part + other) if part + other else 1.0


def _precision(goal: float, max_abstain: float | None, evidence: Evidence, passed: StreamCounts) -> PartReport:
    n, k = evidence.accepted, evidence.hits
    found = intervals.interval(k, n, PROMISE_CONFIDENCE)
    if evidence.worse_for:
        said = (
            f"The topic has become worse, {evidence.worse_for} judgements ago. What was judged before is no evidence "
            "any more; a precision is promised again when enough of what is shown has been judged since."
        )
        return PartReport("at_risk", found, n, said, PROMISE_CONFIDENCE)
    # Not what was accepted before the settings were changed.
    delivered = evidence.delivered if passed.accepted >= evidence.delivered else 0
    if intervals.high(evidence.right, delivered, ALARM) < goal:
        said = (
            f"Of the last {delivered} accepted documents that were judged, {evidence.right} are relevant: "
            f"a precision of {goal:g} was not kept."
        )
        return PartReport("at_risk", found, n, said, PROMISE_CONFIDENCE)
    if n and evidence.certified:
        said = f"Of {n} judged documents that would be accepted, {k} are relevant."
        return PartReport("met", found, n, said, PROMISE_CONFIDENCE)
    if found is not None:  # a committee that votes accepts before anything can be promised
        kept = found.high >= goal
        said = f"too few to promise a precision of {goal:g}" if kept else f"a precision of {goal:g} is not kept"
        said = f"Of {n} judged documents that would be accepted, {k} are relevant: {said}."
        return PartReport("learning" if kept else "at_risk", found, n, said, PROMISE_CONFIDENCE)
    if evidence.reach < goal:
        said = (
            f"No cut can promise a precision of {goal:g}: even of the documents that score highest at most "
            f"{_percent(evidence.reach)} are relevant."
        )
        return PartReport("unreachable", found, n, said, PROMISE_CONFIDENCE)
    if max_abstain is not None and max_abstain < SHOWS:
        said = (
            f"Nothing can be accepted yet with a promised precision of {goal:g}, and with at most "
            f"{_percent(max_abstain)} left undecided nothing is shown that could be judged: allow more abstention."
        )
        return PartReport("unreachable", found, n, said, PROMISE_CONFIDENCE)
    more = "more judgements" if not evidence.missing else f"about {_round(evidence.missing)} more judgements"
    said = f"Nothing can be accepted yet with a promised precision of {goal:g}: that needs {more} of what is shown."
    return PartReport("learning", found, n, said, PROMISE_CONFIDENCE)


def _unwatched(evidence: Evidence, passed: StreamCounts) -> int:
    """Documents accepted since one of them was judged, if they are more than can be let pass; else 0."""
    if evidence.delivered and not evidence.watched:
        return 0  # a log that does not say when
    since = passed.accepted - evidence.watched
    return since if since > max(evidence.accepted, LONG * evidence.pause) else 0


def _unseen(part: PartReport, documents: int) -> PartReport:
    """What is promised is at risk, because nobody has looked at so many."""
    said = f"Nobody has judged any of the last {documents:,} accepted documents: judge some of them. {part.detail}"
    return replace(part, state="at_risk", detail=said) if part.state == "met" else part


def _recall(goal: float, evidence: Evidence, passed: StreamCounts) -> PartReport:
    n = evidence.shown + evidence.audits
    found = recall(evidence, passed)
    if found is None:
        return PartReport("learning", None, n, "No relevant document is known yet, so nothing is known of recall.")
    if not (passed.rejected or evidence.lost or evidence.finds):
        said = "Nothing has been rejected yet, so nothing was missed."
        return PartReport("learning" if passed.documents < MIN_SAMPLE else "met", found, n, said)
    if found.low >= goal:
        said = f"At least {_percent(found.low)} of the relevant documents are not rejected."
        return PartReport("met", found, n, said)
    if found.high < goal:
        said = (
            f"At most {_percent(found.high)} of the relevant documents are not rejected; a recall of {goal:g} "
            "needs more abstention."
        )
        return PartReport("at_risk", found, n, said)
    state: GoalState = "learning"
    spare = evidence.kept * (1 - goal) / goal if goal else math.inf  # of the relevant, so many may have been missed
    if spare < evidence.lost + evidence.finds:
        state, needs = "at_risk", "more is known to be missed than the goal allows"
    else:
        needs = f"about {_round(_audits_missing(goal, evidence, passed))} more audits without a find would show it"
    said = f"A recall of {_percent(found.low)} is certain, {goal:g} is not: {needs}."
    return PartReport(state, found, n, said)


def _audits_missing(goal: float, evidence: Evidence, passed: StreamCounts) -> int:
    """Audits, all without a find, after which the recall is certain; at most all that there is left to audit."""
    low, high = 0, 1
    most = max(1, passed.rejected - evidence.audits)

    def certain(audits: int) -> bool:
        found = recall(_more(evidence, audits), passed)
        return found is not None and found.low >= goal

    while high < most and not certain(high):
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if certain(middle) else (middle, high)
    return high


def _more(evidence: Evidence, audits: int) -> Evidence:
    """The same with so many more audits, all without a find, at the chance at which least was drawn."""
    drawn = tuple((c, n + audits * (not i), finds) for i, (c, n, finds) in enumerate(evidence.drawn))
    return replace(evidence, audits=evidence.audits + audits, drawn=drawn)


def _error(goal: float, evidence: Evidence, passed: StreamCounts) -> PartReport:
    n = evidence.accepted + evidence.audits
    decided = passed.accepted + passed.rejected
    if not decided:
        return PartReport("learning", None, n, "Nothing has been decided yet under these settings.")
    if not evidence.audits:
        said = (
            "Rejected documents must be judged, too, before anything is known of the error: see the audits in review."
        )
        return PartReport("learning", None, n, said)
    a, r = passed.accepted / decided, passed.rejected / decided
    # What the model would accept now, judged without its own influence; where that is nothing, what was delivered.
    n_accepted, right = (
        (evidence.accepted, evidence.hits) if evidence.accepted else (evidence.delivered, evidence.right)
    )
    # Both bounds must hold at once.
    each = (1 + BOUND_CONFIDENCE) / 2
    accepted = intervals.interval(n_accepted - right, n_accepted, each)
    if accepted is None and passed.accepted:
        return PartReport(
            "learning", None, n, "Nothing that was accepted has been judged yet, so nothing is known of the error."
        )
    accepted = accepted or Interval(0.0, 0.0, 0.0)
    share = Interval(*(a * one + r * other for one, other in zip(accepted, _missed(evidence, each), strict=True)))
    _, low, high = share
    if high <= goal:
        return PartReport("met", share, n, f"At most {_percent(high)} of what is decided is wrong.")
    if low > goal:
        said = f"At least {_percent(low)} of what is decided is wrong."
        return PartReport("at_risk", share, n, said)
    said = f"An error of at most {_percent(high)} is certain, {goal:g} is not: judge more of what is shown and audited."
    return PartReport("learning", share, n, said)


def _abstain(goal: float, passed: StreamCounts) -> PartReport:
    n = passed.documents
    found = intervals.interval(passed.abstained, n, BOUND_CONFIDENCE)
    if found is None or n < MIN_SAMPLE:
        return PartReport("learning", found, n, f"Fewer than {MIN_SAMPLE} documents have passed under these settings.")
    if found.estimate <= goal:
        return PartReport("met", found, n, f"Of the last {n} documents {_percent(found.estimate)} were abstained from.")
    said = (
        f"Of the last {n} documents {_percent(found.estimate)} were abstained from, more than the {_percent(goal)} "
        "that the goal allows."
    )
    return PartReport("at_risk", found, n, said)


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"


def _round(number: int) -> int:
    """A number that does not pretend to be exact."""
    step: int = 10 ** max(0, len(str(number)) - 2)
    return math.ceil(number / step) * step
