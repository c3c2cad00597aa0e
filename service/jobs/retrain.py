"""Retraining: a topic fitted anew to its judgements, compared with what is served, and published if that is wanted.

    read the log  →  fit, held out (models/batch/refit.py)  →  compare on the same documents
    (models/batch/comparison.py) →  publish: the new base, with the held-out scores that thresholds rest on; what came
    meanwhile is folded after it

Unjudged documents of the current background stand in as irrelevant, if the topic would reject them. Of what it lets
through nobody knows before it is judged, and much of it is relevant: counted as irrelevant, it would have a model
published as better that ranks such documents last, wherever only a part of what is shown gets judged. The topic is
asked as it would be had it learned its judgements one by one, not as it is served: so what is fitted depends on the
judgements that stand, and not on labels that have been corrected since.

One job retrains a topic at a time; another waits. A job that runs again after its process died publishes no second
time: what it has published says so, in the log.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from models.batch import comparison, refit
from models.batch.comparison import Difference
from models.batch.refit import Dataset, Refit
from models.core.measures import sap
from models.core.vectors import Bag, Linear, Reals
from models.goals import thresholds
from models.online.model import Example, Model, Spec
from models.online.trainer import fold as plain_fold
from models.text.analysis import terms
from service.errors import NotFound
from service.jobs.context import JobContext
from service.schemas.jobs import Gain, Retrain, Retrained, RetrainResult, Score
from service.store.documents import unpacked
from service.topics.background import Epoch
from service.topics.features import analysis_of
from service.topics.published import Base, Recipe
from service.topics.state import TopicState, example, spec_of

WAIT_S = 0.5
SHOWN = 1000  # topics in a result
NAMED = 200  # strongest terms whose words go with a model


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """A topic as it is to be fitted: what stands, and what it has been made of so far."""

    born: str
    version: int
    spec: Spec
    recalled: list[Example]
    learned: list[Example]
    base: Base | None
    judged: int
    data: Dataset  # all that was judged, then what is rejected

    @property
    def relevant(self) -> int:
        return int(self.data.relevant.sum())

    @property
    def too_little(self) -> str:
        """Why nothing can be fitted to it; empty if something can."""
        if self.relevant < refit.MIN_OF_EACH:
            return f"Too little to learn from: {self.relevant} relevant documents, and it takes {refit.MIN_OF_EACH}."
        others = len(self.data.documents) - self.relevant
        if others < refit.MIN_OF_EACH:
            few = f"{others} irrelevant or unjudged documents"
            return f"Too little to learn from: {few}, and it takes {refit.MIN_OF_EACH}."
        return ""


async def retrain(context: JobContext, asked: Retrain) -> RetrainResult:
    topics = asked.topics if asked.topics is not None else await context.store.topics()
    done: list[Retrained] = []
    published = 0
    for n, topic in enumerate(dict.fromkeys(topics)):
        context.part(n, len(topics), f"Retrains {topic}.")
        try:
            await _taken(context, topic)
            one = await _retrained(context, topic, asked)
        except NotFound as error:
            if asked.topics is not None and len(asked.topics) == 1:
                raise
            one = Retrained(topic=topic, relevant=0, irrelevant=0, background=0, detail=error.detail)
        finally:
            await context.jobs.release(topic, context.job)
        published += one.published
        done += [one] if len(done) < SHOWN else []
    return RetrainResult(method=asked.method, published=published, topics=done, total=len(topics))


async def material(context: JobContext, topic: str) -> tuple[Material, int]:
    """What a topic can be fitted to; and the version with which this job has published already, 0 if it has not."""
    epoch = context.epochs.current

    def look(fold: TopicState) -> tuple[Material, int]:
        return _material(fold, epoch, context.config.served_weights), fold.published_by(context.job)

    return await context.learning.read(topic, look)


def _material(fold: TopicState, epoch: Epoch, weights: int) -> Material:
    born, resolved = fold.head.born, fold.resolved
    base = Base.from_bytes(resolved.base.model) if resolved.base else None
    fitted: Mapping[str, float] = base.fitted if base else {}
    recalled = [example(one) for one in resolved.to_recall() if one.first.document in fitted]
    learned = [example(one) for one in resolved.to_fold()]
    sample = {
        one.document: Bag(one.features, one.counts, epoch.frequencies.idf(one.features))
        for one in epoch.sample
        if one.document not in resolved.judged
    }
    spec, judged = spec_of(resolved), [example(one) for one in resolved.judged.values()]
    asked = replace(fold.served(epoch), model=plain_fold(spec, judged, epoch.background, weights=weights))
    rejected = {document: bag for document, bag in sample.items() if asked.judge(bag)[0] == "reject"}
    data = Dataset.of(judged, rejected)
    return Material(born, resolved.version, spec, recalled, learned, base, len(judged), data)


def served_scores(of: Material, weights: int) -> Reals:
    """What is served, on documents that it has not learned from."""
    model, fitted = (of.base.model, of.base.fitted) if of.base else (None, {})
    return refit.served_scores(of.data, of.spec, of.recalled, of.learned, weights, model, fitted)


def score(scores: Reals, data: Dataset) -> Score:
    return Score(sap=round(sap(scores, data.relevant), 4), f1=round(refit.held_out_f1(scores, data), 4))


def gain(difference: Difference) -> Gain:
    estimate, low, high = (round(value, 4) for value in difference)
    return Gain(estimate=estimate, low=low, high=high, confidence=comparison.CONFIDENCE)


async def _taken(context: JobContext, topic: str) -> None:
    while (holder := await context.jobs.take(topic, context.job)) != context.job:
        context.message = f"Waits for job {holder}, which retrains {topic}."
        await asyncio.sleep(WAIT_S)
    context.message = f"Retrains {topic}."


async def _retrained(context: JobContext, topic: str, asked: Retrain) -> Retrained:
    of, version = await material(context, topic)
    told = Retrained(
        topic=topic,
        relevant=of.relevant,
        irrelevant=of.judged - of.relevant,
        background=len(of.data.documents) - of.judged,
        detail=of.too_little,
    )
    if version:
        done = {"published": True, "version": version, "detail": "Published before the job was interrupted."}
        return told.model_copy(update=done)
    if of.too_little:
        return told
    weights = context.config.served_weights
    made = await context.work(
        refit.refit, asked.method, asked.params, of.data, weights, of.spec.terms, progress=context.tell
    )
    served = await context.work(served_scores, of, weights)
    difference = comparison.difference(made.pinned, served, of.data.relevant, of.data.near)
    wanted = asked.publish == "always" or (asked.publish == "if_better" and difference.sure)
    if wanted:
        base = _base(made, of, Recipe(asked.method, asked.params))
        words = await _words(context, topic, made.linear)
        version = await context.learning.publish_once(topic, of.born, base, words, of.version, context.job)
        if not version:
            detail = "Not published: the topic was given another query or learner meanwhile."
            return told.model_copy(update={"detail": detail})
    figures = {
        "served": score(served, of.data),
        "candidate": score(made.pinned, of.data),
        "gain": gain(difference),
        "better": difference.sure,
        "published": wanted,
        "version": version or None,
        "detail": _said(difference, asked, wanted),
    }
    return told.model_copy(update=figures)


def _base(made: Refit, of: Material, recipe: Recipe) -> Base:
    """Its thresholds are of use only when no document that it was fitted on stands any more: else they are chosen as
    for every model, from their held-out scores."""
    cut = thresholds.f_beta_cut(made.pinned, of.data.relevant).threshold
    fitted = dict(zip(of.data.documents, made.held_out.tolist(), strict=True))
    return Base(Model(made.linear, cut, cut), fitted, recipe)


async def _words(context: JobContext, topic: str, linear: Linear) -> list[str]:
    """The words of the strongest terms. Those that no judgement has brought are in documents of the background, which
    are asked as long as they are remembered."""
    known = await context.learning.read(topic, TopicState.terms)
    strongest = linear.features[np.argsort(-np.abs(linear.weights), kind="stable")[:NAMED]].tolist()
    sample, holders = context.epochs.current.sample, dict[int, str]()
    unnamed = set(strongest).difference(known)
    for one in sample:
        holders.update((feature, one.document) for feature in unnamed.intersection(one.features.tolist()))
    blobs = await context.store.documents.recall(list(set(holders.values()))) if holders else []
    for document in (unpacked(blob).document for blob in blobs if blob):
        found = terms(document.title, document.text, analysis_of(context.config))
        known |= {feature: term.canonical for feature, term in found.items()}
    return list(dict.fromkeys(known[feature] for feature in strongest if feature in known))


def _said(difference: Difference, asked: Retrain, published: bool) -> str:
    by = f"SAP {difference.estimate:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})"
    if difference.sure:
        verdict = "better than what was served"
    else:
        verdict = "worse than what is served" if difference.high < 0 else "no better than chance may give"
    if published:
        return f"Published: {by}, {verdict}."
    return f"Not published: {by}, {verdict}." if asked.publish != "never" else f"Not to be published: {by}, {verdict}."
