"""Fits a topic to all its judgements at once by a batch method, and scores the result on documents it has not seen.

    dataset     the judged documents, and recent unjudged ones, which count as irrelevant: people judge what they are
                shown, and a model that never saw the rest would accept much of it
    model       the method's plane with its `weights` strongest weights, on the learners' scale: the mean score of the
                irrelevant is 0, and of the relevant 1 if they lie apart, so that online learning can go on from it
                The topic's query is where methods with a starting vector start (batch/starting.py)
    held out    for each document the score of a model fitted without its fold, truncated and scaled in the same way

Near-duplicates are in one fold. `served_scores` gives held-out scores of what is served now: online learning from all
judgements but those of the document's fold. So both are compared on the same documents, and neither has seen them.

Rejected: comparing on the newest judgements only. The future is what matters, but that leaves a few dozen documents;
and a learner that goes on is hardly worse for a fifth of its judgements less, wherever they are missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from models.batch import registry
from models.batch.folds import stratified_folds
from models.batch.starting import document
from models.core.measures import Bools, contingency, f_beta
from models.core.vectors import Bag, Linear, Reals
from models.goals import thresholds
from models.learners.documents import Background
from models.methods import farm
from models.methods.farm import Crew
from models.methods.matrix import Examples, Progress, no_progress
from models.online.model import Example, Model, Spec
from models.online.pins import NONE, PinnedTerms, applied
from models.online.trainer import Trainer
from models.text.minhash import Groups
from models.text.projection import Projection

FOLDS = 5
MIN_OF_EACH = 10  # relevant, and other, documents: two a fold; with fewer nothing is fitted


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """The judged documents in their order, then the unjudged ones."""

    documents: Sequence[str]
    bags: Sequence[Bag]
    relevant: Bools
    duplicates: NDArray[np.int64]  # the same number for near-duplicates
    fold: NDArray[np.int64]

    @classmethod
    def of(cls, judged: Sequence[Example], unjudged: Mapping[str, Bag], seed: int = 0) -> "Dataset":
        documents = [example.document for example in judged] + list(unjudged)
        bags = [example.bag for example in judged] + list(unjudged.values())
        relevant = np.zeros(len(bags), np.bool_)
        relevant[: len(judged)] = [example.relevant for example in judged]
        groups = Groups()
        for bag in bags:
            groups.add(bag.features)
        clusters, cluster = np.unique(groups.group, return_inverse=True)
        any_relevant = np.bincount(cluster, weights=relevant, minlength=len(clusters)) > 0
        fold = stratified_folds(any_relevant[:, None], FOLDS, seed)[cluster]
        return cls(documents, bags, relevant, groups.group, fold)


@dataclass(frozen=True, slots=True, eq=False)
class Refit:
    linear: Linear
    held_out: Reals
    pinned: Reals  # held-out scores of the models as they would be served, with the topic's pins applied


def refit(
    kind: str,
    params: Mapping[str, object],
    data: Dataset,
    weights: int,
    terms: PinnedTerms = NONE,
    seed: int = 0,
    progress: Progress = no_progress,
    projection: Projection | None = None,
    query: Bag | None = None,
    crew: Crew | None = None,
) -> Refit:
    """Fits the method FOLDS + 1 times, to documents without banned terms. Pins are not part of the model, so that they
    can be taken back: they are applied when it is served. With a projection, methods that take signed values are fitted
    to latent features, too, unless terms are banned (see online/trainer.py). Boosting may be done by a crew."""
    p, labels = registry.parse(kind, params), data.relevant[:, None]
    # Methods without a starting vector must not see the query: its terms would count among theirs.
    bags = [*data.bags, query] if query and registry.has_start(p) else data.bags
    if projection and not terms.ban and registry.takes_signed_values(p):
        x = Examples.of([projection.extend(bag) for bag in bags], "semantic")
    else:
        x = Examples.of(bags, p.view)
    if terms.ban:
        x = x.only(~np.isin(x.features, terms.banned))
    queries = [document(x, len(data.bags)) if len(bags) > len(data.bags) else None]
    x = x.rows(np.arange(len(bags)) < len(data.bags))
    over = PinnedTerms(tuple(f for f in terms.pin if f in x.features))
    scores, pinned = np.zeros(len(data.bags)), np.zeros(len(data.bags))

    def fitted(rows: Bools, begun: int) -> Linear:
        def overall(done: float) -> None:
            progress((begun + done) / (FOLDS + 1))

        if crew:
            planes = farm.fit(p, x.rows(rows), labels[rows], crew, overall)
        else:
            planes = registry.fit(p, x.rows(rows), labels[rows], seed, overall, queries)
        return planes.linear(0).strongest(weights)

    for k in range(FOLDS):
        out = data.fold == k
        if out.any() and not out.all():
            linear, rows = fitted(~out, k), x.rows(out)
            scores[out], pinned[out] = scores_of(linear, rows), scores_of(applied(linear, over), rows)
    linear = fitted(np.ones(len(scores), np.bool_), FOLDS)
    scale, shift = scale_of(scores, data.relevant)
    return Refit(scaled(linear, scale, shift), scores * scale + shift, pinned * scale + shift)


def served_scores(
    data: Dataset,
    spec: Spec,
    in_base: Sequence[Example],
    learned: Sequence[Example],
    weights: int,
    base: Model | None = None,
    fitted: Mapping[str, float] | None = None,
    projection: Projection | None = None,
) -> Reals:
    """Scores of the model that is served, each document's without the judgements of its fold."""
    scores = np.zeros(len(data.bags))
    fold_of = dict(zip(data.documents, data.fold.tolist(), strict=True))
    for k in range(FOLDS):
        out = np.flatnonzero(data.fold == k).tolist()
        trainer = Trainer(spec, projection=projection, base=base, fitted=fitted or {}, weights=weights)
        for example in in_base:
            trainer.add_fitted(example)
        for example in learned:
            if fold_of[example.document] != k:
                trainer.learn(example)
        model = trainer.model(Background())
        scores[out] = trainer.score_unseen(model, {data.documents[i]: data.bags[i] for i in out})
    return scores


