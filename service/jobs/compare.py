"""Compares methods on a topic: fits each to its judgements and scores them held out, on the same documents.

The served model is in the table too, and every gain is measured against it. So is the order learned from feedback
against the order by score, on what the topic let through and was judged. Nothing is published.
"""

import time

import numpy as np

from models.batch import comparison, refit
from models.core.names import METHOD_KINDS
from models.goals.reporting import prequential, rankings
from models.goals.reporting.samples import Bounded
from models.ranking import ranker
from service.errors import BadInput
from service.jobs.context import JobContext
from service.jobs.material import Material, load_material, served_scores
from service.jobs.retrain import gain, score
from service.schemas import LearnedRanking
from service.schemas.jobs import Compare, ComparedMethod, ComparedRanking, CompareResult, Contender
from service.schemas.metrics import Figure
from service.store.stream.outbox import START
from service.topics.decisions.order import Judgements, Output
from service.topics.features import analysis_of
from service.topics.published import DIGITS

SERVED = "served"
BATCH_SIZE = 500


async def compare(context: JobContext, request: Compare) -> CompareResult:
    context.message = f"Reading the judgements of {request.topic}."
    material, _ = await load_material(context, request.topic)
    if material.too_little:
        raise BadInput(material.too_little)
    data, terms = material.data, material.spec.terms
    contenders = request.methods or [Contender(method=kind) for kind in METHOD_KINDS]
    weights, parts = context.config.served_weights, len(contenders) + 1
    context.begin_part(0, parts, "Scoring the served model.")
    begun_s = time.monotonic()
    served = await context.in_thread(served_scores, material, weights)
    table = [
        ComparedMethod(
            method=SERVED,
            params={},
            held_out=score(served, data),
            gain=None,
            seconds=round(time.monotonic() - begun_s, 2),
            detail="What the topic has now.",
        )
    ]
    for n, contender in enumerate(contenders, 1):
        method, params = contender.method, contender.params
        context.begin_part(n, parts, f"Trying {method}.")
        begun_s = time.monotonic()
        fit = await context.in_thread(
            refit.refit,
            method,
            params,
            data,
            weights,
            terms,
            progress=context.report,
            query=material.spec.query,
            projection=material.projection,
        )
        seconds = round(time.monotonic() - begun_s, 2)
        difference = comparison.difference(fit.pinned, served, data.relevant, data.duplicates)
        table.append(
            ComparedMethod(
                method=method,
                params=params,
                held_out=score(fit.pinned, data),
                gain=gain(difference),
                seconds=seconds,
                detail=_verdict(difference),
            )
        )
    ranking = await _compared_ranking(context, request.topic)
    return _result(request.topic, material, sorted(table, key=lambda row: -row.held_out.sap), ranking)


async def _compared_ranking(context: JobContext, topic: str) -> ComparedRanking | None:
    judgements, setting = await context.learning.read(
        topic, lambda state: (Judgements.of(state), state.settings.ranking or LearnedRanking(kind="pairwise"))
    )
    output, analysis, place = None, analysis_of(context.config), None
    seen: set[str] = set()
    while place != START:
        entries = await context.store.outbox.newest(topic, place, BATCH_SIZE)
        place = entries[-1].place if len(entries) == BATCH_SIZE else START
        new = {e.entry.document: e for e in reversed(entries) if e.entry.document in judgements.documents.keys() - seen}
        seen |= new.keys()
        output = output or Output(judgements, analysis, 0)
        await context.in_thread(output.add, list(new.values()), [each.entry.score for each in new.values()])
    return await context.in_thread(_compare_orders, output, setting.C) if output else None


def _compare_orders(output: Output, C: float) -> ComparedRanking | None:
    documents, psi, labels = output.judged()
    if not ranker.enough(labels):
        return None
    compared = ranker.compare(psi, labels, C)
    gains = np.array([label.gain for label in labels], float)
    figures = [rankings.ndcg(scores, gains, prequential.TAIL) for scores in (psi[:, ranker.SCORE], compared.held_out)]
    by_score, by_feedback = (_figure(figure) for figure in figures if figure)
    return ComparedRanking(
        judged=len(documents),
        by_score=by_score,
        by_feedback=by_feedback,
        gain=gain(compared.gain),
        detail=_verdict(compared.gain),
    )


def _figure(figure: Bounded) -> Figure:
    estimate, low, high = (round(number, DIGITS) for number in (figure.estimate or 0.0, figure.low, figure.high))
    return Figure(estimate=estimate, low=low, high=high)


def _verdict(difference: comparison.Difference) -> str:
    if difference.significant:
        return "Better."
    return "Worse." if difference.high < 0 else "The difference may be chance."


def _result(
    topic: str, material: Material, table: list[ComparedMethod], ranking: ComparedRanking | None
) -> CompareResult:
    best = table[0]
    if best.method == SERVED:
        detail = "Nothing ranks better than what is served."
    elif best.gain and best.gain.low > 0:
        detail = f"{best.method} ranks better than what is served, by {best.gain.estimate:.3f} of SAP."
    else:
        detail = f"{best.method} ranks best, but the difference may be chance."
    return CompareResult(
        topic=topic,
        version=material.version,
        relevant=material.relevant,
        irrelevant=material.judged - material.relevant,
        background=len(material.data.documents) - material.judged,
        table=table,
        ranking=ranking,
        detail=detail,
    )
