"""Why a document was decided so, and what would have changed it.

    explanation   each term that the model weighs with its part in the score; the parts add up to the score
    flip          the fewest of the strongest terms without which, or of the query's terms with which, the decision
                  would have been another

A flip is found by deciding again, not by subtracting: where lengths are normalised, every term that goes makes the
others count for more. The strongest are taken away one after the other, MAX_TERMS at most, until the decision changes;
then those that were not needed are put back. Other terms might do as well.

What leads to a rejection is often not what stands in a document but what is missing. If nothing that can be taken away
changes it, words of the query are added, each once in the text, in the order of their weights. (Of learned words that
are missing only hashes are at hand here.)
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from models.core.vectors import Bag, Features, Singles
from models.core.views import view
from service.schemas import Decision
from service.topics.published import DIGITS, PublishedModel

MAX_TERMS = 8  # that a flip names
BIAS, REST = "(bias)", "(every other word)"

Words = dict[int, str]  # terms by feature, in the order of the text


class Contribution(NamedTuple):
    term: str
    contribution: float
    pinned: bool = False

    def to_dict(self) -> dict[str, Any]:
        fields: dict[str, Any] = {"term": self.term, "contribution": self.contribution}
        return fields | {"pinned": True} if self.pinned else fields


class Flip(NamedTuple):
    """What would have changed a decision: the terms without which, or with which, it would have been another."""

    decision: Decision
    without: list[str]
    with_: list[str]

    def to_dict(self) -> dict[str, Any]:
        return {"decision": self.decision, "without": self.without, "with": self.with_}


_TOWARD: dict[Decision, tuple[Literal[1, -1], ...]] = {"accept": (-1,), "reject": (1,), "abstain": (-1, 1)}


def explain(served: PublishedModel, seen: Bag, words: Words) -> list[Contribution]:
    """Every term that the model weighs with its part in the score, strongest first; the parts add up to the score.

    Terms of equal strength stand in the order of the text.
    """
    linear = served.model.linear
    x = view(linear.view, seen)
    parts = _parts(served, seen)
    rounded = {feature: round(part, DIGITS) for feature, part in parts.items()}
    in_order = sorted((f for f in words if f in rounded), key=lambda f: -abs(rounded[f]))
    pin, ban = served.settings.pinned_terms.pin, served.settings.pinned_terms.ban
    contributions = [Contribution(words[f], rounded[f], f in pin) for f in in_order]
    if linear.rest:
        weighed = np.isin(x.features, np.array([*parts, *ban], np.uint64))
        others = linear.rest * float(x.values.sum() - x.values[weighed].sum())
        contributions.append(Contribution(REST, round(others, DIGITS)))
    return [*contributions, Contribution(BIAS, round(linear.bias, DIGITS))]


def flip(
    served: PublishedModel,
    decision: Decision,
    seen: Bag,
    words: Words,
    query: Words,
    idf: Callable[[Features], Singles],
) -> Flip | None:
    """What would have changed the decision of the model; None if nothing of at most MAX_TERMS terms would."""

    def decided(bag: Bag) -> Decision:
        return served.decide_bag(bag)[0]

    if decided(seen) != decision:
        return None  # nearer to a threshold than two ways of summing are to each other
    parts = _parts(served, seen)
    found: list[tuple[list[int], Decision]] = []
    for side in _TOWARD[decision]:
        against = sorted((f for f in words if side * parts.get(f, 0.0) < 0), key=lambda f: -abs(parts[f]))
        found += _fewest(against, lambda gone: decided(_without(seen, gone)), decision)
    if found:
        gone, other = min(found, key=lambda one: len(one[0]))
        return Flip(other, [words[f] for f in gone], [])
    if decision == "accept":
        return None
    weights = dict(zip(served.model.linear.features.tolist(), served.model.linear.weights.tolist(), strict=True))
    present = set(seen.features.tolist())
    missing = sorted((f for f in query if f not in present and weights.get(f, 0.0) > 0), key=lambda f: -weights[f])
    for come, other in _fewest(missing, lambda come: decided(_with(seen, come, idf)), decision):
        return Flip(other, [], [query[f] for f in come])
    return None


def _parts(served: PublishedModel, seen: Bag) -> dict[int, float]:
    """Of every term that the model weighs, its part in the score."""
    linear = served.model.linear
    x = view(linear.view, seen)
    own = linear.contributions(x)
    weighed = np.flatnonzero((own != 0) & ~np.isin(x.features, served.settings.pinned_terms.banned))
    parts = own[weighed] + linear.rest * x.values[weighed]
    return dict(zip(x.features[weighed].tolist(), parts.tolist(), strict=True))


def _fewest(
    strongest: Sequence[int], decided: Callable[[Sequence[int]], Decision], decision: Decision
) -> list[tuple[list[int], Decision]]:
    """The first so many of these that change the decision, less those that are not needed, and to what; or nothing."""
    for n in range(1, min(MAX_TERMS, len(strongest)) + 1):
        if decided(strongest[:n]) != decision:
            needed = list(strongest[:n])
            for feature in strongest[:n]:
                fewer = [f for f in needed if f != feature]
                if decided(fewer) != decision:
                    needed = fewer
            return [(needed, decided(needed))]
    return []


def _without(seen: Bag, gone: Sequence[int]) -> Bag:
    kept = ~np.isin(seen.features, np.array(gone, np.uint64))
    return Bag(seen.features[kept], seen.counts[kept], seen.idf[kept])


def _with(seen: Bag, come: Sequence[int], idf: Callable[[Features], Singles]) -> Bag:
    more = np.array(come, np.uint64)
    features = np.concatenate([seen.features, more])
    order = np.argsort(features)
    counts = np.concatenate([seen.counts, np.ones(len(more), np.float32)])
    return Bag(features[order], counts[order], np.concatenate([seen.idf, idf(more)])[order])
