"""Compares methods on a topic: fits each to its judgements and scores them held out, on the same documents.

The served model is in the table too, and every gain is measured against it. Nothing is published.
"""

import time

from models.batch import comparison, refit
from models.core.names import METHOD_KINDS
from service.errors import BadInput
from service.jobs.context import JobContext
from service.jobs.material import Material, load_material, served_scores
from service.jobs.retrain import gain, score
from service.schemas.jobs import Compare, ComparedMethod, CompareResult, Contender

SERVED = "served"


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
    return _result(request.topic, material, sorted(table, key=lambda row: -row.held_out.sap))


def _verdict(difference: comparison.Difference) -> str:
    if difference.significant:
        return "Better."
    return "Worse." if difference.high < 0 else "The difference may be chance."


def _result(topic: str, material: Material, table: list[ComparedMethod]) -> CompareResult:
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
        detail=detail,
    )
