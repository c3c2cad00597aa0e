"""Retraining: fits a topic to all its judgements at once, compares the result with the served model, and publishes it.

    read the log  →  fit, held out (models/batch/refit.py)  →  compare on the same documents
    (models/batch/comparison.py)  →  publish the new base, with the held-out scores from which thresholds are chosen;
    judgements that came meanwhile are folded on top of it

Unjudged documents of the current background count as irrelevant if the topic would reject them. Those that it lets
through are left out: many of them are relevant, and where users judge only a part of what they are shown, a model that
ranks the rest last would look better than it is. Whether the topic would reject a document is decided by a model that
learned its judgements one by one, not by the served one, so that the fit depends only on the judgements in force, and
not on labels that have been corrected since.

One job retrains a topic at a time; others wait. A job that runs again after its process died does not publish twice:
the log has its id beside what it published.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.batch import comparison, refit
from models.batch.comparison import Difference
from models.batch.refit import Dataset, Refit
from models.core.latent import count_words
from models.core.measures import sap
from models.core.vectors import Bag, Linear, Reals
from models.goals import thresholds
from models.online.model import Example, Model, Spec
from models.online.trainer import fold as plain_fold
from models.text.analysis import terms
from models.text.projection import Projection
from service.errors import NotFound
from service.jobs.context import JobContext
from service.schemas.jobs import Gain, Retrain, Retrained, RetrainResult, Score
from service.store.documents import unpack
from service.topics.background import Epoch
from service.topics.features import analysis_of
from service.topics.published import Base, Recipe
from service.topics.state import TopicState, example, spec_of

POLL_S = 0.5
MAX_TOPICS = 1000  # in a result
MAX_WORDS = 200  # of the strongest terms, stored with a model


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """A topic's training data, and what its served model was made of."""

    born: str
    version: int
    spec: Spec
    in_base: list[Example]
    learned: list[Example]
    base: Base | None
    projection: Projection | None  # the newest; a change would put the topic under it
    judged: int
    data: Dataset  # the judged documents, then the rejected ones of the background

    @property
    def relevant(self) -> int:
        return int(self.data.relevant.sum())

    @property
    def too_little(self) -> str:
        """Why there is too little to fit a model to; empty if there is enough."""
        if self.relevant < refit.MIN_OF_EACH:
            return f"Too little to learn from: {refit.MIN_OF_EACH} relevant documents are needed, not {self.relevant}."
        others = len(self.data.documents) - self.relevant
        if others < refit.MIN_OF_EACH:
            needed = f"{refit.MIN_OF_EACH} irrelevant or unjudged documents are needed"
            return f"Too little to learn from: {needed}, not {others}."
        return ""


async def retrain(context: JobContext, request: Retrain) -> RetrainResult:
    topics = request.topics if request.topics is not None else await context.store.topics()
    results: list[Retrained] = []
    published = 0
    for n, topic in enumerate(dict.fromkeys(topics)):
        context.begin_part(n, len(topics), f"Retraining {topic}.")
        try:
            await _reserve(context, topic)
            result = await _retrain_topic(context, topic, request)
        except NotFound as error:
            if request.topics is not None and len(request.topics) == 1:
                raise
            result = Retrained(topic=topic, relevant=0, irrelevant=0, background=0, detail=error.detail)
        finally:
            await context.jobs.release(topic, context.job)
        published += result.published
        results += [result] if len(results) < MAX_TOPICS else []
    return RetrainResult(method=request.method, published=published, topics=results, total=len(topics))


async def load_material(context: JobContext, topic: str) -> tuple[Material, int]:
    """Loads a topic's training data, and the version that this job has published already (0 if none)."""
    epoch = context.epochs.current

    def read(state: TopicState) -> tuple[Material, int]:
        return _material(state, epoch, context.config.served_weights), state.published_by(context.job)

    return await context.learning.read(topic, read)


def _material(state: TopicState, epoch: Epoch, weights: int) -> Material:
    resolved = state.resolved
    base = Base.from_bytes(resolved.base.model) if resolved.base else None
    fitted: Mapping[str, float] = base.fitted if base else {}
    in_base = [example(judgement) for judgement in resolved.base_judgements() if judgement.first.document in fitted]
    learned = [example(judgement) for judgement in resolved.to_fold()]
    sample = {
        sampled.document: Bag(sampled.features, sampled.counts, epoch.frequencies.idf(sampled.features))
        for sampled in epoch.sample
        if sampled.document not in resolved.judged
    }
    spec, judged = spec_of(resolved), [example(judgement) for judgement in resolved.judged.values()]
    projection = epoch.projection.projection if epoch.projection and state.settings.semantic else None
    model = plain_fold(spec, judged, epoch.background, projection=projection, weights=weights)
    relearned = replace(state.build_model(epoch), model=model).under(epoch.projection)
    rejected = {document: bag for document, bag in sample.items() if relearned.decide_bag(bag)[0] == "reject"}
    data = Dataset.of(judged, rejected)
    return Material(state.head.born, resolved.version, spec, in_base, learned, base, projection, len(judged), data)


def served_scores(material: Material, weights: int) -> Reals:
    """Returns the held-out scores of the served model."""
    base = material.base
    model, fitted = (base.model, base.fitted) if base else (None, {})
    return refit.served_scores(
        material.data,
        material.spec,
        material.in_base,
        material.learned,
        weights,
        model,
        fitted,
        projection=material.projection,
    )


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


async def _retrain_topic(context: JobContext, topic: str, request: Retrain) -> Retrained:
    material, version = await load_material(context, topic)
    data = material.data
    result = Retrained(
        topic=topic,
        relevant=material.relevant,
        irrelevant=material.judged - material.relevant,
        background=len(data.documents) - material.judged,
        detail=material.too_little,
    )
    if version:
        update = {"published": True, "version": version, "detail": "Published before the job was interrupted."}
        return result.model_copy(update=update)
    if material.too_little:
        return result
    weights = context.config.served_weights
    fit = await context.in_thread(
        refit.refit,
        request.method,
        request.params,
        data,
        weights,
        material.spec.terms,
        progress=context.report,
        query=material.spec.query,
        projection=material.projection,
    )
    served = await context.in_thread(served_scores, material, weights)
    difference = comparison.difference(fit.pinned, served, data.relevant, data.duplicates)
    publish = request.publish == "always" or (request.publish == "if_better" and difference.significant)
    if publish:
        base = _base(fit, material, Recipe(request.method, request.params))
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
        verdict = "worse than what is served" if difference.high < 0 else "no better than chance may give"
    if published:
        return f"Published: {by}, {verdict}."
    return f"Not {'to be ' * (request.publish == 'never')}published: {by}, {verdict}."
