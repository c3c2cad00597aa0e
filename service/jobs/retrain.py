"""Retraining: fits a topic to all its judgements at once, compares the result with the served model, and publishes it.

    read the log  →  fit, held out (models/batch/refit.py)  →  compare on the same documents
    (models/batch/comparison.py)  →  publish the new base, with the held-out scores from which thresholds are chosen;
    judgements that came meanwhile are folded on top of it

Boosting fits the topics of a job together (models/batch/together.py), unless `joint` is false: one fit for all, then
each is compared and published by itself. A topic that bans terms is fitted alone, since the others may use these. All
topics of a joint fit are reserved before it begins, in the order of their ids, so that two such jobs cannot wait for
each other.

One job retrains a topic at a time; others wait. A job that runs again after its process died does not publish twice:
the log has its id beside what it published.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from models.batch import comparison, refit
from models.batch.comparison import Difference
from models.batch.refit import Dataset, Refit
from models.batch.together import MAX_PAIRS, JointDataset, refit_together
from models.core.latent import count_words
from models.core.measures import sap
from models.core.vectors import Linear, Reals
from models.goals import thresholds
from models.methods.farm import Crew
from models.online.model import Model
from models.text.analysis import terms
from service.errors import BadInput, NotFound
from service.jobs.context import JobContext
from service.jobs.crews import in_crew, open_crew
from service.jobs.material import Material, load_material, served_scores
from service.schemas.jobs import Gain, Retrain, Retrained, RetrainResult, Score
from service.store.stream.documents import unpack
from service.topics.features import analysis_of
from service.topics.published import Base, Recipe
from service.topics.state import TopicState

POLL_S = 0.5
MAX_TOPICS = 1000  # in a result
MAX_WORDS = 200  # of the strongest terms, stored with a model


async def retrain(context: JobContext, request: Retrain) -> RetrainResult:
    named = request.topics if request.topics is not None else await context.store.topics()
    topics = list(dict.fromkeys(named))
    together = request.method == "boosting" and request.joint and len(topics) > 1
    async with open_crew(context, request.workers) as crew:
        results = await (_together if together else _one_by_one)(context, topics, request, crew)
    published = sum(result.published for result in results)
    return RetrainResult(method=request.method, published=published, topics=results[:MAX_TOPICS], total=len(topics))


async def _one_by_one(
    context: JobContext, topics: Sequence[str], request: Retrain, crew: Crew | None
) -> list[Retrained]:
    results = []
    for n, topic in enumerate(topics):
        context.begin_part(n, len(topics), f"Retraining {topic}.")
        try:
            await _reserve(context, topic)
            material, version = await load_material(context, topic)
            result = _begun(topic, material, version, request)
            if not result.detail:
                result = await _conclude(
                    context, result, material, request, await _fit(context, material, request, crew)
                )
        except NotFound as error:
            if request.topics is not None and len(request.topics) == 1:
                raise
            result = _not_found(topic, error)
        finally:
            await context.jobs.release(topic, context.job)
        results.append(result)
    return results


async def _together(context: JobContext, topics: Sequence[str], request: Retrain, crew: Crew | None) -> list[Retrained]:
    results: dict[str, Retrained] = {}
    materials: dict[str, Material] = {}
    try:
        for topic in sorted(topics):
            await _reserve(context, topic)
            try:
                material, version = await load_material(context, topic)
            except NotFound as error:
                results[topic] = _not_found(topic, error)
                continue
            results[topic] = _begun(topic, material, version, request)
            if not material.too_little:
                materials[topic] = material
        fits = await _joint_fits(context, materials, request, crew)
        parts = len(materials) + 1
        for n, (topic, material) in enumerate(materials.items(), 1):
            if results[topic].detail:
                continue
            context.begin_part(n, parts, f"Comparing {topic} with what is served.")
            data, recipe = material.data, Recipe(request.method, request.params)
            if topic in fits:
                fit, data = fits[topic]
                recipe = recipe._replace(topics=sorted(fits))
            else:
                fit = await _fit(context, material, request, crew)
            with_folds = replace(material, data=data)
            results[topic] = await _conclude(context, results[topic], with_folds, request, fit, recipe)
    finally:
        for topic in topics:
            await context.jobs.release(topic, context.job)
    return [results[topic] for topic in topics]


async def _joint_fits(
    context: JobContext, materials: Mapping[str, Material], request: Retrain, crew: Crew | None
) -> dict[str, tuple[Refit, Dataset]]:
    """Fits the topics that ban no terms together, if there are several: the part of each, and its data."""
    joint = {topic: material for topic, material in materials.items() if not material.spec.terms.ban}
    if len(joint) < 2:
        return {}
    context.begin_part(0, len(materials) + 1, f"Fitting {len(joint):,} topics together.")
    documents = len({document for material in joint.values() for document in material.data.documents})
    if documents * len(joint) > MAX_PAIRS:
        pairs = f"{documents:,} documents of {len(joint):,} topics are too much to fit together"
        raise BadInput(f"{pairs}: name fewer topics, or send joint: false.")

    def fit() -> list[tuple[Refit, Dataset]]:
        data = JointDataset.of(
            [material.data for material in joint.values()], [material.rejects for material in joint.values()]
        )
        terms, weights = [material.spec.terms for material in joint.values()], context.config.served_weights
        refits = refit_together(request.params, data, weights, terms, context.report, crew)
        return list(zip(refits, data.parts, strict=True))

    return dict(zip(joint, await in_crew(context, fit), strict=True))


async def _fit(context: JobContext, material: Material, request: Retrain, crew: Crew | None) -> Refit:
    def fit() -> Refit:
        return refit.refit(
            request.method,
            request.params,
            material.data,
            context.config.served_weights,
            material.spec.terms,
            progress=context.report,
            query=material.spec.query,
            projection=material.projection,
            crew=crew,
        )

    return await in_crew(context, fit)


def _not_found(topic: str, error: NotFound) -> Retrained:
    return Retrained(topic=topic, relevant=0, irrelevant=0, background=0, detail=error.detail)


def _begun(topic: str, material: Material, version: int, request: Retrain) -> Retrained:
    """The result before anything is fitted; with a detail if that is all there will be."""
    result = Retrained(
        topic=topic,
        relevant=material.relevant,
        irrelevant=material.judged - material.relevant,
        background=len(material.data.documents) - material.judged,
        detail=material.too_little,
    )
    if version:
        update = {"published": True, "version": version, "detail": "Published before the job was interrupted."}
        return result.model_copy(update=update)
    if request.publish_to is not None and topic not in request.publish_to:
        return result.model_copy(update={"detail": "Only fitted together with the others: not in publish_to."})
    return result


def score(scores: Reals, data: Dataset) -> Score:
    return Score(sap=round(sap(scores, data.relevant), 4), f1=round(refit.held_out_f1(scores, data), 4))


def gain(difference: Difference) -> Gain:
    estimate, low, high = (round(value, 4) for value in difference)
    return Gain(estimate=estimate, low=low, high=high, confidence=comparison.CONFIDENCE)


async def _reserve(context: JobContext, topic: str) -> None:
    """Waits until no other job retrains the topic."""
    while (holder := await context.jobs.take(topic, context.job)) != context.job:
        context.message = f"Waiting for job {holder}, which retrains {topic}."
        await asyncio.sleep(POLL_S)
    context.message = f"Retraining {topic}."


async def _conclude(
    context: JobContext,
    result: Retrained,
    material: Material,
    request: Retrain,
    fit: Refit,
    recipe: Recipe | None = None,
) -> Retrained:
    """Compares a fit with what is served, and publishes it if it should be."""
    topic, data, weights = result.topic, material.data, context.config.served_weights
    version = 0
    served = await context.in_thread(served_scores, material, weights)
    difference = comparison.difference(fit.pinned, served, data.relevant, data.duplicates)
    publish = request.publish == "always" or (request.publish == "if_better" and difference.significant)
    if publish:
        base = _base(fit, material, recipe or Recipe(request.method, request.params))
        words = await _words(context, topic, fit.linear)
        version = await context.learning.publish_once(topic, material.born, base, words, material.version, context.job)
        if not version:
            detail = "Not published: the topic was given another query or learner meanwhile."
            return result.model_copy(update={"detail": detail})
    figures = {
        "served": score(served, data),
        "candidate": score(fit.pinned, data),
        "gain": gain(difference),
        "better": difference.significant,
        "published": publish,
        "version": version or None,
        "detail": _verdict(difference, request, publish),
    }
    return result.model_copy(update=figures)


def _base(fit: Refit, material: Material, recipe: Recipe) -> Base:
    """Builds what is published. The threshold that it carries is used only once no document of the fit is judged any
    more; until then thresholds are chosen as for every model, from held-out scores."""
    cut = thresholds.f_beta_cut(fit.pinned, material.data.relevant).threshold
    fitted = dict(zip(material.data.documents, fit.held_out.tolist(), strict=True))
    return Base(Model(fit.linear, cut, cut), fitted, recipe)


async def _words(context: JobContext, topic: str, linear: Linear) -> list[str]:
    """Finds the words of the strongest terms: in judged documents, and for the rest in documents of the background, as
    far as they are still remembered."""
    known = await context.learning.read(topic, TopicState.terms)
    n = count_words(linear.features)  # the others are columns of a projection
    strongest = linear.features[np.argsort(-np.abs(linear.weights[:n]), kind="stable")[:MAX_WORDS]].tolist()
    unnamed, holders = set(strongest).difference(known), dict[int, str]()
    for sampled in context.epochs.current.sample:
        holders.update((feature, sampled.document) for feature in unnamed.intersection(sampled.features.tolist()))
    blobs = await context.store.documents.load(list(set(holders.values()))) if holders else []
    for document in (unpack(blob).document for blob in blobs if blob):
        by_feature = terms(document.title, document.text, analysis_of(context.config))
        known |= {feature: term.canonical for feature, term in by_feature.items()}
    return list(dict.fromkeys(known[feature] for feature in strongest if feature in known))


def _verdict(difference: Difference, request: Retrain, published: bool) -> str:
    by = f"SAP {difference.estimate:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})"
    if difference.significant:
        verdict = "better than what was served"
    else:
        verdict = "worse than what is served" if difference.high < 0 else "the difference may be chance"
    if published:
        return f"Published: {by}, {verdict}."
    return f"Not {'to be ' * (request.publish == 'never')}published: {by}, {verdict}."
