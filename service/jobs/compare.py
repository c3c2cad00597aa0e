"""Which method would suit a topic best: each fitted to its judgements, held out, on the same documents.

What is served is in the table too, and every gain is over it. Nothing is published.
"""

import time

from models.batch import comparison, refit
from models.core.names import METHOD_KINDS
from service.errors import BadInput
from service.jobs.context import JobContext
from service.jobs.retrain import Material, gain, material, score, served_scores
from service.schemas.jobs import Compare, ComparedMethod, CompareResult, Contender

SERVED = "served"


async def compare(context: JobContext, asked: Compare) -> CompareResult:
    context.message = f"Reads the judgements of {asked.topic}."
    of, _ = await material(context, asked.topic)
    if of.too_little:
        raise BadInput(of.too_little)
    contenders = asked.methods or [Contender(method=kind) for kind in METHOD_KINDS]
    weights, parts = context.config.served_weights, len(contenders) + 1
    context.part(0, parts, "Asks what is served.")
    begun = time.monotonic()
    served = await context.work(served_scores, of, weights)
    took = round(time.monotonic() - begun, 2)
    own = score(served, of.data)
    table = [
        ComparedMethod(
            method=SERVED, params={}, held_out=own, gain=None, seconds=took, detail="What the topic has now."
        )
    ]
    for n, one in enumerate(contenders, 1):
        context.part(n, parts, f"Tries {one.method}.")
        begun = time.monotonic()
        made = await context.work(
            refit.refit, one.method, one.params, of.data, weights, of.spec.terms, progress=context.tell
        )
        took = round(time.monotonic() - begun, 2)
        over = comparison.difference(made.pinned, served, of.data.relevant, of.data.near)
        table.append(
            ComparedMethod(
                method=one.method,
                params=one.params,
                held_out=score(made.pinned, of.data),
                gain=gain(over),
                seconds=took,
                detail="Better." if over.sure else "Worse." if over.high < 0 else "The difference may be chance.",
            )
        )
    return _result(asked.topic, of, sorted(table, key=lambda row: -row.held_out.sap))


def _result(topic: str, of: Material, table: list[ComparedMethod]) -> CompareResult:
    best = table[0]
    if best.method == SERVED:
        detail = "Nothing ranks better than what is served."
    elif best.gain and best.gain.low > 0:
        detail = f"{best.method} ranks better than what is served, by {best.gain.estimate:.3f} of SAP."
    else:
        detail = f"{best.method} comes first, but not by more than chance may give."
    return CompareResult(
        topic=topic,
        version=of.version,
        relevant=of.relevant,
        irrelevant=of.judged - of.relevant,
        background=len(of.data.documents) - of.judged,
        table=table,
        detail=detail,
    )
