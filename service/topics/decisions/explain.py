"""Why a document was decided as it was, and what would have changed the decision.

    explanation   each term that the model weights, with its part in the score; the parts add up to the score
    flip          a few of the strongest terms without which, or of the query's terms with which, the decision would
                  have been different

Under a projection each word of a document also moves its latent values, which the model weights. That part of the score
is shared out among the words, as the projection adds them up; what its centre adds, which no word does, is in the bias.

A flip is found by deciding again, not by subtracting: where lengths are normalised, removing a term makes the others
count for more. The strongest terms are removed one after the other, MAX_TERMS at most, until the decision changes; then
those that did not have to go are put back. Other terms might do as well.

A document is often rejected not for what it contains but for what it lacks. If removing terms does not change a
decision, words of the query are added, each once in the text, in the order of their weights. (Learned words that the
document lacks cannot be named: only their hashes are available here.)
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from models.core.vectors import Bag, Features, Singles
from models.core.views import view
from service.schemas import Decision
from service.topics.in_words import latent_weights
from service.topics.published import DIGITS, PublishedModel

MAX_TERMS = 8  # in a flip
BIAS, REST = "(bias)", "(every other word)"

Words = dict[int, str]  # terms by feature, in the order of the text


class ScorePart(NamedTuple):
    term: str
    contribution: float
    pinned: bool = False

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"term": self.term, "contribution": self.contribution}
        return fields | {"pinned": True} if self.pinned else fields


class Counterfactual(NamedTuple):
    """What would have changed a decision: the terms without which, or with which, it would have been this one."""

    decision: Decision
    without: list[str]
    with_: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {"decision": self.decision, "without": self.without, "with": self.with_}


_TOWARD: dict[Decision, tuple[Literal[1, -1], ...]] = {"accept": (-1,), "reject": (1,), "abstain": (-1, 1)}


def explain(published: PublishedModel, bag: Bag, words: Words) -> list[ScorePart]:
    """Every term that the model weights with its part in the score, strongest first; the parts add up to the score.

    Terms of equal strength are in the order of the text.
    """
    linear = published.model.linear
    x = view(linear.view, bag)
    parts, centre = _parts(published, bag)
    rounded = {feature: round(part, DIGITS) for feature, part in parts.items()}
    in_order = sorted((f for f in words if f in rounded), key=lambda f: -abs(rounded[f]))
    pin, ban = published.settings.pinned_terms.pin, published.settings.pinned_terms.ban
    contributions = [ScorePart(words[f], rounded[f], f in pin) for f in in_order]
    if linear.rest:
        named = np.isin(x.features, np.array([*parts, *ban], np.uint64))
        others = linear.rest * float(x.values.sum() - x.values[named].sum())
        contributions.append(ScorePart(REST, round(others, DIGITS)))
    return [*contributions, ScorePart(BIAS, round(linear.bias + centre, DIGITS))]


def flip(
    published: PublishedModel,
    decision: Decision,
    bag: Bag,
    words: Words,
    query: Words,
    idf: Callable[[Features], Singles],
) -> Counterfactual | None:
    """The terms whose change would have changed the model's decision; None if MAX_TERMS are not enough."""

    def decide(changed: Bag) -> Decision:
        return published.decide_bag(changed)[0]

    if decide(bag) != decision:
        return None  # the score is so close to a threshold that the order of summation matters
    parts, _ = _parts(published, bag)
    flips: list[tuple[list[int], Decision]] = []
    for side in _TOWARD[decision]:
        against = sorted((f for f in words if side * parts.get(f, 0.0) < 0), key=lambda f: -abs(parts[f]))
        flips += _fewest(against, lambda removed: decide(_without(bag, removed)), decision)
    if flips:
        removed, other = min(flips, key=lambda change: len(change[0]))
        return Counterfactual(other, [words[f] for f in removed], [])
    if decision == "accept":
        return None
    weights = dict(zip(published.model.linear.features.tolist(), published.model.linear.weights.tolist(), strict=True))
    present = set(bag.features.tolist())
    missing = sorted((f for f in query if f not in present and weights.get(f, 0.0) > 0), key=lambda f: -weights[f])
    for added, other in _fewest(missing, lambda added: decide(_with(bag, added, idf)), decision):
        return Counterfactual(other, [], [query[f] for f in added])
    return None


def _parts(published: PublishedModel, bag: Bag) -> tuple[dict[int, float], float]:
    """The part in the score of every term that the model weights, and what the projection's centre adds to it."""
    linear, projection, centre = published.model.linear, published.projection, 0.0
    x = view(linear.view, bag)
    contributions = linear.contributions(x)
    if projection:
        shares, centre = projection.share(bag, latent_weights(linear, projection))
        contributions += shares
    weighted = np.flatnonzero((contributions != 0) & ~np.isin(x.features, published.settings.pinned_terms.banned))
    parts = contributions[weighted] + linear.rest * x.values[weighted]
    return dict(zip(x.features[weighted].tolist(), parts.tolist(), strict=True)), centre


def _fewest(
    strongest: Sequence[int], decide: Callable[[Sequence[int]], Decision], decision: Decision
) -> list[tuple[list[int], Decision]]:
    """The shortest prefix of these terms that changes the decision, without those not needed, and the new decision; an
    empty list if there is none."""
    for n in range(1, min(MAX_TERMS, len(strongest)) + 1):
        if decide(strongest[:n]) != decision:
            needed = list(strongest[:n])
            for feature in strongest[:n]:
                fewer = [f for f in needed if f != feature]
                if decide(fewer) != decision:
                    needed = fewer
            return [(needed, decide(needed))]
    return []


def _without(bag: Bag, removed: Sequence[int]) -> Bag:
    kept = ~np.isin(bag.features, np.array(removed, np.uint64))
    return Bag(bag.features[kept], bag.counts[kept], bag.idf[kept])


def _with(bag: Bag, terms: Sequence[int], idf: Callable[[Features], Singles]) -> Bag:
    added = np.array(terms, np.uint64)
    features = np.concatenate([bag.features, added])
    order = np.argsort(features)
    counts = np.concatenate([bag.counts, np.ones(len(added), np.float32)])
    return Bag(features[order], counts[order], np.concatenate([bag.idf, idf(added)])[order])
