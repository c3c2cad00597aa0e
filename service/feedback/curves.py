"""What other cuts of a topic's scores would give, from its judgements: error against loss, precision against recall.

The mathematics is in `models/goals/curves`. A document is scored by the model as it is now, without its own influence;
how it was decided when it passed only says what it stands for. Rules are left out: they decide whatever the cuts are.
"""

from collections.abc import Sequence

from models.goals.curves import precision_recall, tradeoff
from models.goals.curves.weighted import StreamSample
from service.feedback.metrics import evidence, rounded, trial
from service.schemas.metrics import Curve, CurvePoint, Tradeoff, TradeoffPoint
from service.store.resolve import StandingJudgement
from service.topics.counts import TopicCounts
from service.topics.published import DIGITS, PublishedModel
from service.topics.state import TopicState

Scored = Sequence[tuple[StandingJudgement, float]]


def scored_evidence(state: TopicState) -> Scored:
    """The judgements that count, each with the score that the document has without its own influence."""
    _, held_out = state.snapshot()
    judged = ((standing, held_out.get(standing.first.document)) for standing in evidence(state))
    return [(standing, score) for standing, score in judged if score is not None]


def tradeoff_of(published: PublishedModel, scored: Scored, counts: TopicCounts) -> Tradeoff:
    """The error that is left at each loss. Takes about 100 ms, so call it in a thread."""
    sample, model = _sample(scored, counts), published.model
    now = tradeoff.at(sample, model.reject_below, model.accept_above) if len(sample.scores) else None
    return Tradeoff(
        topic=published.topic,
        version=published.version,
        confidence=tradeoff.CONFIDENCE,
        judgements=len(sample.scores),
        points=[_tradeoff_point(point) for point in tradeoff.curve(sample)],
        now=_tradeoff_point(now) if now else None,
        detail=_detail(sample),
    )


def curve_of(published: PublishedModel, scored: Scored, counts: TopicCounts) -> Curve:
    """Precision and recall at each cut."""
    sample = _sample(scored, counts)
    break_even = precision_recall.break_even(sample)
    known = bool(sample.relevant.any())
    return Curve(
        topic=published.topic,
        version=published.version,
        confidence=precision_recall.CONFIDENCE,
        judgements=len(sample.scores),
        points=[_curve_point(point) for point in precision_recall.curve(sample)],
        break_even=None if break_even is None else round(break_even, DIGITS),
        now=_curve_point(precision_recall.at(sample, published.model.accept_above)) if known else None,
        detail=_detail(sample),
    )


def _sample(scored: Scored, counts: TopicCounts) -> StreamSample:
    return StreamSample.of([trial(standing) for standing, _ in scored], [score for _, score in scored], counts.ever)


def _tradeoff_point(point: tradeoff.CutPair) -> TradeoffPoint:
    shares = {name: round(getattr(point, name), DIGITS) for name in ("loss", "error", "low", "high")}
    return TradeoffPoint(**shares, reject_below=point.reject_below, accept_above=point.accept_above)


def _curve_point(point: precision_recall.CutFigures) -> CurvePoint:
    return CurvePoint(accept_above=point.accept_above, precision=rounded(point.precision), recall=rounded(point.recall))


def _detail(sample: StreamSample) -> str:
    if not sample.relevant.any():
        return "No relevant document of the stream has been judged yet."
    if sample.unseen:
        share = 100 * sample.unseen / sample.total
        return (
            f"Nothing is known about {share:.3g} % of the documents, because none like them was judged: errors there "
            "count in the bounds, not in the estimates. Judge the audits that review offers."
        )
    return ""
