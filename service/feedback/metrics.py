"""How a topic has done: what its log and the counts of the stream say, in the contract's types.

The mathematics is in `models/goals/reporting` and `models/goals/drift.py`. A document's label is the
current one; its decision and score are those from before it was first judged.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np

from models.core.measures import Contingency, t11su
from models.goals import drift
from models.goals.reporting import averages, prequential, reliability, volume
from models.goals.reporting.prequential import Quality
from models.goals.reporting.samples import Bounded, Trial
from models.goals.reporting.volume import StreamCounts
from service.clock import time_of
from service.schemas.metrics import (
    Average,
    Confusion,
    ConfusionPart,
    Drift,
    Figure,
    MacroAverages,
    Metrics,
    MicroAverages,
    Overview,
    Point,
    Reliability,
    ReliabilityBin,
    Volume,
)
from service.store.resolve import StandingJudgement
from service.topics.counts import TopicCounts
from service.topics.published import DIGITS, PublishedModel
from service.topics.state import TopicState

T11SU_OF_NOTHING = t11su(Contingency(0, 0, 1))


def evidence(state: TopicState) -> list[StandingJudgement]:
    """The judgements that count: of documents that had passed, near-duplicates once."""
    return [standing for standing in state.distinct_judgements() if standing.origin != "given"]


def metrics(published: PublishedModel, judged: Sequence[StandingJudgement], counts: TopicCounts) -> Metrics:
    """Measures a topic from these judgements and counts. Takes about 50 ms, so call it in a thread."""
    trials = [trial(standing) for standing in judged]
    return Metrics(
        topic=published.topic,
        version=published.version,
        confidence=prequential.CONFIDENCE,
        judgements=len(trials),
        t11su_of_nothing=round(T11SU_OF_NOTHING, DIGITS),
        confusion=_confusion(prequential.confusion(trials, counts.ever)),
        drift=_drift(judged, trials),
        flow=_flow(counts),
        reliability=_reliability(trials),
        series=[_point(judged[window], trials[window]) for window in prequential.windows(len(trials))],
        **_figures(prequential.quality(trials, counts.ever)),
    )


def overview(measured: Sequence[tuple[Sequence[StandingJudgement], TopicCounts]]) -> Overview:
    """The averages over topics, from the judgements and counts of each."""
    every = [([trial(standing) for standing in judged], counts.ever) for judged, counts in measured]
    qualities = [prequential.quality(trials, counts) for trials, counts in every]
    tables = [prequential.confusion(trials, counts) for trials, counts in every]
    micro = {name: _average(averages.micro(qualities, tables, name)) for name in MicroAverages.model_fields}
    macro = {name: _average(averages.macro(qualities, name)) for name in MacroAverages.model_fields}
    return Overview(
        topics=len(every),
        judged=sum(bool(trials) for trials, _ in every),
        confidence=prequential.CONFIDENCE,
        micro=MicroAverages(**micro),
        macro=MacroAverages(**macro),
    )


def _average(average: averages.Average | None) -> Average | None:
    return Average(**rounded(average.figure).model_dump(), topics=average.topics) if average else None


def _confusion(table: prequential.Confusion) -> Confusion:
    parts = (
        ConfusionPart(documents=part.documents, relevant=rounded(part.relevant), irrelevant=rounded(part.irrelevant))
        for part in table
    )
    return Confusion(**dict(zip(table._fields, parts, strict=True)))


def trial(standing: StandingJudgement) -> Trial:
    first = standing.first
    evidence = standing.origin, first.chance, first.probability
    return Trial(standing.delivered, first.score, standing.relevant, *evidence, standing.grade)


def _figure(share: Bounded | None) -> Figure | None:
    return None if share is None else rounded(share)


def rounded(share: Bounded) -> Figure:
    estimate = None if share.estimate is None else round(share.estimate, DIGITS)
    return Figure(estimate=estimate, low=round(share.low, DIGITS), high=round(share.high, DIGITS))


def _figures(quality: Quality) -> dict[str, Any]:
    return {field.name: _figure(getattr(quality, field.name)) for field in fields(quality)}


def _point(judged: Sequence[StandingJudgement], trials: Sequence[Trial]) -> Point:
    newest = judged[-1].first
    figures = _figures(prequential.quality(trials))
    return Point(at=time_of(newest.at_ms), version=newest.seq, judgements=len(trials), **figures)


def _drift(judged: Sequence[StandingJudgement], trials: Sequence[Trial]) -> Drift:
    places, errors = prequential.errors(trials)
    came = np.array([judged[i].first.came_ms or i + 1 for i in places], np.int64)
    order = np.argsort(came, kind="stable")
    accepted = np.array([trials[i].decision == "accept" for i in places], np.bool_)
    worse = drift.latest_change(errors[order], accepted[order], came[order])
    if worse is None:
        detail = f"Errors have not become more frequent, in {len(places)} decisions that were judged."
        detail = detail if len(places) else "No decision has been judged yet."
        return Drift(drifting=False, since=None, version=None, detail=detail)
    first = judged[places[order[worse.place]]].first
    what = "accepted documents" if accepted[order[worse.place]] else "audits"
    detail = (
        f"{int(worse.after.sum())} of the last {len(worse.after)} judged {what} were decided wrongly, against "
        f"{int(worse.before.sum())} of the {len(worse.before)} before: the stream, or what is wanted, has changed."
    )
    return Drift(drifting=True, since=time_of(first.at_ms), version=first.seq, detail=detail)


def _flow(counts: TopicCounts) -> Volume:
    ever, newest = counts.ever, counts.newest
    before = StreamCounts(
        ever.documents - newest.documents, ever.accepted - newest.accepted, ever.abstained - newest.abstained
    )
    return Volume(**volume.check_volume([before, newest])._asdict())


def _reliability(trials: Sequence[Trial]) -> Reliability:
    measured = reliability.reliability(trials, prequential.TAIL)
    bins = [
        ReliabilityBin(
            low=each.low,
            high=each.high,
            documents=each.documents,
            probability=round(each.mean, DIGITS),
            observed=rounded(each.observed),
        )
        for each in measured.bins
    ]
    return Reliability(bins=bins, brier=_figure(measured.brier))
