"""From the service's values to the contract's types: a topic and its state, results, a preview, a model."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from pydantic_core import to_json

from models.core.latent import count_words
from models.core.names import View
from models.core.vectors import Bag, Linear
from models.goals.reporting.report import PartReport
from models.goals.reporting.volume import StreamCounts
from models.online.committee import Committee, VotingRule, mean_form, members_weights
from models.online.model import Model
from models.text.analysis import features_of
from service import schemas
from service.clock import now_ms, time_of
from service.config import Config
from service.errors import BadInput, FieldError
from service.feedback import goals
from service.feedback.preview import Outcome
from service.schemas.metrics import Preview
from service.schemas.models import (
    CommitteeInfo,
    Form,
    LossAndError,
    ModelFile,
    ModelInfo,
    StrongestTerms,
    Voters,
    WeightedTerm,
)
from service.topics.counts import TopicCounts
from service.topics.decisions.results import DocumentResult
from service.topics.in_words import in_words
from service.topics.published import PublishedModel
from service.topics.retrain_policy import policy_of, retrain_due
from service.topics.settings import audit_rate

MAX_TERMS = 20  # shown for the topic, and as many against it


def topic(
    published: PublishedModel, counts: TopicCounts | None, config: Config, warnings: Sequence[str] = ()
) -> schemas.Topic:
    """The topic with its state. `counts` is None while the store does not answer."""
    settings, model = published.settings, published.model
    return schemas.Topic(
        id=published.topic,
        **settings.model_dump(exclude={"created_ms", "read", "drawn", "goal"}),
        goal=settings.goal,
        created=time_of(settings.created_ms),
        status=schemas.Status(
            version=published.version,
            judged=schemas.Judged(relevant=published.relevant, irrelevant=published.irrelevant),
            reject_below=model.reject_below,
            accept_above=model.accept_above,
            passed=passed(counts) if counts else None,
            goal=goal(published, counts, config),
            retraining=retraining(published, counts, config),
        ),
        warnings=list(warnings),
    )


def passed(counts: TopicCounts) -> schemas.PassedCounts:
    return schemas.PassedCounts(**_counts(counts.ever), lately=schemas.Counts(**_counts(counts.lately)))


def goal(published: PublishedModel, counts: TopicCounts | None, config: Config) -> schemas.GoalStatus | None:
    if counts is None and published.settings.goal.asks:
        return schemas.GoalStatus(state="learning", detail="The store does not answer, so the goal cannot be checked.")
    report = goals.report(published, counts, config.audit_rate) if counts else None
    if report is None:
        return None
    parts = {name: _estimate(getattr(report, name)) for name in ("precision", "recall", "error", "abstain")}
    maximised = _maximised(report.maximise) if report.maximise else None
    return schemas.GoalStatus(state=report.state, detail=report.detail, **parts, maximise=maximised)


def retraining(published: PublishedModel, counts: TopicCounts | None, config: Config) -> schemas.Retraining | None:
    policy = policy_of(published, config)
    if policy is None or counts is None:
        return None
    return schemas.Retraining(**retrain_due(policy, published, counts.retrained, now_ms())._asdict())


def _estimate(part: PartReport | None) -> schemas.Estimate | None:
    if part is None:
        return None
    share: dict[str, float | None] = (
        part.share._asdict() if part.share else {"estimate": None, "low": None, "high": None}
    )
    if not part.estimated:
        share["estimate"] = None
    names = ("state", "confidence", "judged", "detail", "needed")
    fields = {name: getattr(part, name) for name in names}
    return schemas.Estimate.model_validate(fields | share)


def _maximised(part: PartReport) -> schemas.Maximised:
    estimate = part.share.estimate if part.share else None
    return schemas.Maximised(state=part.state, estimate=estimate, judged=part.judged, detail=part.detail)


def _counts(counts: StreamCounts) -> dict[str, int]:
    return {**asdict(counts), "rejected": counts.rejected}


def preview(outcome: Outcome, config: Config) -> Preview:
    compared = outcome.comparison
    before, after = (
        topic(compared.before, outcome.counts_before, config),
        topic(compared.after, outcome.counts_after, config),
    )
    return Preview(
        topic=compared.before.topic,
        version=compared.before.version,
        before=before.status,
        after=after.status,
        audit={
            "before": audit_rate(compared.before.settings, config.audit_rate),
            "after": audit_rate(compared.after.settings, config.audit_rate),
        },
        judged=compared.judged,
        unjudged=compared.unjudged,
        examples=compared.examples,
    )


def etag(published: PublishedModel) -> str:
    return f'"{published.born}-{published.version}"'


def model_info(published: PublishedModel, words: dict[int, str]) -> ModelInfo:
    linear, pinned = published.model.linear, published.settings.pinned_terms
    # A banned term is left out, though it has a weight: the one that cancels `rest`.
    named = linear.features[: count_words(linear.features)]  # the others are columns of a projection
    allowed = np.flatnonzero(~np.isin(named, pinned.banned))
    order = allowed[np.argsort(linear.weights[allowed], kind="stable")]

    def weighted_terms(places: Iterable[int]) -> list[WeightedTerm]:
        return [
            WeightedTerm(
                term=words.get(int(linear.features[i])),
                weight=float(linear.weights[i]),
                pinned=int(linear.features[i]) in pinned.pin,
            )
            for i in places
        ]

    toward = [i for i in order[::-1][:MAX_TERMS] if linear.weights[i] > 0]
    against = [i for i in order[:MAX_TERMS] if linear.weights[i] < 0]
    return ModelInfo(
        topic=published.topic,
        kind=published.settings.learner.kind,
        version=published.version,
        reject_below=published.model.reject_below,
        accept_above=published.model.accept_above,
        weights=len(named),
        terms=StrongestTerms(toward=weighted_terms(toward), against=weighted_terms(against)),
        committee=_committee(published),
    )


def model_file(published: PublishedModel, words: dict[int, str], sample: Sequence[Bag], weights: int) -> ModelFile:
    """The model as a file, in words alone: if it goes by meaning, it is written as one of words that scores documents
    like these much as it does, with at most so many weights."""
    committee, projection = published.model.committee, published.projection

    def form(linear: Linear) -> dict[str, Any]:
        return _form(in_words(linear, projection, sample, weights) if projection else linear, words)

    voters = None
    if committee and committee.rule:
        voters = Voters.model_construct(
            weights=list(committee.rule.weights),
            more_than=committee.rule.t1,
            less_than=committee.rule.t2,
            members=[Form.model_construct(**form(member)) for member in committee.members],
        )
    return ModelFile.model_construct(  # unchecked: the limits are for imported models, and learning may exceed them
        kind=published.settings.learner.kind,
        view=view if (view := published.model.linear.view) != "semantic" else "tfidf",
        reject_below=published.model.reject_below,
        accept_above=published.model.accept_above,
        committee=voters,
        **form(published.model.linear),
    )


def model(file: ModelFile, max_weights: int) -> Model:
    """The model in a file; raises BadInput if it has more weights than are served."""
    if not file.committee:
        return Model(_linear(file, file.view, "", max_weights), file.reject_below, file.accept_above)
    members = tuple(
        _linear(form, file.view, f"/committee/members/{i}", max_weights)
        for i, form in enumerate(file.committee.members)
    )
    rule = VotingRule(tuple(file.committee.weights), file.committee.more_than, file.committee.t2)
    committee = Committee(len(members), members, rule)
    return Model(mean_form(members), file.reject_below, file.accept_above, committee=committee)


def words(file: ModelFile) -> list[str]:
    """The words in a model file, each once."""
    forms: list[Form] = [file, *(file.committee.members if file.committee else ())]
    return list(dict.fromkeys(term for form in forms for term in form.terms))


def _committee(published: PublishedModel) -> CommitteeInfo | None:
    committee = published.model.committee
    if not committee:
        return None
    return CommitteeInfo(
        k=committee.k,
        weights=list(members_weights(committee.rule, committee.k)) if committee.rule else None,
        more_than=committee.rule.t1 if committee.rule else None,
        less_than=committee.rule.t2 if committee.rule else None,
        estimates={name: LossAndError(**estimate._asdict()) for name, estimate in committee.estimates.items()},
    )


def _form(linear: Linear, words: dict[int, str]) -> dict[str, Any]:
    weights = dict(zip(linear.features.tolist(), linear.weights.tolist(), strict=True))
    return {
        "bias": linear.bias,
        "rest": linear.rest,
        "terms": {words[feature]: weight for feature, weight in weights.items() if feature in words},
        "features": {f"{feature:016x}": weight for feature, weight in weights.items() if feature not in words},
    }


def _linear(form: Form, view: View, pointer: str, max_weights: int) -> Linear:
    if len(form.terms) + len(form.features) > max_weights:
        detail = f"More than {max_weights:,} weights, together with `features`."
        errors = [FieldError(pointer=f"{pointer}/terms", detail=detail)]
        raise BadInput("The model has more weights than this service allows (SLUICE_SERVED_WEIGHTS).", errors)
    features = np.concatenate([features_of(list(form.terms)), np.array([int(f, 16) for f in form.features], np.uint64)])
    weights = np.array([*form.terms.values(), *form.features.values()], np.float32)
    features, first = np.unique(features, return_index=True)
    return Linear(view, features, weights[first], form.bias, form.rest)


def results(results: Sequence[DocumentResult]) -> list[bytes]:
    """Each result as JSON."""
    return [to_json(result.to_dict()) for result in results]
