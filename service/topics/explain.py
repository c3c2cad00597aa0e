"""Why a document was decided so, and what would have changed it.

    explanation   each term that the model weighs with its part in the score; the parts add up to the score
    flip          the fewest of the strongest terms without which, or of the query's terms with which, the decision
                  would have been another

A flip is found by deciding again, not by subtracting: where lengths are normalised, every term that goes makes the
others count for more. The strongest are taken away one after the other, MOST at the most, until the decision changes;
then those are put back that it did not take. Other terms might do as well.

What leads to a rejection is often not what stands in a document but what is missing. If nothing that can be taken away
changes it, words of the query are added, each once in the text, in the order of their weights. (Of learned words that
are missing only hashes are at hand here.)
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from models.core.vectors import Bag, Features, Singles
from models.core.views import view
from service.schemas import Decision
from service.topics.published import DIGITS, PublishedModel

MOST = 8  # terms that are named as a flip
BIAS, REST = "(bias)", "(every other word)"

Words = dict[int, str]  # terms by feature, in the order of the text
_TOWARD: dict[Decision, tuple[Literal[1, -1], ...]] = {"accept": (-1,), "reject": (1,), "abstain": (-1, 1)}


def explain(served: PublishedModel, seen: Bag, words: Words) -> list[dict[str, Any]]:
    """Every term that the model weighs with its part in the score, strongest first; the parts add up to the score.

    Terms of equal strength stand in the order of the text.
    """
    linear = served.model.linear
    x = view(linear.view, seen)
    parts = _parts(served, seen)
    rounded = {feature: round(part, DIGITS) for feature, part in parts.items()}
    in_order = sorted((f for f in words if f in rounded), key=lambda f: -abs(rounded[f]))
    pin, ban = served.settings.single.pin, served.settings.single.ban
    said = [{"term": words[f], "contribution": rounded[f]} | ({"pinned": True} if f in pin else {}) for f in in_order]
    if linear.rest:
        weighed = np.isin(x.features, np.array([*parts, *ban], np.uint64))
        others = linear.rest * float(x.values.sum() - x.values[weighed].sum())
        said.append({"term": REST, "contribution": round(others, DIGITS)})
    return [*said, {"term": BIAS, "contribution": round(linear.bias, DIGITS)}]


def flip(
    served: PublishedModel,
    decision: Decision,
    seen: Bag,
    words: Words,
    query: Words,
    idf: Callable[[Features], Singles],
) -> dict[str, Any] | None:
    """What would have changed the decision of the model; None if nothing of at most MOST terms would."""

    def decided(bag: Bag) -> Decision:
        return served.judge(bag)[0]

    if decided(seen) != decision:
        return None  # nearer to a threshold than two ways of summing are to each other
    parts = _parts(served, seen)
    found: list[tuple[list[int], Decision]] = []
    for side in _TOWARD[decision]:
        against = sorted((f for f in words if side * parts.get(f, 0.0) < 0), key=lambda f: -abs(parts[f]))
        found += _fewest(against, lambda gone: decided(_without(seen, gone)), decision)
    if found:
        gone, other = min(found, key=lambda one: len(one[0]))
        return {"decision": other, "without": [words[f] for f in gone], "with": []}
    if decision == "accept":
        return None
    weights = dict(zip(served.model.linear.features.tolist(), served.model.linear.weights.tolist(), strict=True))
    present = set(seen.features.tolist())
    missing = sorted((f for f in query if f not in present and weights.get(f, 0.0) > 0), key=lambda f: -weights[f])
    for come, other in _fewest(missing, lambda come: decided(_with(seen, come, idf)), decision):
        return {"decision": other, "without": [], "with": [query[f] for f in come]}
    return None


def _parts(served: PublishedModel, seen: Bag) -> dict[int, float]:
    """Of every term that the model weighs, its part in the score."""
    linear = served.model.linear
    x = view(linear.view, seen)
    own = linear.contributions(x)
    weighed = np.flatnonzero((own != 0) & ~np.isin(x.features, served.settings.single.banned))
    parts = own[weighed] + linear.rest * x.values[weighed]
    return dict(zip(x.features[weighed].tolist(), parts.tolist(), strict=True))


def _fewest(
    strongest: Sequence[int], decided: Callable[[Sequence[int]], Decision], decision: Decision
) -> list[tuple[list[int], Decision]]:
    """The first so many of these that change the decision, less those that are not needed, and to what; or nothing."""
    for n in range(1, min(MOST, len(strongest)) + 1):
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