def held_out_f1(scores: Reals, data: Dataset) -> float:
    """F1 over all documents, each accepted or not by the cut that is best for the other folds."""
    accepted = np.zeros(len(scores), np.bool_)
    for k in range(FOLDS):
        out = data.fold == k
        accepted[out] = scores[out] > thresholds.f_beta_cut(scores[~out], data.relevant[~out]).threshold
    return f_beta(contingency(accepted, data.relevant))


def scores_of(linear: Linear, x: Examples) -> Reals:
    """The score of every document, in x of which each feature of the model is a column."""
    at = np.searchsorted(x.features, linear.features)  # every feature of the model is one of x
    w = np.zeros(len(x.features))
    w[at] = linear.weights
    sums = np.add.reduceat(np.append((w[x.columns] + linear.rest) * x.values, 0.0), x.indptr[:-1])
    return linear.bias + np.where(np.diff(x.indptr) > 0, sums, 0.0)


def scale_of(scores: Reals, relevant: Bools) -> tuple[float, float]:
    """By how much to multiply held-out scores, and what to add then, so that they are on the learners' scale."""
    # By the whole spread if that is wider: scores that hardly separate the two would be scaled up without bound.
    low, high = float(scores[~relevant].mean()), float(scores[relevant].mean())
    spread = max(high - low, float(scores.std()))
    return (1 / spread, -low / spread) if spread > 0 else (1.0, 0.0)


def scaled(linear: Linear, scale: float, shift: float) -> Linear:
    """The model whose scores are so scaled."""
    weights = (linear.weights * scale).astype(np.float32)
    return replace(linear, weights=weights, bias=linear.bias * scale + shift, rest=linear.rest * scale)
